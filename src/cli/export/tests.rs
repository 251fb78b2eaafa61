use std::collections::BTreeSet;

use serde_json::json;

use super::*;

/// As rich as an entry can be.
fn rich() -> Value {
    let mut rich = json!({
        "id": "018f3c00-0000-7000-8000-000000000001", "seq": 12,
        "at": "2026-05-09T00:00:00.000Z", "at_ms": 1_778_284_800_000_u64,
        "ended_ms": 1_778_284_801_000_u64,
        "app": "=cmd|' /C calc'!A0", "lane": "inference", "operation": "chat",
        "model": "-auto, \"fast\"\nand more", "stream": true,
        "state": "reconciled", "reason": "crash",
        "billed_micro_usd": null, "receipt": "absent", "would_have_cost_micro_usd": 5000,
        "receipt_source": "header", "served_by": null, "specialist": "-x", "escalated": "unknown",
        "route_version": "@sum", "input_required": "phone", "replayed": false,
        "key": "+1", "key_origin": {"adopted": {"from": "018f3c00-0000-7000-8000-000000000002"}},
        "request_id": "\tr", "run_id": "run-1",
        "usage": {"prompt_tokens": 0, "completion_tokens": null, "total_tokens": 18},
        "audio_ms": 1500,
        "attempts": [
            {"end": "no_head", "wait_ms": 0, "took_ms": 10, "cause": "reset"},
            {"end": "answered", "status": 200, "wait_ms": 500, "took_ms": 20},
        ],
        "anomalies": ["malformed", "amount_on_replay"],
        "reconciled_by": {"run": {"run_id": "run-1"}},
        "request_bytes": 120, "response_bytes": 300,
        "timings": {"queue_ms": 0, "first_byte_ms": 5, "total_ms": 30, "own_us": 900},
    });
    rich["broken_billed_micro_usd"] = json!(7);
    rich["drained"] = json!(true);
    rich["closed"] = json!([{"by": "app", "stage": "waiting", "after_ms": 5}]);
    rich["delivery"] = json!("missed");
    rich["reconciled_ms"] = json!(1_778_284_802_000_u64);
    rich["was"] = json!({"in_doubt": {"reason": "crash"}});
    rich["key_hash"] = json!("0a");
    rich
}

fn cell(name: &str) -> String {
    let column = COLUMNS.iter().find(|column| column.name == name).unwrap();
    let zone = TimeZone::get("Asia/Kathmandu").unwrap();
    column.cell.of(&rich(), &zone)
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
    for (name, expected) in table {
        assert_eq!(cell(name), expected, "{name}");
    }
}

#[test]
fn no_cell_of_outside_text_is_a_formula() {
    for name in ["app", "model", "specialist", "route_version", "key"] {
        let text = cell(name);
        assert!(text.starts_with('\''), "{name}: {text:?}");
    }
    let table = [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("＝1", "'＝1"),
        ("＋1", "'＋1"),
        ("－1", "'－1"),
        ("＠sum", "'＠sum"),
        (" \u{3000}=1", " \u{3000}'=1"),
        ("\"=1", "\"'=1"),
        // Readers that split at semicolons, tabs or bars; and raw control characters are none any more.
        ("a;=1", "a;'=1"),
        ("a; \"@b", "a; \"'@b"),
        ("a;;＝1;-2", "a;;'＝1;'-2"),
        ("a|=1", "a|'=1"),
        ("a,=1", "a,'=1"),
        ("\t=1", "\\t=1"),
        ("a\r\n=1\0\u{85}\u{202e}", "a\\r\\n=1\\u{0}\\u{85}\\u{202e}"),
        ("a=1", "a=1"),
        ("gpt-4o;v2", "gpt-4o;v2"),
        ("", ""),
    ];
    for (text, wanted) in table {
        assert_eq!(harmless(text), wanted);
    }
    for column in COLUMNS {
        let zone = TimeZone::UTC;
        let cell = column.cell.of(&rich(), &zone);
        assert!(!cell.chars().any(char::is_control), "{}", column.name);
    }
}

/// A field that the ledger keeps and no column shows would be lost in the accountant's table.
#[test]
fn every_field_of_an_entry_is_in_some_column() {
    let mut shown = BTreeSet::new();
    for column in COLUMNS {
        let (pointer, within) = match column.cell {
            Cell::At(pointer) | Cell::Word(pointer) | Cell::Count(pointer) => (pointer, ""),
            Cell::Each(pointer, within) => (pointer, within),
            Cell::LocalTime => ("/at_ms", ""),
        };
        shown.insert(format!("{pointer}{within}"));
    }
    let names: BTreeSet<&str> = COLUMNS.iter().map(|column| column.name).collect();
    assert_eq!(names.len(), COLUMNS.len(), "no name twice");
    for field in rich().as_object().unwrap().keys() {
        let pointer = format!("/{field}");
        assert!(
            shown
                .iter()
                .any(|known| *known == pointer || known.starts_with(&format!("{pointer}/"))),
            "{field}"
        );
    }
}
