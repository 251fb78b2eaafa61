//! The journal's reader, for any bytes in a segment. Checksums that do not match are corrected
//! first, so that the code behind them is reached; an odd first byte leaves them as they are.
//!
//! Promise: reading never fails because of a line's contents; a list of entries, the sums and the
//! verification agree; a ledger that opens keeps its sums at the next opening.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use bursar::calendar;
use bursar::clock::ManualClock;
use bursar::ledger::query::verify;
use bursar::ledger::query::{self, Filter};
use bursar::ledger::{Ledger, LedgerOptions};

const SEAL: &[u8] = br#","crc":""#;
const DIGITS: usize = 8;

/// How many of the inputs are opened for writing as well, which takes a hundred times as long.
const OPENED_EVERY: usize = 32;

pub fn check(bytes: &[u8]) {
    let Some((how, lines)) = bytes.split_first() else {
        return;
    };
    let segment = if how & 1 == 0 {
        mended(lines)
    } else {
        lines.to_vec()
    };
    let directory = tempfile::tempdir().expect("a directory");
    let state_dir = directory.path().join("state");
    let journal = state_dir.join("journal");
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&journal)
        .expect("a directory");
    fs::write(journal.join("00000001.jsonl"), segment).expect("a file");

    read(&state_dir);
    if bytes.len().is_multiple_of(OPENED_EVERY) {
        let first = open(&state_dir);
        assert_eq!(first, open(&state_dir), "the sums changed by opening again");
    }
}

/// Compares what the readers say. `None`: a segment of another ledger or of a newer format, which is
/// refused.
fn read(state_dir: &Path) -> Option<()> {
    let filter = Filter::default();
    let listed = query::entries(state_dir, &filter).ok()?;
    let report = verify(state_dir).ok()?;
    let zone = calendar::zone(Some("UTC")).expect("a zone");
    let spend = query::spend(state_dir, None, None, &[], &zone).ok()?;
    let sound = report.ok;
    if sound {
        let known = listed.iter().filter_map(|entry| entry.billed_micro_usd);
        let sum: u128 = known.map(|billed| u128::from(billed.get())).sum();
        let spent = spend.total.billed_micro_usd;
        assert_eq!(spent, report.billed_micro_usd);
        assert_eq!(
            spent.as_amount().map(|sum| u128::from(sum.get())),
            Some(sum)
        );
        assert_eq!(
            report.entries + report.open,
            u64::try_from(listed.len()).unwrap_or(0)
        );
    }
    Some(())
}

fn open(state_dir: &Path) -> Option<String> {
    let clock = ManualClock::default();
    let options = LedgerOptions::new(state_dir, std::sync::Arc::new(clock));
    let ledger = Ledger::open(options).ok()?;
    Some(ledger.totals().billed().to_string())
}

/// Gives each line that has a seal the seal that fits.
fn mended(lines: &[u8]) -> Vec<u8> {
    let mut mended = Vec::with_capacity(lines.len());
    for (number, line) in lines.split(|byte| *byte == b'\n').enumerate() {
        if number > 0 {
            mended.push(b'\n');
        }
        let tail = SEAL.len() + DIGITS + 2;
        match line.len().checked_sub(tail).map(|at| line.split_at(at)) {
            Some((body, seal)) if seal.starts_with(SEAL) && seal.ends_with(b"\"}") => {
                mended.extend_from_slice(body);
                mended.extend_from_slice(SEAL);
                mended.extend_from_slice(format!("{:08x}", crc32c::crc32c(body)).as_bytes());
                mended.extend_from_slice(b"\"}");
            }
            _ => mended.extend_from_slice(line),
        }
    }
    mended
}
