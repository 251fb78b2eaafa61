//! Process death: a child is killed at random instants while requests flow, and what the ledger
//! says afterwards is compared with the sandbox's own books.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bursar::ledger::entry::State;
use bursar_sandbox::Options;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::bursar::entries;
use crate::support::daemon::Daemon;
use crate::support::wire::{Wire, request};
use crate::support::{Sandbox, chat, chat_stream, eventually};

/// Kills in `make test`; `make torture` sets more.
const KILLS: usize = 100;

/// Requests at once.
const CLIENTS: usize = 4;

/// An answer that an app received whole: entry id and amount.
type Received = Arc<Mutex<HashMap<String, u64>>>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "`make torture` asks for more kills this way"
)]
async fn whatever_instant_the_daemon_is_killed_at_the_ledger_agrees_with_the_books() {
    let kills =
        std::env::var("BURSAR_KILLS").map_or(KILLS, |kills| kills.parse().expect("a count"));
    let mut random = Random(0x5eed_0bad_cafe_0001);
    let sandbox = Sandbox::with(Options {
        in_flight_max: 1000,
        per_minute_max: 1_000_000,
        balance_micro_usd: u64::MAX / 4,
        ..Options::default()
    })
    .await;
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let received: Received = Arc::default();

    for round in 0..kills {
        let daemon = Daemon::start(&sandbox.url(), &state_dir, &[]).await;
        let mut clients = JoinSet::new();
        for client in 0..CLIENTS {
            let received = Arc::clone(&received);
            let address = daemon.proxy;
            clients.spawn(async move {
                for n in 0u64.. {
                    let prompt =
                        format!("round {round} client {client} number {n}: what is {n} + 1?");
                    let Some(stream) = TcpStream::connect(address).await.ok() else {
                        return;
                    };
                    if !ask(Wire::over(stream), n % 3, &prompt, &received).await {
                        return;
                    }
                }
            });
        }
        tokio::time::sleep(Duration::from_millis(random.below(120))).await;
        daemon.kill().await;
        while clients.join_next().await.is_some() {}
    }

    // What was under way in the sandbox comes to its end without a reader.
    eventually("the sandbox to come to rest", || async {
        (sandbox.get("/sandbox/limits").await["in_flight"] == 0).then_some(())
    })
    .await;
    // The last start marks what the last kill left open.
    Daemon::start(&sandbox.url(), &state_dir, &[])
        .await
        .terminate()
        .await;

    let entries = entries(&state_dir);
    let by_id: HashMap<String, _> = entries
        .iter()
        .map(|entry| (entry.id.0.to_string(), entry))
        .collect();
    for (id, amount) in received.lock().iter() {
        let entry = by_id.get(id).unwrap_or_else(|| panic!("no entry {id}"));
        let billed = entry.billed_micro_usd.map(|billed| billed.get());
        assert!(
            matches!(entry.state, State::Settled { .. }) && billed == Some(*amount),
            "an answer with {amount} was received whole, and its entry says {:?}",
            entry.state
        );
    }

    let by_key: HashMap<&str, _> = entries
        .iter()
        .filter_map(|entry| entry.key.as_deref().map(|key| (key, entry)))
        .collect();
    let mut books = 0;
    let mut books_in_doubt = 0;
    for debit in sandbox.debits().await {
        let key = debit["key"].as_str().expect("every debit has a key");
        let amount = debit["amount_micro_usd"].as_u64().expect("an amount");
        let entry = by_key
            .get(key)
            .unwrap_or_else(|| panic!("no entry for key {key}"));
        books += amount;
        if matches!(entry.state, State::InDoubt { .. }) {
            books_in_doubt += amount;
        }
    }
    let settled: u64 = entries
        .iter()
        .filter_map(|entry| entry.billed_micro_usd)
        .map(|billed| billed.get())
        .sum();
    assert!(settled <= books, "settled {settled} > books {books}");
    assert!(
        books <= settled + books_in_doubt,
        "books {books} > settled {settled} + in doubt {books_in_doubt}"
    );
    assert!(
        received.lock().len() > kills,
        "too few requests flowed to prove anything"
    );
    assert!(entries.iter().all(|entry| entry.state != State::Open));
}

/// One request; what came back whole is noted. False when the daemon is gone.
async fn ask(mut wire: Wire, kind: u64, prompt: &str, received: &Received) -> bool {
    let (path, body) = match kind {
        0 => ("/v1/chat/completions", chat(prompt)),
        1 => ("/v1/chat/completions", chat_stream(prompt)),
        _ => ("/agent/v1/chat/completions", chat(prompt)),
    };
    if !wire.try_send(request("POST", path, &[], &body)).await {
        return false;
    }
    let answer = wire.answer().await;
    if !answer.complete || answer.status != 200 {
        return answer.status != 0;
    }
    let amount = if kind == 1 {
        let text = answer.text();
        text.lines()
            .find_map(|line| line.strip_prefix(": service-billed-micro-usd "))
            .map(|amount| amount.parse().expect("an amount"))
    } else {
        answer
            .header("x-service-billed")
            .map(|amount| amount.parse().expect("an amount"))
    };
    let id = answer.header("x-bursar-entry").expect("an entry id");
    let amount = amount.expect("a receipt");
    received.lock().insert(id.to_owned(), amount);
    true
}

/// A small generator, so that a failing run can be repeated.
pub struct Random(pub u64);

impl Random {
    /// A number below `bound` (xorshift).
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
