//! A real process is stopped with requests in flight, or killed, and started again: the app's retry
//! is the same purchase, and the sandbox's own books show one debit.

use std::path::Path;

use bursar::ledger::entry::{InDoubt, KeyOrigin, State};
use serde_json::json;

use super::{CHAT, key};
use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, Signal};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{
    Answer, Origin, Sandbox, Step, Wire, chat, chat_stream, eventually, messages_stream,
    responses_stream,
};

const AGENT: &str = "/agent/v1/chat/completions";

/// JSON, a stream without a byte sent, an agent turn, and the dialects.
fn kinds() -> [(&'static str, &'static str, String); 6] {
    let responses = responses_stream("one purchase");
    [
        ("responses", "/v1/responses", responses.clone()),
        ("agent responses", "/agent/v1/responses", responses),
        (
            "messages",
            "/agent/v1/messages",
            messages_stream("one purchase"),
        ),
        ("json", CHAT, chat("one purchase")),
        ("stream", CHAT, chat_stream("one purchase")),
        ("agent", AGENT, chat("one purchase")),
    ]
}

/// Sends a request that the sandbox holds, and waits until it runs there.
async fn held(daemon: &Daemon, sandbox: &Sandbox, path: &str, body: &str) -> Wire {
    let hold = json!({"fault": {"hold": "first"}});
    sandbox.control("/sandbox/faults", hold).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", path, &[], body)).await;
    running(sandbox, 1).await;
    app
}

async fn running(sandbox: &Sandbox, count: u64) {
    eventually("the service to run it", || async {
        let limits = sandbox.get("/sandbox/limits").await;
        (limits["in_flight"] == count).then_some(())
    })
    .await;
}

/// The app's retry through the next process, begun while the first still runs.
async fn retry(
    daemon: &Daemon,
    sandbox: &Sandbox,
    state_dir: &Path,
    path: &str,
    body: &str,
) -> Answer {
    running(sandbox, 1).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", path, &[], body)).await;
    eventually("its intent", || async {
        (entries(state_dir).len() == 2).then_some(())
    })
    .await;
    let release = json!({"hold": "first"});
    sandbox.control("/sandbox/release", release).await;
    app.answer().await
}

