//! Patterns against values: headers, comments, JSON.

use std::collections::BTreeMap;

use serde_json::Value;

/// Values from earlier answers of the same file, by the name they were kept under.
pub type Kept = BTreeMap<String, String>;

/// `set_id` of `{set_id}`.
pub fn kept_name(pattern: &str) -> Option<&str> {
    let name = pattern.strip_prefix('{')?.strip_suffix('}')?;
    let is_name = |letter: u8| letter.is_ascii_lowercase() || letter == b'_';
    (!name.is_empty() && name.bytes().all(is_name)).then_some(name)
}

/// The pattern with what is kept in the place of its names.
pub fn filled(pattern: &Value, kept: &Kept) -> Value {
    match pattern {
        Value::String(word) => match kept_name(word).and_then(|name| kept.get(name)) {
            Some(text) => Value::String(text.clone()),
            None => pattern.clone(),
        },
        Value::Array(list) => list.iter().map(|one| filled(one, kept)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, one)| (name.clone(), filled(one, kept)))
            .collect(),
        other => other.clone(),
    }
}

/// A text with what is kept in the place of `{name}`.
pub fn filled_in(text: &str, kept: &Kept) -> String {
    let text = text.to_owned();
    kept.iter().fold(text, |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    })
}

/// Keeps the strings in the places where the pattern has a name.
pub fn keep(pattern: &Value, value: &Value, kept: &mut Kept) {
    match (pattern, value) {
        (Value::String(word), Value::String(text)) => {
            if let Some(name) = kept_name(word) {
                kept.insert(name.to_owned(), text.clone());
            }
        }
        (Value::Array(patterns), Value::Array(values)) => {
            // Of a list of any length, the values of its first element are kept.
            let any = patterns.first().is_some_and(|first| first == "...");
            for (pattern, value) in patterns.iter().skip(usize::from(any)).zip(values) {
                keep(pattern, value, kept);
            }
        }
        (Value::Object(patterns), Value::Object(values)) => {
            for (name, pattern) in patterns {
                if let Some(value) = values.get(name) {
                    keep(pattern, value, kept);
                }
            }
        }
        _ => {}
    }
}

/// A header's or comment's value against its pattern.
pub fn text_matches(pattern: &str, value: &str) -> bool {
    let is_amount =
        (1..=15).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    match pattern {
        "*" => !value.is_empty(),
        "#" => is_amount,
        "#+" => is_amount && value.bytes().any(|byte| byte != b'0'),
        _ => pattern.split('|').any(|choice| choice == value),
    }
}

/// Everything in which a JSON value differs from its pattern, each with its place.
pub fn differences(pattern: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("$", pattern, Some(value), &mut found);
    found
}

