use std::collections::BTreeMap;

use super::*;
use crate::ledger::query::SpendRow;
use crate::money::MicroUsd;

#[test]
fn spend_is_one_flat_object_with_its_rows() {
    let row = SpendRow {
        labels: BTreeMap::from([(GroupBy::App, "agent".to_owned())]),
        requests: 3,
        billed_micro_usd: MicroUsd::new(1_234).into(),
        in_doubt: 1,
        ..SpendRow::default()
    };
    let total = SpendRow {
        labels: BTreeMap::new(),
        ..row.clone()
    };
    let asked = SpendQuestion {
        since_ms: Some(1_700_000_000_000),
        until_ms: None,
        by: vec![GroupBy::App],
        zone: TimeZone::UTC,
    };

    let document = spend(
        &asked,
        &Spend {
            rows: vec![row],
            total,
            damaged: 0,
            is_rounded: false,
        },
    )
    .unwrap();

    assert_eq!(document["since"], "2023-11-14T22:13:20.000Z");
    assert_eq!(document["until"], Value::Null);
    assert_eq!(document["time_zone"], "UTC");
    assert_eq!(document["by"], json!(["app"]));
    assert_eq!(document["billed_micro_usd"], 1_234);
    assert_eq!(document["in_doubt"], 1);
    assert_eq!(document["rows"][0]["app"], "agent");
    assert_eq!(document["rows"][0]["requests"], 3);
}
