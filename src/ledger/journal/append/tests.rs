use std::fs;
use std::sync::Arc;

use uuid::Uuid;

use super::Journal;
use crate::ledger::LedgerOptions;
use crate::ledger::fixtures::{Bench, START_MS, intent};
use crate::ledger::id::EntryId;
use crate::ledger::journal::report::ScanReport;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::Record;

fn open(bench: &Bench) -> Journal {
    let state = Directory::open_or_create(&bench.state()).unwrap();
    let options = LedgerOptions::new(bench.state(), Arc::new(bench.clock.clone()));
    let report = ScanReport {
        next_seq: 1,
        ..ScanReport::default()
    };
    let directory = state.child("journal").unwrap();
    Journal::open(directory, Uuid::nil(), &options, &report, 0).unwrap()
}

/// Writes batches until little room is left.
fn use_up(journal: &mut Journal) {
    let record = Record::Intent(Arc::new(intent(EntryId(Uuid::nil()), START_MS, None)));
    while journal.has_room() {
        let mut batch = journal.draft(START_MS).unwrap();
        for _ in 0..32 {
            batch.push(&record).unwrap();
        }
        journal.append(batch).unwrap();
    }
}

#[test]
fn room_is_made_before_a_batch_has_to() {
    let bench = Bench::new();
    let mut journal = open(&bench);
    let length = || fs::metadata(bench.segment(1)).unwrap().len();

    let first = length();
    use_up(&mut journal);
    let used_up = length();
    journal.keep_room().unwrap();
    let (has_room, kept) = (journal.has_room(), length());
    journal.keep_room().unwrap();

    assert_eq!(first, used_up, "no batch made the file grow");
    assert!(has_room && kept > used_up);
    assert_eq!(length(), kept, "there is room already");
}

#[test]
fn a_sync_that_fails_when_room_is_made_is_an_error() {
    let bench = Bench::new();
    let mut journal = open(&bench);
    use_up(&mut journal);

    bench.fail_next_sync(5);

    assert!(journal.keep_room().is_err());
}