fn compare(place: &str, pattern: &Value, value: Option<&Value>, found: &mut Vec<String>) {
    let fits = match (pattern, value) {
        (Value::String(word), value) if word == "~" => value.is_none_or(Value::is_null),
        (Value::String(word), Some(_)) if word == "?" => true,
        (Value::String(word), Some(value)) if word == "#" => value.is_u64(),
        (Value::String(word), Some(value)) if word == "#+" => {
            value.as_u64().is_some_and(|number| number > 0)
        }
        (Value::String(word), Some(value)) if word == "0.." => {
            value.as_f64().is_some_and(|number| number >= 0.0)
        }
        (Value::String(word), Some(value)) if word == "0..1" => value
            .as_f64()
            .is_some_and(|number| (0.0..=1.0).contains(&number)),
        (Value::String(word), Some(value)) if kept_name(word).is_some() => {
            value.as_str().is_some_and(|text| !text.is_empty())
        }
        (Value::String(word), Some(Value::String(text))) => runs_match(word, text),
        (Value::Object(wanted), Some(Value::Object(given))) => {
            let exact = wanted.get("$exact") == Some(&Value::Bool(true));
            for (name, pattern) in wanted.iter().filter(|(name, _)| *name != "$exact") {
                compare(&format!("{place}.{name}"), pattern, given.get(name), found);
            }
            let more = given.keys().filter(|name| !wanted.contains_key(*name));
            found.extend(
                more.filter(|_| exact)
                    .map(|name| format!("{place}.{name}: one too many")),
            );
            true
        }
        (Value::Array(wanted), Some(Value::Array(given)))
            if wanted.first().is_some_and(|first| first == "...") =>
        {
            for (at, value) in given.iter().enumerate() {
                for pattern in &wanted[1..] {
                    compare(&format!("{place}[{at}]"), pattern, Some(value), found);
                }
            }
            !given.is_empty()
        }
        (Value::Array(wanted), Some(Value::Array(given))) if wanted.len() == given.len() => {
            for (at, (pattern, value)) in wanted.iter().zip(given).enumerate() {
                compare(&format!("{place}[{at}]"), pattern, Some(value), found);
            }
            true
        }
        (Value::String(_) | Value::Object(_) | Value::Array(_), _) => false,
        (pattern, value) => Some(pattern) == value,
    };
    if !fits {
        let came = value.map_or_else(|| "nothing".to_owned(), Value::to_string);
        found.push(format!("{place}: {pattern} wanted, {came} came"));
    }
}

/// `*` matches any run of characters.
fn runs_match(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn the_patterns_match_what_the_readme_says() {
    let matching = [
        ("\"text\"", "\"text\""),
        ("\"*\"", "\"\""),
        ("\"*in*\"", "\"within\""),
        ("\"a*b*c\"", "\"a--b--c\""),
        ("\"#\"", "0"),
        ("\"#+\"", "1"),
        ("\"?\"", "null"),
        ("{\"a\": \"~\"}", "{}"),
        ("{\"a\": \"~\"}", "{\"a\": null}"),
        ("{\"a\": 1}", "{\"a\": 1, \"b\": 2}"),
        ("{\"$exact\": true, \"a\": 1}", "{\"a\": 1}"),
        ("[1, true, null]", "[1, true, null]"),
        ("[\"...\", {\"a\": \"#\"}]", "[{\"a\": 1}, {\"a\": 2}]"),
        ("\"0..1\"", "0.5"),
        ("\"0..1\"", "1"),
        ("\"0..\"", "7.25"),
        ("\"{set_id}\"", "\"es_1\""),
    ];
    let differing = [
        ("\"text\"", "\"texts\""),
        ("\"*\"", "1"),
        ("\"*in*\"", "\"out\""),
        ("\"a*b*c\"", "\"a--c--b\""),
        ("\"ab*bc\"", "\"abc\""),
        ("\"#\"", "\"0\""),
        ("\"#\"", "-1"),
        ("\"#\"", "1.5"),
        ("\"#+\"", "0"),
        ("{\"a\": \"?\"}", "{}"),
        ("{\"a\": \"~\"}", "{\"a\": 0}"),
        ("{\"$exact\": true, \"a\": 1}", "{\"a\": 1, \"b\": 2}"),
        ("[1]", "[1, 2]"),
        ("{}", "[]"),
        ("true", "false"),
        ("[\"...\", {\"a\": \"#\"}]", "[{\"a\": 1}, {\"a\": null}]"),
        ("[\"...\", 1]", "[]"),
        ("\"0..1\"", "1.01"),
        ("\"0..1\"", "\"0.5\""),
        ("\"0..\"", "-1"),
        ("\"{set_id}\"", "\"\""),
        ("\"{set_id}\"", "null"),
    ];
    let differ = |(pattern, value): (&str, &str)| {
        let read = |text| serde_json::from_str::<Value>(text).expect("JSON");
        !differences(&read(pattern), &read(value)).is_empty()
    };
    for case in matching {
        assert!(!differ(case), "{case:?}");
    }
    for case in differing {
        assert!(differ(case), "{case:?}");
    }
}
