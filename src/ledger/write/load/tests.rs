use std::time::Duration;

use super::Replayed;
use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, Outcome};
use crate::ledger::fixtures::{Bench, begin, billed, ended};
use crate::ledger::fold::books::Books;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::segments;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::record::Record;

const ENTRIES: u64 = 1_500;
const BETWEEN_MS: u64 = 10 * 60 * 1000;

#[tokio::test]
async fn a_replay_holds_the_keys_of_a_day_however_long_the_journal_is() {
    let bench = Bench::new();
    let ledger = bench.open();
    for n in 0..ENTRIES {
        let id = begin(&ledger, Some(&format!("k{n}"))).await;
        let outcome = Outcome {
            at_ms: bench.clock.wall_ms(),
            ..ended(id, AttemptEnd::Answered, billed(5))
        };
        ledger.settle(outcome).await.unwrap();
        bench.clock.advance(Duration::from_millis(BETWEEN_MS));
    }
    ledger.close().await;
    let journal = Directory::open(&bench.state().join("journal")).unwrap();
    let all = segments(&journal, None).unwrap();
    let mut replayed = Replayed {
        books: Books::default(),
        index: None,
        beside: None,
        is_new: true,
        rebuilt: false,
        index_seq: 0,
        known_missing: Vec::new(),
        now_ms: bench.clock.wall_ms(),
    };

    let mut begun = Vec::new();
    scan(&journal, &all, &mut |seq, position, record| {
        if let Record::Intent(intent) = &record {
            let key = intent.key.clone().unwrap();
            begun.push((key, intent.fingerprint, intent.at_ms + 1));
        }
        replayed.apply("", seq, position, &record);
    })
    .unwrap();
    let books = &replayed.books;
    let held = begun
        .iter()
        .filter(|(key, request, then_ms)| {
            books
                .key_standing(key, *request, *then_ms)
                .charge()
                .is_some()
        })
        .count();

    assert_eq!(held, 144, "of {ENTRIES}");
    assert_eq!(replayed.books.totals().requests(), ENTRIES);
}
