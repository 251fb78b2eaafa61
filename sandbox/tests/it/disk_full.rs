//! A state directory that cannot be written: what is answered with an error is not billed, and a disk that works
//! again is used again.

use crate::{second_process::Process, support::*};
use serde_json::{Value, json};
use std::path::PathBuf;

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sandbox-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Debits, sums and balances, all of one mind.
async fn money(sandbox: &Sandbox) -> Value {
    let books = sandbox.books().await;
    let lines = books["debits"].as_array().unwrap();
    let amounts = lines.iter().map(|line| line["amount_micro_usd"].as_i64());
    let sum: i64 = amounts.map(Option::unwrap).sum();
    assert_eq!(books["debited_micro_usd"], sum);
    assert_eq!(books["balance_micro_usd"], 100_000_000 - sum);
    let numbers: Vec<u64> = lines
        .iter()
        .map(|line| line["n"].as_u64().unwrap())
        .collect();
    assert!(
        numbers.iter().copied().eq(1..=numbers.len() as u64),
        "{numbers:?}"
    );
    assert_eq!(books["debits_made"], numbers.len());
    books["debits"].clone()
}

// Interface, What the service does, Metering rules: "A request or turn that fails bills nothing."
#[tokio::test]
async fn what_a_full_disk_fails_is_not_billed_and_its_key_runs_again_when_there_is_room() {
    let directory = Directory::new("full");
    let mut process = Process::start_with_limits(&directory.0);
    let sandbox = process.sandbox();
    let first = [("Idempotency-Key", "first")];
    assert_eq!(sandbox.post(CHAT, &first, &ask("rivers")).await.status, 200);
    let before = money(&sandbox).await;

    process.set_disk_full(true);
    let whole = [("Idempotency-Key", "whole")];
    let stream = [("Idempotency-Key", "stream")];
    let pictures = json!({"prompt": "a red circle", "size": "16x16"});
    let text = json!({"text": "Good morning"});
    let compared = json!({"model": "frontier-a", "messages": [{"role": "user", "content": "hi"}]});
    let refused = [
        (CHAT, &whole, ask("lakes")),
        (
            "/v1/embeddings",
            &[("Idempotency-Key", "e")],
            json!({"model": "auto", "input": "lakes"}),
        ),
        (
            "/v1/images/generations",
            &[("Idempotency-Key", "i")],
            pictures,
        ),
        ("/v1/audio/speech", &[("Accept", "application/json")], text),
        (
            "/v1/playground/frontier",
            &[("Accept", "application/json")],
            compared,
        ),
    ];
    for (path, headers, body) in &refused {
        let reply = sandbox.post(path, *headers, body).await;
        assert_eq!(reply.status, 500, "{path}: {}", reply.text());
        assert_eq!(money(&sandbox).await, before, "{path}");
    }
    for path in [CHAT, AGENT] {
        let broken = sandbox.post(path, &stream, &ask_stream("seas")).await;
        assert_eq!((broken.status, broken.complete), (200, false), "{path}");
        let tail = [broken.comments().join(" "), broken.data().join(" ")].concat();
        assert!(
            !tail.contains("service-billed") && !tail.contains("[DONE]"),
            "{tail}"
        );
        assert_eq!(money(&sandbox).await, before, "{path}");
    }
    // Several that share a write.
    let bodies: Vec<Value> = (0..4).map(|n| ask(&format!("river {n}"))).collect();
    let all = bodies.iter().map(|body| sandbox.post(CHAT, &[], body));
    for reply in futures_util::future::join_all(all).await {
        assert_eq!(reply.status, 500);
    }
    assert_eq!(money(&sandbox).await, before);

    process.set_disk_full(false);
    // The key bound nothing: another body may have it, and the first to come is billed.
    let lakes = sandbox.post(CHAT, &whole, &ask("other lakes")).await;
    assert_eq!(
        (lakes.status, lakes.header("idempotent-replayed")),
        (200, None)
    );
    assert!(lakes.billed() > 0);
    let seas = sandbox.post(CHAT, &stream, &ask_stream("seas")).await;
    assert_ne!(
        seas.comment("service-billed-micro-usd").as_deref(),
        Some("0")
    );
    let after = money(&sandbox).await;
    assert_eq!(after.as_array().unwrap().len(), 3);
    process.kill();

    let mut process = Process::start(&directory.0);
    let sandbox = process.sandbox();
    assert_eq!(money(&sandbox).await, after);
    let replay = sandbox.post(CHAT, &whole, &ask("other lakes")).await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!(replay.body, lakes.body);
    process.kill();
}
