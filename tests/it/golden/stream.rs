//! An event stream against the lines of a transcript.

use serde_json::Value;

use super::compare::{differences, text_matches};

/// The answer's data lines, each with the comments before it; the last element holds the lines
/// after the last data line.
struct Came<'a> {
    data: Vec<&'a str>,
    /// The event name of each, of those that have one.
    events: Vec<Option<&'a str>>,
    comments: Vec<Vec<(&'a str, &'a str)>>,
}

enum Token<'a> {
    /// Event name and pattern.
    Data(Option<&'a str>, Value),
    /// `...`, with the event name above it.
    AnyData(Option<&'a str>),
    /// Name and value's pattern.
    Comment(&'a str, &'a str),
    Done,
}

const RECEIPT: &str = "service-";

/// `Err` has the line of the transcript that nothing matches, and the bytes at that place.
pub fn check(lines: &[(usize, String)], body: &str) -> Result<(), (usize, String)> {
    let first = lines.first().map_or(0, |(line, _)| *line);
    let came = Came::read(body).map_err(|what| (first, what))?;
    let mut tokens: Vec<(usize, Token<'_>)> = Vec::new();
    let mut event = None;
    for (line, text) in lines {
        match text.strip_prefix("event: ") {
            Some(name) => event = Some(name),
            None => tokens.push((*line, token(*line, text, event.take()))),
        }
    }
    let mut deepest = (first, 0, String::new());
    if matches(&tokens, &came, 0, &mut deepest) {
        return Ok(());
    }
    Err((deepest.0, deepest.2))
}

fn token<'a>(line: usize, text: &'a str, event: Option<&'a str>) -> Token<'a> {
    if text == "..." {
        return Token::AnyData(event);
    }
    if text == "data: [DONE]" {
        return Token::Done;
    }
    if let Some(json) = text.strip_prefix("data: ") {
        let pattern = serde_json::from_str(json);
        let pattern = pattern.unwrap_or_else(|why| panic!("line {line}: {why}"));
        return Token::Data(event, pattern);
    }
    let comment = text
        .strip_prefix(": ")
        .and_then(|comment| comment.split_once(' '));
    let (name, pattern) = comment.unwrap_or_else(|| panic!("line {line}: no line of a stream"));
    Token::Comment(name, pattern)
}

// === impl Came ===

impl<'a> Came<'a> {
    fn read(body: &'a str) -> Result<Self, String> {
        let mut came = Self {
            data: Vec::new(),
            events: Vec::new(),
            comments: vec![Vec::new()],
        };
        let mut event = None;
        for line in body.lines().map(|line| line.trim_end_matches('\r')) {
            if line.is_empty() {
                continue;
            }
            if let Some(name) = line.strip_prefix("event: ") {
                event = Some(name);
            } else if let Some(data) = line.strip_prefix("data:") {
                came.data.push(data.strip_prefix(' ').unwrap_or(data));
                came.events.push(event.take());
                came.comments.push(Vec::new());
            } else if let Some(comment) = line.strip_prefix(':') {
                let comment = comment.trim_start();
                let comment = comment.split_once(' ').unwrap_or((comment, ""));
                came.comments.last_mut().expect("never empty").push(comment);
            } else {
                return Err(format!("neither data nor a comment came: {line:?}"));
            }
        }
        let all: Vec<(&str, &str)> = came.comments.iter().flatten().copied().collect();
        let twice = all.iter().find(|(name, value)| {
            name.starts_with(RECEIPT)
                && all
                    .iter()
                    .any(|(other, another)| name == other && value != another)
        });
        match twice {
            Some((name, _)) => Err(format!("{name} came twice, with different values")),
            None => Ok(came),
        }
    }
}

/// Whether the tokens match from data line `at` on. Keeps the failure that got furthest.
fn matches(
    tokens: &[(usize, Token<'_>)],
    came: &Came<'_>,
    at: usize,
    deepest: &mut (usize, usize, String),
) -> bool {
    let Some((line, token)) = tokens.first() else {
        return at == came.data.len();
    };
    let mut fail = |what: String| {
        if (*line, at) >= (deepest.0, deepest.1) {
            *deepest = (*line, at, what);
        }
        false
    };
    let data = came.data.get(at).copied();
    let json = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
    let named = came.events.get(at).copied().flatten();
    match token {
        Token::Data(event, pattern) => {
            if *event != named {
                return fail(format!("the event {event:?} wanted, {named:?} came"));
            }
            let Some(value) = json else {
                return fail(format!("a chunk wanted, {data:?} came"));
            };
            let found = differences(pattern, &value);
            if !found.is_empty() {
                return fail(found.join("; "));
            }
            matches(&tokens[1..], came, at + 1, deepest)
        }
        Token::AnyData(event) => {
            matches(&tokens[1..], came, at, deepest)
                || (json.is_some() && *event == named && matches(tokens, came, at + 1, deepest))
        }
        Token::Comment(name, pattern) => {
            let here = &came.comments[at];
            let fits = here
                .iter()
                .any(|(given, value)| given == name && text_matches(pattern, value));
            if !fits {
                return fail(format!("`: {name} {pattern}` wanted, {here:?} came"));
            }
            matches(&tokens[1..], came, at, deepest)
        }
        Token::Done => {
            if data != Some("[DONE]") || named.is_some() {
                return fail(format!("the end wanted, {data:?} came"));
            }
            let after = &came.comments[at + 1];
            if at + 1 != came.data.len() || after.iter().any(|(name, _)| name.starts_with(RECEIPT))
            {
                return fail("something stands after the end".to_owned());
            }
            matches(&tokens[1..], came, at + 1, deepest)
        }
    }
}
