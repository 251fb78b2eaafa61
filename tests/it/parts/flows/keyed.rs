//! Embeddings, rerank and pictures: keyed, with their price in the head. A repeat is one purchase,
//! and what its amount was is known, or said not to be.

use bursar::ledger::entry::{InDoubt, State};
use serde_json::{Value, json};

use super::{amounts, ask, fault, in_doubt, received, settled, stage, stage_with};

/// Route, body, and whether the service keeps the answer for a replay.
fn routes() -> [(&'static str, Value, bool); 3] {
    [
        (
            "/v1/embeddings",
            json!({"model": "auto", "input": ["a river", "the sea"]}),
            false,
        ),
        (
            "/v1/rerank",
            json!({"model": "auto", "query": "water", "documents": ["a river", "a stone"]}),
            false,
        ),
        (
            "/v1/images/generations",
            json!({"prompt": "a blue circle", "size": "64x64"}),
            true,
        ),
    ]
}

#[tokio::test]
async fn each_is_billed_once_by_the_header_of_its_answer() {
    let (sandbox, bursar) = stage().await;
    for (path, body, _) in routes() {
        let answer = ask(&bursar, path, &[], &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let billed = *amounts(&sandbox).await.last().expect("a debit");
        assert_eq!(bursar.entry_of(&answer).state, settled(billed), "{path}");
    }
    assert_eq!(bursar.billed(), sandbox.debited().await);
    assert_eq!(amounts(&sandbox).await.len(), 3);
}

/// The answer with the amount is lost, and the repeat reports 0: bought once, and in doubt.
#[tokio::test]
async fn a_lost_answer_is_asked_for_again_under_its_key_and_bought_once() {
    for (path, body, _) in routes() {
        let (sandbox, bursar) = stage().await;
        fault(&sandbox, path, json!({"cut_before_head": true})).await;
        let answer = ask(&bursar, path, &[], &body).await;
        assert_eq!(answer.status, 200, "{path}");
        let seen = received(&sandbox, "POST", path).await;
        assert_eq!(seen.len(), 2, "{path}");
        assert!(seen[0]["idempotency_key"].is_string(), "{path}");
        assert_eq!(
            seen[0]["idempotency_key"], seen[1]["idempotency_key"],
            "{path}"
        );
        assert_eq!(amounts(&sandbox).await.len(), 1, "{path}");
        let state = bursar.entry_of(&answer).state;
        assert_eq!(state, in_doubt(InDoubt::ReplayLostAmount), "{path}");
        assert_eq!(bursar.billed(), 0, "{path}: nothing is guessed");
    }
}

/// A head that came before the body broke carried the amount.
#[tokio::test]
async fn the_price_in_the_head_of_an_answer_that_broke_counts() {
    for (path, body, _) in routes() {
        let (sandbox, bursar) = stage().await;
        fault(&sandbox, path, json!({"cut_after_bytes": 20})).await;
        let answer = ask(&bursar, path, &[], &body).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.complete, "{path}");
        assert_eq!(received(&sandbox, "POST", path).await.len(), 2, "{path}");
        let billed = amounts(&sandbox).await;
        assert_eq!(billed.len(), 1, "{path}");
        assert_eq!(bursar.entry_of(&answer).state, settled(billed[0]), "{path}");
    }
}

/// A service whose unstored repeats report the amount resolves an entry that a lost answer left
/// open.
#[tokio::test]
async fn a_doubt_is_resolved_by_a_later_attempt_of_its_key() {
    for (path, body, is_kept) in routes() {
        let (sandbox, bursar) = stage_with("[retry]\nattempts = 1\n").await;
        let same = json!({"repeat_billed": "same"});
        sandbox.control("/sandbox/settings", same).await;
        let own = [("Idempotency-Key", "purchase-7")];
        fault(&sandbox, path, json!({"cut_before_head": true})).await;
        let lost = ask(&bursar, path, &own, &body).await;
        assert_eq!(lost.status, 502, "{path}");
        let state = bursar.entry_of(&lost).state;
        assert_eq!(state, in_doubt(InDoubt::NoResponse), "{path}");

        let again = ask(&bursar, path, &own, &body).await;
        assert_eq!(again.status, 200, "{path}");
        assert_eq!(amounts(&sandbox).await.len(), 1, "{path}: one purchase");
        let doubts =
            |entry: &bursar::ledger::query::EntryView| matches!(entry.state, State::InDoubt { .. });
        if is_kept {
            // A replay shows 0, whatever the setting.
            assert_eq!(again.header("idempotent-replayed"), Some("true"), "{path}");
            assert!(bursar.entries().iter().any(doubts), "{path}");
            assert_eq!(bursar.billed(), 0, "{path}");
        } else {
            assert!(
                !bursar.entries().iter().any(doubts),
                "{path}: {:?}",
                bursar.entries()
            );
            assert_eq!(bursar.billed(), sandbox.debited().await, "{path}");
        }
    }
}

#[tokio::test]
async fn a_repeat_under_the_apps_own_key_adds_nothing() {
    let (sandbox, bursar) = stage().await;
    for (path, body, is_kept) in routes() {
        let key = format!("own-{path}");
        let own = [("Idempotency-Key", key.as_str())];
        let first = ask(&bursar, path, &own, &body).await;
        let again = ask(&bursar, path, &own, &body).await;
        assert_eq!((first.status, again.status), (200, 200), "{path}");
        let replayed = again.header("idempotent-replayed") == Some("true");
        assert_eq!(replayed, is_kept, "{path}");
        assert_eq!(again.header("x-service-billed"), Some("0"), "{path}");
        assert_eq!(bursar.entry_of(&again).state, State::Replayed, "{path}");
    }
    assert_eq!(amounts(&sandbox).await.len(), 3);
    assert_eq!(bursar.billed(), sandbox.debited().await);
}
