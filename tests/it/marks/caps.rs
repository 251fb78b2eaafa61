//! Caps of sessions on the wire: one session is stopped, also by the next process.

use std::path::Path;

use crate::support::daemon::Daemon;
use crate::support::origin::billed;
use crate::support::wire::{Wire, request};
use crate::support::{Answer, Bursar, Origin, Sandbox, Step, chat, eventually};

use super::{CHAT, SESSION, ask, buy};

fn is_stopped(answer: &Answer) {
    assert_eq!(answer.status, 402, "{}", answer.text());
    assert_eq!(answer.code(), Some("session_cap_reached"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.header("retry-after"), None);
    let text = answer.text();
    for part in [
        "e2d73f0a.",
        "app default",
        "Nothing was sent",
        "explain --session",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
}

#[tokio::test]
async fn a_session_is_stopped_at_its_cap_before_anything_is_sent_also_after_a_restart() {
    let origin = Origin::always(Step::Answer(billed(60))).await;
    let app = "[caps]\nrequest_floor_micro_usd = 1\n[[app]]\nname = \"default\"\nsession_cap_micro_usd = 100\n";
    let mut bursar = Bursar::with(&origin.url(), app).await;
    let of_session = [("session-id", SESSION)];
    for number in 0..2 {
        buy(&bursar, CHAT, &chat(&number.to_string()), &of_session).await;
    }
    for start in 0..2 {
        is_stopped(&ask(&bursar, CHAT, &chat("more"), &of_session).await);
        let another = [("session-id", format!("another {start}"))];
        let another = another.each_ref().map(|(name, id)| (*name, id.as_str()));
        buy(&bursar, CHAT, &chat("more"), &another).await;
        buy(&bursar, CHAT, &chat(&format!("without {start}")), &[]).await;
        let refusals = "error=\"session_cap_reached\"";
        assert_eq!(bursar.metric("bursar_refusals_total", refusals), 1.0);
        assert!(!bursar.metrics_text().contains("e2d73f0a"), "no label");
        bursar = bursar.restart(app).await;
    }
    assert_eq!(origin.received().len(), 2 + 4);
    // A higher cap takes effect with what was spent.
    let more = app.replace("session_cap_micro_usd = 100", "session_cap_micro_usd = 130");
    let bursar = bursar.restart(&more).await;
    buy(&bursar, CHAT, &chat("more"), &of_session).await;
    is_stopped(&ask(&bursar, CHAT, &chat("and more"), &of_session).await);
}

async fn start(sandbox: &Sandbox, state_dir: &Path, file: &Path) -> Daemon {
    let more = ["--config", file.to_str().expect("a path")];
    Daemon::start(&sandbox.url(), state_dir, &more).await
}

/// One after the other: how many of a session were answered before it was stopped, or `until` were.
async fn loop_on(daemon: &Daemon, from: usize, until: usize) -> Option<usize> {
    for number in from..until {
        let mut wire = daemon.connect().await;
        let headers = [("X-Claude-Code-Session-Id", SESSION)];
        let body = chat(&format!("what is {number} + 1?"));
        wire.send(request("POST", CHAT, &headers, &body)).await;
        let answer = wire.answer().await;
        if answer.status == 402 {
            is_stopped(&answer);
            return Some(number);
        }
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    None
}

#[tokio::test]
async fn a_loop_is_stopped_by_number_over_kills_and_one_that_was_killed_counts() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let (state, file) = (
        directory.path().join("state"),
        directory.path().join("c.toml"),
    );
    let text = "[[app]]\nname = \"default\"\nsession_requests_max = 10\n";
    std::fs::write(&file, text).expect("a config");
    let daemon = start(&sandbox, &state, &file).await;
    assert_eq!(loop_on(&daemon, 0, 4).await, None);
    daemon.kill().await;
    let daemon = start(&sandbox, &state, &file).await;
    assert_eq!(loop_on(&daemon, 4, 7).await, None);
    // One is at the service when the process dies: in doubt, and counted.
    sandbox
        .control(
            "/sandbox/faults",
            serde_json::json!([{ "times": 1, "fault": { "delay_ms": 60_000 } }]),
        )
        .await;
    let address = daemon.proxy;
    let waiting = tokio::spawn(async move {
        let mut wire = Wire::tcp(address).await;
        let headers = [("X-Claude-Code-Session-Id", SESSION)];
        wire.send(request("POST", CHAT, &headers, &chat("slow")))
            .await;
        wire.answer().await
    });
    eventually("the slow one to be at the service", || async {
        (sandbox.get("/sandbox/limits").await["in_flight"] == 1).then_some(())
    })
    .await;
    daemon.kill().await;
    waiting.abort();
    let daemon = start(&sandbox, &state, &file).await;
    let stopped_at = loop_on(&daemon, 8, 40).await;
    assert_eq!(stopped_at, Some(10), "7, the one in doubt, and 2 more");
    daemon.kill().await;
    let daemon = start(&sandbox, &state, &file).await;
    assert_eq!(loop_on(&daemon, 99, 100).await, Some(99));
    let caps = daemon.admin_page("/api/caps").await.json();
    let of_sessions = &caps["sessions"][0];
    assert_eq!(of_sessions["app"], "default", "{caps}");
    assert_eq!(of_sessions["session_requests_max"], 10);
    assert_eq!(
        of_sessions["session_cap_micro_usd"],
        serde_json::Value::Null
    );
    assert_eq!(of_sessions["sessions"], 1);
    assert_eq!(of_sessions["reached"], 1);
    assert_eq!(of_sessions["most_requests"], 10);
    daemon.terminate().await;
}
