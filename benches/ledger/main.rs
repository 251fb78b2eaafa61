//! How long a long ledger takes: `ledger verify`, `ledger rebuild`, and a daemon's start with its
//! index and without, each in a process of its own. `make bench-ledger ENTRIES=1000000`.
//!
//! One chat answer every ten seconds, so a million of them are 116 days.
//!
//! Promise: prints what was measured and asserts nothing about time.

mod long;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bursar::clock::SystemClock;
use bursar::ledger::{Ledger, LedgerOptions};

const ENTRIES_DEFAULT: u64 = 100_000;

const BETWEEN_MS: u64 = 10_000;

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let entries: u64 = asked.unwrap_or(ENTRIES_DEFAULT);
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let began = now();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(long::write(&state, entries, BETWEEN_MS));
    println!("{entries} entries written in {:.1} s", since(began));
    println!("journal {} MiB", bytes(&state.join("journal")) >> 20);
    println!("index   {} MiB", bytes(&state.join("index")) >> 20);
    runtime.block_on(timed("ledger verify", &["ledger", "verify"], &state));
    runtime.block_on(timed("ledger rebuild", &["ledger", "rebuild"], &state));
    runtime.block_on(timed(
        "spend, all",
        &["spend", "--since", "2020-01-01"],
        &state,
    ));
    std::fs::remove_dir_all(state.join("index")).expect("the index goes");
    for how in ["start without an index", "start with its index"] {
        let began = now();
        let ledger = Ledger::open(options(&state)).expect("it opens");
        println!("{how:<24} {:>7.1} s", since(began));
        runtime.block_on(ledger.close());
    }
}

fn options(state: &Path) -> LedgerOptions {
    LedgerOptions::new(state, SystemClock::shared())
}

fn now() -> Duration {
    // Its origin is the machine's, not this value's.
    SystemClock::shared().monotonic()
}

fn since(began: Duration) -> f64 {
    now().saturating_sub(began).as_secs_f64()
}

/// Runs a command of the program; prints its time and the most memory it had.
async fn timed(what: &str, arguments: &[&str], state: &Path) {
    let began = now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
    command.args(arguments).arg("--state-dir").arg(state);
    let (status, peak_kib) = long::run(command.stdout(Stdio::null())).await;
    assert!(status.success(), "{what}: {status}");
    println!(
        "{what:<24} {:>7.1} s  {:>5} MiB",
        since(began),
        peak_kib >> 10
    );
}

fn bytes(directory: &Path) -> u64 {
    let files = std::fs::read_dir(directory).expect("a directory");
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}
