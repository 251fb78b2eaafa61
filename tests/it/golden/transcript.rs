//! Reads a transcript file. Unreadable text is an error of the file, reported with its line.

use std::path::Path;

use serde_json::Value;

use super::compare::text_matches;
use crate::support::Answer;

/// In the place of `<<<`: the expected answer may come only after some repeats.
const AT_LAST: &str = "<<< at last";

/// A way that a transcript is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    Sandbox,
    Bursar,
}

/// One file.
#[derive(Debug, Default)]
pub struct Transcript {
    pub file: String,
    pub clauses: Vec<String>,
    pub through: Vec<Through>,
    pub exchanges: Vec<Exchange>,
}

/// A request and the expected answer.
#[derive(Debug)]
pub struct Exchange {
    pub request_line: String,
    /// Lines as written, placeholders not filled in.
    pub headers: Vec<String>,
    pub body: String,
    /// The request is sent again until its answer is as wanted.
    pub at_last: bool,
    pub wanted: Wanted,
}

/// An answer's pattern. Lines are counted from 1.
#[derive(Debug)]
pub struct Wanted {
    pub line: usize,
    pub statuses: Vec<u16>,
    pub headers: Vec<WantedHeader>,
    pub body: Body,
}

#[derive(Debug)]
pub enum Body {
    /// Not compared.
    Any,
    /// The bytes of the answer before.
    Same(usize),
    Json(usize, Value),
    /// Lines of a stream, blank ones left out.
    Stream(Vec<(usize, String)>),
}

/// A header's pattern.
#[derive(Debug)]
pub struct WantedHeader {
    pub line: usize,
    /// In lower case.
    pub name: String,
    /// `None`: missing.
    pub value: Option<String>,
}

// === impl Transcript ===

impl Transcript {
    pub fn read(path: &Path) -> Self {
        let file = path.file_name().expect("a file name").to_string_lossy();
        let text = std::fs::read_to_string(path).expect("a transcript");
        Self::parse(&file, &text)
    }

    pub fn parse(file: &str, text: &str) -> Self {
        let lines: Vec<(usize, &str)> = text
            .lines()
            .enumerate()
            .map(|(at, line)| (at + 1, line))
            .collect();
        let mut transcript = Self {
            file: file.to_owned(),
            ..Self::default()
        };
        let comments = lines
            .iter()
            .take_while(|(_, line)| line.is_empty() || line.starts_with('#'))
            .count();
        for (number, line) in &lines[..comments] {
            transcript.comment(*number, line);
        }
        for exchange in lines[comments..].split(|(_, line)| *line == "===") {
            transcript.exchanges.push(read_exchange(file, exchange));
        }
        transcript
    }

    fn comment(&mut self, number: usize, line: &str) {
        let words = |list: &str| -> Vec<String> {
            list.split(',').map(|word| word.trim().to_owned()).collect()
        };
        if let Some(list) = line.strip_prefix("# clauses:") {
            self.clauses.extend(words(list));
        } else if let Some(list) = line.strip_prefix("# through:") {
            for word in words(list) {
                self.through.push(match word.as_str() {
                    "sandbox" => Through::Sandbox,
                    "bursar" => Through::Bursar,
                    _ => panic!("{}:{number}: through what? {word}", self.file),
                });
            }
        }
    }
}

fn read_exchange(file: &str, lines: &[(usize, &str)]) -> Exchange {
    let first = lines.first().map_or(0, |(number, _)| *number);
    let mut halves = lines.split(|(_, line)| *line == "<<<" || *line == AT_LAST);
    let (Some(request), Some(answer), None) = (halves.next(), halves.next(), halves.next()) else {
        panic!("{file}:{first}: an exchange has one line `<<<`");
    };
    let start = request.iter().position(|(_, line)| !line.is_empty());
    let start = start.unwrap_or_else(|| panic!("{file}:{first}: no request"));
    let (head, body) = split_at_blank(&request[start..]);
    let body: Vec<&str> = body.iter().map(|(_, line)| *line).collect();
    let is_form = head.iter().any(|(_, line)| {
        let line = line.to_ascii_lowercase();
        line.starts_with("content-type: multipart/")
    });
    Exchange {
        request_line: head[0].1.to_owned(),
        headers: head[1..]
            .iter()
            .map(|(_, line)| (*line).to_owned())
            .collect(),
        // Interface, Endpoints: a form's lines end as its standard says.
        body: match is_form {
            true => format!("{}\r\n", body.join("\r\n")),
            false => body.join("\n"),
        },
        at_last: lines.iter().any(|(_, line)| *line == AT_LAST),
        wanted: read_wanted(file, answer),
    }
}

