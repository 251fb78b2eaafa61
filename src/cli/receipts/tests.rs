use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;

fn printer() -> Printer {
    Printer {
        form: Form::Text(Look::unlimited()),
        zone: TimeZone::UTC,
    }
}

fn cells(others: &Value) -> [String; 11] {
    printer().cells(&sample::entry(others))
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
            "11-14 22:13:20",
            "default",
            "chat",
            "-",
            "-",
            "12+?",
            "$0.000000",
            "settled",
            "settled",
            "000000000001"
        ]
    );
    assert_eq!(unreported[7], "unknown");
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
        assert_eq!(cells(&members)[8], wanted);
    }
}

#[test]
fn a_state_is_taken_as_it_is_typed() {
    assert_eq!(state_word("in-doubt"), Ok(StateWord::InDoubt));
    assert_eq!(state_word("in_doubt"), Ok(StateWord::InDoubt));
    assert!(state_word("lost").is_err());
}

/// The widest words of each kind, in a terminal of 80 columns: no line is wider, and no amount, state or id is cut.
#[test]
fn a_listing_fits_80_columns_line_by_line_and_as_a_table() {
    let look = Look::of_width(80);
    let printer = printer();
    let doubt = json!({"state": "in_doubt", "reason": "replay_lost_amount", "billed_micro_usd": null,
        "operation": "frontier_comparison", "app": "nightly-batch-of-reports", "model": "gpt-4o-mini-2026"});
    let paid = json!({"state": "settled", "billed_micro_usd": 123_456_789_u64, "model": "auto"});
    let entries = [doubt, paid].map(|members| sample::entry(&members));
    let mut table = TextTable::new(TITLES);
    for entry in &entries {
        table.row(printer.cells(entry));
    }
    let lines: String = entries
        .iter()
        .map(|entry| printer.line(entry, &look))
        .collect();
    for text in [table.laid_out(&look), lines] {
        for line in text.lines() {
            assert!(
                line.chars().count() <= 80,
                "{}\n{text}",
                line.chars().count()
            );
        }
        for word in [
            "05-09 00:00:00",
            "unknown",
            "$123.456789",
            "in_doubt ",
            "000000000001",
        ] {
            assert!(text.contains(word), "{word}\n{text}");
        }
    }
    assert!(footer(&entries).contains("1 in doubt(replay lost amount)"));
}
