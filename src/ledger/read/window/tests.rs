use std::time::Duration;

use super::*;
use crate::clock::Clock;
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::{Bench, START_MS, begin, billed, buy, ended, intent};
use crate::ledger::query::spend;
use crate::ledger::read::reconcile::{Ceiling, compare};
use crate::protocol::Reported;
use crate::protocol::receipt::Receipt;

const HOUR_MS: u64 = 3600 * 1000;
const SINCE_MS: u64 = START_MS + 48 * HOUR_MS;
const UNTIL_MS: u64 = SINCE_MS + 72 * HOUR_MS;

fn sum(micro_usd: u64) -> MicroUsdSum {
    MicroUsd::new(micro_usd).into()
}

#[tokio::test]
async fn amounts_are_in_the_window_or_in_the_edge_beside_it() {
    let bench = Bench::new();
    let ledger = bench.open();
    // Each amount has a digit of its own.
    let rows = [
        (SINCE_MS - SINCE_EDGE_MS - 1, 1),
        (SINCE_MS - SINCE_EDGE_MS, 10),
        (SINCE_MS - 1, 200),
        (SINCE_MS, 1_000),
        (SINCE_MS + SINCE_EDGE_MS - 1, 20_000),
        (SINCE_MS + SINCE_EDGE_MS, 100_000),
        (UNTIL_MS - UNTIL_EDGE_MS - 1, 2_000_000),
        (UNTIL_MS - UNTIL_EDGE_MS, 10_000_000),
        (UNTIL_MS - 1, 20_000_000),
        (UNTIL_MS, 100_000_000),
        (UNTIL_MS + UNTIL_EDGE_MS - 1, 200_000_000),
        (UNTIL_MS + UNTIL_EDGE_MS, 1_000_000_000),
    ];
    for (at_ms, amount) in rows {
        bench.clock.set_wall_ms(at_ms);
        buy(&ledger, None, billed(amount)).await;
    }
    ledger.close().await;

    let window = window(&bench.state(), SINCE_MS, UNTIL_MS).unwrap();

    assert_eq!(window.billed, sum(32_121_000));
    assert_eq!(window.priced, 6);
    assert_eq!(window.before_since, sum(210));
    assert_eq!(window.after_since, sum(21_000));
    assert_eq!(window.before_until, sum(30_000_000));
    assert_eq!(window.after_until, sum(300_000_000));
    assert_eq!(window.dearest[&Operation::Chat], MicroUsd::new(20_000_000));
    assert!(window.unknown.is_empty());
}

/// Nothing but the mark shows that the journal's last lines are gone.
#[tokio::test]
async fn what_is_cut_off_the_journals_end_counts_as_damage() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(7)).await;
    buy(&ledger, None, billed(8)).await;
    ledger.close().await;
    let text = std::fs::read_to_string(bench.segment(1)).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    std::fs::write(bench.segment(1), kept.join("\n") + "\n").unwrap();

    let window = window(&bench.state(), START_MS, START_MS + HOUR_MS).unwrap();

    assert_eq!((window.billed, window.damaged), (sum(7), 1));
}

/// In a window shorter than its edges an amount explains once.
#[tokio::test]
async fn the_edges_of_a_short_window_do_not_share_an_amount() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(7)).await;
    ledger.close().await;
    let window = window(&bench.state(), START_MS, START_MS + 1).unwrap();
    assert_eq!(window.before_until, sum(7));
    assert_eq!(window.after_since, sum(0));
}

