//! What is held does not grow with the journal (rule I11), and no more is read than must be. Both
//! are counted.

use jiff::tz::TimeZone;

use crate::ledger::entry::StateWord;
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::error::LedgerError;
use crate::ledger::fixtures::paper::{Paper, begins, crashes, ends, evidence, id};
use crate::ledger::fixtures::{START_MS, labels};
use crate::ledger::journal::reader::JournalReader;
use crate::ledger::query::for_each_entry;
use crate::ledger::read::filter::{Filter, Listing};
use crate::ledger::read::listing::{PAGE, Pages, Work, list_on};
use crate::ledger::read::spend::{GroupBy, Sums};
use crate::ledger::record::Record;
use crate::money::MicroUsd;

const SEGMENT_BYTES: usize = 8 << 20;

fn text(record: &Record) -> String {
    let mut line = Vec::new();
    record.encode(1, &mut line).unwrap();
    String::from_utf8(line).unwrap()
}

/// So many entries, each begun and ended; and one behind them that is in flight.
fn many(entries: u64) -> Paper {
    let mut paper = Paper::new(SEGMENT_BYTES);
    let begins = text(&begins(id(0), START_MS, "notes"));
    let ends = text(&crashes(id(0), labels(START_MS, None)));
    for number in 0..entries {
        paper.copy(&begins, id(0), id(number));
        paper.copy(&ends, id(0), id(number));
    }
    paper.copy(&begins, id(0), id(entries));
    paper.finish();
    paper
}

fn ask(paper: &Paper, filter: &Filter) -> (Listing, Work) {
    list_on(JournalReader::open(&paper.state()).unwrap(), filter).unwrap()
}

#[test]
fn of_200_000_entries_no_more_are_held_than_are_listed_and_few_lines_are_read() {
    let paper = many(200_000);
    let newest = Filter {
        limit: Some(50),
        ..Filter::default()
    };
    let from = |mark| Filter {
        after_seq: Some(mark),
        ..newest.clone()
    };

    let (listing, work) = ask(&paper, &newest);
    assert_eq!(listing.entries.len(), 50);
    assert_eq!(listing.last_seq, Some(400_001));
    assert_eq!((work.held_max, work.lines), (50, 99));

    for mark in [0, 100_000, 250_001, 399_000] {
        let (page, work) = ask(&paper, &from(mark));
        assert_eq!(page.entries.len(), 50);
        assert!(page.entries[0].seq <= mark + 2, "after {mark}");
        assert!(work.held_max <= 51, "after {mark}: {work:?}");
        // The search for the mark ends within 64 KiB of it.
        assert!(work.lines < 600, "after {mark}: {work:?}");
    }

    let (end, work) = ask(&paper, &from(400_001));
    assert_eq!((end.entries.len(), end.last_seq), (0, Some(400_001)));
    assert!(work.lines < 300, "{work:?}");
}

#[test]
fn a_listing_that_has_to_read_everything_holds_no_more() {
    let paper = many(10_000);
    let state = |state| Filter {
        state: Some(state),
        limit: Some(50),
        ..Filter::default()
    };

    let (none, work) = ask(&paper, &state(StateWord::Failed));
    assert_eq!((none.entries.len(), work.held_max), (0, 0));
    assert_eq!(work.lines, 20_001);

    let (open, work) = ask(&paper, &state(StateWord::Open));
    assert_eq!((open.entries.len(), work.held_max), (1, 1));

    let forward = Filter {
        after_seq: Some(0),
        ..state(StateWord::Open)
    };
    let (open, work) = ask(&paper, &forward);
    assert_eq!((open.entries.len(), work.held_max), (1, 1));
}

#[test]
fn handing_out_all_holds_a_page() {
    let paper = many(5_000);
    let reader = JournalReader::open(&paper.state()).unwrap();
    let filter = Filter::default();

    let mut pages = Pages::new(&reader, &filter);
    let mut mark = 0;
    while let Some(last) = pages
        .page(mark, PAGE)
        .unwrap()
        .last_seq
        .filter(|last| *last > mark)
    {
        mark = last;
    }
    let mut count = 0;
    for_each_entry(&paper.state(), &filter, |_| {
        count += 1;
        Ok::<_, LedgerError>(())
    })
    .unwrap();

    assert_eq!(count, 5_001);
    assert!(pages.work().held_max <= PAGE + 1, "{:?}", pages.work());
}

#[test]
fn a_damaged_beginning_is_not_looked_for_further_back_than_it_can_lie() {
    let mut paper = Paper::new(2_000);
    for number in 0..200 {
        paper.now_ms += 3_600_000;
        let labels = labels(paper.now_ms, None);
        let is_sound = number != 199;
        paper.write(&begins(id(number), paper.now_ms, "notes"), is_sound);
        paper.write(&crashes(id(number), labels), true);
    }
    paper.finish();

    let (listing, work) = ask(
        &paper,
        &Filter {
            limit: Some(1),
            ..Filter::default()
        },
    );

    assert_eq!(listing.entries[0].stream, None, "{:?}", listing.entries);
    // A day's worth, for a clock that was set back.
    assert!((50..100).contains(&work.lines), "{work:?}");
}

#[test]
fn evidence_for_an_old_entry_makes_it_appear_again_whole() {
    let mut paper = Paper::new(SEGMENT_BYTES);
    let reason = InDoubt::NoResponse;
    let lost = State::InDoubt { reason };
    paper.write(&begins(id(0), START_MS, "notes"), true);
    paper.write(&ends(id(0), labels(START_MS, None), lost), true);
    for number in 1..500 {
        paper.write(&begins(id(number), START_MS, "notes"), true);
        paper.write(&crashes(id(number), labels(START_MS, None)), true);
    }
    let mark = paper.last_seq;
    paper.write(&evidence(id(0), labels(START_MS, None), lost), true);
    paper.finish();

    let (page, work) = ask(
        &paper,
        &Filter {
            after_seq: Some(mark),
            limit: Some(10),
            ..Filter::default()
        },
    );

    assert_eq!(page.entries.len(), 1);
    let entry = &page.entries[0];
    assert_eq!(
        (entry.id, entry.state.word()),
        (id(0), StateWord::Reconciled)
    );
    assert_eq!(entry.billed_micro_usd, Some(MicroUsd::new(11)));
    assert_eq!((entry.attempts.len(), entry.model.is_some()), (1, true));
    assert_eq!(work.held_max, 1);
}

#[test]
fn too_many_rows_are_an_error_that_says_what_to_do() {
    let mut paper = Paper::new(SEGMENT_BYTES);
    for number in 0..5 {
        let app = format!("app-{number}");
        paper.write(&begins(id(number), START_MS, &app), true);
    }
    paper.finish();
    let reader = JournalReader::open(&paper.state()).unwrap();
    let ask = |rows_max| {
        let sums = Sums {
            since_ms: None,
            until_ms: None,
            group: &[GroupBy::App],
            time_zone: &TimeZone::UTC,
            rows_max,
        };
        sums.of(&reader)
    };

    assert_eq!(ask(5).unwrap().rows.len(), 5);
    let error = ask(4).unwrap_err().to_string();
    assert!(error.contains("more than 4"), "{error}");
}
