//! The index may be lost, cut or garbled at any time: the sums are the journal's.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::super::blocks::{Detail, Length};
use super::super::rows::{META, RUN, block_prefix};
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::history::History;
use crate::ledger::fixtures::{Bench, START_MS, begin, billed, buy, ended, kill_after_next};
use crate::ledger::fold::totals::Totals;
use crate::ledger::query::{find, verify};
use crate::ledger::read::indexed::ask;
use crate::ledger::read::spend::{GroupBy, ROWS_MAX, Sums};
use crate::ledger::upkeep::verify::IndexCheck;
use crate::protocol::receipt::Receipt;

async fn filled(bench: &Bench) -> Totals {
    let ledger = bench.open();
    for amount in 1..=50 {
        buy(&ledger, Some(&format!("k{amount}")), billed(amount)).await;
    }
    buy(&ledger, Some("unpriced"), Receipt::default()).await;
    let totals = ledger.totals();
    ledger.close().await;
    (*totals).clone()
}

fn index_files(bench: &Bench) -> Vec<PathBuf> {
    let files = fs::read_dir(bench.state().join("index")).unwrap();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect()
}

fn damaged_indexes(bench: &Bench) -> usize {
    let names = fs::read_dir(bench.state()).unwrap();
    names
        .filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with("index.damaged-")
        })
        .count()
}

#[tokio::test]
async fn a_restart_reads_sums_from_the_index_and_the_tail_from_the_journal() {
    let bench = Bench::new();
    filled(&bench).await;
    let ledger = bench.open();
    kill_after_next(&ledger);
    let unindexed = begin(&ledger, Some("late")).await;
    drop(ledger);

    let ledger = bench.open();
    let health = ledger.health();

    assert_eq!((health.index_rebuilds, health.index_lag_records), (0, 0));
    assert_eq!(ledger.totals().billed().get(), 1275);
    let late = find(&bench.state(), &unindexed.to_string()).unwrap();
    assert_eq!(late.entries.len(), 1);
}

#[tokio::test]
async fn a_lost_index_is_rebuilt_to_the_same_sums() {
    let bench = Bench::new();
    let before = filled(&bench).await;
    fs::remove_dir_all(bench.state().join("index")).unwrap();

    let ledger = bench.open();
    let after = ledger.totals();
    let rebuilds = ledger.health().index_rebuilds;
    ledger.close().await;

    assert_eq!(*after, before);
    assert_eq!(rebuilds, 1);
    assert_eq!(verify(&bench.state()).unwrap().index, IndexCheck::Agrees);
}

#[tokio::test]
async fn a_garbled_index_never_changes_a_sum() {
    let bench = Bench::new();
    let before = filled(&bench).await;
    let mut state = 7u64;
    for round in 0..24 {
        for path in index_files(&bench) {
            let mut bytes = fs::read(&path).unwrap();
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = usize::try_from(state >> 33).unwrap() % bytes.len().max(1);
            match round % 4 {
                0 if !bytes.is_empty() => bytes[at] ^= 1 << (state % 8),
                1 => bytes.truncate(at),
                2 => bytes
                    .iter_mut()
                    .skip(at)
                    .take(4096)
                    .for_each(|byte| *byte = 0),
                _ => bytes.clear(),
            }
            fs::write(&path, bytes).unwrap();
        }

        let ledger = bench.open();
        let after = ledger.totals();
        ledger.close().await;

        assert_eq!(*after, before, "round {round}");
        assert!(verify(&bench.state()).unwrap().ok, "round {round}");
    }
    assert!(
        (1..=2).contains(&damaged_indexes(&bench)),
        "at most two are kept"
    );
}

#[tokio::test]
async fn an_index_that_lost_a_row_is_rebuilt() {
    let bench = Bench::new();
    let ledger = bench.open();
    let started = begin(&ledger, None).await;
    let mut outcome = ended(started, AttemptEnd::Answered, Receipt::default());
    outcome.run_id = Some("run-1".to_owned());
    ledger.settle(outcome).await.unwrap();
    ledger.close().await;
    let before = filled(&bench).await;
    let path = bench.state().join("index");
    // Without the row that counts the others it was not made to its end.
    let rows = [
        block_prefix(Length::Sixteen, Detail::AllModels).to_vec(),
        block_prefix(Length::Sixteen, Detail::ByModel).to_vec(),
        vec![RUN],
        META.to_vec(),
    ];
    for prefix in rows {
        let db = sled::open(&path).unwrap();
        let (key, _) = db.scan_prefix(prefix).next().unwrap().unwrap();
        db.remove(key).unwrap();
        db.flush().unwrap();
        drop(db);

        let said = verify(&bench.state()).unwrap();
        let ledger = bench.open();
        let rebuilds = ledger.health().index_rebuilds;
        let waiting = ledger.waiting_runs().borrow().len();
        ledger.close().await;

        assert!(matches!(said.index, IndexCheck::Differs(_)), "{said:?}");
        assert_eq!((rebuilds, waiting), (1, 1));
        let ledger = bench.open();
        assert_eq!(*ledger.totals(), before);
        // Closed, so that the next round finds no lock.
        ledger.close().await;
    }
}

/// The index holds sums: twice the entries take no more rows.
#[tokio::test]
async fn the_rows_of_an_index_do_not_grow_with_the_entries() {
    let bench = Bench::new();
    let mut rows = Vec::new();
    for _ in 0..2 {
        filled(&bench).await;
        let db = sled::open(bench.state().join("index")).unwrap();
        rows.push(db.len());
        db.flush().unwrap();
    }
    assert_eq!(rows[0], rows[1]);
}

