//! Headers that rules depend on: the app's Idempotency-Key, session, query.

use super::{Door, post};
use crate::support::Step;
use crate::support::origin::json;
use crate::support::wire::request;

#[tokio::test]
async fn an_own_key_passes_unchanged_and_an_empty_one_counts_as_absent() {
    let door = Door::open().await;
    let long = "k".repeat(300);
    let longer = format!("{}{}", "0123456789".repeat(60), "~");
    for key in [
        "k",
        "a key with spaces",
        "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~",
        &long,
        &longer,
    ] {
        door.passes(post(&[("Idempotency-Key", key)])).await;
        let received = door.origin.received();
        assert_eq!(
            received
                .last()
                .expect("a request")
                .header("idempotency-key"),
            Some(key)
        );
    }
    let entries = door.bursar.settled(5).await;
    // "longer keys are hashed" by the service, and by the ledger.
    let kept = |wanted: &str| {
        entries.iter().any(|entry| {
            entry
                .key
                .as_deref()
                .is_some_and(|key| key.starts_with(wanted))
        })
    };
    assert!(kept("a key with spaces") && !kept(&long));
    assert!(entries.iter().any(|entry| entry.key_hash.is_some()));

    let mut minted = Vec::new();
    for key in ["", " ", "\t "] {
        door.passes(post(&[("Idempotency-Key", key)])).await;
        let received = door.origin.received();
        let key = received
            .last()
            .expect("a request")
            .header("idempotency-key");
        minted.push(key.expect("a minted key").to_owned());
    }
    door.passes(post(&[])).await;
    let received = door.origin.received();
    minted.push(
        received
            .last()
            .expect("a request")
            .header("idempotency-key")
            .expect("a key")
            .to_owned(),
    );
    assert!(minted.iter().all(|key| key.len() >= 22), "{minted:?}");
    minted.sort();
    minted.dedup();
    assert_eq!(minted.len(), 4, "minted keys repeat");
}

#[tokio::test]
async fn a_key_or_session_that_means_two_things_is_refused() {
    let door = Door::open().await;
    let refused = ["header_refused", "head_malformed"];
    let controls = [
        "a\u{1}b",
        "a\tb",
        "a\u{7f}b",
        "a\u{e9}b",
        "a\u{1b}[31mb",
        "a\u{80}b",
    ];
    for key in controls {
        door.refuses(post(&[("Idempotency-Key", key)]), &refused)
            .await;
    }
    for name in [
        "Idempotency-Key",
        "X-Service-Session",
        "X-Service-RTE-Query",
    ] {
        for (one, other) in [("a", "b"), ("a", "a"), ("", "a"), ("a", "")] {
            door.refuses(
                post(&[(name, one), (&name.to_lowercase(), other)]),
                &refused,
            )
            .await;
        }
    }
    // An underscore is a hyphen to some servers: it is not relayed, and is not the key.
    door.passes(post(&[
        ("Idempotency-Key", "mine"),
        ("Idempotency_Key", "other"),
    ]))
    .await;
    let received = &door.origin.received()[0];
    assert_eq!(received.header("idempotency-key"), Some("mine"));
    assert_eq!(received.header("idempotency_key"), None);
}

/// An answer that every route's app can be given.
const ANSWER: &str = r#"{"id":"c1","object":"chat.completion","created":1700000000,"model":"auto","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;

#[tokio::test]
async fn keys_go_out_on_the_six_keyed_routes_and_on_those_that_are_translated_to_them_only() {
    let door = Door::open().await;
    let plain = r#"{"model":"auto"}"#;
    let input = r#"{"model":"auto","input":"hi"}"#;
    let messages = r#"{"model":"auto","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}"#;
    for (path, body, keyed) in [
        ("/v1/chat/completions", plain, true),
        ("/agent/v1/chat/completions", plain, true),
        ("/v1/responses", input, true),
        ("/agent/v1/responses", input, true),
        ("/agent/v1/messages", messages, true),
        ("/v1/embeddings", plain, true),
        ("/v1/rerank", plain, true),
        ("/v1/images/generations", plain, true),
        ("/v1/images/edits", plain, true),
        ("/v1/audio/speech", plain, false),
        ("/v1/audio/transcriptions", plain, false),
        ("/v1/playground/frontier", plain, false),
        ("/v1/eval-runs", plain, false),
        ("/v1/tasks/match", plain, false),
    ] {
        // A key of its own for each route: one key is one purchase.
        for own in [None, Some(path)] {
            let headers: Vec<(&str, &str)> =
                own.iter().map(|key| ("Idempotency-Key", *key)).collect();
            let answer = json(200, &[("X-Service-Billed", "1")], ANSWER);
            door.origin.push(Step::Answer(answer));
            let answer = door.ask(request("POST", path, &headers, body)).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
            let received = door.origin.received();
            let sent = received
                .last()
                .expect("a request")
                .header("idempotency-key")
                .map(str::to_owned);
            match (keyed, own) {
                (true, Some(own)) => assert_eq!(sent.as_deref(), Some(own), "{path}"),
                (true, None) => assert!(sent.is_some_and(|key| key != path), "{path}"),
                (false, _) => assert_eq!(sent, None, "{path}"),
            }
        }
    }
    assert_eq!(door.origin.received().len(), 2 * 14, "each was sent");
}
