//! A ledger of all kinds of entries, made once and copied for each damage, and what is known of it
//! without asking bursar: the numbers, amounts and entries of its lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bursar::clock::{Clock, ManualClock, SharedClock};
use bursar::ledger::entry::{
    Attempt, AttemptEnd, EntryId, Fingerprint, Intent, KeyOrigin, Outcome, Settlement,
};
use bursar::ledger::kept_key::{KeptKey, KeyForm};
use bursar::ledger::undelivered::{FirstSent, KeyUse};
use bursar::ledger::{Durability, Ledger, LedgerOptions, Totals};
use bursar::money::MicroUsd;
use bursar::protocol::receipt::{Receipt, ReceiptSource};
use bursar::protocol::{Lane, Operation, Reported};
use serde_json::Value;

/// 2026-05-09 00:00 UTC.
const START_MS: u64 = 1_778_284_800_000;

/// About ten entries a segment.
const SEGMENT_BYTES: u64 = 9_000;

const ENTRIES: u64 = 300;

/// A ledger as files.
pub struct Sample {
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// The index of a ledger of its own, as files.
    pub other_index: BTreeMap<PathBuf, Vec<u8>>,
    pub lines: BTreeMap<u64, Known>,
    pub totals: Totals,
    pub end_ms: u64,
}

/// The contents of a line.
#[derive(Clone, Debug)]
pub struct Known {
    pub kind: String,
    pub id: String,
    pub adds: u64,
    pub key: Option<String>,
}

pub fn options(state_dir: &Path, clock: &ManualClock) -> LedgerOptions {
    let clock: SharedClock = Arc::new(clock.clone());
    LedgerOptions {
        durability: Durability::Process,
        segment_bytes_max: SEGMENT_BYTES,
        ..LedgerOptions::new(state_dir, clock)
    }
}

// === impl Sample ===

impl Sample {
    pub async fn make() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let state_dir = root.path().join("state");
        let clock = ManualClock::at(START_MS);
        fill(&state_dir, &clock, ENTRIES).await;
        // What the first process left open is in doubt when the second has begun.
        let ledger = Ledger::open(options(&state_dir, &clock)).expect("it opens");
        for n in 0..20 {
            buy(&ledger, &clock, &format!("late-{n}"), 7 + n).await;
        }
        let totals = (*ledger.totals()).clone();
        ledger.close().await;

        let other = root.path().join("other");
        fill(&other, &clock, 30).await;
        let mut files = read_tree(&state_dir);
        // Eight megabytes of zeros, created again at each start.
        files.remove(Path::new("reserve"));
        let lines = sound_lines(&files).into_iter();
        Self {
            lines: lines.map(|(seq, line)| (seq, Known::of(&line))).collect(),
            files,
            other_index: read_tree(&other.join("index")),
            totals,
            end_ms: clock.wall_ms(),
        }
    }

    /// The numbers of lines that no file holds.
    pub fn missing(&self, files: &BTreeMap<PathBuf, Vec<u8>>) -> BTreeSet<u64> {
        let sound = sound_lines(files);
        let missing = self.lines.keys().filter(|seq| !sound.contains_key(seq));
        missing.copied().collect()
    }

    pub fn amount_without(&self, missing: &BTreeSet<u64>) -> u128 {
        let there = self.lines.iter().filter(|(seq, _)| !missing.contains(seq));
        there.map(|(_, known)| u128::from(known.adds)).sum()
    }

    /// Entries whose intent is there and whose other lines are missing.
    pub fn endless(&self, missing: &BTreeSet<u64>) -> BTreeSet<String> {
        let there = |(seq, _): &(&u64, &Known)| !missing.contains(seq);
        let ended: BTreeSet<&str> = self
            .lines
            .iter()
            .filter(there)
            .filter(|(_, known)| known.kind != "intent")
            .map(|(_, known)| known.id.as_str())
            .collect();
        let begun = self.lines.iter().filter(there);
        begun
            .filter(|(_, known)| known.kind == "intent" && !ended.contains(known.id.as_str()))
            .map(|(_, known)| known.id.clone())
            .collect()
    }
}

// === impl Known ===

impl Known {
    fn of(line: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        Self {
            kind: text(&line["kind"]),
            id: text(&line["id"]),
            adds: line["adds_micro_usd"].as_u64().unwrap_or(0),
            key: line["key"]["value"].as_str().map(str::to_owned),
        }
    }
}

/// The sound lines of all segments, recognised by checksum alone and not by bursar's own reader.
pub fn sound_lines(files: &BTreeMap<PathBuf, Vec<u8>>) -> BTreeMap<u64, Value> {
    let mut found = BTreeMap::new();
    let segments = files.iter().filter(|(path, _)| {
        path.extension()
            .is_some_and(|extension| extension == "jsonl")
    });
    for (_, bytes) in segments {
        for line in bytes.split(|byte| *byte == b'\n') {
            // At the end another byte may have replaced the newline.
            let shorter = line.split_last().map_or(line, |(_, rest)| rest);
            for line in [line, shorter] {
                if let Some(value) = sealed(line)
                    && let Some(seq) = value["seq"].as_u64()
                {
                    found.insert(seq, value);
                }
            }
        }
    }
    found
}

