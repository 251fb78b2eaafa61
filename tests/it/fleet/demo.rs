//! `make demo-fleet`, with the real programs: the story runs, the three kinds of books agree, and nothing is left. Without
//! PostgreSQL it says what to install.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

use crate::support::pgbouncer::PgBouncer;
use crate::support::postgres::Postgres;

const STORY_MAX: Duration = Duration::from_secs(200);

/// Makes a copy ($1) of what the goal needs of a repository ($0) until PostgreSQL is there, and a folder of programs. The
/// user is root to the scripts, so that they start PostgreSQL as another one; without `setpriv` they start none, wherever
/// this machine has one. Nothing is built, for there is no cargo, and the demo itself would end with 99.
const WITHOUT_POSTGRESQL: &str = r#"
set -e
mkdir "$1/scripts" "$1/bin"
cp "$0/Makefile" "$1"
cd "$0/scripts"
cp demo-fleet.sh lib.sh setup-postgresql.sh versions.env "$1/scripts"
cd "$1/bin"
for program in awk bash cat dirname env grep head ls make mkdir sed; do
    ln -s "$(command -v "$program")" "$program"
done
stub() {
    printf '#!/bin/sh\n%s\n' "$2" >"$1"
    chmod +x "$1"
}
stub id 'echo 0'
stub python3 'exit 99'
"#;

/// Packages are known by name, and none can be had.
const WITHOUT_PACKAGES: &str = r#"
for program in apt-get apt-cache dpkg-deb; do stub "$program" 'exit 100'; done
"#;

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

async fn made(folder: &Path, what: &str) {
    let made = Command::new("sh")
        .args(["-c", what, env!("CARGO_MANIFEST_DIR")])
        .arg(folder)
        .output()
        .await
        .expect("a shell");
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");
}

#[tokio::test]
async fn without_postgresql_the_demo_of_the_fleet_names_what_installs_it_and_builds_nothing() {
    for apt in ["", WITHOUT_PACKAGES] {
        let folder = tempfile::tempdir().expect("a directory");
        made(folder.path(), &format!("{WITHOUT_POSTGRESQL}{apt}")).await;

        let done = Command::new(folder.path().join("bin/make"))
            .args(["--no-print-directory", "demo-fleet"])
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", folder.path().join("bin"))
            .stdin(Stdio::null())
            .output()
            .await
            .expect("make runs");

        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let errors = String::from_utf8_lossy(&done.stderr).into_owned();
        let install = "no PostgreSQL. Install it: apt-get install postgresql pgbouncer";
        assert!(text.contains(install), "{text}{errors}");
        for said in [
            "the demo of the fleet needs PostgreSQL and pgbouncer (above)",
            // The script's exit code; make's own is 2.
            "Error 1\n",
        ] {
            assert!(errors.contains(said), "{said}: {text}{errors}");
        }
        assert_eq!(done.status.code(), Some(2), "{text}{errors}");
        assert!(!folder.path().join("target").exists(), "{text}{errors}");
    }
}
