//! A start on a disk that is full or read-only: one clear line, exit code 1 or service without
//! metered requests, and nothing damaged.

use bursar::ledger::entry::KeyOrigin;

use crate::support::bursar::entries;
use crate::support::daemon::Daemon;
use crate::support::rig::{Call, Rig, size_of};
use crate::support::wire::request;
use crate::support::{Answer, Origin, Sandbox, Step, chat, eventually};

use super::story::{ReceivedAnswers, calm, free, ready, take_room};

async fn written(sandbox: &Sandbox, rig: &Rig) -> ReceivedAnswers {
    let mut app = ReceivedAnswers::default();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    let body = chat("before");
    let answer = daemon
        .connect()
        .await
        .post("/v1/chat/completions", &body)
        .await;
    app.hear(&answer, false, "before");
    daemon.terminate().await;
    app
}

#[tokio::test]
async fn a_start_on_a_read_only_disk_says_so_and_damages_nothing() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let app = written(&sandbox, &rig).await;
    rig.read_only(true);
    let mut child = rig.try_start(&sandbox.url()).await.err().expect("no start");
    let status = child.wait().await.expect("a status");
    assert_eq!(status.code(), Some(1));
    let log = rig.logged();
    let line = log.trim_end().lines().last().unwrap_or_default();
    assert!(line.starts_with("bursar: cannot use "), "{log}");
    assert!(line.contains("Read-only file system"), "{log}");
    rig.heal();
    Daemon::start(&sandbox.url(), &rig.state_dir(), &[])
        .await
        .terminate()
        .await;
    app.check(&rig, &sandbox.debits().await, "read-only at the start");
}

#[tokio::test]
async fn a_first_start_on_a_full_disk_says_so_and_the_next_one_works() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    // Room for a word: the identity file does not fit.
    rig.budget(8);
    let mut child = rig.try_start(&sandbox.url()).await.err().expect("no start");
    assert_eq!(child.wait().await.expect("a status").code(), Some(1));
    let log = rig.logged();
    let line = log.trim_end().lines().last().unwrap_or_default();
    assert!(line.starts_with("bursar: cannot use "), "{log}");
    assert!(line.contains("No space left on device"), "{log}");
    rig.heal();
    written(&sandbox, &rig)
        .await
        .check(&rig, &sandbox.debits().await, "full at the start");
}

#[tokio::test]
async fn a_start_on_a_disk_that_has_become_full_reads_the_ledger_and_resumes_by_itself() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = written(&sandbox, &rig).await;
    // The reserve was lost to the writer that filled the disk.
    std::fs::remove_file(rig.state_dir().join("reserve")).expect("the reserve");
    rig.budget(size_of(&rig.state_dir()));
    match rig.try_start(&sandbox.url()).await {
        Ok(daemon) => {
            let page = daemon.admin_page("/readyz").await;
            assert_eq!(page.status, 503, "{}", page.text());
            let body = chat("during");
            let answer = daemon
                .connect()
                .await
                .post("/v1/chat/completions", &body)
                .await;
            assert_eq!(answer.code(), Some("ledger_unavailable"));
            app.hear(&answer, false, "full");
            rig.heal();
            ready(&daemon, "full").await;
            daemon.terminate().await;
        }
        Err(mut child) => panic!("{:?}: {}", child.wait().await, rig.logged()),
    }
    assert!(rig.calls(Call::Fallocate) > 1);
    app.check(&rig, &sandbox.debits().await, "full at the start");
}

/// Starts on the disk as it is, or returns why there is no start.
async fn started(sandbox: &Sandbox, rig: &Rig) -> Daemon {
    match rig.try_start(&sandbox.url()).await {
        Ok(daemon) => daemon,
        Err(mut child) => panic!("{:?}: {}", child.wait().await, rig.logged()),
    }
}

async fn asked(daemon: &Daemon, prompt: &str) -> Answer {
    let wire = daemon.connect().await;
    wire.post("/v1/chat/completions", &chat(prompt)).await
}

/// A killed process leaves a request in flight, and has used the reserve.
async fn killed_in_flight(rig: &Rig) {
    let origin = Origin::always(Step::Stall).await;
    let daemon = rig.start(&origin.url(), &[]).await;
    let mut wire = daemon.connect().await;
    let body = chat("in flight");
    wire.send(request("POST", "/v1/chat/completions", &[], &body))
        .await;
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    daemon.kill().await;
    take_room(&rig.state_dir());
    std::fs::remove_file(rig.state_dir().join("reserve")).expect("the reserve");
}

#[tokio::test]
async fn a_start_on_a_full_disk_with_an_open_entry_waits_for_room_and_ends_it_then() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = written(&sandbox, &rig).await;
    killed_in_flight(&rig).await;
    rig.budget(size_of(&rig.state_dir()));
    // Stopped and started while it is still full, it waits again.
    for _ in 0..2 {
        let daemon = started(&sandbox, &rig).await;
        let page = daemon.admin_page("/readyz").await;
        assert_eq!(page.status, 503, "{}", page.text());
        free(&daemon, "full").await;
        let refused = asked(&daemon, "during").await;
        assert_eq!(refused.code(), Some("ledger_unavailable"));
        app.hear(&refused, false, "full");
        daemon.terminate().await;
    }
    let daemon = started(&sandbox, &rig).await;
    rig.heal();
    ready(&daemon, "full").await;
    let metrics = daemon.admin_page("/metrics").await.text();
    let wanted = r#"bursar_in_doubt_requests{app="default",reason="crash"} 1"#;
    assert!(metrics.contains(wanted), "{metrics}");
    // The app asks again: it is the same purchase, also for a start that could not write so.
    let again = asked(&daemon, "in flight").await;
    app.hear(&again, false, "again");
    daemon.terminate().await;
    let entries = entries(&rig.state_dir());
    let adopted = entries
        .iter()
        .filter(|entry| matches!(entry.key_origin, Some(KeyOrigin::Adopted { .. })));
    assert_eq!(adopted.count(), 1, "{entries:?}");
    assert_eq!((app.received(), app.refused()), (2, 2));
    calm(&rig, "full at the start");
}

#[tokio::test]
async fn a_start_on_a_full_disk_whose_last_segment_has_no_header_waits_for_room() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = written(&sandbox, &rig).await;
    std::fs::remove_file(rig.state_dir().join("reserve")).expect("the reserve");
    // The one before it was full, and so was the disk.
    let segment = rig.state_dir().join("journal/00000002.jsonl");
    std::fs::write(segment, "").expect("a segment");
    rig.budget(size_of(&rig.state_dir()));
    let daemon = started(&sandbox, &rig).await;
    assert_eq!(daemon.admin_page("/readyz").await.status, 503);
    rig.heal();
    ready(&daemon, "full").await;
    app.hear(&asked(&daemon, "after").await, false, "after");
    daemon.terminate().await;
    app.check(&rig, &sandbox.debits().await, "no header");
}