fn sealed(line: &[u8]) -> Option<Value> {
    let (body, seal) = line.split_at_checked(line.len().checked_sub(18)?)?;
    let wanted = format!(",\"crc\":\"{:08x}\"}}", crc32c::crc32c(body));
    (seal == wanted.as_bytes()).then(|| serde_json::from_slice(line).ok())?
}

/// Every file below a directory, by its path from there.
pub fn read_tree(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else {
                let name = path.strip_prefix(root).expect("below").to_owned();
                files.insert(name, fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

pub fn write_tree(root: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (name, bytes) in files {
        let path = root.join(name);
        let mut builder = fs::DirBuilder::new();
        let directory = path.parent().expect("a parent");
        builder.recursive(true).mode(0o700);
        builder.create(directory).expect("a directory");
        fs::write(&path, bytes).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
}

/// Entries of every kind over three days; the last ones are left open.
async fn fill(state_dir: &Path, clock: &ManualClock, entries: u64) {
    let ledger = Ledger::open(options(state_dir, clock)).expect("it opens");
    for n in 0..entries {
        clock.advance(Duration::from_secs(3 * 24 * 3600 / entries));
        let key = format!("key-{n}");
        match n % 10 {
            // Refused: 0.
            0 => end(&ledger, clock, Some(&key), AttemptEnd::Refused, None).await,
            // In doubt, and resolved by the next one of its key.
            1 => {
                end(&ledger, clock, Some(&key), AttemptEnd::NoHead, None).await;
                end(&ledger, clock, Some(&key), AttemptEnd::Answered, Some(n)).await
            }
            2 => end(&ledger, clock, Some(&key), AttemptEnd::NoHead, None).await,
            // Replayed: the amount is on the second.
            3 => {
                end(&ledger, clock, Some(&key), AttemptEnd::Answered, Some(n)).await;
                end(&ledger, clock, Some(&key), AttemptEnd::Answered, Some(n)).await
            }
            4 => end(&ledger, clock, None, AttemptEnd::Answered, None).await,
            // An eval run, billed by its poll.
            5 => {
                let id = begin(&ledger, clock, None).await;
                let mut outcome = outcome(id, clock, AttemptEnd::Answered, None);
                let run_id = format!("run-{n}");
                outcome.run_id = Some(run_id.clone());
                let settlement = ledger.settle(outcome).await.expect("settled");
                if n % 20 == 5 {
                    let billed = MicroUsd::new(n * 100);
                    let reconciled = ledger.reconcile_run(&run_id, billed).await;
                    reconciled.expect("reconciled");
                }
                settlement
            }
            6 => end(&ledger, clock, None, AttemptEnd::Answered, Some(n)).await,
            _ => end(&ledger, clock, Some(&key), AttemptEnd::Answered, Some(n)).await,
        };
    }
    for n in 0..3 {
        begin(&ledger, clock, Some(&format!("open-{n}"))).await;
    }
    ledger.close().await;
}

/// A request that is answered and billed.
pub async fn buy(ledger: &Ledger, clock: &ManualClock, key: &str, amount: u64) -> Settlement {
    end(ledger, clock, Some(key), AttemptEnd::Answered, Some(amount)).await
}

async fn begin(ledger: &Ledger, clock: &ManualClock, key: Option<&str>) -> EntryId {
    let id = ledger.new_entry_id();
    let intent = Intent {
        model: Some("auto".to_owned()),
        key: key.map(|key| KeptKey {
            form: KeyForm::Text(Arc::from(key)),
            origin: KeyOrigin::Minted,
            organization: None,
            request: None,
            asked: None,
        }),
        request_bytes: 120,
        key_use: key.map(|_| KeyUse {
            first_sent: FirstSent::now(clock),
            adoptions: 0,
        }),
        ..Intent::new(
            id,
            clock.wall_ms(),
            Arc::from("notes"),
            Lane::Inference,
            Operation::Chat,
            Fingerprint([7; 32]),
        )
    };
    ledger.intend(intent).await.expect("an intent");
    id
}

async fn end(
    ledger: &Ledger,
    clock: &ManualClock,
    key: Option<&str>,
    end: AttemptEnd,
    billed: Option<u64>,
) -> Settlement {
    let id = begin(ledger, clock, key).await;
    let outcome = outcome(id, clock, end, billed);
    ledger.settle(outcome).await.expect("settled")
}

fn outcome(id: EntryId, clock: &ManualClock, end: AttemptEnd, billed: Option<u64>) -> Outcome {
    Outcome {
        attempts: vec![Attempt {
            took_ms: 10,
            ..Attempt::new(
                end,
                match end {
                    AttemptEnd::NotSent | AttemptEnd::NoHead => None,
                    AttemptEnd::Refused => Some(503),
                    AttemptEnd::Gateway => Some(502),
                    AttemptEnd::Answered | AttemptEnd::Broken => Some(200),
                },
            )
        }],
        receipt: Receipt {
            billed: billed.map_or(Reported::Absent, |billed| {
                Reported::Value(MicroUsd::new(billed))
            }),
            source: billed.map(|_| ReceiptSource::Header),
            ..Receipt::default()
        },
        request_id: Some(format!("req-{id}")),
        response_bytes: 300,
        ..Outcome::new(id, clock.wall_ms())
    }
}
