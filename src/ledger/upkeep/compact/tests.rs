use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::ledger::entry::{State, StateWord};
use crate::ledger::fixtures::Bench;
use crate::ledger::fixtures::history::{Asked, History, Step, ask_all, steps};
use crate::ledger::fold::effect::Effect;
use crate::ledger::fold::totals::Totals;
use crate::ledger::journal::scan::scan;
use crate::ledger::journal::segments::segments;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::query::{entries, spend, verify};
use crate::ledger::read::filter::Filter;
use crate::ledger::{Ledger, LedgerOptions};

mod harm;
mod marks;
mod retention;

fn journal(state: &Path) -> Directory {
    Directory::open_to_read(&state.join("journal")).unwrap()
}

fn not_cancelled() -> AtomicBool {
    AtomicBool::new(false)
}

/// Compacts what lies before `wanted.before_ms`, all steps; answers whether anything was written.
fn compact(state: &Path, wanted: &Wanted) -> bool {
    let journal = journal(state);
    let planned = plan(&journal, wanted, false, u64::MAX).unwrap();
    assert_eq!(planned.stopped_by, None);
    let built = build(&journal, &planned, wanted, &not_cancelled()).unwrap();
    if built.is_some() {
        commit(&journal).unwrap();
    }
    clear(&journal).unwrap();
    built.is_some()
}

/// The sums of all lines, as a start without an index adds them up.
fn replayed(state: &Path) -> Totals {
    let here = journal(state);
    let mut totals = Totals::default();
    scan(
        &here,
        &segments(&here, None).unwrap(),
        &mut |_, position, record| {
            if let Some(effect) = Effect::at(&record, position.segment) {
                totals += &effect;
            }
        },
    )
    .unwrap();
    totals
}

/// What a start makes of a copy of the ledger, with the index it finds or without any.
fn started(bench: &Bench) -> Totals {
    let copy = Bench::new();
    copy_all(&bench.state(), &copy.state());
    copy.clock.set_wall_ms(bench_now(bench));
    let ledger = Ledger::open(LedgerOptions {
        state_dir: copy.state(),
        ..copy.options()
    })
    .unwrap();
    (*ledger.totals()).clone()
}

fn bench_now(bench: &Bench) -> u64 {
    use crate::clock::Clock;
    bench.clock.wall_ms()
}

