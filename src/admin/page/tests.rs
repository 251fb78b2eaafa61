use std::time::Duration;

use super::*;
use crate::caps::CapsView;
use crate::ledger::query::SpendRow;
use crate::money::MicroUsd;

#[test]
fn the_page_shows_what_is_known_and_what_is_not_and_escapes_both() {
    let totals = Totals::default();
    let health = LedgerHealth {
        unavailable: Some("disk <full>\u{202e}\u{2028}".to_owned()),
        last_commit_ms: None,
        commits: 0,
        journal_bytes: 0,
        index_lag_records: 0,
        heartbeat_age: Duration::ZERO,
        index_rebuilds: 0,
        quarantined: 0,
        keys_dropped: 0,
        is_adding_up: false,
        serves_unwritten: false,
        waiting: 0,
        dropped: 0,
    };
    let today = Spend {
        total: SpendRow {
            billed_micro_usd: MicroUsd::new(1_234).into(),
            in_doubt: 2,
            ..SpendRow::default()
        },
        ..Spend::default()
    };

    let page = render(&Status {
        now: "2026-01-31 08:00:00".to_owned(),
        since: "2026-01-30 08:00:00".to_owned(),
        proxy: &[],
        upstream: "https://inference.example".to_owned(),
        in_flight: 0,
        anonymous: true,
        traffic: Traffic {
            waiting: 5,
            in_flight: 4,
            in_flight_limit: 4,
            per_minute_limit: 0,
            breaking: vec!["balance"],
        },
        ready: Err("the ledger cannot be written: disk <full>".to_owned()),
        today: Ok(today),
        caps: &CapsView::default(),
        totals: &totals,
        health: &health,
    });

    assert!(page.contains("<th>today, as far as known</th><td>$0.001234</td>"));
    assert!(page.contains("<th>may spend</th><td>every process of this machine</td>"));
    assert!(page.contains(
        "<th>saved against a frontier model (estimate)</th><td>not known: no answer carries both prices</td>"
    ));
    assert!(page.contains("<th>today in doubt</th><td>2</td>"));
    assert!(page.contains("<th>requests in flight</th><td>4 of 4</td>"));
    assert!(page.contains("<th>waiting for a place</th><td>5</td>"));
    assert!(page.contains("<th>new requests are held back</th><td>yes: balance</td>"));
    assert!(!page.contains("most in a minute"), "there is no such limit");
    assert!(page.contains("disk &lt;full&gt;"));
    assert!(page.contains("&gt;\\u{202e}\\u{2028}</td>"), "{page}");
    assert!(!page.contains('\u{202e}') && !page.contains('\u{2028}'));
    assert!(!page.contains("<full>"));
    assert!(!page.contains("<script"));
}
