//! A long ledger, and how much memory a program needs for it. For `make bench-ledger`, and for the test of
//! memory in `tests/it/memory.rs`.
//!
//! Promise: the ledger is made by the ledger's own writer. Keys, request ids and what entries are filed under
//! are random: an index that is written in order is smaller and sooner made than a real one.

use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SystemClock};
use bursar::ledger::entry::{Attempt, AttemptEnd, Fingerprint, Intent, KeyOrigin, Outcome};
use bursar::ledger::kept_key::{KeptKey, KeyForm};
use bursar::ledger::{Durability, Ledger, LedgerOptions};
use bursar::money::MicroUsd;
use bursar::protocol::receipt::{Receipt, ReceiptSource};
use bursar::protocol::{Lane, Operation, Reported};

/// Entries that are written at once.
const BATCH: u64 = 500;

const APPS: u8 = 20;
const MODELS: u8 = 10;

/// Of three lanes.
const OPERATIONS: [(Lane, Operation); 5] = [
    (Lane::Inference, Operation::Chat),
    (Lane::Inference, Operation::Embeddings),
    (Lane::Inference, Operation::Rerank),
    (Lane::Agent, Operation::AgentTurn),
    (Lane::Control, Operation::FrontierComparison),
];

/// How often a program is looked at. Its peak is kept for it.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What an entry is filed under: one of 20 apps, 5 operations and 10 models.
pub struct Labels {
    pub app: String,
    pub lane: Lane,
    pub operation: Operation,
    pub model: String,
}

// === impl Labels ===

impl Labels {
    /// `random`: the entry's own.
    pub fn of(random: &[u8; 32]) -> Self {
        let (lane, operation) = OPERATIONS[usize::from(random[11]) % OPERATIONS.len()];
        Self {
            app: format!("app-{}", random[10] % APPS),
            lane,
            operation,
            model: format!("model-{}", random[12] % MODELS),
        }
    }
}

/// The most memory that a process has had, in KiB. 0: it has ended.
pub fn peak_kib(pid: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    kib.unwrap_or(0)
}

/// Runs a program to its end; answers how it ended, and the most memory it had.
pub async fn run(command: &mut Command) -> (ExitStatus, u64) {
    let mut child = command.spawn().expect("the program runs");
    let mut peak = 0;
    loop {
        peak = peak_kib(child.id()).max(peak);
        if let Some(status) = child.try_wait().expect("a child") {
            return (status, peak);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Writes a ledger of so many answers, of which the last is of now.
pub async fn write(state: &Path, entries: u64, between_ms: u64) {
    let clock = ManualClock::at(SystemClock::shared().wall_ms() - entries * between_ms);
    let ledger = Ledger::open(LedgerOptions {
        durability: Durability::Process,
        ..LedgerOptions::new(state, Arc::new(clock.clone()))
    })
    .expect("a ledger");
    for _ in 0..entries.div_ceil(BATCH) {
        let buys = (0..BATCH).map(|n| {
            clock.advance(Duration::from_millis(between_ms));
            buy(&ledger, clock.wall_ms(), 10 + n)
        });
        // Each takes its time when it is made, and all of a batch are written together.
        futures_util::future::join_all(buys).await;
    }
    ledger.close().await;
}

/// One answer with its price, mostly.
pub async fn buy(ledger: &Ledger, at_ms: u64, amount: u64) {
    let id = ledger.new_entry_id();
    let random = blake3::hash(id.0.as_bytes());
    let hex = random.to_hex();
    let (key, request_id) = hex.split_at(32);
    let labels = Labels::of(random.as_bytes());
    // Of a hundred one has no price, and one no answer.
    let (end, billed) = match random.as_bytes()[31] % 100 {
        0 => (AttemptEnd::Answered, Reported::Absent),
        1 => (AttemptEnd::NoHead, Reported::Absent),
        _ => (AttemptEnd::Answered, Reported::Value(MicroUsd::new(amount))),
    };
    let intent = Intent {
        model: Some(labels.model),
        key: Some(KeptKey {
            form: KeyForm::Text(Arc::from(format!("bursar-{key}"))),
            origin: KeyOrigin::Minted,
            organization: None,
            request: None,
            asked: None,
        }),
        request_bytes: 400,
        ..Intent::new(
            id,
            at_ms,
            Arc::from(labels.app),
            labels.lane,
            labels.operation,
            Fingerprint([1; 32]),
        )
    };
    ledger.intend(intent).await.expect("an intent");
    let outcome = Outcome {
        attempts: vec![Attempt {
            took_ms: 900,
            receipt_lines: vec![format!("x-service-billed: {amount}")],
            ..Attempt::new(end, Some(200))
        }],
        receipt: Receipt {
            billed,
            source: Some(ReceiptSource::Header),
            ..Receipt::default()
        },
        request_id: Some(format!("req-{request_id}")),
        response_bytes: 700,
        ..Outcome::new(id, at_ms)
    };
    ledger.settle(outcome).await.expect("settled");
}
