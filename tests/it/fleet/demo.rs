//! `make demo-fleet`, with the real programs: the story runs, the three kinds of books agree, and nothing is left.

use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::support::pgbouncer::PgBouncer;
use crate::support::postgres::Postgres;

const STORY_MAX: Duration = Duration::from_secs(200);

#[tokio::test]
#[ignore = "needs PostgreSQL and pgbouncer: make test-all"]
async fn the_demo_of_the_fleet_ends_with_hosts_journals_and_books_equal_and_leaves_nothing() {
    if PgBouncer::before(&Postgres::start(), "").await.is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let mut command = Command::new("python3");
    command
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/scripts/demo-fleet.py"
        ))
        .env("BURSAR_BIN", env!("CARGO_BIN_EXE_bursar"))
        .env("TMPDIR", folder.path())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true);

    let done = timeout(STORY_MAX, command.output())
        .await
        .expect("the story ends")
        .expect("the demo runs");

    let text = String::from_utf8(done.stdout).expect("UTF-8");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{text}{errors}");
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("difference 0.000000 USD"), "{text}");
    let left = std::fs::read_dir(folder.path()).expect("a directory");
    assert_eq!(left.count(), 0, "{text}");
}