#[tokio::test]
async fn a_snapshot_that_was_being_written_is_no_damage() {
    let bench = Bench::new();
    let before = filled(&bench).await;
    let stray = bench.state().join("index/snap.0000000000000000.generating");
    fs::write(stray, b"half").unwrap();

    let ledger = bench.open();

    assert_eq!(*ledger.totals(), before);
    assert_eq!(ledger.health().index_rebuilds, 0);
    drop(ledger);
    assert_eq!(damaged_indexes(&bench), 0);
}

#[tokio::test]
async fn an_index_that_knows_more_than_the_journal_is_not_believed() {
    let bench = Bench::new();
    filled(&bench).await;
    let bytes = fs::read(bench.segment(1)).unwrap();
    let half = bytes
        .iter()
        .take(bytes.len() / 2)
        .rposition(|byte| *byte == b'\n')
        .unwrap();
    fs::write(bench.segment(1), &bytes[..=half]).unwrap();

    let said = verify(&bench.state()).unwrap();
    let ledger = bench.open();
    let rebuilds = ledger.health().index_rebuilds;
    let billed_now = ledger.totals().billed();
    ledger.close().await;
    let report = verify(&bench.state()).unwrap();

    assert!(matches!(said.index, IndexCheck::Differs(_)), "{said:?}");
    assert!(!said.ok);
    assert_eq!(rebuilds, 1);
    assert_eq!(report.billed_micro_usd, billed_now);
    // The loss stays on record: the numbers are not given out again.
    assert!(!report.ok);
    let lost: Vec<_> = report.damage.iter().collect();
    let first = text_seq(&bytes[..=half]) + 1;
    assert_eq!(lost[0].first_seq, Some(first), "{lost:?}");
    assert_eq!(lost[0].last_seq, Some(102), "{lost:?}");
}

/// The number of the last line.
fn text_seq(bytes: &[u8]) -> u64 {
    let text = std::str::from_utf8(bytes).unwrap();
    let last = text.lines().last().unwrap();
    serde_json::from_str::<serde_json::Value>(last).unwrap()["seq"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn another_ledgers_index_is_not_believed() {
    let bench = Bench::new();
    let before = filled(&bench).await;
    let other = Bench::new();
    filled(&other).await;
    fs::remove_dir_all(bench.state().join("index")).unwrap();
    fs::rename(other.state().join("index"), bench.state().join("index")).unwrap();

    let ledger = bench.open();

    assert_eq!(*ledger.totals(), before);
    assert_eq!(ledger.health().index_rebuilds, 1);
}

/// A missing quarter hour is noticed by a question that reads its block's quarter hours, and by `verify`.
#[tokio::test]
async fn a_quarter_hour_that_is_lost_is_not_passed_over() {
    let later_ms = Length::Quarter.ms();
    lose_a_quarter_hour(Detail::AllModels, GroupBy::App, later_ms).await;
    lose_a_quarter_hour(Detail::ByModel, GroupBy::Model, later_ms).await;
    // Of a quarter hour that a bound cuts, the row of all models says where its entries are.
    for asked_by in [GroupBy::App, GroupBy::Model] {
        lose_a_quarter_hour(Detail::AllModels, asked_by, 1).await;
    }
}

async fn lose_a_quarter_hour(detail: Detail, asked_by: GroupBy, later_ms: u64) {
    let history = History::of(60);
    let bench = &history.paper.bench;
    bench.open().close().await;
    let db = sled::open(bench.state().join("index")).unwrap();
    let quarters = block_prefix(Length::Quarter, detail);
    let (key, _) = db.scan_prefix(quarters).next().unwrap().unwrap();
    db.remove(key).unwrap();
    db.flush().unwrap();
    drop(db);

    let said = verify(&bench.state()).unwrap();
    assert!(matches!(said.index, IndexCheck::Differs(_)), "{said:?}");
    let ledger = bench.open();
    let since_ms = Some(START_MS + later_ms);
    let ask = |index| {
        let sums = Sums {
            since_ms,
            until_ms: None,
            group: &[asked_by],
            time_zone: &TimeZone::UTC,
            rows_max: ROWS_MAX,
        };
        ask(&sums, &bench.state(), index).unwrap()
    };
    let index = ledger.index().unwrap();
    assert_eq!(ask(Some(&index)), ask(None));

    // From then on it is not believed, and a later write does not make it believed again.
    buy(&ledger, None, billed(1)).await;
    drop(index);
    ledger.close().await;
    let ledger = bench.open();
    assert_eq!(ledger.health().index_rebuilds, 1);
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}

/// A question by day and all words of a line may have more rows than an answer may.
#[tokio::test]
async fn i11_sums_of_too_many_rows_are_not_gathered_to_the_end() {
    let bench = Bench::new();
    let ledger = bench.open();
    for amount in 1..=10 {
        buy(&ledger, None, billed(amount)).await;
        bench.clock.advance(Duration::from_secs(4 * 3600));
    }
    ledger.close().await;
    let ledger = bench.open();
    let rows = |rows_max: usize, is_whole: bool| {
        let of_block = |from_ms, until_ms| {
            let is_taken = is_whole || until_ms - from_ms == Length::Quarter.ms();
            is_taken.then_some(from_ms)
        };
        let asked = ledger.index().unwrap().ask(|snapshot| {
            let detail = Detail::AllModels;
            snapshot.sums(
                detail,
                0,
                u64::MAX,
                rows_max,
                &mut { of_block },
                &mut |_, _| Ok(0),
            )
        });
        asked.unwrap().rows().len()
    };

    assert_eq!((rows(10, true), rows(10, false)), (10, 10));
    assert_eq!((rows(3, true), rows(3, false)), (4, 4));
}
