//! How long a long ledger takes: `ledger verify`, `ledger rebuild`, and a daemon's start with its
//! index and without, each in a process of its own. `make bench-ledger ENTRIES=1000000`.
//!
//! The ledger is made by the ledger's own writer: one chat answer every ten seconds, so a million of
//! them are 116 days.
//!
//! Promise: prints what was measured and asserts nothing about time.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SystemClock};
use bursar::ledger::entry::{
    Attempt, AttemptEnd, Fingerprint, Intent, KeyOrigin, Outcome, Timings,
};
use bursar::ledger::kept_key::{KeptKey, KeyForm};
use bursar::ledger::undelivered::Delivery;
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use bursar::money::MicroUsd;
use bursar::protocol::receipt::{Receipt, ReceiptSource};
use bursar::protocol::{Lane, Operation, Told, Usage};

const ENTRIES_DEFAULT: u64 = 100_000;

/// Entries that are written at once.
const BATCH: u64 = 500;

const BETWEEN_MS: u64 = 10_000;

/// How often a command is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

fn main() {
    let asked = std::env::args().skip(1).find_map(|word| word.parse().ok());
    let entries: u64 = asked.unwrap_or(ENTRIES_DEFAULT);
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let began = now();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(write(&state, entries));
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

/// Runs a command of the program; tells its time and the most memory it had.
async fn timed(what: &str, arguments: &[&str], state: &Path) {
    let began = now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_bursar"))
        .args(arguments)
        .arg("--state-dir")
        .arg(state)
        .stdout(Stdio::null())
        .spawn()
        .expect("the program runs");
    let status_file = format!("/proc/{}/status", child.id());
    let mut peak_kib = 0;
    let status = loop {
        let text = std::fs::read_to_string(&status_file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak_kib = kib.unwrap_or(0).max(peak_kib);
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        tokio::time::sleep(LOOK_EVERY).await;
    };
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

async fn write(state: &Path, entries: u64) {
    let clock = ManualClock::at(SystemClock::shared().wall_ms() - entries * BETWEEN_MS);
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Process,
        clock: Arc::new(clock.clone()),
        ..options(state)
    })
    .expect("a ledger");
    for _ in 0..entries.div_ceil(BATCH) {
        let buys = (0..BATCH).map(|n| {
            clock.advance(Duration::from_millis(BETWEEN_MS));
            buy(&ledger, clock.wall_ms(), 10 + n)
        });
        // Each takes its time when it is made, and all of a batch are written together.
        futures_util::future::join_all(buys).await;
    }
    ledger.close().await;
}

async fn buy(ledger: &Ledger, at_ms: u64, amount: u64) {
    let id = ledger.new_entry_id();
    let intent = Intent {
        id,
        at_ms,
        app: Arc::from("notes"),
        lane: Lane::Inference,
        operation: Operation::Chat,
        model: Some("auto".to_owned()),
        stream: false,
        key: Some(KeptKey {
            form: KeyForm::Text(Arc::from(format!("bursar-{:032x}", id.0.as_u128()))),
            origin: KeyOrigin::Minted,
            organization: None,
            request: None,
        }),
        fingerprint: Fingerprint([1; 32]),
        run: None,
        request_bytes: 400,
        key_use: None,
        reserved: None,
    };
    ledger.intend(intent).await.expect("an intent");
    let outcome = Outcome {
        id,
        at_ms,
        attempts: vec![Attempt {
            end: AttemptEnd::Answered,
            status: Some(200),
            wait_ms: 0,
            took_ms: 900,
            cause: None,
            receipt_lines: vec![format!("x-service-billed: {amount}")],
        }],
        receipt: Receipt {
            billed: Told::Value(MicroUsd::new(amount)),
            source: Some(ReceiptSource::Header),
            ..Receipt::default()
        },
        broken_billed: None,
        usage: Usage::default(),
        audio_ms: None,
        request_id: Some(format!("req-{id}")),
        run_id: None,
        cut_by: None,
        closed: Vec::new(),
        delivery: Delivery::default(),
        drained: false,
        response_bytes: 700,
        timings: Timings::default(),
    };
    ledger.settle(outcome).await.expect("settled");
}
