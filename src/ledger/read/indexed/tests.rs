//! Whatever happened to a ledger, the index answers as the journal does, or leaves it to the journal.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::{Asking, ask, ask_index};
use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::history::{Asked, History, Step, kept_by, model, questions, steps};
use crate::ledger::fixtures::{
    Bench, START_MS, begin, billed, ended, intent, kill_after_next, minted,
};
use crate::ledger::index::blocks::Length;
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::query::{Filter, entries, verify};
use crate::ledger::read::spend::{GroupBy, ROWS_MAX, Spend, Sums};
use crate::money::MicroUsd;
use crate::protocol::receipt::Receipt;

const MINUTE_MS: u64 = 60_000;

fn sums(asked: &Asked) -> Sums<'_> {
    Sums {
        since_ms: asked.since_ms,
        until_ms: asked.until_ms,
        group: &asked.by,
        time_zone: &asked.zone,
        rows_max: ROWS_MAX,
    }
}

/// The journal's answer, and the index' where it has one.
fn both(ledger: &Ledger, state: &Path, asked: &Asked) -> (Spend, Option<Spend>) {
    let sums = sums(asked);
    let journal = sums.of(&JournalReader::open(state).unwrap()).unwrap();
    let index = ledger.index().expect("an index");
    (journal, ask_index(&sums, &index, state).unwrap())
}

/// Every question of the history, and each with bounds that cut quarter hours.
fn all_questions(history: &History) -> Vec<Asked> {
    let mut all = questions(history, &kept_by());
    let cut = all.clone().into_iter().map(|mut asked| {
        asked.since_ms = asked.since_ms.map(|since| since + 7 * MINUTE_MS + 3);
        asked.until_ms = asked.until_ms.map(|until| until + 11 * MINUTE_MS);
        asked
    });
    all.extend(cut);
    let hour = 60 * MINUTE_MS;
    for (since_ms, until_ms) in [(1, 2), (5 * MINUTE_MS, 9 * MINUTE_MS), (hour - 1, hour + 1)] {
        all.push(Asked {
            since_ms: Some(START_MS + since_ms),
            until_ms: Some(START_MS + until_ms),
            by: kept_by(),
            ..Asked::first()
        });
    }
    all
}

/// `is_answered`: the index has to have an answer to every question.
fn agree(ledger: &Ledger, history: &History, is_answered: bool) -> Result<(), TestCaseError> {
    let mut answers = 0;
    let all = all_questions(history);
    for asked in &all {
        let (journal, index) = both(ledger, &history.state(), asked);
        if let Some(index) = index {
            prop_assert_eq!(&index, &journal, "{:?}", asked);
            answers += 1;
        } else {
            prop_assert!(!is_answered, "{:?}", asked);
        }
    }
    prop_assert!(answers > all.len() / 3, "{} of {}", answers, all.len());
    agree_by_model(ledger, history)
}

/// By model the entries that a listing has are summed, one by one; what was compacted is a row of its own. In all
/// it is what the same question gives without the model.
fn agree_by_model(ledger: &Ledger, history: &History) -> Result<(), TestCaseError> {
    let length = (history.paper.now_ms - START_MS) / 5;
    let at = |part: u64| Some(START_MS + length * part);
    let state = history.state();
    let index = ledger.index().expect("an index");
    for (since_ms, until_ms) in [(None, None), (at(1), at(3)), (at(2), None), (None, at(4))] {
        for more in [
            None,
            Some(GroupBy::State),
            Some(GroupBy::Week),
            Some(GroupBy::App),
        ] {
            let asked = Asked {
                since_ms,
                until_ms,
                by: more.into_iter().chain([GroupBy::Model]).collect(),
                ..Asked::first()
            };
            let without = Asked {
                by: more.into_iter().collect(),
                ..asked.clone()
            };
            let answer = ask(&sums(&asked), &state, Some(&index)).unwrap();
            let (whole, _) = both(ledger, &state, &without);
            prop_assert_eq!(&answer.total, &whole.total, "{:?}", &asked);

            let filter = Filter {
                since_ms,
                until_ms,
                ..Filter::default()
            };
            let mut wanted: BTreeMap<String, (u64, u128)> = BTreeMap::new();
            for entry in entries(&state, &filter).unwrap() {
                let model = entry.model.unwrap_or_else(|| "-".to_owned());
                let sum = wanted.entry(model).or_default();
                sum.0 += 1;
                sum.1 += u128::from(entry.state.adds().get());
            }
            let mut found: BTreeMap<String, (u64, u128)> = BTreeMap::new();
            for row in &answer.rows {
                let model = row.labels[&GroupBy::Model].clone();
                let sum = found.entry(model).or_default();
                sum.0 += row.requests;
                sum.1 += row.billed_micro_usd.get();
            }
            let compacted = found.remove("(compacted)");
            prop_assert_eq!(&found, &wanted, "{:?}: {:?}", &asked, compacted);
        }
    }
    Ok(())
}

