use serde_json::{Value, json};

use super::*;
use crate::admin::documents::sample;

fn parties() -> Parties {
    Parties {
        provider: "inference service".to_owned(),
        billing_account: "organization".to_owned(),
    }
}

fn row_of(others: &Value, zone: &TimeZone) -> Option<BTreeMap<&'static str, String>> {
    let cells = cells(&sample::entry(others), &parties(), zone)?;
    Some(COLUMNS.into_iter().zip(cells).collect())
}

fn paid() -> Value {
    json!({"state": "settled", "billed_micro_usd": 42, "model": "=auto\u{202e},b", "at_ms": 1_777_586_399_500_u64,
        "ended_ms": 1_777_586_400_100_u64, "usage": {"prompt_tokens": 12, "completion_tokens": 34}})
}

#[test]
fn a_price_is_one_row_whose_costs_are_exact_and_whose_month_is_that_of_the_zone() {
    let utc_row = row_of(&paid(), &TimeZone::UTC).unwrap();
    let wanted = [
        ("BilledCost", "0.000042"),
        ("EffectiveCost", "0.000042"),
        ("BillingCurrency", "USD"),
        ("BillingPeriodStart", "2026-04-01T00:00:00Z"),
        ("BillingPeriodEnd", "2026-05-01T00:00:00Z"),
        ("ChargePeriodStart", "2026-04-30T21:59:59Z"),
        ("ChargePeriodEnd", "2026-04-30T22:00:01Z"),
        ("ConsumedQuantity", "46.0"),
        ("ConsumedUnit", "Tokens"),
        ("ChargeClass", ""),
        ("x_Model", "'=auto\\u{202e},b"),
    ];
    for (name, cell) in wanted {
        assert_eq!(utc_row[name], cell, "{name}");
    }
    let tags: Value = serde_json::from_str(&utc_row["Tags"]).unwrap();
    assert_eq!(tags["model"], "'=auto\\u{202e},b");

    let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
    let mut later = paid();
    later["at_ms"] = json!(1_777_586_400_000_u64);
    let row = row_of(&later, &berlin).unwrap();
    assert_eq!(row["BillingPeriodStart"], "2026-04-30T22:00:00Z");
    assert_eq!(row["BillingPeriodEnd"], "2026-05-31T22:00:00Z");
}

#[test]
fn what_has_no_price_is_no_row_and_is_counted() {
    let states = [
        json!({"state": "settled", "billed_micro_usd": 42}),
        json!({"state": "reconciled", "billed_micro_usd": 1}),
        json!({"state": "settled", "billed_micro_usd": 0}),
        json!({"state": "failed", "billed_micro_usd": 0}),
        json!({"state": "replayed", "billed_micro_usd": 0}),
        json!({"state": "unreported", "billed_micro_usd": null}),
        json!({"state": "in_doubt", "reason": "crash", "billed_micro_usd": null}),
        json!({"state": "open", "billed_micro_usd": null}),
        json!({"state": "open", "billed_micro_usd": null}),
    ];
    let mut counts = FocusCounts::new(None);
    let mut rows = 0;
    for members in &states {
        counts.count(&sample::entry(members));
        rows += u32::from(row_of(members, &TimeZone::UTC).is_some());
    }
    assert_eq!(rows, 3);
    assert_eq!(
        serde_json::to_value(&counts).unwrap(),
        json!({"rows": 3, "billed_micro_usd": 43,
            "without_a_price": {"open": 2, "unreported": 1, "in_doubt": 1},
            "free": {"failed": 1, "replayed": 1}, "compacted_before": null})
    );
    let remark = counts.remark().unwrap();
    assert!(remark.starts_with("4 entries are in no row"), "{remark}");
    for part in ["2 open", "1 in doubt", "1 unreported"] {
        assert!(remark.contains(part), "{remark}");
    }
    assert_eq!(FocusCounts::new(None).remark(), None);
}

/// As a daemon that is asked page by page gives them.
#[test]
fn an_entry_that_changes_while_it_is_exported_counts_once_and_has_one_row() {
    const ID: &str = "0190a6c1-7b3e-7c2f-9d41-5f0be2d73f0a";
    let open = json!({"id": ID, "state": "open", "billed_micro_usd": null});
    let doubt = json!({"id": ID, "state": "in_doubt", "reason": "crash", "billed_micro_usd": null});
    let paid = json!({"id": ID, "state": "reconciled", "billed_micro_usd": 42});
    let mut counts = FocusCounts::new(None).each_once();
    for (members, is_new) in [(&open, true), (&doubt, true), (&paid, true), (&paid, false)] {
        assert_eq!(counts.count(&sample::entry(members)), is_new, "{members}");
    }
    assert_eq!(
        serde_json::to_value(&counts).unwrap(),
        json!({"rows": 1, "billed_micro_usd": 42, "without_a_price": {}, "free": {},
            "compacted_before": null})
    );
    assert_eq!(counts.remark(), None);
}

#[test]
fn every_cell_has_a_column() {
    let entry = sample::entry(&paid());
    let row = row(&entry, MicroUsd::new(42), &parties(), &TimeZone::UTC);
    for name in row.keys() {
        assert!(COLUMNS.contains(name), "{name}");
    }
}