/// One debit, one key, and an entry that names the request whose key it took.
async fn bought_once(name: &str, sandbox: &Sandbox, state_dir: &Path, retried: &Answer) {
    assert_eq!(retried.status, 200, "{name}: {}", retried.text());
    assert!(retried.complete, "{name}");
    running(sandbox, 0).await;
    assert_eq!(sandbox.debits().await.len(), 1, "{name}: one debit");
    let entries = entries(state_dir);
    assert_eq!(entries.len(), 2, "{name}");
    let from = entries[0].id;
    let adopted = Some(KeyOrigin::Adopted { from });
    assert_eq!(entries[1].key_origin, adopted, "{name}");
    assert_eq!(entries[0].key, entries[1].key, "{name}");
    let adopted = retried.header("x-bursar-adopted").map(str::to_owned);
    assert_eq!(adopted, Some(from.to_string()), "{name}");
    let known: u64 = entries
        .iter()
        .filter_map(|entry| entry.billed_micro_usd)
        .map(|billed| billed.get())
        .sum();
    assert!(known <= sandbox.debited().await, "{name}: never more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_kill_9_is_the_same_purchase() {
    for (name, path, body) in kinds() {
        let sandbox = Sandbox::start().await;
        let directory = tempfile::tempdir().expect("a directory");
        let state_dir = directory.path().join("state");
        let daemon = Daemon::start(&sandbox.url(), &state_dir, &[]).await;
        let app = held(&daemon, &sandbox, path, &body).await;
        daemon.kill().await;
        drop(app);
        let daemon = Daemon::start(&sandbox.url(), &state_dir, &[]).await;
        let retried = retry(&daemon, &sandbox, &state_dir, path, &body).await;
        daemon.terminate().await;
        bought_once(name, &sandbox, &state_dir, &retried).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_a_stop_with_leftovers_is_the_same_purchase() {
    for (name, path, body) in kinds() {
        let sandbox = Sandbox::start().await;
        let directory = tempfile::tempdir().expect("a directory");
        let state_dir = directory.path().join("state");
        let config = directory.path().join("config.toml");
        let lines = "[upstream]\n[listen]\nshutdown_timeout_s = 1\n";
        std::fs::write(&config, lines).expect("the config is written");
        let more = ["--config", config.to_str().expect("a UTF-8 path")];
        let mut daemon = Daemon::start(&sandbox.url(), &state_dir, &more).await;
        let mut app = held(&daemon, &sandbox, path, &body).await;
        daemon.signal(Signal::TERM);
        let first = app.answer().await;
        assert_eq!(first.code(), Some("shutting_down"), "{name}");
        assert_eq!(daemon.ended().await.code(), Some(0), "{name}");
        let reason = InDoubt::Shutdown;
        let left = entries(&state_dir);
        assert_eq!(left[0].state, State::InDoubt { reason }, "{name}");

        let daemon = Daemon::start(&sandbox.url(), &state_dir, &more).await;
        let retried = retry(&daemon, &sandbox, &state_dir, path, &body).await;
        daemon.terminate().await;
        bought_once(name, &sandbox, &state_dir, &retried).await;
    }
}

/// The service is done, and the app has read nothing of what is kept for it when the process is killed, however
/// long after the outcome.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_killed_while_its_end_is_kept_is_bought_once() {
    let body = chat_stream("one purchase");
    let event = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let end = chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n");
    let stream = [stream_head(), event.repeat(14), end, last_chunk()].concat();
    let origin = Origin::start([stream, billed(0)].map(Step::Answer)).await;
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let daemon = Daemon::start(&origin.url(), &state_dir, &[]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", CHAT, &[], &body)).await;
    let journal = state_dir.join("journal/00000001.jsonl");
    eventually("the note", || async {
        let text = std::fs::read_to_string(&journal).expect("a journal");
        text.contains("\"kind\":\"delivery\"").then_some(())
    })
    .await;
    assert!(matches!(
        entries(&state_dir)[0].state,
        State::Settled { .. }
    ));
    daemon.kill().await;
    assert!(!app.answer().await.complete);

    let daemon = Daemon::start(&origin.url(), &state_dir, &[]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", CHAT, &[], &body)).await;
    let retried = app.answer().await;
    daemon.terminate().await;
    assert!(retried.header("x-bursar-adopted").is_some());
    assert_eq!(key(&origin, 0), key(&origin, 1), "one purchase");
}

/// The outcome is in the journal, the end of the stream is not out, and the process is killed: the app has
/// a broken stream, and asks again.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_killed_between_its_outcome_and_its_end_is_bought_once() {
    let body = chat_stream("one purchase");
    let sandbox = Sandbox::start().await;
    let hold = json!({"fault": {"hold_after_chunks": 1, "hold_chunks_name": "rest"}});
    sandbox.control("/sandbox/faults", hold).await;
    let rig = crate::support::rig::Rig::new();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", CHAT, &[], &body)).await;
    let mut broken = app.head().await;
    app.chunk(&mut broken).await.expect("the first event");
    // From now on a commit reaches the kernel, and nothing goes out after it.
    rig.hang(true);
    let release = json!({"hold": "rest"});
    sandbox.control("/sandbox/release", release).await;
    let state_dir = rig.state_dir();
    eventually("the outcome in the journal", || async {
        let entries = entries(&state_dir);
        matches!(entries[0].state, State::Settled { .. }).then_some(())
    })
    .await;
    daemon.kill().await;
    rig.hang(false);
    app.rest(&mut broken).await;
    assert!(!broken.complete && !broken.text().contains("[DONE]"));

    let daemon = rig.start(&sandbox.url(), &[]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", CHAT, &[], &body)).await;
    let retried = app.answer().await;
    daemon.terminate().await;
    assert!(retried.text().ends_with("data: [DONE]\n\n"));
    bought_once("a stream", &sandbox, &state_dir, &retried).await;
}