/// Lives on: keys that are used again, evidence that comes at once and late, more apps than are ever
/// labels, clocks that are set.
async fn live(ledger: &Ledger, history: &History, steps: &[Step]) -> Result<(), TestCaseError> {
    let bench = &history.paper.bench;
    let mut open = Vec::new();
    for (at, (kind, which, minutes)) in steps.iter().enumerate() {
        let now_ms = bench.clock.wall_ms();
        let to_ms = match kind {
            0 => now_ms.saturating_sub(u64::from(*minutes) * MINUTE_MS),
            _ => now_ms + u64::from(*minutes % 60) * MINUTE_MS + 77,
        };
        bench.clock.set_wall_ms(to_ms);
        let key = format!("k{}", which % 6);
        match kind {
            0..=3 => {
                let id = ledger.new_entry_id();
                let mut begun = intent(id, to_ms, None);
                begun.app = Arc::from(format!("app-{which}"));
                begun.model = model(usize::from(*which));
                begun.key = which.is_multiple_of(2).then(|| minted(&key));
                begun.reserved = Some(MicroUsd::new(u64::from(*which)));
                ledger.intend(begun).await.unwrap();
                open.push(id);
            }
            _ if open.is_empty() => {}
            4..=6 => {
                let id = open.remove(usize::from(*which) % open.len());
                let outcome = ended(id, AttemptEnd::Answered, billed(u64::from(*which)));
                ledger.settle(outcome).await.unwrap();
            }
            7 | 8 => {
                let id = open.remove(usize::from(*which) % open.len());
                let broken = ended(id, AttemptEnd::NoHead, Receipt::default());
                ledger.settle(broken).await.unwrap();
            }
            _ => {
                let id = open.remove(usize::from(*which) % open.len());
                let mut run = ended(id, AttemptEnd::Answered, Receipt::default());
                run.run_id = Some(format!("run-{at}"));
                ledger.settle(run).await.unwrap();
                if *kind == 10 {
                    let amount = MicroUsd::new(9);
                    let run_id = format!("run-{at}");
                    ledger.reconcile_run(&run_id, amount).await.unwrap();
                }
            }
        }
        if at % 48 == 47 {
            agree(ledger, history, true)?;
        }
    }
    agree(ledger, history, true)
}

/// A case takes seconds: a few, unless `PROPTEST_CASES` says how many.
fn cases() -> u32 {
    let asked = ProptestConfig::default().cases;
    let unasked = 256;
    if asked == unasked { 3 } else { asked }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: cases(),
        max_shrink_iters: 30,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_the_index_answers_is_what_the_journal_does(
        (past, later) in (steps(), steps()),
        is_compacted in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let history = History::write(&past);
        let ledger = history.paper.bench.open();
        agree(&ledger, &history, true)?;
        runtime.block_on(live(&ledger, &history, &later))?;
        runtime.block_on(ledger.close());

        if is_compacted {
            let options = history.paper.bench.options();
            crate::ledger::compact(options, Duration::ZERO).unwrap();
        }
        let ledger = history.paper.bench.open();
        prop_assert_eq!(ledger.health().index_rebuilds, 0);
        agree(&ledger, &history, !is_compacted)?;
        runtime.block_on(ledger.close());
        prop_assert!(verify(&history.state()).unwrap().ok);

        fs::remove_dir_all(history.state().join("index")).unwrap();
        let ledger = history.paper.bench.open();
        prop_assert_eq!(ledger.health().index_rebuilds, 1);
        agree(&ledger, &history, !is_compacted)?;
        // Made from what was compacted, it has no more models than that.
        let (journal, index) = both(&ledger, &history.state(), &by_model());
        prop_assert_eq!(index, Some(journal));
        runtime.block_on(ledger.close());
        prop_assert!(verify(&history.state()).unwrap().ok);
    }
}

fn by_model() -> Asked {
    Asked {
        by: vec![GroupBy::Model, GroupBy::App, GroupBy::State],
        ..Asked::first()
    }
}

fn by_state() -> Asked {
    Asked {
        by: vec![GroupBy::State, GroupBy::App],
        ..Asked::first()
    }
}

