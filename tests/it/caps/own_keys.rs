//! At a reached limit a repeat passes, and nothing that merely looks like one: the same key of the same
//! organization with an equal request. Everything that the service bills is in the ledger, under
//! whichever key.

use serde_json::json;

use super::repeats::run_of;
use super::{ask, is_reached};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, KEY, Origin, Sandbox, Step, chat};

const REPLAYED: [(&str, &str); 2] = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];

fn replay() -> Step {
    let body = r#"{"choices":[]}"#;
    Step::Answer(crate::support::origin::json(200, &REPLAYED, body))
}

/// A long key is bought under for little; then dear requests go out under every text that it was ever
/// shown as.
async fn dear_ones_under_shown_texts(
    bursar: &Bursar,
    sandbox: &Sandbox,
    headers: &[(&str, &str)],
) -> Vec<u16> {
    let dear = "Tell me all of it. ".repeat(300);
    let mut statuses = Vec::new();
    for round in 0..6 {
        let long = format!("{round}{}", "k".repeat(299));
        let own = |key| [&[("Idempotency-Key", key)], headers].concat();
        ask(bursar, &chat("hi"), &own(&long)).await;
        let mut texts = vec![format!("h:{}", blake3::hash(long.as_bytes()).to_hex())];
        for entry in bursar.entries() {
            texts.extend(entry.key.filter(|key| key.starts_with("h:")));
            texts.extend(entry.key_hash.map(|hash| hash.to_string()));
        }
        texts.dedup();
        for text in &texts {
            let answer = ask(bursar, &chat(&dear), &own(text)).await;
            statuses.push(answer.status);
        }
        // The repeat that the service answers for free.
        ask(bursar, &chat("hi"), &own(&long)).await;
    }
    assert_eq!(bursar.billed(), sandbox.debited().await, "{statuses:?}");
    statuses
}

#[tokio::test]
async fn no_key_that_looks_like_anothers_hash_passes_a_cap() {
    let sandbox = Sandbox::start().await;
    let caps = "[caps]\nday_micro_usd = 1000\nrequest_floor_micro_usd = 1\n";
    let bursar = Bursar::with(&sandbox.url(), caps).await;

    let statuses = dear_ones_under_shown_texts(&bursar, &sandbox, &[]).await;

    assert!(statuses.contains(&402), "the cap was reached: {statuses:?}");
    let debits = sandbox.debits().await;
    let dearest = debits
        .iter()
        .filter_map(|debit| debit["amount_micro_usd"].as_u64());
    let most = 1000 + dearest.max().expect("a debit");
    assert!(
        sandbox.debited().await < most,
        "{}",
        sandbox.debited().await
    );
}

#[tokio::test]
async fn no_key_that_looks_like_anothers_hash_passes_the_limit_of_a_run() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let (_open, bearer) = run_of(&bursar, 1_000);

    let as_run = [("Authorization", &*bearer)];
    let statuses = dear_ones_under_shown_texts(&bursar, &sandbox, &as_run).await;

    assert!(
        statuses.contains(&402),
        "its limit was reached: {statuses:?}"
    );
    assert!(sandbox.debited().await < 5_000);
}

#[tokio::test]
async fn only_an_equal_request_passes_a_reached_cap_as_a_repeat() {
    let origin = Origin::start([Step::Answer(billed(60)), replay(), replay()]).await;
    let caps = "[caps]\nday_micro_usd = 50\nrequest_floor_micro_usd = 1\n";
    let bursar = Bursar::with(&origin.url(), caps).await;
    let body = r#"{"model":"auto","messages":[{"role":"user","content":"hi"}],"n":1}"#;
    let reordered =
        r#"{ "n": 1, "messages": [{"content": "hi", "role": "user"}], "model": "auto" }"#;
    let own = [("Idempotency-Key", "mine")];
    assert_eq!(ask(&bursar, body, &own).await.status, 200);

    for equal in [body, reordered] {
        let answer = ask(&bursar, equal, &own).await;
        assert_eq!(answer.status, 200, "{equal}: {}", answer.text());
    }
    let with = |name, value| [own[0], (name, value)];
    is_reached(&ask(&bursar, &body.replace("hi", "ho"), &own).await);
    is_reached(&ask(&bursar, body, &with("X-Service-Session", "s")).await);
    is_reached(&ask(&bursar, body, &with("X-Service-RTE-Query", "q")).await);
    let mut wire = bursar.connect().await;
    let other = "/agent/v1/chat/completions";
    wire.send(request("POST", other, &own, body)).await;
    is_reached(&wire.answer().await);
    assert_eq!(bursar.billed(), 60);
}

/// Without a cap in the way: what the service bills for a different request is added, and a replay is not.
#[tokio::test]
async fn i3_a_different_request_under_a_known_key_is_added_and_a_marked_replay_never() {
    let steps = [
        Step::Answer(billed(60)),
        Step::Answer(billed(900)),
        replay(),
    ];
    let origin = Origin::start(steps).await;
    let bursar = Bursar::before(&origin.url()).await;
    let own = [("Idempotency-Key", "mine")];
    for (prompt, sum) in [("hi", 60), ("ho", 960), ("hum", 960)] {
        let answer = ask(&bursar, &chat(prompt), &own).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(bursar.billed(), sum, "{prompt}");
    }
    assert_eq!(
        bursar
            .entries()
            .last()
            .map(|last| last.state.word().as_str()),
        Some("replayed")
    );
}

/// A reload and a restart both can bring another organization's key.
#[tokio::test]
async fn i3_another_organizations_same_key_is_billed_there_and_here() {
    const SECOND: &str = "sk-org-2-0123456789abcdef";
    let sandbox = Sandbox::start().await;
    let second = json!({"name": "org-2", "api_key": SECOND, "balance_micro_usd": 1_000_000});
    sandbox.control("/sandbox/organizations", second).await;
    let bursar = Bursar::before(&sandbox.url()).await;
    let own = [("Idempotency-Key", "mine")];
    let mut sums = Vec::new();
    for key in [KEY, SECOND, KEY, SECOND] {
        let mut config = (*bursar.config).clone();
        config.upstream.api_key = bursar::config::ApiKey::from_text(key.as_bytes()).expect("a key");
        bursar.reload(config);
        assert_eq!(ask(&bursar, &chat("hi"), &own).await.status, 200);
        assert_eq!(bursar.billed(), sandbox.debited().await);
        sums.push(bursar.billed());
    }
    assert!(
        sums[0] < sums[1] && sums[1..].iter().all(|sum| *sum == sums[1]),
        "{sums:?}"
    );

    // Nor does the other organization's purchase pass a cap that is reached.
    let spent = sums[1];
    let caps = format!("[caps]\nday_micro_usd = {spent}\nrequest_floor_micro_usd = 1\n");
    let bursar = bursar.restart(&caps).await;
    let another = [("Idempotency-Key", "another")];
    is_reached(&ask(&bursar, &chat("hi"), &another).await);
    assert_eq!(
        ask(&bursar, &chat("hi"), &own).await.status,
        200,
        "it was bought"
    );
    let mut config = (*bursar.config).clone();
    let third = bursar::config::ApiKey::from_text(b"sk-org-3-0123456789abcdef");
    config.upstream.api_key = third.expect("a key");
    bursar.reload(config);
    is_reached(&ask(&bursar, &chat("hi"), &own).await);
}
