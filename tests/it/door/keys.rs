//! Headers that rules depend on: the app's Idempotency-Key, session, query.

use super::{Door, post};
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

#[tokio::test]
async fn keys_go_out_on_the_six_keyed_routes_only() {
    let door = Door::open().await;
    for (path, keyed) in [
        ("/v1/chat/completions", true),
        ("/agent/v1/chat/completions", true),
        ("/v1/embeddings", true),
        ("/v1/rerank", true),
        ("/v1/images/generations", true),
        ("/v1/images/edits", true),
        ("/v1/audio/speech", false),
        ("/v1/audio/transcriptions", false),
        ("/v1/playground/frontier", false),
        ("/v1/eval-runs", false),
        ("/v1/tasks/match", false),
    ] {
        for own in [None, Some("my-key")] {
            let headers: Vec<(&str, &str)> =
                own.iter().map(|key| ("Idempotency-Key", *key)).collect();
            door.passes(request("POST", path, &headers, "{\"model\":\"auto\"}"))
                .await;
            let received = door.origin.received();
            let sent = received
                .last()
                .expect("a request")
                .header("idempotency-key")
                .map(str::to_owned);
            match (keyed, own) {
                (true, Some(own)) => assert_eq!(sent.as_deref(), Some(own), "{path}"),
                (true, None) => assert!(sent.is_some_and(|key| key != "my-key"), "{path}"),
                (false, _) => assert_eq!(sent, None, "{path}"),
            }
        }
    }
}