/// Of an app's many models the index names some. Whatever concerns the others is answered by the journal.
#[tokio::test]
async fn the_journal_answers_for_models_that_the_index_does_not_name() {
    let bench = Bench::new();
    let ledger = bench.open();
    let ask = async |ledger: &Ledger, number: usize| {
        let key = format!("k{}", number / 2);
        let mut begun = intent(ledger.new_entry_id(), ledger.wall_ms(), None);
        begun.model = Some(format!("model-{number}"));
        begun.key = Some(minted(&key));
        let id = begun.id;
        ledger.intend(begun).await.unwrap();
        id
    };
    // Every second one is reconciled by the next.
    for number in 0..70 {
        let id = ask(&ledger, number).await;
        let outcome = match number % 2 {
            0 => ended(id, AttemptEnd::NoHead, Receipt::default()),
            _ => ended(id, AttemptEnd::Answered, billed(7)),
        };
        ledger.settle(outcome).await.unwrap();
    }
    // In flight over a restart, and in a quarter hour of its own.
    bench
        .clock
        .advance(Duration::from_millis(Length::Quarter.ms()));
    let later_ms = Length::Quarter.floor(ledger.wall_ms());
    ask(&ledger, 3).await;
    let later = Asked {
        since_ms: Some(later_ms),
        ..by_model()
    };
    let cut = Asked {
        since_ms: Some(START_MS + 1),
        until_ms: Some(later_ms + 1),
        ..by_model()
    };
    let mut ledger = ledger;
    for is_made_anew in [false, true] {
        ledger.close().await;
        if is_made_anew {
            fs::remove_dir_all(bench.state().join("index")).unwrap();
        }
        ledger = bench.open();
        ask(&ledger, 3).await;
        for asked in [&by_model(), &cut, &later] {
            let (journal, index) = both(&ledger, &bench.state(), asked);
            let is_answered = index.is_some();
            assert!(index.is_none_or(|index| index == journal), "{asked:?}");
            // Of a quarter hour that is cut, the entries are read one by one, and may have evidence of named ones alone.
            if asked.since_ms != cut.since_ms {
                assert_eq!(is_answered, asked.since_ms == later.since_ms, "{asked:?}");
            }
            let zone = TimeZone::UTC;
            let answer = ledger.spend(asked.since_ms, asked.until_ms, &asked.by, &zone);
            assert_eq!(answer.unwrap(), journal, "{asked:?}");
        }
    }
    let (journal, index) = both(&ledger, &bench.state(), &by_state());
    assert_eq!(index, Some(journal));
}

/// What was committed and not yet written to the index is in its answer, evidence for what it knows as well.
/// Killed right after the commit, the index knows nothing of it.
#[tokio::test]
async fn an_answer_has_what_the_index_does_not_know_yet() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
    ledger.settle(broken).await.unwrap();
    ledger.close().await;
    let ledger = bench.open();
    let known_seq = ledger.indexed_seq();
    let paid = begin(&ledger, Some("k")).await;
    let (index, answered) = (ledger.index().unwrap(), AttemptEnd::Answered);
    kill_after_next(&ledger);
    ledger
        .settle(ended(paid, answered, billed(7)))
        .await
        .unwrap();
    drop(ledger);

    assert!(index.last_seq() <= known_seq + 1, "it lacks the evidence");
    let mut rows = Vec::new();
    for asked in [by_model(), by_state()] {
        let sums = sums(&asked);
        let reader = JournalReader::open(&bench.state()).unwrap();
        let answer = ask_index(&sums, &index, &bench.state()).unwrap();
        assert_eq!(answer, Some(sums.of(&reader).unwrap()));
        rows = answer.unwrap().rows;
    }
    let words = rows.iter().map(|row| row.labels[&GroupBy::State].as_str());
    assert_eq!(words.collect::<Vec<_>>(), ["reconciled", "settled"]);
}

/// The writer goes on while the journal is read for an answer, which is as of the moment that it was asked.
#[tokio::test]
async fn what_is_written_while_the_journal_is_read_is_in_the_next_answer() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
    ledger.settle(broken).await.unwrap();
    ledger.close().await;
    let ledger = bench.open();
    let asked = Asked {
        since_ms: Some(START_MS - 7 * MINUTE_MS),
        ..by_state()
    };
    let (sums, state) = (sums(&asked), bench.state());
    let before = sums.of(&JournalReader::open(&state).unwrap()).unwrap();

    let index = ledger.index().unwrap();
    let asking = index.ask(|snapshot| Asking::of(&sums, snapshot, &state));
    let paid = begin(&ledger, Some("k")).await;
    let outcome = ended(paid, AttemptEnd::Answered, billed(7));
    ledger.settle(outcome).await.unwrap();
    ledger.close().await;
    assert_eq!(index.last_seq(), 5, "it was written");

    let answer = asking.and_then(Asking::finish).unwrap();
    assert_eq!(answer, before);
}

/// A journal that another hand has changed answers for itself.
#[tokio::test]
async fn files_that_another_hand_changed_are_read() {
    let history = History::of(60);
    let bench = &history.paper.bench;
    let ledger = bench.open();
    let (journal, index) = both(&ledger, &bench.state(), &by_state());
    assert_eq!(index.as_ref(), Some(&journal));

    let mut bytes = fs::read(bench.segment(1)).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(bench.segment(1), bytes).unwrap();

    let (journal, index) = both(&ledger, &bench.state(), &by_state());
    assert_eq!(index, None);
    assert_eq!(journal.damaged, 1);
    let zone = TimeZone::UTC;
    let indexed = ledger.spend(None, None, &by_state().by, &zone).unwrap();
    assert_eq!(indexed, journal);
    ledger.close().await;

    // The next start reads all of it, and knows of the damage.
    let ledger = bench.open();
    assert_eq!(ledger.health().index_rebuilds, 1);
    let (journal, index) = both(&ledger, &bench.state(), &by_state());
    assert_eq!((journal.damaged, index), (1, None));
}
