//! State on disk: after a restart or a kill, the sandbox continues where it was.

use crate::{second_process::Process, support::*};
use bursar_sandbox::Options;
use serde_json::json;
use std::{net::SocketAddr, path::PathBuf, sync::Arc};

/// A directory of this test's own, gone when it ends.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sandbox-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Self(path)
    }

    fn options(&self) -> Options {
        Options {
            state_dir: Some(self.0.clone()),
            ..Options::default()
        }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// Interface, Idempotency-Key: Same key, same endpoint and body, within 24 h.
#[tokio::test]
async fn a_restart_keeps_balances_debits_replays_bound_keys_settings_limits_and_the_clock() {
    let directory = Directory::new("restart");
    let sandbox = Sandbox::start_with(directory.options()).await;
    let first = sandbox
        .post(CHAT, &[("Idempotency-Key", "a")], &ask("rivers"))
        .await;
    let stream = sandbox
        .post(CHAT, &[("Idempotency-Key", "b")], &ask_stream("rivers"))
        .await;
    sandbox
        .control("settings", json!({"repeat_billed": "same"}))
        .await;
    sandbox.control("limits", json!({"in_flight": 3})).await;
    sandbox.control("clock", json!({"advance_s": 5000})).await;
    let (books, clock) = (
        sandbox.books().await,
        sandbox.get("/sandbox/clock").await.json(),
    );
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(directory.options()).await;

    let after = sandbox.books().await;
    for part in [
        "balances_micro_usd",
        "debits",
        "debits_made",
        "debited_micro_usd",
        "requests_by_route",
    ] {
        assert_eq!(after[part], books[part], "{part}");
    }
    let now = sandbox.get("/sandbox/clock").await.json();
    for part in ["unix_s", "elapsed_ms"] {
        assert!(now[part].as_i64() >= clock[part].as_i64(), "{now} {clock}");
    }
    assert!(
        now["elapsed_ms"].as_i64().unwrap() < clock["elapsed_ms"].as_i64().unwrap() + 10_000,
        "an advance counts once"
    );
    let limits = sandbox.get("/sandbox/limits").await.json();
    assert_eq!(limits["in_flight_max"], 3);
    let replay = sandbox
        .post(CHAT, &[("Idempotency-Key", "a")], &ask("rivers"))
        .await;
    assert_eq!(
        (replay.header("idempotent-replayed"), replay.billed()),
        (Some("true"), 0)
    );
    assert_eq!(replay.body, first.body);
    let repeat = sandbox
        .post(CHAT, &[("Idempotency-Key", "b")], &ask_stream("rivers"))
        .await;
    assert_eq!(
        repeat.comment("service-billed-micro-usd"),
        stream.comment("service-billed-micro-usd"),
        "the setting came back, and the amount billed once"
    );
    let other = sandbox
        .post(CHAT, &[("Idempotency-Key", "b")], &ask_stream("lakes"))
        .await;
    assert_eq!(other.status, 422);
    assert_eq!(sandbox.books().await["debits"], books["debits"]);
    sandbox.stop().await;
}

// Interface, Idempotency-Key: More than 24 h later.
#[tokio::test]
async fn a_key_is_free_after_24_hours_though_a_restart_lies_between() {
    let directory = Directory::new("day");
    let key = [("Idempotency-Key", "a")];
    let sandbox = Sandbox::start_with(directory.options()).await;
    sandbox.post(CHAT, &key, &ask("rivers")).await;
    sandbox.control("clock", json!({"advance_s": 86_000})).await;
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(directory.options()).await;
    let replay = sandbox.post(CHAT, &key, &ask("rivers")).await;
    sandbox.control("clock", json!({"advance_s": 500})).await;
    sandbox.stop().await;
    let sandbox = Sandbox::start_with(directory.options()).await;
    let new = sandbox.post(CHAT, &key, &ask("lakes")).await;

    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert_eq!((new.status, new.header("idempotent-replayed")), (200, None));
    assert_eq!(sandbox.debits().await.len(), 2);
    sandbox.stop().await;
}

// Interface, POST /agent/v1/chat/completions: an escalation can stick.
#[tokio::test]
async fn a_conversation_keeps_its_frontier_route_over_a_restart() {
    let directory = Directory::new("pins");
    let session = [("X-Service-Session", "s")];
    let sandbox = Sandbox::start_with(directory.options()).await;
    for _ in 0..2 {
        sandbox.post(AGENT, &session, &ask("hard: rivers")).await;
    }
    let pinned = sandbox.post(AGENT, &session, &ask("rivers")).await.billed();
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(directory.options()).await;

    assert_eq!(
        sandbox.post(AGENT, &session, &ask("rivers")).await.billed(),
        pinned
    );
    assert!(pinned > sandbox.post(AGENT, &[], &ask("rivers")).await.billed());
    sandbox.stop().await;
}

#[tokio::test]
async fn a_reset_clears_what_is_on_disk_and_an_added_organization_stays() {
    let directory = Directory::new("reset");
    let sandbox = Sandbox::start_with(directory.options()).await;
    let more = json!({"name": "org-9", "api_key": "nine", "balance_micro_usd": 77});
    sandbox.control("organizations", more).await;
    let key = [("Idempotency-Key", "a")];
    sandbox.post(CHAT, &key, &ask("rivers")).await;
    sandbox.control("reset", json!({})).await;
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(directory.options()).await;

    let books = sandbox.books().await;
    assert_eq!(books["debits"], json!([]));
    assert_eq!(
        books["balances_micro_usd"],
        json!({"org-1": 100_000_000, "org-9": 77})
    );
    let again = sandbox.post(CHAT, &key, &ask("lakes")).await;
    assert_eq!((again.status, again.billed() > 0), (200, true));
    let nine = [("Authorization", "Bearer nine")];
    assert_eq!(sandbox.post(CHAT, &nine, &ask("lakes")).await.status, 200);
    sandbox.stop().await;
}

// Interface, What the service does, Metering rules: debit once per request or turn.
#[tokio::test]
async fn a_kill_at_any_instant_bills_no_key_twice_and_loses_no_debit_that_was_answered() {
    let directory = Directory::new("kill");
    let mut answered: Vec<(String, i64)> = Vec::new();
    let mut next = 0;
    for round in 0..6 {
        let mut process = Process::start(&directory.0);
        let address = process.address;
        // Killed after so many answers, in the middle of the next ones.
        let answers = Arc::new(tokio::sync::Semaphore::new(0));
        // Four clients at once; a request that a kill broke is sent again with its key by the next round.
        let clients = (0..4).map(|client| {
            let answers = Arc::clone(&answers);
            tokio::spawn(async move {
                let mut answered = Vec::new();
                for n in next.. {
                    let (key, body) = purchase(client, n);
                    match send(address, &key, &body).await {
                        Some(billed) => {
                            answered.push((key, billed));
                            answers.add_permits(1);
                        }
                        None => return (answered, n),
                    }
                }
                unreachable!("the process is killed before the numbers end")
            })
        });
        let clients: Vec<_> = clients.collect();
        within(answers.acquire_many(7 + round * 5))
            .await
            .unwrap()
            .forget();
        process.kill();
        let mut reached = 0;
        for client in clients {
            let (some, n) = client.await.unwrap();
            answered.extend(some);
            reached = reached.max(n);
        }
        next = reached.saturating_sub(3);
    }

    let mut process = Process::start(&directory.0);
    let books = get(process.address, "/sandbox/books").await;
    process.kill();

    let debits = books["debits"].as_array().unwrap();
    let mut keys: Vec<&str> = debits.iter().map(|d| d["key"].as_str().unwrap()).collect();
    keys.sort_unstable();
    let all = keys.len();
    keys.dedup();
    assert_eq!(keys.len(), all, "one debit per key");
    let sum: i64 = debits
        .iter()
        .map(|d| d["amount_micro_usd"].as_i64().unwrap())
        .sum();
    assert_eq!(books["balance_micro_usd"], 100_000_000 - sum);
    assert!(answered.len() > 20, "{}", answered.len());
    for (key, billed) in answered.iter().filter(|(_, billed)| *billed > 0) {
        let debit = debits.iter().find(|d| d["key"] == key.as_str());
        assert_eq!(
            debit.map(|d| &d["amount_micro_usd"]),
            Some(&json!(billed)),
            "{key}"
        );
    }
}

/// Whole answers and streams, by turns.
fn purchase(client: usize, n: usize) -> (String, serde_json::Value) {
    let text = format!("Tell me about river {n}");
    let body = if n.is_multiple_of(3) {
        ask_stream(&text)
    } else {
        ask(&text)
    };
    (format!("k-{client}-{n}"), body)
}

/// What the receipt said; `None` when the connection ended without it.
async fn send(address: SocketAddr, key: &str, body: &serde_json::Value) -> Option<i64> {
    let reply = raw(address, "POST", CHAT, key, &body.to_string()).await?;
    let billed = |line: &str| {
        line.strip_prefix("x-service-billed: ")
            .or_else(|| line.strip_prefix(": service-billed-micro-usd "))?
            .trim()
            .parse()
            .ok()
    };
    reply.lines().find_map(billed)
}

async fn get(address: SocketAddr, path: &str) -> serde_json::Value {
    let reply = raw(address, "GET", path, "none", "").await.unwrap();
    let body = reply.split_once("\r\n\r\n").unwrap().1;
    serde_json::from_str(body).unwrap()
}

async fn raw(
    address: SocketAddr,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut socket = tokio::net::TcpStream::connect(address).await.ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: s\r\nConnection: close\r\nAuthorization: Bearer sandbox-key\r\n\
         Idempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.ok()?;
    let mut reply = Vec::new();
    socket.read_to_end(&mut reply).await.ok()?;
    let reply = String::from_utf8_lossy(&reply).into_owned();
    assert!(
        reply.is_empty() || reply.starts_with("HTTP/1.1 200"),
        "{reply}"
    );
    Some(reply).filter(|reply| !reply.is_empty())
}
