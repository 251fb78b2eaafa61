//! Many clients at once, on several threads: the books stay exact.

use crate::support::*;
use bursar_sandbox::Options;
use serde_json::json;
use std::{collections::BTreeSet, sync::Arc};

const KEYS: usize = 12;
const CLIENTS_PER_KEY: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn duplicates_in_parallel_are_one_debit_and_one_answer_per_key() {
    let sandbox = Arc::new(
        Sandbox::start_with(Options {
            in_flight_max: 1_000,
            per_minute_max: 1_000,
            ..Options::default()
        })
        .await,
    );
    sandbox
        .control("faults", json!({"times": 0, "fault": {"delay_ms": 5}}))
        .await;

    let clients: Vec<_> = (0..KEYS * CLIENTS_PER_KEY)
        .map(|n| {
            let sandbox = Arc::clone(&sandbox);
            tokio::spawn(async move {
                let key = format!("key-{}", n % KEYS);
                let body = with(ask("rivers"), "temperature", json!(1));
                let reply = sandbox
                    .post(CHAT, &[("Idempotency-Key", &key)], &body)
                    .await;
                assert_eq!(reply.status, 200, "{}", reply.text());
                (reply.content(), reply.billed())
            })
        })
        .collect();
    let mut contents = BTreeSet::new();
    let mut billed = Vec::new();
    for client in clients {
        let (content, amount) = client.await.unwrap();
        contents.insert(content);
        billed.extend((amount > 0).then_some(amount));
    }

    let mut debits = sandbox.debits().await;
    debits.sort_unstable();
    billed.sort_unstable();
    assert_eq!((contents.len(), debits.len()), (KEYS, KEYS));
    assert_eq!(debits, billed);
    let books = sandbox.books().await;
    let sum: i64 = debits.iter().sum();
    assert_eq!(books["balance_micro_usd"], 100_000_000 - sum);
    assert_eq!(books["replays"], KEYS * (CLIENTS_PER_KEY - 1));
}
