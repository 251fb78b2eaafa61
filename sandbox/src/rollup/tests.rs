use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

#[test]
fn thirty_days_of_hours_are_summed_and_no_more() {
    let mut rollup = Rollup::default();
    let debits = [
        ("2026-05-01T11:59:59Z", 1),
        ("2026-05-01T12:00:00Z", 20),
        ("2026-05-01T12:59:59Z", 300),
        ("2026-05-31T12:30:00Z", 4000),
    ];
    for (when, amount) in debits {
        assert!(rollup.add_debit("o", at(when), MicroUsd::new(amount).unwrap()));
    }
    rollup.add_debit(
        "other",
        at("2026-05-31T12:30:00Z"),
        MicroUsd::new(9).unwrap(),
    );

    let billed = |now| rollup.document("o", at(now))[BILLED].clone();

    assert_eq!(billed("2026-05-31T11:59:59Z"), 321);
    assert_eq!(billed("2026-05-31T12:59:59Z"), 4320);
    assert_eq!(billed("2026-05-31T13:00:00Z"), 4000);
    assert_eq!(billed("2026-07-31T13:00:00Z"), 0);
}

#[test]
fn hours_and_days_contain_percentiles_and_shares() {
    let mut rollup = Rollup::default();
    let now = at("2026-05-31T12:30:00Z");
    for took_ms in 1..=20 {
        rollup.add_request("o", now, took_ms * 10, took_ms != 20);
    }
    rollup.add_request("o", at("2026-05-30T23:59:59Z"), 5, false);
    rollup.add_saving("o", now, 70);
    rollup.add_saving("o", now, -20);

    let document = rollup.document("o", now);

    assert_eq!(document["requests_30d"], 21);
    assert_eq!(document["success_rate_30d"], 19.0 / 21.0);
    assert_eq!(document["savings_vs_frontier_micro_usd_30d"], 50);
    let hours = document[HOURLY].as_array().unwrap();
    assert_eq!(hours.len(), 168);
    let last = hours.last().unwrap();
    assert_eq!(last["hour"], "2026-05-31T12:00:00Z");
    assert_eq!(
        (&last["requests"], &last["errors"]),
        (&json!(20), &json!(1))
    );
    assert_eq!(
        (&last["p50_ms"], &last["p95_ms"]),
        (&json!(100), &json!(190))
    );
    assert_eq!(hours[0]["p50_ms"], Value::Null, "nothing is not 0");
    let days = document[DAILY].as_array().unwrap();
    assert_eq!(days.len(), 30);
    assert_eq!(days[29]["day"], "2026-05-31");
    assert_eq!(days[28]["success_rate"], 0.0);
    assert_eq!(days[0]["success_rate"], Value::Null);
}

#[test]
fn what_was_saved_is_the_same_document_after_a_restart() {
    let mut saved = std::collections::BTreeMap::new();
    let mut rollup = Rollup::default();
    let (then, now) = (at("2026-05-30T23:59:59Z"), at("2026-05-31T12:30:00Z"));
    rollup.add_request("o", then, 70, true);
    assert!(rollup.add_debit("o", then, MicroUsd::new(9).unwrap()));
    saved.extend(rollup.take_unsaved());
    rollup.add_request("o", now, 30, false);
    rollup.add_saving("o", then, 5);
    saved.extend(rollup.take_unsaved());

    let rows = saved
        .into_iter()
        .filter_map(|(row, hour)| Some((row, hour?)));
    let restarted = Rollup::of_rows(rows.collect());

    assert_eq!(restarted.document("o", now), rollup.document("o", now));
    assert_eq!(restarted.document("o", now)[BILLED], 9);
    assert!(rollup.take_unsaved().is_empty());
}

#[test]
fn old_hours_are_forgotten() {
    let mut rollup = Rollup::default();
    let start = at("2026-01-01T00:00:00Z").as_second();
    for hour in 0..2000 {
        let at = Timestamp::from_second(start + hour * 3_600).unwrap();
        rollup.add_request("o", at, 1, true);
    }
    assert_eq!(
        rollup.organizations["o"]
            .between(i64::MIN, i64::MAX)
            .count(),
        31 * 24 + 1
    );
}
