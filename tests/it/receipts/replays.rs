//! One key adds one amount, in whatever order its attempts end (rules I3, I4).

use bursar::ledger::entry::{Anomaly, InDoubt, State};

use super::{LOST_AMOUNT, ONCE, ask_with_key, before, check_metric, reconciled, settled};
use crate::support::origin::{billed, json};
use crate::support::{Bursar, Origin, Step};

fn replay(billed: &str) -> Step {
    let headers = [
        ("X-Service-Billed", billed),
        ("Idempotent-Replayed", "true"),
    ];
    Step::Answer(json(200, &headers, "{}"))
}

/// Requests one after the other under one key of the app's, and what becomes of their entries.
#[tokio::test]
async fn one_key_adds_one_amount() {
    let no_response = State::InDoubt {
        reason: InDoubt::NoResponse,
    };
    let paid = |micro_usd| Step::Answer(billed(micro_usd));
    let unpriced = || Step::Answer(json(200, &[], "{}"));
    let refused = || Step::Answer(json(500, &[], r#"{"detail":"no"}"#));
    let rows: Vec<(&str, Vec<Step>, Vec<State>, u64)> = vec![
        (
            "paid, replayed",
            vec![paid(7), replay("0")],
            vec![settled(7), State::Replayed],
            7,
        ),
        (
            "paid, repeated at 0 without a mark",
            vec![paid(7), paid(0)],
            vec![settled(7), State::Replayed],
            7,
        ),
        (
            "paid, the same again",
            vec![paid(7), paid(7)],
            vec![settled(7), State::Replayed],
            7,
        ),
        (
            "paid, another amount",
            vec![paid(7), paid(9)],
            vec![settled(7), State::Replayed],
            7,
        ),
        (
            "no amount reported, replayed",
            vec![unpriced(), replay("0")],
            vec![State::Unreported, State::Replayed],
            0,
        ),
        (
            "no amount reported, nor by the repeat",
            vec![unpriced(), unpriced(), unpriced()],
            vec![State::Unreported, State::Replayed, State::Replayed],
            0,
        ),
        (
            "lost, replayed",
            vec![Step::Close, replay("0")],
            vec![no_response, LOST_AMOUNT],
            0,
        ),
        (
            "lost, then 0 without a mark",
            vec![Step::Close, paid(0)],
            vec![no_response, LOST_AMOUNT],
            0,
        ),
        (
            "lost, then paid",
            vec![Step::Close, paid(7)],
            vec![reconciled(0), settled(7)],
            7,
        ),
        (
            "lost, replayed, then the amount",
            vec![Step::Close, replay("0"), paid(7)],
            vec![reconciled(0), reconciled(0), settled(7)],
            7,
        ),
        (
            "refused, then paid",
            vec![refused(), paid(7)],
            vec![State::Failed, settled(7)],
            7,
        ),
        (
            "refused, then 0",
            vec![refused(), paid(0)],
            vec![State::Failed, settled(0)],
            0,
        ),
        (
            "a replay of what another client paid",
            vec![replay("0")],
            vec![LOST_AMOUNT],
            0,
        ),
        (
            "a replay that shows an amount",
            vec![paid(7), replay("7")],
            vec![settled(7), State::Replayed],
            7,
        ),
    ];
    for (name, steps, states, sum) in rows {
        let count = steps.len();
        let origin = Origin::start(steps).await;
        let bursar = Bursar::with(&origin.url(), ONCE).await;
        for _ in 0..count {
            ask_with_key(&bursar, "mine").await;
        }
        let found: Vec<_> = bursar
            .settled(count)
            .await
            .iter()
            .map(|entry| entry.state)
            .collect();
        assert_eq!(found, states, "{name}");
        assert_eq!(bursar.billed(), sum, "{name}: the sum");
        let usd = bursar.metric("bursar_billed_usd_total", "");
        assert!((usd - sum as f64 / 1e6).abs() < 1e-9, "{name}: {usd}");
        let doubts = states
            .iter()
            .filter(|state| matches!(state, State::InDoubt { .. }))
            .count();
        check_metric(name, &bursar, "bursar_in_doubt_requests", "", doubts as f64);
        let keys: Vec<_> = origin
            .received()
            .iter()
            .map(|received| received.header("idempotency-key").map(str::to_owned))
            .collect();
        assert!(
            keys.iter().all(|key| key.as_deref() == Some("mine")),
            "{name}: {keys:?}"
        );
    }
}

#[tokio::test]
async fn a_second_amount_of_a_key_is_counted_and_not_added() {
    let origin = Origin::start([Step::Answer(billed(7)), Step::Answer(billed(9))]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    ask_with_key(&bursar, "mine").await;
    let second = ask_with_key(&bursar, "mine").await;
    assert_eq!(
        bursar.entry_of(&second).anomalies,
        [Anomaly::SecondAmountForKey]
    );
    check_metric(
        "second",
        &bursar,
        "bursar_receipt_anomalies_total",
        "second_amount_for_key",
        1.0,
    );
}

#[tokio::test]
async fn a_replay_that_shows_an_amount_adds_nothing() {
    let (_origin, bursar) = before(json(
        200,
        &[("X-Service-Billed", "7"), ("Idempotent-Replayed", "true")],
        "{}",
    ))
    .await;
    let entry = bursar.entry_of(&ask_with_key(&bursar, "mine").await);
    assert_eq!(
        entry.state, LOST_AMOUNT,
        "the earlier amount was never seen"
    );
    assert!(entry.replayed);
    assert_eq!(entry.anomalies, [Anomaly::AmountOnReplay]);
    assert_eq!(bursar.billed(), 0);
    check_metric(
        "replay",
        &bursar,
        "bursar_idempotent_replays_total",
        "",
        1.0,
    );
    check_metric(
        "replay",
        &bursar,
        "bursar_receipts_total",
        "source=\"replay\"",
        1.0,
    );
}

/// Two keys never share an amount.
#[tokio::test]
async fn keys_are_apart() {
    let (_origin, bursar) = before(billed(7)).await;
    for key in ["one", "two", "three"] {
        ask_with_key(&bursar, key).await;
    }
    assert_eq!(bursar.billed(), 21);
}

/// A repeat ends before the request that it repeats: the amount comes last.
#[tokio::test]
async fn the_order_of_ends_does_not_matter() {
    let origin = Origin::start([Step::Pieces(vec![billed(7)]), replay("0")]).await;
    let bursar = Bursar::with(&origin.url(), ONCE).await;
    let headers = [("Idempotency-Key", "mine")];
    let body = crate::support::chat("hi");
    let ask = crate::support::wire::request("POST", super::CHAT, &headers, &body);
    let mut slow = bursar.connect().await;
    slow.send(&ask).await;
    crate::support::eventually("the first upstream", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    let quick = ask_with_key(&bursar, "mine").await;
    assert_eq!(
        bursar.entry_of(&quick).state,
        LOST_AMOUNT,
        "until the amount comes"
    );
    origin.go();
    let first = slow.answer().await;
    assert_eq!(bursar.entry_of(&first).state, settled(7));
    assert_eq!(bursar.entry_of(&quick).state, reconciled(0));
    assert_eq!(bursar.billed(), 7);
}