fn read_wanted(file: &str, lines: &[(usize, &str)]) -> Wanted {
    let (head, body) = split_at_blank(lines);
    let Some((line, status_line)) = head.first().copied() else {
        panic!("{file}: no status line after `<<<`");
    };
    let statuses = status_line
        .strip_prefix("HTTP/1.1 ")
        .and_then(|rest| rest.split(' ').next())
        .unwrap_or_else(|| panic!("{file}:{line}: no status line"));
    let statuses = statuses
        .split('|')
        .map(|status| {
            status
                .parse()
                .unwrap_or_else(|_| panic!("{file}:{line}: no status"))
        })
        .collect();
    let headers: Vec<WantedHeader> = head[1..]
        .iter()
        .map(|(line, text)| WantedHeader::read(file, *line, text))
        .collect();
    let is_stream = headers.iter().any(|header| {
        header.name == "content-type" && header.value.as_deref() == Some("text/event-stream")
    });
    let filled: Vec<(usize, String)> = body
        .iter()
        .filter(|(_, text)| !text.trim().is_empty())
        .map(|(line, text)| (*line, (*text).to_owned()))
        .collect();
    let body = match filled.as_slice() {
        [] => Body::Any,
        [(line, same)] if same == "{same}" => Body::Same(*line),
        _ if is_stream => Body::Stream(filled),
        [(line, _), ..] => {
            let text: Vec<&str> = filled.iter().map(|(_, text)| text.as_str()).collect();
            let value = serde_json::from_str(&text.join("\n"));
            Body::Json(
                *line,
                value.unwrap_or_else(|why| panic!("{file}:{line}: {why}")),
            )
        }
    };
    Wanted {
        line,
        statuses,
        headers,
        body,
    }
}

/// A line and its number, counted from 1.
type Numbered<'a> = (usize, &'a str);

/// The part before the first blank line, and the part after it.
fn split_at_blank<'a>(lines: &'a [Numbered<'a>]) -> (&'a [Numbered<'a>], &'a [Numbered<'a>]) {
    match lines.iter().position(|(_, line)| line.is_empty()) {
        Some(blank) => (&lines[..blank], &lines[blank + 1..]),
        None => (lines, &[]),
    }
}

// === impl WantedHeader ===

impl WantedHeader {
    fn read(file: &str, line: usize, text: &str) -> Self {
        let (name, value) = text
            .split_once(':')
            .unwrap_or_else(|| panic!("{file}:{line}: no header"));
        let value = value.trim();
        match name.strip_prefix('!') {
            Some(name) if value.is_empty() => Self {
                line,
                name: name.to_ascii_lowercase(),
                value: None,
            },
            None if !value.is_empty() => Self {
                line,
                name: name.to_ascii_lowercase(),
                value: Some(value.to_owned()),
            },
            _ => panic!("{file}:{line}: neither a header nor its absence"),
        }
    }

    /// `Err` says what is wrong.
    pub fn check(&self, came: &Answer, before: Option<&Answer>) -> Result<(), String> {
        let given: Vec<&str> = came
            .headers
            .iter()
            .filter(|(name, _)| *name == self.name)
            .map(|(_, value)| value.as_str())
            .collect();
        let fits = match (self.value.as_deref(), given.as_slice()) {
            (None, given) => given.is_empty(),
            (Some("{same}"), given) => {
                let before = before.and_then(|before| before.header(&self.name));
                given.len() <= 1 && given.first().copied() == before
            }
            (Some(pattern), [value]) if self.name == "content-type" => value
                .split(';')
                .next()
                .is_some_and(|kind| text_matches(pattern, kind.trim())),
            (Some(pattern), [value]) => text_matches(pattern, value),
            (Some(_), _) => false,
        };
        if fits {
            return Ok(());
        }
        let wanted = self.value.as_deref().unwrap_or("no such header");
        Err(format!("{}: {wanted:?} wanted, {given:?} came", self.name))
    }
}
