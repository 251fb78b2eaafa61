//! `on_failure = "serve"`: paid requests continue while the ledger cannot be written, and are
//! written later. Only entries that were in memory when the process died are lost.

use std::time::Duration;

use crate::support::daemon::Daemon;
use crate::support::rig::{Rig, size_of};
use crate::support::{Answer, Sandbox, chat, chat_stream, within};

use super::story::{ReceivedAnswers, calm, free, ready, take_room};

const WAITING: &str = "bursar_ledger_unwritten_entries ";

async fn start(rig: &Rig, sandbox: &Sandbox) -> Daemon {
    let config = rig.outside("config.toml");
    std::fs::write(&config, "[ledger]\non_failure = \"serve\"\n").expect("a file");
    let config = config.to_str().expect("a UTF-8 path");
    rig.start(&sandbox.url(), &["--config", config]).await
}

async fn ask(daemon: &Daemon, body: &str) -> Answer {
    daemon
        .connect()
        .await
        .post("/v1/chat/completions", body)
        .await
}

async fn waiting(daemon: &Daemon) -> u64 {
    let text = daemon.admin_page("/metrics").await.text();
    let line = text.lines().find_map(|line| line.strip_prefix(WAITING));
    line.expect("the gauge").parse().expect("a count")
}

#[tokio::test]
async fn with_serve_requests_go_on_and_are_written_when_the_disk_is_back() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = start(&rig, &sandbox).await;
    app.hear(&ask(&daemon, &chat("before")).await, false, "serve");
    rig.read_only(true);
    app.hear(&ask(&daemon, &chat("during")).await, false, "serve");
    app.hear(
        &ask(&daemon, &chat_stream("as a stream")).await,
        true,
        "serve",
    );
    free(&daemon, "serve").await;
    assert_eq!(app.received(), 3, "{}", rig.logged());

    assert_eq!(waiting(&daemon).await, 2);
    let page = daemon.admin_page("/readyz").await;
    assert_eq!(page.status, 200);
    assert!(page.text().starts_with("degraded: "), "{}", page.text());
    let page = daemon.admin_page("/").await.text();
    assert!(
        page.contains("Serving, but the ledger cannot be written"),
        "{page}"
    );

    rig.read_only(false);
    within(
        Duration::from_secs(20),
        "what waits to be written",
        || async { (waiting(&daemon).await == 0).then_some(()) },
    )
    .await;
    ready(&daemon, "serve").await;
    assert!(
        daemon
            .admin_page("/readyz")
            .await
            .text()
            .starts_with("ok\n")
    );
    app.hear(&ask(&daemon, &chat("after")).await, false, "serve");
    daemon.terminate().await;
    calm(&rig, "serve");
    let log = rig.logged();
    assert_eq!(log.matches("the ledger cannot write").count(), 1, "{log}");
    app.check(&rig, &sandbox.debits().await, "serve");
}

#[tokio::test]
async fn with_serve_only_what_waits_is_lost_when_the_process_dies() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = start(&rig, &sandbox).await;
    app.hear(&ask(&daemon, &chat("before")).await, false, "serve");
    rig.read_only(true);
    assert_eq!(ask(&daemon, &chat("during")).await.status, 200);
    daemon.kill().await;
    rig.heal();
    Daemon::start(&sandbox.url(), &rig.state_dir(), &[])
        .await
        .terminate()
        .await;
    // The books have one more than the ledger, as config.toml says; the rest is right.
    let debits = sandbox.debits().await;
    assert_eq!(debits.len(), 2);
    app.check(&rig, &debits[..1], "serve");
}

#[tokio::test]
async fn with_serve_a_full_disk_takes_the_entries_into_its_reserve() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = start(&rig, &sandbox).await;
    app.hear(&ask(&daemon, &chat("before")).await, false, "full");
    take_room(&rig.state_dir());
    rig.budget(size_of(&rig.state_dir()));
    app.hear(&ask(&daemon, &chat("during")).await, false, "full");
    app.hear(&ask(&daemon, &chat("still")).await, false, "full");
    assert_eq!(app.received(), 3, "{}", rig.logged());
    let page = daemon.admin_page("/readyz").await;
    assert_eq!(page.status, 200);
    assert!(page.text().starts_with("degraded: "), "{}", page.text());
    assert!(!rig.state_dir().join("reserve").exists());
    // What is in the reserve outlives the process.
    daemon.kill().await;
    rig.heal();
    Daemon::start(&sandbox.url(), &rig.state_dir(), &[])
        .await
        .terminate()
        .await;
    calm(&rig, "full");
    app.check(&rig, &sandbox.debits().await, "full");
}
