//! The index on a disk whose syncs fail. sled syncs its file when it is dropped, and panics if it
//! cannot: that must neither end the ledger's writer nor hide why a start failed.

use crate::support::daemon::Daemon;
use crate::support::rig::{Call, EIO, Fault, Rig};
use crate::support::{Sandbox, chat};

use super::story::{ReceivedAnswers, calm};

const NO_SYNC: Fault = Fault {
    call: Call::Fsync,
    errno: EIO,
    from: 1,
    times: u64::MAX,
    short: false,
    journal: false,
};

#[tokio::test]
async fn when_syncs_fail_at_the_end_the_ledger_still_closes_in_order() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let mut app = ReceivedAnswers::default();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    let body = chat("before");
    let answer = daemon
        .connect()
        .await
        .post("/v1/chat/completions", &body)
        .await;
    app.hear(&answer, false, "at the end");
    rig.fail(NO_SYNC);
    daemon.terminate().await;
    assert!(rig.failed() > 0);
    calm(&rig, "at the end");

    // The same failure at the next start is reported with file and cause.
    let mut child = rig.try_start(&sandbox.url()).await.err().expect("no start");
    assert_eq!(child.wait().await.expect("a status").code(), Some(1));
    let log = rig.logged();
    let line = log.trim_end().lines().last().unwrap_or_default();
    assert!(line.starts_with("bursar: cannot use "), "{log}");
    assert!(line.contains("(os error 5)"), "{log}");

    rig.heal();
    Daemon::start(&sandbox.url(), &rig.state_dir(), &[])
        .await
        .terminate()
        .await;
    app.check(&rig, &sandbox.debits().await, "at the end");
}
