//! Every header name, comment name, path, word and limit that bursar or the sandbox spells occurs
//! verbatim in `docs/interface.md`. The two share no protocol code, so a slip in one of them shows
//! here.
//!
//! Promise: a literal that this test cannot place is an error, and a misspelt one is noticed (each
//! of them is misspelt once to show it).

mod limits;
mod names;

use crate::support::source::read;

/// The words in backticks of the interface's page.
pub struct Page {
    /// Line, code spans of that line.
    lines: Vec<(String, Vec<String>)>,
}

/// A literal that must occur in the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// File and line, for the message.
    pub place: String,
    pub literal: String,
    /// Header names are compared without regard to case.
    pub any_case: bool,
    /// The clause whose row has it; `None`: any.
    pub clause: Option<&'static str>,
}

// === impl Page ===

impl Page {
    pub fn load() -> Self {
        Self::parse(&read("docs/interface.md"))
    }

    fn parse(text: &str) -> Self {
        let spans = |line: &str| -> Vec<String> {
            // Every second piece between backticks is code.
            line.split('`')
                .skip(1)
                .step_by(2)
                .map(str::to_owned)
                .collect()
        };
        let lines = text.lines().map(|line| (line.to_owned(), spans(line)));
        Self {
            lines: lines.collect(),
        }
    }

    /// The claims that do not occur in the page.
    pub fn missing(&self, claims: &[Claim]) -> Vec<Claim> {
        claims
            .iter()
            .filter(|claim| !self.has(claim))
            .cloned()
            .collect()
    }

    fn has(&self, claim: &Claim) -> bool {
        let opens = |line: &str, clause: &str| {
            line.strip_prefix("| ")
                .is_some_and(|rest| rest.split(' ').next() == Some(clause))
        };
        self.lines
            .iter()
            .filter(|(line, _)| claim.clause.is_none_or(|clause| opens(line, clause)))
            .flat_map(|(_, spans)| spans)
            .any(|span| stands_in(span, &claim.literal, claim.any_case))
    }
}

/// The literal as a word of its own: `retry-after-ms` does not contain `retry-after` as a word.
fn stands_in(span: &str, literal: &str, any_case: bool) -> bool {
    let (span, literal) = if any_case {
        (span.to_ascii_lowercase(), literal.to_ascii_lowercase())
    } else {
        (span.to_owned(), literal.to_owned())
    };
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    span.match_indices(&literal).any(|(at, _)| {
        let before = span[..at].chars().next_back();
        let after = span[at + literal.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

fn assert_all_stand(claims: &[Claim]) {
    let missing = Page::load().missing(claims);
    let lines: Vec<String> = missing
        .iter()
        .map(|claim| format!("{}: {:?} {:?}", claim.place, claim.literal, claim.clause))
        .collect();
    assert!(
        lines.is_empty(),
        "not in docs/interface.md:\n{}",
        lines.join("\n")
    );
}

/// Every claim, misspelt in every place, is missing.
fn assert_slips_are_seen(claims: &[Claim]) {
    let page = Page::load();
    for claim in claims {
        for at in 0..claim.literal.len() {
            let mut slip = claim.literal.clone().into_bytes();
            slip[at] = match slip[at] {
                b'0'..=b'8' => slip[at] + 1,
                b'9' => b'0',
                b'q' | b'Q' => b'x',
                _ => b'q',
            };
            let slip = Claim {
                literal: String::from_utf8(slip).expect("ASCII"),
                ..claim.clone()
            };
            let seen = page.missing(std::slice::from_ref(&slip)).len() == 1;
            assert!(
                seen,
                "{}: {:?} passes for {:?}",
                claim.place, slip.literal, claim.literal
            );
        }
    }
}

#[test]
fn a_literal_is_looked_for_as_a_word_in_code_spans_and_in_its_row() {
    let page =
        Page::parse("| A-1 | `Retry-After: 5` and plain words |\n| A-2 | `retry-after-ms` |");
    let claim = |literal: &str, any_case: bool, clause| Claim {
        place: "planted".to_owned(),
        literal: literal.to_owned(),
        any_case,
        clause,
    };
    let standing = [
        claim("Retry-After: 5", false, Some("A-1")),
        claim("retry-after", true, Some("A-1")),
        claim("retry-after-ms", true, None),
    ];
    let planted = [
        claim("retry-after", false, None),
        claim("retry-after", true, Some("A-2")),
        claim("retry-after-m", true, None),
        claim("plain", false, None),
        claim("Retry-After: 15", false, None),
        claim("Retry-Atfer", true, None),
    ];
    assert_eq!(page.missing(&standing), []);
    assert_eq!(page.missing(&planted), planted);
}
