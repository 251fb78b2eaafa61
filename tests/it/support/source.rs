//! Rust source as tests about source read it: code, comments and string literals kept apart, and
//! every file of this repository.
//!
//! Promise: a word in a comment or in a text is never taken for code, nor the other way round.

use std::path::{Path, PathBuf};

/// One source text, taken apart.
#[derive(Debug, Default)]
pub struct Source {
    /// The code alone: comments and the insides of literals are blanks, line ends stay.
    pub code: String,
    pub strings: Vec<Literal>,
    pub comments: Vec<Comment>,
}

/// A string or byte string literal.
#[derive(Debug, PartialEq, Eq)]
pub struct Literal {
    /// Counted from 1.
    pub line: usize,
    pub text: String,
    /// Where it begins in [`Source::code`].
    pub at: usize,
}

/// One line of a comment.
#[derive(Debug, PartialEq, Eq)]
pub struct Comment {
    pub line: usize,
    pub text: String,
}

/// A file of the repository.
#[derive(Debug)]
pub struct File {
    /// From the repository's root, with slashes.
    pub path: String,
    pub text: String,
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A file that must exist.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// All files that are or will be under version control, sorted. What is no UTF-8 is left out.
pub fn files() -> Vec<File> {
    let mut paths = Vec::new();
    walk(&root(), &mut paths);
    paths.sort();
    paths
        .iter()
        .filter_map(|path| {
            let relative = path.strip_prefix(root()).expect("below the root");
            Some(File {
                text: std::fs::read_to_string(path).ok()?,
                path: relative.to_string_lossy().into_owned(),
            })
        })
        .collect()
}

/// What `.gitignore` leaves out, and git's own.
const LEFT_OUT: [&str; 7] = [
    ".git",
    "target",
    ".cache",
    "node_modules",
    "__pycache__",
    ".pytest_cache",
    "state",
];

fn walk(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let entry = entry.expect("an entry");
        let kind = entry.file_type().expect("a kind");
        let name = entry.file_name();
        // In a second work tree `.git` is a file.
        if is_left_out(directory, &name.to_string_lossy()) {
            continue;
        }
        if kind.is_dir() {
            walk(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

fn is_left_out(directory: &Path, name: &str) -> bool {
    // `/state/` is ignored at the root only: the ledger has a module of that name.
    LEFT_OUT.contains(&name) && (name != "state" || directory == root())
}

// === impl Source ===

impl Source {
    pub fn read(text: &str) -> Self {
        let mut source = Self::default();
        let mut rest = text;
        let mut line = 1;
        while let Some(first) = rest.chars().next() {
            let (token, kind) = next_token(rest, first);
            match kind {
                Token::Code => source.code.push_str(token),
                Token::Comment => {
                    for (at, text) in token.lines().enumerate() {
                        source.comments.push(Comment {
                            line: line + at,
                            text: text.to_owned(),
                        });
                    }
                    source.blank(token);
                }
                Token::String { text } => {
                    source.strings.push(Literal {
                        line,
                        text,
                        at: source.code.len(),
                    });
                    source.blank(token);
                }
            }
            line += token.matches('\n').count();
            rest = &rest[token.len()..];
        }
        source
    }

    fn blank(&mut self, token: &str) {
        let blanks = token
            .chars()
            .map(|letter| if letter == '\n' { '\n' } else { ' ' });
        self.code.extend(blanks);
    }

    /// Lines of code, counted from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
    }

    /// The code before a literal, without blanks at its end: `… from_static(`.
    pub fn before(&self, literal: &Literal) -> &str {
        self.code[..literal.at].trim_end()
    }
}

enum Token {
    Code,
    Comment,
    String { text: String },
}

fn next_token(rest: &str, first: char) -> (&str, Token) {
    if rest.starts_with("//") {
        let end = rest.find('\n').unwrap_or(rest.len());
        return (&rest[..end], Token::Comment);
    }
    if rest.starts_with("/*") {
        let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
        return (&rest[..end], Token::Comment);
    }
    if let Some((token, text)) = string_literal(rest) {
        return (token, Token::String { text });
    }
    if first == '\'' || rest.starts_with("b'") {
        let start = if first == '\'' { 1 } else { 2 };
        if let Some(token) = char_literal(rest, start) {
            return (token, Token::Code);
        }
    }
    // A word is read whole, so that an `r` or `b` at its end is not a prefix of a literal.
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let end = if is_word(first) {
        rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())
    } else {
        first.len_utf8()
    };
    (&rest[..end], Token::Code)
}

/// `'x'`, `'\n'`, `'"'`; a lifetime is not a literal.
fn char_literal(rest: &str, start: usize) -> Option<&str> {
    let inner = &rest[start..];
    let length = if let Some(escape) = inner.strip_prefix('\\') {
        let skip = escape.chars().next()?.len_utf8();
        1 + skip + escape[skip..].find('\'')?
    } else {
        inner.chars().next()?.len_utf8()
    };
    inner[length..]
        .starts_with('\'')
        .then(|| &rest[..start + length + 1])
}

/// `"…"`, `b"…"`, `r#"…"#` and their kin: the token and its contents.
fn string_literal(rest: &str) -> Option<(&str, String)> {
    let (prefix, hashes) = ["br", "cr", "b", "c", "r", ""]
        .into_iter()
        .find_map(|prefix| {
            let after = rest.strip_prefix(prefix)?;
            let quoted = after.trim_start_matches('#');
            let hashes = after.len() - quoted.len();
            let opens = quoted.starts_with('"') && (hashes == 0 || prefix.contains('r'));
            opens.then_some((prefix, hashes))
        })?;
    let start = prefix.len() + hashes + 1;
    if prefix.contains('r') {
        let close = format!("\"{}", "#".repeat(hashes));
        let end = start + rest[start..].find(&close)?;
        return Some((&rest[..end + close.len()], rest[start..end].to_owned()));
    }
    let mut text = String::new();
    let mut letters = rest[start..].char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((&rest[..start + at + 1], text)),
            '\\' => match letters.next()?.1 {
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                '0' => text.push('\0'),
                // A continued line: the blanks at its start do not count.
                '\n' => {
                    while letters
                        .clone()
                        .next()
                        .is_some_and(|(_, next)| next.is_whitespace())
                    {
                        letters.next();
                    }
                }
                other => text.push(other),
            },
            _ => text.push(letter),
        }
    }
    None
}

#[test]
fn code_comments_and_literals_are_distinguished() {
    let text = "/// a \"doc\"\nfn f<'a>(x: &'a str) -> char {\n    let _ = (\"one // no comment\", \
        b\"two\", r#\"th\"ree\"#, '\"', '\\'', b'\"'); // tail\n    for_each(\"fo\\\"ur\")\n}\n";
    let source = Source::read(text);
    let strings: Vec<(usize, &str)> = source
        .strings
        .iter()
        .map(|found| (found.line, found.text.as_str()))
        .collect();
    assert_eq!(
        strings,
        [
            (3, "one // no comment"),
            (3, "two"),
            (3, "th\"ree"),
            (4, "fo\"ur")
        ]
    );
    let comments: Vec<&str> = source
        .comments
        .iter()
        .map(|found| found.text.as_str())
        .collect();
    assert_eq!(comments, ["/// a \"doc\"", "// tail"]);
    assert!(source.before(&source.strings[3]).ends_with("for_each("));
    assert_eq!(source.code.lines().count(), text.lines().count());
    assert!(!source.code.contains("three") && source.code.contains("fn f<'a>"));
}
