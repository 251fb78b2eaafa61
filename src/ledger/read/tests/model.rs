//! Any history, asked in any way, is answered as by a reader that keeps all of it.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::tz::TimeZone;
use proptest::prelude::*;
use serde_json::Value;

use crate::ledger::entry::Labels;
use crate::ledger::entry::StateWord;
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::error::LedgerError;
use crate::ledger::fixtures::paper::{Paper, begins, crashes, ends, evidence, id};
use crate::ledger::fixtures::{START_MS, labels};
use crate::ledger::id::EntryId;
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::journal::scan::scan;
use crate::ledger::query::{entries, for_each_entry, list, spend};
use crate::ledger::read::filter::Filter;
use crate::ledger::read::spend::GroupBy;
use crate::ledger::read::views::{EntryView, Views};
use crate::money::MicroUsd;

const HOUR_MS: u64 = 3_600_000;

/// What happens next: the kind, which entry (by its place among those it can happen to), and
/// whether the line stays sound.
type Step = (u8, u8, bool);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let sound = prop_oneof![12 => Just(true), 1 => Just(false)];
    prop::collection::vec((0..10u8, any::<u8>(), sound), 1..70)
}

/// Writes a history; answers whether all its lines are sound.
fn write(paper: &mut Paper, steps: &[Step]) -> bool {
    let mut open: Vec<(EntryId, Labels)> = Vec::new();
    let mut unresolved: Vec<(EntryId, Labels, State)> = Vec::new();
    let mut begun = 0;
    for (kind, which, is_sound) in steps {
        let which = usize::from(*which);
        paper.now_ms += 2 * HOUR_MS;
        let record = match kind {
            4..=7 if !open.is_empty() => {
                let (id, labels) = open.remove(which % open.len());
                let state = match kind {
                    4 | 5 => State::Settled {
                        billed: MicroUsd::new(7),
                    },
                    6 => State::Unreported,
                    _ => State::InDoubt {
                        reason: InDoubt::Crash,
                    },
                };
                if state.is_unresolved() {
                    unresolved.push((id, labels.clone(), state));
                }
                if *kind == 7 {
                    crashes(id, labels)
                } else {
                    ends(id, labels, state)
                }
            }
            8.. if !unresolved.is_empty() => {
                let (id, labels, was) = unresolved.remove(which % unresolved.len());
                evidence(id, labels, was)
            }
            _ => {
                begun += 1;
                let app = if which % 3 == 0 { "other" } else { "notes" };
                let id = id(begun);
                let mut labels = labels(paper.now_ms, None);
                labels.app = app.into();
                open.push((id, labels));
                begins(id, paper.now_ms, app)
            }
        };
        paper.write(&record, *is_sound);
    }
    paper.finish();
    steps.iter().all(|(_, _, is_sound)| *is_sound)
}

/// Every entry, all of them held.
fn all(state_dir: &Path) -> Vec<EntryView> {
    let reader = JournalReader::open(state_dir).unwrap();
    let mut views = Views::default();
    scan(&reader.journal, &reader.segments, &mut |seq, _, record| {
        views.apply(seq, record);
    })
    .unwrap();
    views.finish(|_| true)
}

fn wanted(filter: &Filter, all: &[EntryView]) -> Vec<Value> {
    let matches = |view: &&EntryView| {
        filter.since_ms.is_none_or(|since| view.at_ms >= since)
            && filter.until_ms.is_none_or(|until| view.at_ms < until)
            && filter.after_seq.is_none_or(|seq| view.seq > seq)
            && filter.id.is_none_or(|id| view.id == id)
            && filter.app.as_ref().is_none_or(|app| **app == *view.app)
            && filter.state.is_none_or(|word| view.state.word() == word)
    };
    json(all.iter().filter(matches))
}

fn json<'a>(views: impl IntoIterator<Item = &'a EntryView>) -> Vec<Value> {
    let json = |view| serde_json::to_value(view).unwrap();
    views.into_iter().map(json).collect()
}

fn filters() -> Vec<Filter> {
    let state = |state| Filter {
        state: Some(state),
        ..Filter::default()
    };
    vec![
        Filter::default(),
        Filter {
            since_ms: Some(START_MS + 50 * HOUR_MS),
            until_ms: Some(START_MS + 90 * HOUR_MS),
            ..Filter::default()
        },
        Filter {
            app: Some("other".to_owned()),
            ..Filter::default()
        },
        Filter {
            id: Some(id(2)),
            ..Filter::default()
        },
        state(StateWord::Open),
        state(StateWord::InDoubt),
        state(StateWord::Unreported),
        state(StateWord::Reconciled),
    ]
}

/// By state: how many, and what was billed.
fn sums(state_dir: &Path) -> BTreeMap<String, (u64, u128)> {
    let spend = spend(state_dir, None, None, &[GroupBy::State], &TimeZone::UTC).unwrap();
    let row = |row: &crate::ledger::query::SpendRow| {
        let word = row.labels[&GroupBy::State].clone();
        (word, (row.requests, row.billed_micro_usd.get()))
    };
    spend.rows.iter().map(row).collect()
}

fn wanted_sums(all: &[EntryView]) -> BTreeMap<String, (u64, u128)> {
    let mut sums: BTreeMap<String, (u64, u128)> = BTreeMap::new();
    for view in all {
        let sum = sums.entry(view.state.word().to_string()).or_default();
        sum.0 += 1;
        sum.1 += u128::from(view.state.adds().get());
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_listing_equals_that_of_a_reader_which_keeps_everything(
        steps in steps(),
        segment_bytes_max in 400..4_000usize,
        torn in any::<bool>(),
    ) {
        let mut paper = Paper::new(segment_bytes_max);
        let is_sound = write(&mut paper, &steps);
        if torn {
            paper.append(br#"{"seq":9999,"kind":"in"#);
            paper.finish();
        }
        let state = paper.state();
        let all = all(&state);

        for filter in filters() {
            let known = wanted(&filter, &all);
            prop_assert_eq!(&json(&entries(&state, &filter).unwrap()), &known);
            for limit in [1, 2, 5, 100] {
                let asked = Filter { limit: Some(limit), ..filter.clone() };
                let newest = &known[known.len().saturating_sub(limit)..];
                prop_assert_eq!(&json(&list(&state, &asked).unwrap().entries)[..], newest);

                // Page by page from the beginning: each once, none passed over.
                let mut listed = Vec::new();
                let mut mark = 0;
                loop {
                    let asked = Filter { after_seq: Some(mark), ..asked.clone() };
                    let page = list(&state, &asked).unwrap();
                    prop_assert!(page.entries.len() <= limit);
                    let is_last = page.entries.len() < limit;
                    listed.extend(json(&page.entries));
                    mark = page.last_seq.unwrap_or(0);
                    if is_last {
                        break;
                    }
                }
                prop_assert_eq!(&listed, &known);
                let is_first_seq_sound = steps.last().is_some_and(|(_, _, sound)| *sound);
                prop_assert!(mark == paper.last_seq || !is_first_seq_sound);
            }
            for mark in [1, paper.last_seq / 2, paper.last_seq] {
                let asked = Filter { after_seq: Some(mark), ..filter.clone() };
                let known = wanted(&asked, &all);
                let mut listed = Vec::new();
                for_each_entry(&state, &asked, |view| {
                    listed.push(view);
                    Ok::<_, LedgerError>(())
                })
                .unwrap();
                prop_assert_eq!(&json(&listed), &known);
            }
        }
        if is_sound {
            prop_assert_eq!(sums(&state), wanted_sums(&all));
        }
    }
}
