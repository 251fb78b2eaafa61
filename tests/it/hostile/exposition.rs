//! Reads `/metrics` as Prometheus would: the text format 0.0.4, and nothing that it does not allow.

use std::collections::{BTreeMap, BTreeSet};

/// One sample: its name and labels, as one text that is a series' own.
pub type Series = (String, BTreeMap<String, String>);

/// All series of a page. An error names the line that is not a series.
pub fn samples(text: &str) -> Result<BTreeSet<Series>, String> {
    let mut families = BTreeMap::new();
    let mut series = BTreeSet::new();
    if !text.ends_with('\n') {
        return Err("the page does not end with a line".to_owned());
    }
    for line in text.split_terminator('\n') {
        let bad = |why: &str| format!("{why}: {line:?}");
        if line.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err(bad("a control byte"));
        }
        if let Some(family) = line.strip_prefix("# TYPE ") {
            let (name, kind) = family.split_once(' ').ok_or_else(|| bad("no type"))?;
            if !["counter", "gauge", "histogram"].contains(&kind) {
                return Err(bad("no known type"));
            }
            if families.insert(name.to_owned(), kind.to_owned()).is_some() {
                return Err(bad("a family has two types"));
            }
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (one, value) = sample(line).ok_or_else(|| bad("no sample"))?;
        if value.parse::<f64>().is_err() {
            return Err(bad("no number"));
        }
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| one.0.strip_suffix(end))
            .filter(|base| families.contains_key(*base))
            .unwrap_or(&one.0);
        if !families.contains_key(base) {
            return Err(bad("a sample without a family"));
        }
        if !series.insert(one) {
            return Err(bad("a series twice"));
        }
    }
    Ok(series)
}

fn sample(line: &str) -> Option<(Series, &str)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !is_name(name) {
        return None;
    }
    let mut labels = BTreeMap::new();
    let mut rest = rest;
    if let Some(mut inside) = rest.strip_prefix('{') {
        loop {
            let (label, after) = inside.split_once("=\"")?;
            let (value, after) = quoted(after)?;
            if !is_name(label) || labels.insert(label.to_owned(), value).is_some() {
                return None;
            }
            match after.strip_prefix(',') {
                Some(more) => inside = more,
                None => {
                    rest = after.strip_prefix('}')?;
                    break;
                }
            }
        }
    }
    Some(((name.to_owned(), labels), rest.strip_prefix(' ')?))
}

/// A label's value after its first quote, and the text after its last one.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, text.get(at + 1..)?)),
            '\\' => value.push(match characters.next()?.1 {
                '\\' => '\\',
                '"' => '"',
                'n' => '\n',
                _ => return None,
            }),
            other => value.push(other),
        }
    }
    None
}

#[test]
fn a_forged_line_is_seen() {
    let good = "# HELP a b\n# TYPE a counter\na{l=\"x\\\"} 1\\n\"} 1\n";
    assert_eq!(samples(good).map(|series| series.len()), Ok(1));
    for bad in [
        "a 1\n",
        "# TYPE a counter\na{l=\"x\"} 1\na{l=\"x\"} 2\n",
        "# TYPE a counter\na{l=\"x\"y\"} 1\n",
        "# TYPE a counter\na{l=\"x} 1\n",
        "# TYPE a counter\na{l=\"\u{1b}\"} 1\n",
        "# TYPE a counter\na x\n",
        "# TYPE a counter\n# TYPE a gauge\n",
        "# TYPE a counter\na 1",
    ] {
        assert!(samples(bad).is_err(), "{bad:?}");
    }
}
