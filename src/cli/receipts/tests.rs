use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;

fn cells(others: &Value) -> [String; 9] {
    let printer = Printer {
        json: false,
        zone: TimeZone::UTC,
    };
    printer.cells(&sample::entry(others))
}

#[test]
fn an_amount_that_is_not_known_is_unknown_and_a_zero_is_a_zero() {
    let settled = cells(&json!({
        "at_ms": 1_700_000_000_000_u64, "app": "default", "model": null, "served_by": null,
        "state": "settled", "billed_micro_usd": 0, "usage": {"prompt_tokens": 12},
    }));
    let unreported = cells(&json!({"state": "unreported", "billed_micro_usd": null}));

    assert_eq!(
        settled,
        [
            "2023-11-14 22:13:20",
            "default",
            "chat",
            "-",
            "-",
            "12+?",
            "$0.000000",
            "settled",
            "000000000001"
        ]
    );
    assert_eq!(unreported[6], "unknown");
}

#[test]
fn a_doubt_shows_its_reason_and_an_unreadable_price_that_it_is_none() {
    let rows = [
        (
            json!({"state": "in_doubt", "reason": "crash"}),
            "in_doubt(crash)",
        ),
        (
            json!({"state": "unreported", "receipt": "malformed"}),
            "unreported(malformed)",
        ),
        (
            json!({"state": "unreported", "receipt": "absent"}),
            "unreported",
        ),
    ];
    for (members, wanted) in rows {
        assert_eq!(cells(&members)[7], wanted);
    }
}

#[test]
fn a_state_is_taken_as_it_is_typed() {
    assert_eq!(state_word("in-doubt"), Ok(StateWord::InDoubt));
    assert_eq!(state_word("in_doubt"), Ok(StateWord::InDoubt));
    assert!(state_word("lost").is_err());
}
