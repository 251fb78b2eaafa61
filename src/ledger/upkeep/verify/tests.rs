use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{IndexCheck, verify};
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::{Bench, begin, billed, buy, ended};
use crate::protocol::receipt::Receipt;

fn contents(directory: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            contents(&path, found);
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
}

#[tokio::test]
async fn a_sound_ledger_is_ok_and_not_a_byte_of_it_changes() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(11)).await;
    let lost = begin(&ledger, None).await;
    ledger
        .settle(ended(lost, AttemptEnd::NoHead, Receipt::default()))
        .await
        .unwrap();
    begin(&ledger, None).await;
    ledger.close().await;
    let mut before = BTreeMap::new();
    contents(&bench.state(), &mut before);

    let report = verify(&bench.state()).unwrap();

    let mut after = BTreeMap::new();
    contents(&bench.state(), &mut after);
    assert_eq!(before, after);
    assert!(report.ok, "{report:?}");
    assert_eq!(report.index, IndexCheck::Agrees);
    assert_eq!((report.entries, report.open, report.in_doubt), (2, 1, 1));
    assert_eq!(report.billed_micro_usd.get(), 11);
    assert_eq!(report.journal.records, 5);
}

#[tokio::test]
async fn beside_a_running_daemon_the_journal_is_verified_and_the_index_is_left_alone() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(11)).await;

    let report = verify(&bench.state()).unwrap();

    assert!(report.ok, "{report:?}");
    assert!(matches!(report.index, IndexCheck::NotChecked(_)));
}

/// The file of usage is written every ten minutes, and says up to which record.
#[tokio::test]
async fn what_a_daemon_writes_while_it_is_looked_at_is_not_lost() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..200 {
        buy(&ledger, None, billed(1)).await;
    }
    let state = bench.state();
    let usage = || fs::read(bench.state().join("usage")).ok();
    let looked = Arc::new(AtomicUsize::new(0));
    let looking = Arc::clone(&looked);
    let looks = tokio::task::spawn_blocking(move || {
        let mut reports = (0..20).map(|_| {
            looking.fetch_add(1, Ordering::Relaxed);
            verify(&state).unwrap()
        });
        reports.find(|report| !report.ok)
    });
    let (mut bought, first) = (0, usage());
    while !looks.is_finished() || usage() == first {
        // A journal that grows without end is looked at without end.
        if bought < 200 * looked.load(Ordering::Relaxed) || looks.is_finished() {
            bench.clock.advance(Duration::from_secs(600));
            buy(&ledger, None, billed(1)).await;
            bought += 1;
        }
        tokio::task::yield_now().await;
    }

    let broken = looks.await.unwrap();
    assert!(broken.is_none(), "{broken:?}");
}

#[tokio::test]
async fn a_torn_tail_is_reported_and_is_no_damage() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(11)).await;
    ledger.close().await;
    let mut bytes = fs::read(bench.segment(1)).unwrap();
    bytes.extend_from_slice(br#"{"seq":3,"kind":"int"#);
    fs::write(bench.segment(1), bytes).unwrap();

    let report = verify(&bench.state()).unwrap();

    assert!(report.ok, "{report:?}");
    assert_eq!(report.journal.torn_tail.unwrap().bytes, 20);
}
