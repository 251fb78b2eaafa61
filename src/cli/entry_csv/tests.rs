use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;

fn rich() -> EntryView {
    sample::entry(&json!({}))
}

fn cells(entry: &EntryView) -> BTreeMap<&'static str, String> {
    let zone = TimeZone::get("Asia/Kathmandu").unwrap();
    let cells = COLUMNS
        .iter()
        .map(|column| (column.name, column.of(entry, &zone)));
    cells.collect()
}

#[test]
fn each_kept_field_has_a_cell_and_what_is_not_known_is_empty_never_zero() {
    let table = [
        ("at", "2026-05-09T00:00:00.000Z"),
        ("local_time", "2026-05-09 05:45:00"),
        ("billed_micro_usd", ""),
        ("would_have_cost_micro_usd", "5000"),
        ("served_by", ""),
        ("replayed", "false"),
        ("prompt_tokens", "0"),
        ("completion_tokens", ""),
        ("key_origin", "adopted"),
        ("adopted_from", "018f3c00-0000-7000-8000-000000000002"),
        ("attempts", "2"),
        ("attempt_ends", "no_head answered"),
        ("attempt_statuses", "none 200"),
        ("attempt_causes", "reset none"),
        ("attempt_waits_ms", "0 500"),
        ("anomalies", "malformed amount_on_replay"),
        ("reconciled_by", "run"),
        ("reconciled_by_run", "run-1"),
        ("reconciled_by_entry", ""),
        ("own_us", "900"),
        ("broken_billed_micro_usd", "7"),
        ("drained", "true"),
        ("closed_by", "app"),
        ("reconciled_from", "in_doubt"),
    ];
    let entry = sample::entry(&json!({
        "state": "unreported", "billed_micro_usd": null, "served_by": null,
        "usage": {"prompt_tokens": 0},
        "attempts": [
            {"end": "no_head", "wait_ms": 0, "took_ms": 10, "cause": "reset"},
            {"end": "answered", "status": 200, "wait_ms": 500, "took_ms": 20},
        ],
    }));
    let cells = cells(&entry);
    for (name, expected) in table {
        assert_eq!(cells[name], expected, "{name}");
    }
}

#[test]
fn no_cell_of_outside_text_is_a_formula() {
    for name in ["app", "model", "specialist", "route_version", "key"] {
        let text = &cells(&rich())[name];
        assert!(text.starts_with('\''), "{name}: {text:?}");
    }
    for (name, cell) in cells(&rich()) {
        assert!(!cell.chars().any(char::is_control), "{name}");
    }
}

/// A field that the ledger keeps and no column shows would be lost in the accountant's table.
#[test]
fn every_field_of_an_entry_is_in_some_column() {
    let before = cells(&rich());
    assert_eq!(before.len(), COLUMNS.len(), "no name twice");
    // Other fields are left out.
    let others = json!({
        "id": "018f3c00-0000-7000-8000-000000000003", "seq": 13, "at_ms": 5, "app": "b",
        "lane": "agent", "operation": "rerank", "state": "settled", "billed_micro_usd": 43,
        "receipt": "told", "escalated": "true", "replayed": true, "usage": {}, "attempts": [],
        "anomalies": [], "drained": false,
    });
    for field in sample::members().keys().filter(|field| *field != "at") {
        let other = others.get(field).unwrap_or(&Value::Null);
        let entry = sample::entry(&json!({ field: other }));
        assert_ne!(cells(&entry), before, "{field}");
    }
    let doubt = json!({"state": "in_doubt", "reason": "crash"});
    assert_eq!(cells(&sample::entry(&doubt))["reason"], "crash");
}
