//! A model's text as the value that is scored.
//!
//! Models wrap JSON in prose and code fences; a scorer that took that for a wrong answer would measure manners.
//! Promise: which part of a text counts is a stated rule, and reading ends soon whatever the text holds.

use super::score::{TEXT_BYTES_MAX, Unscored};
use serde_json::{Map, Value};

/// How many places of a text are tried as the beginning of a JSON document.
const TRIES_MAX: usize = 512;

/// The answer in a text, in this order: the whole text or the content of a code fence as JSON; of the JSON
/// objects in the text the one with most of the expected names, the last of equals; else the text itself
/// (the content of its only code fence) under the expected object's single name.
///
/// # Errors
/// The text is over [`TEXT_BYTES_MAX`], or several fields are expected and there is no object in it.
pub fn read_answer(text: &str, expected: &Value) -> Result<Value, Unscored> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Unscored::because("the answer is over 1 MiB of text"));
    }
    let Some(names) = expected.as_object() else {
        return Ok(serde_json::from_str(text).unwrap_or_else(|_| text.into()));
    };
    let single = match names.iter().collect::<Vec<_>>().as_slice() {
        [(name, value)] => Some((name.as_str(), *value)),
        _ => None,
    };
    let fences = fences(text);
    for whole in std::iter::once(text).chain(fences.iter().copied()) {
        match serde_json::from_str(whole.trim()) {
            Ok(Value::Object(found)) if single.is_none() || shared(&found, names) > 0 => {
                return Ok(Value::Object(found));
            }
            Ok(Value::Array(found)) => {
                if let Some((name, Value::Array(_) | Value::Object(_))) = single {
                    return Ok(under(name, Value::Array(found)));
                }
            }
            _ => {}
        }
    }
    if let Some(found) = best_object(text, names) {
        return Ok(Value::Object(found));
    }
    let Some((name, value)) = single else {
        return Err(Unscored::because("there is no JSON object in the answer"));
    };
    if value.is_object()
        && let Some(found) = last_object(text)
    {
        return Ok(under(name, Value::Object(found)));
    }
    let bare = match fences.as_slice() {
        [only] => only.trim(),
        _ => text.trim(),
    };
    Ok(under(name, unquoted(bare, value).into()))
}

fn under(name: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([(name.to_owned(), value)]))
}

/// A label in quotes, backticks or asterisks, or ends with a full stop, is the label.
fn unquoted<'a>(text: &'a str, expected: &Value) -> &'a str {
    let Some(expected) = expected.as_str() else {
        return text.trim_end_matches('.');
    };
    if text == expected || expected.trim_end().ends_with('.') || expected.contains(['\n', '`', '"'])
    {
        return text;
    }
    let marks: &[char] = &['"', '\'', '`', '*'];
    text.trim_matches(marks)
        .trim_end_matches('.')
        .trim_matches(marks)
}

/// How many of the expected names are in it.
fn shared(found: &Map<String, Value>, names: &Map<String, Value>) -> usize {
    names
        .keys()
        .filter(|name| found.contains_key(*name))
        .count()
}

/// The texts between lines of three backticks.
fn fences(text: &str) -> Vec<&str> {
    let mut parts = text.split("```").skip(1);
    let mut found = Vec::new();
    while let (Some(inside), Some(_)) = (parts.next(), parts.next()) {
        // The first line names the language.
        let inside = match inside.split_once('\n') {
            Some((_, rest)) => rest,
            None => inside,
        };
        found.push(inside);
    }
    found
}

/// The outermost JSON objects of a text, in order.
fn objects(text: &str) -> impl Iterator<Item = Map<String, Value>> {
    let mut at = 0;
    let mut tries = 0;
    std::iter::from_fn(move || {
        loop {
            let rest = text.get(at..)?;
            at += rest.find('{')?;
            tries += 1;
            if tries > TRIES_MAX {
                return None;
            }
            let mut documents =
                serde_json::Deserializer::from_str(text.get(at..)?).into_iter::<Map<_, _>>();
            if let Some(Ok(found)) = documents.next() {
                at += documents.byte_offset();
                return Some(found);
            }
            at += 1;
        }
    })
}

fn best_object(text: &str, names: &Map<String, Value>) -> Option<Map<String, Value>> {
    objects(text)
        .map(|found| (shared(&found, names), found))
        .filter(|(shared, _)| *shared > 0)
        // Of equals `max_by_key` gives the last.
        .max_by_key(|(shared, _)| *shared)
        .map(|(_, found)| found)
}

fn last_object(text: &str) -> Option<Map<String, Value>> {
    objects(text).last()
}
