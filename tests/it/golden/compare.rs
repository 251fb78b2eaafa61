//! Patterns against values: headers, comments, JSON.

use serde_json::Value;

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

/// `*` stands for any run of characters.
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