fn copy_all(from: &Path, to: &Path) {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().mode(0o700).create(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The segments.
fn names(state: &Path) -> Vec<String> {
    let mut names = journal(state).names().unwrap();
    names.retain(|name| name.ends_with(".jsonl"));
    names
}

fn sound(state: &Path) {
    let report = verify(state).unwrap();
    assert!(report.ok, "{report:?}");
}

fn histories() -> impl Strategy<Value = (Vec<Step>, u8, u8)> {
    (steps(), any::<u8>(), any::<u8>())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4,
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    })]

    /// Whatever happened, in whatever zone and by whatever it is asked: spend, totals and verify say
    /// the same after each step of a compaction, after a second one, and after a start.
    #[test]
    fn every_sum_is_the_same_before_and_after((steps, first, second) in histories()) {
        let history = History::write(&steps);
        let state = history.state();
        let before = ask_all(&state, &history);
        let totals = replayed(&state);
        let paper = verify(&state).unwrap();
        prop_assert!(paper.ok);

        let early = history.wanted(first.min(second));
        let here = journal(&state);
        let planned = plan(&here, &early, false, u64::MAX).unwrap();
        let built = build(&here, &planned, &early, &not_cancelled()).unwrap();
        prop_assert_eq!(&ask_all(&state, &history), &before, "after the writing");
        if built.is_some() {
            commit(&here).unwrap();
            prop_assert_eq!(&ask_all(&state, &history), &before, "after the rename");
            // A death in the midst of removing.
            let gone = planned.segments[0].number;
            fs::remove_file(history.paper.bench.segment(gone)).unwrap();
            prop_assert_eq!(&ask_all(&state, &history), &before, "after the first removal");
            clear(&here).unwrap();
            for segment in &planned.segments {
                prop_assert!(!history.paper.bench.segment(segment.number).exists());
            }
        }
        prop_assert_eq!(&ask_all(&state, &history), &before, "after all");
        sound(&state);

        // Once more changes nothing; a later one is as right as the first.
        let once = names(&state);
        prop_assert!(!compact(&state, &early));
        prop_assert_eq!(names(&state), once);
        let late = history.wanted(first.max(second));
        compact(&state, &late);
        prop_assert_eq!(&ask_all(&state, &history), &before, "after a second one");
        sound(&state);
        prop_assert_eq!(&replayed(&state), &totals);

        let after = verify(&state).unwrap();
        prop_assert_eq!(
            (after.entries, after.open, after.billed_micro_usd, after.in_doubt, after.unreported),
            (paper.entries, paper.open, paper.billed_micro_usd, paper.in_doubt, paper.unreported)
        );
    }

    /// What waits for its amount is still listed, with all its lines; what else began there is not.
    #[test]
    fn only_what_may_still_change_is_listed((steps, cut, _) in histories()) {
        let history = History::write(&steps);
        let state = history.state();
        let before = entries(&state, &Filter::default()).unwrap();
        let wanted = history.wanted(cut);
        let here = journal(&state);
        let planned = plan(&here, &wanted, false, u64::MAX).unwrap();
        prop_assume!(build(&here, &planned, &wanted, &not_cancelled()).unwrap().is_some());
        commit(&here).unwrap();
        clear(&here).unwrap();
        let upto = planned.stands_for.unwrap().seq;

        let after = entries(&state, &Filter::default()).unwrap();
        for view in &before {
            let found = after.iter().find(|other| other.id == view.id);
            // Its last line shows whether it came to an end in what was compacted.
            let is_open = view.state == State::Open;
            let is_kept = view.seq > upto || is_open || wanted.awaited.contains(&view.id);
            prop_assert_eq!(found.is_some(), is_kept, "{:?}", view);
            if let Some(found) = found {
                let mut found = found.clone();
                found.seq = view.seq;
                prop_assert_eq!(
                    serde_json::to_value(&found).unwrap(),
                    serde_json::to_value(view).unwrap()
                );
            }
        }
    }
}

#[test]
fn what_was_exported_before_adds_up_to_the_rollups_after() {
    let history = History::of(400);
    let state = history.state();
    let wanted = history.wanted(200);
    let exported = entries(
        &state,
        &Filter {
            until_ms: Some(wanted.before_ms),
            ..Filter::default()
        },
    )
    .unwrap();
    assert!(compact(&state, &wanted));

    let Asked { zone, .. } = Asked::first();
    let rolled = spend(&state, None, Some(wanted.before_ms), &[], &zone).unwrap();

    assert!(exported.len() > 50, "{}", exported.len());
    let known = exported.iter().filter_map(|view| view.billed_micro_usd);
    let billed: u128 = known.map(|billed| u128::from(billed.get())).sum();
    assert_eq!(rolled.total.billed_micro_usd.get(), billed);
    let count = |word: StateWord| {
        let of = exported.iter().filter(|view| view.state.word() == word);
        u64::try_from(of.count()).unwrap()
    };
    assert_eq!(rolled.total.in_doubt, count(StateWord::InDoubt));
    assert_eq!(rolled.total.unreported, count(StateWord::Unreported));
    assert_eq!(
        rolled.total.requests,
        u64::try_from(exported.len()).unwrap()
    );
}

#[test]
fn a_bound_within_a_quarter_hour_of_sums_says_so_and_counts_it_once() {
    let history = History::of(200);
    let state = history.state();
    assert!(compact(&state, &history.wanted(200)));
    let first = entries(&state, &Filter::default()).unwrap();
    let zone = Asked::first().zone;
    let rows = spend(&state, None, None, &[], &zone).unwrap();
    assert!(!rows.is_rounded);
    assert!(!first.is_empty());

    let mut cuts = 0;
    for step in 0..400 {
        let bound = history.began_ms() + step * 97 * 60 * 1000 + 7;
        let earlier = spend(&state, None, Some(bound), &[], &zone).unwrap();
        let later = spend(&state, Some(bound), None, &[], &zone).unwrap();
        cuts += u64::from(earlier.is_rounded);
        assert_eq!(earlier.is_rounded, later.is_rounded);
        assert_eq!(
            earlier.total.requests + later.total.requests,
            rows.total.requests
        );
    }
    assert!(cuts > 0);
}