#[tokio::test]
async fn what_is_not_known_is_counted_until_evidence_comes() {
    let bench = Bench::new();
    let ledger = bench.open();
    let no_response = Unknown::InDoubt(InDoubt::NoResponse);
    let read = || window(&bench.state(), START_MS, START_MS + HOUR_MS).unwrap();
    let lost = |id| ended(id, AttemptEnd::NoHead, Receipt::default());

    for key in [Some("k1"), None] {
        let id = begin(&ledger, key).await;
        ledger.settle(lost(id)).await.unwrap();
    }
    buy(&ledger, None, Receipt::default()).await;
    let failed = begin(&ledger, None).await;
    let refusal = ended(failed, AttemptEnd::Refused, Receipt::default());
    ledger.settle(refusal).await.unwrap();
    begin(&ledger, None).await;
    let chat = |unknown, count| ((unknown, Operation::Chat), count);
    let before = read();
    assert_eq!(
        before.unknown,
        [
            chat(no_response, 2),
            chat(Unknown::Unreported, 1),
            chat(Unknown::Open, 1)
        ]
        .into()
    );
    assert_eq!((before.failed, before.priced), (1, 0));
    assert!(before.dearest.is_empty(), "a price is not known");

    // The first key's amount, a repeat of it, and another amount for it, which is not added.
    for amount in [30, 30, 50] {
        buy(&ledger, Some("k1"), billed(amount)).await;
    }
    bench.clock.advance(Duration::from_millis(HOUR_MS));
    buy(&ledger, None, billed(9_999)).await;
    ledger.close().await;
    let after = read();
    assert_eq!(after.unknown[&(no_response, Operation::Chat)], 1);
    assert_eq!(after.billed, sum(30));
    assert_eq!(
        (after.priced, after.replayed),
        (2, 2),
        "one of them reconciled at 0"
    );
    assert_eq!(after.anomalies, [(Anomaly::SecondAmountForKey, 1)].into());
    assert_eq!(after.not_added, sum(50));
    let zone = jiff::tz::TimeZone::UTC;
    let sums = spend(
        &bench.state(),
        Some(START_MS),
        Some(START_MS + HOUR_MS),
        &[],
        &zone,
    );
    assert_eq!(after.billed, sums.unwrap().total.billed_micro_usd);
}

#[tokio::test]
async fn a_lost_answer_and_its_lost_retry_are_one_purchase() {
    let bench = Bench::new();
    let ledger = bench.open();
    let read = || window(&bench.state(), START_MS, START_MS + HOUR_MS).unwrap();
    let lost = |id| ended(id, AttemptEnd::NoHead, Receipt::default());
    let kind = (Unknown::InDoubt(InDoubt::NoResponse), Operation::Chat);
    buy(&ledger, None, billed(40)).await;

    let first = begin(&ledger, Some("k1")).await;
    ledger.settle(lost(first)).await.unwrap();
    let mut from = first;
    for _ in 0..2 {
        let retry = ledger.new_entry_id();
        let mut adopted = intent(retry, bench.clock.wall_ms(), Some("k1"));
        if let Some(key) = &mut adopted.key {
            key.origin = KeyOrigin::Adopted { from };
        }
        ledger.intend(adopted).await.unwrap();
        ledger.settle(lost(retry)).await.unwrap();
        from = retry;
    }
    let other = begin(&ledger, Some("k2")).await;
    ledger.settle(lost(other)).await.unwrap();

    let before = read();
    assert_eq!(before.unknown[&kind], 4);
    assert_eq!(before.same_purchase[&kind], 2);
    let bound = |window: &Period| {
        let compared = compare(sum(1_000), window);
        (compared.reasons[0].bound, compared.unexplained)
    };
    assert_eq!(bound(&before), (Ceiling::AtMost(sum(80)), sum(880)));

    // The key's amount comes with another repeat: nothing of it is unknown any more.
    buy(&ledger, Some("k1"), billed(30)).await;
    ledger.close().await;
    let after = read();
    let left = after.unknown[&kind] - after.same_purchase.get(&kind).copied().unwrap_or(0);
    assert_eq!((after.unknown[&kind], left), (1, 1), "{after:?}");
}

/// Cheap answers came with the frontier's price, which a lost one that was escalated costs.
#[tokio::test]
async fn a_lost_answer_may_have_cost_what_the_frontier_costs() {
    let bench = Bench::new();
    let ledger = bench.open();
    let read = || window(&bench.state(), START_MS, START_MS + HOUR_MS).unwrap();
    let cheap = |amount, frontier| Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(frontier)),
        ..billed(amount)
    };
    // Without an amount nothing of it is a price.
    let estimated = Receipt {
        would_have_cost: Reported::Value(MicroUsd::new(9_000)),
        ..Receipt::default()
    };
    buy(&ledger, None, estimated).await;
    assert!(read().dearest.is_empty());

    for (amount, frontier) in [(40, 700), (50, 30)] {
        buy(&ledger, None, cheap(amount, frontier)).await;
    }
    let lost = begin(&ledger, None).await;
    let lost = ended(lost, AttemptEnd::NoHead, Receipt::default());
    ledger.settle(lost).await.unwrap();
    ledger.close().await;

    assert_eq!(read().dearest[&Operation::Chat], MicroUsd::new(700));
}
