use serde_json::json;

use super::*;

fn printer() -> Printer {
    Printer {
        json: false,
        zone: TimeZone::UTC,
    }
}

#[test]
fn an_amount_that_is_not_known_is_unknown_and_a_zero_is_a_zero() {
    let receipt = |billed: Value, state: &str| {
        json!({
            "id": "0190", "at_ms": 1_700_000_000_000u64, "app": "default", "operation": "chat",
            "served_by": null, "billed_micro_usd": billed, "state": state,
            "usage": {"prompt_tokens": 12},
        })
    };

    let settled = printer().cells(&receipt(json!(0), "settled"));
    let unreported = printer().cells(&receipt(Value::Null, "unreported"));

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
            "0190"
        ]
    );
    assert_eq!(unreported[6], "unknown");
}

#[test]
fn a_doubt_shows_its_reason() {
    let cells = printer().cells(&json!({ "state": "in_doubt", "reason": "crash" }));

    assert_eq!(cells[7], "in_doubt(crash)");
}

#[test]
fn a_price_that_is_none_is_told_from_a_price_that_is_not_told() {
    let state = |receipt: &str| {
        let entry = json!({ "state": "unreported", "receipt": receipt });
        printer().cells(&entry)[7].clone()
    };

    assert_eq!(state("malformed"), "unreported(malformed)");
    assert_eq!(state("missing"), "unreported");
}

#[test]
fn a_state_is_taken_as_it_is_typed() {
    assert_eq!(state_word("in-doubt"), Ok(StateWord::InDoubt));
    assert_eq!(state_word("in_doubt"), Ok(StateWord::InDoubt));
    assert!(state_word("lost").is_err());
}
