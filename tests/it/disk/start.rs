//! A start on a disk that is full or read-only: one clear line, exit code 1 or service without
//! metered requests, and nothing damaged.

use crate::support::daemon::Daemon;
use crate::support::rig::{Call, Rig, size_of};
use crate::support::{Sandbox, chat};

use super::story::{Told, ready};

async fn written(sandbox: &Sandbox, rig: &Rig) -> Told {
    let mut told = Told::default();
    let daemon = rig.start(&sandbox.url(), &[]).await;
    let body = chat("before");
    let answer = daemon
        .connect()
        .await
        .post("/v1/chat/completions", &body)
        .await;
    told.hear(&answer, false, "before");
    daemon.terminate().await;
    told
}

#[tokio::test]
async fn a_start_on_a_read_only_disk_says_so_and_damages_nothing() {
    let sandbox = Sandbox::start().await;
    let rig = Rig::new();
    let told = written(&sandbox, &rig).await;
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
    told.check(&rig, &sandbox.debits().await, "read-only at the start");
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
    let mut told = written(&sandbox, &rig).await;
    // The reserve was lost to whatever filled the disk.
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
            told.hear(&answer, false, "full");
            rig.heal();
            ready(&daemon, "full").await;
            daemon.terminate().await;
        }
        Err(mut child) => panic!("{:?}: {}", child.wait().await, rig.logged()),
    }
    assert!(rig.calls(Call::Fallocate) > 1);
    told.check(&rig, &sandbox.debits().await, "full at the start");
}
