//! Lines as they are shipped.

use serde_json::{Value, json};

use super::{LISTED, shipped};

/// What people read of it.
const DOCUMENT: &str = include_str!("../../../docs/fleet.md");

fn text(line: &Value, people: bool) -> Value {
    let shipped = shipped(line.to_string().as_bytes(), people).expect("a line");
    serde_json::from_str(&shipped).expect("JSON")
}

#[test]
fn what_is_not_listed_stays_here_and_what_is_keeps_its_order() {
    let line = json!({"seq": 2, "kind": "outcome", "adds_micro_usd": 49, "key": {"value": "bursar-1", "origin": "minted",
        "organization": "59de", "request": "aa"}, "marks": {"user": "a-person"}, "attempts": [{"cause": "x"}],
        "service_detail": "words", "fingerprint": "6d", "of_a_later_bursar": 1, "state": {"settled": {"billed": 49}},
        "crc": "0bcf1ab2"});
    let shipped = shipped(line.to_string().as_bytes(), false);
    assert_eq!(
        shipped.as_deref(),
        Some(
            r#"{"seq":2,"kind":"outcome","adds_micro_usd":49,"key":{"value":"bursar-1","origin":"minted"},"state":{"settled":{"billed":49}}}"#
        )
    );
    let all = text(&line, true);
    assert_eq!(all["marks"]["user"], "a-person");
    assert_eq!(all.get("crc"), None);
}

#[test]
fn an_apps_own_key_stays_here() {
    for (key, is_shipped) in [
        (json!({"value": "mine", "origin": "app"}), false),
        (json!({"hash": "aa", "origin": "app"}), false),
        (json!({"value": "bursar-1", "origin": "minted"}), true),
        (
            json!({"value": "bursar-1", "origin": {"adopted": {"from": "x"}}}),
            true,
        ),
        (json!("mine"), false),
        (json!({"value": "mine"}), false),
    ] {
        let line = text(&json!({"seq": 1, "key": key}), false);
        assert_eq!(line.get("key").is_some(), is_shipped, "{key}");
    }
}

#[test]
fn a_nul_becomes_what_a_database_can_store() {
    let line = text(
        &json!({"seq": 1, "model": "a\u{0}b", "usage": {"x\u{0}": ["\u{0}"]}}),
        false,
    );
    assert_eq!(line["model"], "a\u{fffd}b");
    assert!(!line.to_string().contains("\\u0000"), "{line}");
}

#[test]
fn what_is_no_line_is_not_shipped() {
    for line in ["", "[]", "{\"seq\":1", "5", "\u{0}"] {
        assert_eq!(shipped(line.as_bytes(), false), None, "{line:?}");
    }
}

#[test]
fn the_document_lists_what_is_shipped_and_nothing_else() {
    let (_, list) = DOCUMENT
        .split_once("Of each line of the journal a machine ships, as text: `")
        .unwrap();
    let (list, _) = list.split_once('`').unwrap();
    let stated: Vec<&str> = list.split_whitespace().collect();
    assert_eq!(stated, LISTED);
}
