//! Memory: what a long ledger needs, as the kernel counts it, of real processes. The unit's `MemoryMax` once
//! killed every start of a ledger whose index was lost.
//!
//! Promise: each process is measured, and if this machine permits a memory cgroup it runs in one with the
//! limit: above it the kernel ends the process.

#[path = "../../benches/ledger/long.rs"]
mod long;

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::within;
use long::{peak_kib, run, write};

const ENTRIES: u64 = 1_000_000;

/// Time from one to the next: all are within the 24 h of their keys, and of the test.
const BETWEEN_MS: u64 = 80;

/// The most memory that a million entries may take.
const LIMIT_BYTES: u64 = 300 << 20;

/// The time that a start may take to read them all.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// The variable that passes the state directory to [`a_day_is_written`].
const STATE_DIR: &str = "BURSAR_TEST_DAY";

/// A memory cgroup with the limit. Gone when dropped.
struct Cage {
    path: PathBuf,
}

// === impl Cage ===

impl Cage {
    /// `None`: this machine or this user may not make one.
    fn new(name: &str) -> Option<Self> {
        let kinds = [
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            ("/sys/fs/cgroup", "memory.max"),
        ];
        kinds.into_iter().find_map(|(root, limit)| {
            let path = Path::new(root).join(format!("bursar-{name}-{}", std::process::id()));
            std::fs::create_dir(&path).ok()?;
            let cage = Self { path };
            // A directory that is not a memory cgroup has no such file, and does not allow creating
            // one.
            let limit = std::fs::OpenOptions::new()
                .write(true)
                .open(cage.path.join(limit));
            std::io::Write::write_all(&mut limit.ok()?, LIMIT_BYTES.to_string().as_bytes()).ok()?;
            Some(cage)
        })
    }
}

impl Drop for Cage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.path);
    }
}

/// The same command, inside.
fn caged(cage: Option<&Cage>, inner: &Command) -> Command {
    let mut outer = Command::new("sh");
    // Without a cgroup the shell only makes way.
    let enter = r#"[ -z "$0" ] || echo $$ >"$0/cgroup.procs" || exit 97; exec "$@""#;
    outer.arg("-c").arg(enter);
    outer.arg(cage.map_or(Path::new(""), |cage| &cage.path));
    outer.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        if let Some(value) = value {
            outer.env(name, value);
        }
    }
    outer.process_group(0).stdin(Stdio::null());
    outer
}

/// A process did not need more than it may.
fn judge(what: &str, peak_kib: u64, is_caged: bool) {
    let place = if is_caged { "in a cgroup" } else { "measured" };
    println!("{what:<24} {:>5} MiB, {place}", peak_kib >> 10);
    assert!(peak_kib > 0, "{what}: it was not seen");
    assert!(
        peak_kib << 10 <= LIMIT_BYTES,
        "{what}: {} MiB",
        peak_kib >> 10
    );
}

/// Runs a program to its end below the limit.
async fn bounded(what: &str, inner: &Command) {
    let cage = Cage::new("command");
    let mut outer = caged(cage.as_ref(), inner);
    let (status, peak) = run(outer.stdout(Stdio::null())).await;
    assert!(status.success(), "{what}: {status}, {} MiB", peak >> 10);
    judge(what, peak, cage.is_some());
}

/// Starts a daemon below the limit; it is measured when it is ready and its totals are whole.
async fn started(what: &str, state: &Path) {
    let cage = Cage::new("daemon");
    let state = state.to_str().expect("a path");
    let arguments = run_arguments("http://127.0.0.1:9", state);
    let inner = command(&arguments);
    let outer = caged(cage.as_ref(), inner.as_std());
    let mut outer = tokio::process::Command::from(outer);
    outer
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let daemon = match Daemon::launched_within(outer, PATIENCE).await {
        Ok(daemon) => daemon,
        Err(mut child) => panic!("{what}: {:?}", child.wait().await),
    };
    within(PATIENCE, "whole totals", || async {
        let status = daemon.admin_page("/api/status").await;
        String::from_utf8_lossy(&status.body)
            .contains(r#""adding_up":false"#)
            .then_some(())
    })
    .await;
    let peak = peak_kib(daemon.child.id().expect("a pid"));
    daemon.terminate().await;
    judge(what, peak, cage.is_some());
}

#[tokio::test]
#[ignore = "minutes; `make test-all` runs it"]
async fn a_million_entries_of_a_day_are_written_rebuilt_and_started_below_300_mib() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut day = Command::new(std::env::current_exe().expect("this program"));
    day.args(["memory::a_day_is_written", "--exact", "--include-ignored"])
        .env(STATE_DIR, &state);
    bounded("a day is written", &day).await;
    let mut rebuild = Command::new(env!("CARGO_BIN_EXE_bursar"));
    rebuild
        .args(["ledger", "rebuild", "--state-dir"])
        .arg(&state);
    bounded("ledger rebuild", &rebuild).await;
    started("start with its index", &state).await;
    std::fs::remove_dir_all(state.join("index")).expect("the index goes");
    started("start without an index", &state).await;
}

/// No test: the body of another process. Without its variable it does nothing.
#[tokio::test]
#[ignore = "not a test: what a test runs in another process"]
#[expect(
    clippy::disallowed_methods,
    reason = "how a test names its directory to another process"
)]
async fn a_day_is_written() {
    if let Some(state) = std::env::var_os(STATE_DIR) {
        write(Path::new(&state), ENTRIES, BETWEEN_MS).await;
    }
}
