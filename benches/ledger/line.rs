//! `bursar line` as a prompt or a status bar calls it: a process each time, beside a daemon that has the ledger.
//!
//! Promise: the daemon has ended when this returns. It reaches no service.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::{now, print_ms, since};

const CALLS: usize = 300;

/// What 99 of 100 calls may take with a million entries, as the issue of this command has it.
const BOUND_MS: f64 = 20.0;

/// Of a longer ledger nothing is asked.
const ENTRIES_JUDGED_MAX: u64 = 1_000_000;

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Prints the middle of the times, and what 99 of 100 calls take at most: the second is given back, in seconds.
pub async fn measure(state: &Path) -> f64 {
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    fs::write(&key, "sk-org-of-a-bench").expect("a key's file");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("its mode");
    let mut daemon = started(state, &key);
    while said(state).starts_with("bursar:") {
        let ended = daemon.try_wait().expect("a child");
        assert!(ended.is_none(), "the daemon has ended: {ended:?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let call = |_| {
        let began = now();
        let line = said(state);
        let took = since(began);
        assert!(line.starts_with('$'), "{line}");
        took
    };
    let mut times: Vec<f64> = (0..CALLS).map(call).collect();
    times.sort_by(f64::total_cmp);
    let at_most = times[CALLS * 99 / 100 - 1];
    print_ms("line", times[CALLS / 2]);
    print_ms("  99 of 100, at most", at_most);
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("the daemon is asked to stop");
    daemon.wait().expect("it stops");
    at_most
}

/// Prints whether what 99 of 100 calls took is within the bound.
pub fn judge(entries: u64, at_most: f64) -> bool {
    let took_ms = at_most * 1_000.0;
    if entries > ENTRIES_JUDGED_MAX {
        println!(
            "line: 99 of 100 take {took_ms:.2} ms at most, not judged above {ENTRIES_JUDGED_MAX} entries"
        );
        return true;
    }
    let is_met = took_ms <= BOUND_MS;
    let verdict = if is_met { "within" } else { "ABOVE" };
    println!("line: 99 of 100 take {took_ms:.2} ms at most, {verdict} {BOUND_MS} ms");
    is_met
}

fn started(state: &Path, key: &Path) -> Child {
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_bursar"));
    daemon
        .args(["run", "--upstream", "http://127.0.0.1:9"])
        .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
        .arg("--api-key-file")
        .arg(key)
        .arg("--state-dir")
        .arg(state)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    daemon.spawn().expect("the daemon runs")
}

fn said(state: &Path) -> String {
    let mut line = Command::new(env!("CARGO_BIN_EXE_bursar"));
    line.arg("line").arg("--state-dir").arg(state);
    let output = line.stdin(Stdio::null()).output().expect("an output");
    String::from_utf8(output.stdout).expect("a line of text")
}
