//! Outages that last: a full disk, a read-only one, a sync that fails. Metered requests are refused
//! before they are sent, free ones continue, and service resumes by itself.

use std::time::Duration;

use serde_json::json;

use crate::support::daemon::Daemon;
use crate::support::rig::{Call, EIO, Fault, Rig, size_of};
use crate::support::{Answer, Sandbox, chat, within};

use super::story::{ReceivedAnswers, calm, free, ready, take_room};

/// A request that has to be refused, and was not sent: the sandbox knows of no more than before.
async fn refused(daemon: &Daemon, sandbox: &Sandbox, prompt: &str, app: &mut ReceivedAnswers) {
    let before = sandbox.debits().await.len();
    let answer = ask(daemon, prompt).await;
    assert_eq!(answer.status, 503, "{prompt}: {}", answer.text());
    assert_eq!(answer.code(), Some("ledger_unavailable"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(answer.header("retry-after"), Some("5"));
    app.hear(&answer, false, prompt);
    assert_eq!(sandbox.debits().await.len(), before, "{prompt} was sent");
}

async fn ask(daemon: &Daemon, prompt: &str) -> Answer {
    daemon
        .connect()
        .await
        .post("/v1/chat/completions", &chat(prompt))
        .await
}

/// Waits until the daemon has noticed that it cannot write.
async fn not_ready(daemon: &Daemon) -> String {
    let page = within(Duration::from_secs(10), "readyz to say no", || async {
        let page = daemon.admin_page("/readyz").await;
        (page.status == 503).then_some(page)
    })
    .await;
    page.text()
}

/// An outage, a refusal, a free request, the end of the outage, a paid request.
async fn outage(begin: impl FnOnce(&Rig), word: &str) {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    app.hear(&ask(&daemon, "before").await, false, word);
    begin(&rig);
    refused(&daemon, &sandbox, "during", &mut app).await;
    let why = not_ready(&daemon).await;
    assert!(why.contains(word), "{why}");
    refused(&daemon, &sandbox, "during, again", &mut app).await;
    free(&daemon, word).await;
    rig.heal();
    ready(&daemon, word).await;
    app.hear(&ask(&daemon, "after").await, false, word);
    daemon.terminate().await;
    assert_eq!((app.received(), app.refused()), (2, 2));
    assert!(rig.failed() > 0 || word == "Read-only");
    calm(&rig, word);
    app.check(&rig, &sandbox.debits().await, word);
}

#[tokio::test]
async fn on_a_read_only_disk_nothing_paid_is_sent_until_it_can_be_written() {
    outage(|rig| rig.read_only(true), "Read-only").await;
}

#[tokio::test]
async fn while_syncs_fail_nothing_paid_is_sent() {
    let begin = |rig: &Rig| {
        rig.fail(Fault {
            call: Call::Fdatasync,
            errno: EIO,
            from: 1,
            times: u64::MAX,
            short: false,
            journal: true,
        });
    };
    outage(begin, "os error 5").await;
}

#[tokio::test]
async fn on_a_full_disk_what_is_in_flight_is_written_and_nothing_new_is_sent() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    app.hear(&ask(&daemon, "before").await, false, "full");

    // One answer is under way when the last byte is taken.
    sandbox
        .control("/sandbox/faults", json!({"fault": {"hold": "it"}}))
        .await;
    let mut wire = daemon.connect().await;
    let body = chat("in flight");
    wire.send(crate::support::wire::request(
        "POST",
        "/v1/chat/completions",
        &[],
        &body,
    ))
    .await;
    within(
        Duration::from_secs(10),
        "the request to be sent",
        || async { (sandbox.get("/sandbox/limits").await["in_flight"] == 1).then_some(()) },
    )
    .await;
    take_room(&rig.state_dir());
    rig.budget(size_of(&rig.state_dir()));
    sandbox
        .control("/sandbox/release", json!({"hold": "it"}))
        .await;
    let in_flight = wire.answer().await;
    assert_eq!(in_flight.status, 200, "{}", in_flight.text());
    app.hear(&in_flight, false, "full");

    let why = not_ready(&daemon).await;
    assert!(why.contains("full"), "{why}");
    refused(&daemon, &sandbox, "during", &mut app).await;
    free(&daemon, "full").await;
    rig.heal();
    ready(&daemon, "full").await;
    app.hear(&ask(&daemon, "after").await, false, "full");
    daemon.terminate().await;
    assert_eq!((app.received(), app.refused()), (3, 1));
    assert!(rig.failed() > 0);
    app.check(&rig, &sandbox.debits().await, "full");
}
