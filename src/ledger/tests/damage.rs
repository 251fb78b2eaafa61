//! Damage to the journal, one case each: what is lost is named, what is moved counts once, and
//! what lost its end is in doubt for that reason.

use std::fs;

use super::in_doubt_now;
use crate::ledger::LedgerOptions;
use crate::ledger::entry::{InDoubt, State};
use crate::ledger::fixtures::{Bench, begin, billed, buy, kill_after_next};
use crate::ledger::query::{entries, find, verify};
use crate::ledger::read::filter::Filter;
use crate::ledger::upkeep::verify::{DamageKind, VerifyReport};

/// Ten entries in one segment: a header, and lines 1 to 20.
async fn ten() -> (Bench, Vec<Vec<u8>>) {
    let bench = Bench::new();
    let ledger = bench.open();
    for amount in 1..=10 {
        buy(&ledger, Some(&format!("k{amount}")), billed(amount)).await;
    }
    ledger.close().await;
    let bytes = fs::read(bench.segment(1)).unwrap();
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(<[u8]>::to_vec).collect();
    (bench, lines)
}

fn forget_index(bench: &Bench) {
    fs::remove_dir_all(bench.state().join("index")).unwrap();
}

fn named(report: &VerifyReport) -> Vec<(DamageKind, Option<u64>, Option<u64>)> {
    let damage = report.damage.iter();
    damage
        .map(|damage| (damage.kind, damage.first_seq, damage.last_seq))
        .collect()
}

#[tokio::test]
async fn a_line_that_is_there_twice_counts_once() {
    let (bench, mut lines) = ten().await;
    lines.insert(12, lines[4].clone());
    fs::write(bench.segment(1), lines.concat()).unwrap();
    forget_index(&bench);

    let said = verify(&bench.state()).unwrap();
    let totals = bench.open().totals();

    assert_eq!((totals.billed().get(), totals.requests()), (55, 10));
    assert_eq!(named(&said), [(DamageKind::Misplaced, None, None)]);
    assert!(!said.ok && said.contradictions.is_empty(), "{said:?}");
}

#[tokio::test]
async fn an_end_that_lies_before_its_beginning_is_no_crash() {
    let (bench, mut lines) = ten().await;
    lines.swap(3, 4);
    fs::write(bench.segment(1), lines.concat()).unwrap();
    forget_index(&bench);

    let ledger = bench.open();
    let totals = ledger.totals();
    let found = find(&bench.state(), "k2").unwrap().entries;

    assert_eq!((totals.billed().get(), totals.requests()), (55, 10));
    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 0);
    assert_eq!(found.len(), 1);
    assert!(matches!(found[0].state, State::Settled { .. }));
}

#[tokio::test]
async fn numbers_that_were_cut_off_are_named_and_not_given_out_again() {
    let (bench, lines) = ten().await;
    fs::write(bench.segment(1), lines[..=16].concat()).unwrap();
    forget_index(&bench);

    let before = verify(&bench.state()).unwrap();
    let ledger = bench.open();
    buy(&ledger, None, billed(100)).await;
    ledger.close().await;
    let after = verify(&bench.state()).unwrap();
    let again = bench.open();
    let rebuilds = again.health().index_rebuilds;

    assert_eq!(named(&before), [(DamageKind::CutOff, Some(17), Some(20))]);
    assert_eq!(named(&after), [(DamageKind::Missing, Some(17), Some(20))]);
    assert!(!before.ok && !after.ok);
    assert_eq!(after.journal.last_seq, Some(22));
    assert_eq!(again.totals().billed().get(), 36 + 100);
    assert_eq!(rebuilds, 0);
}

#[tokio::test]
async fn a_flipped_bit_in_the_note_of_a_stop_loses_no_record() {
    let (bench, _) = ten().await;
    let note = bench.state().join("stopped");
    let sound = fs::read(&note).unwrap();
    let digits = (0..sound.len()).filter(|at| sound[*at].is_ascii_digit());
    for at in digits {
        let mut bytes = sound.clone();
        bytes[at] ^= 1;
        fs::write(&note, bytes).unwrap();
        let said = verify(&bench.state()).unwrap();
        assert!(said.ok, "byte {at}: {said:?}");
    }

    fs::write(&note, "90").unwrap();
    bench.open().close().await;

    let after = verify(&bench.state()).unwrap();
    assert!(after.ok, "{after:?}");
}

#[tokio::test]
async fn when_nothing_shows_how_far_the_journal_reached_that_is_reported() {
    let (bench, lines) = ten().await;
    fs::write(bench.segment(1), lines[..=15].concat()).unwrap();
    forget_index(&bench);
    for remembers in ["stopped", "usage"] {
        fs::remove_file(bench.state().join(remembers)).unwrap();
    }
    fs::write(bench.state().join("journal/mark"), "?").unwrap();

    let before = verify(&bench.state()).unwrap();
    let ledger = bench.open();
    let totals = ledger.totals();
    ledger.close().await;
    let after = verify(&bench.state()).unwrap();
    let note = bench.state().join("quarantine").join(&after.lost[0]);
    fs::remove_file(note).unwrap();

    let unknown = [(DamageKind::UnknownEnd, Some(16), None)];
    assert_eq!(named(&before), unknown);
    assert_eq!(named(&after), unknown);
    assert!(!before.ok && !after.ok);
    assert_eq!(in_doubt_now(&totals, InDoubt::Damaged), 1);
    assert!(verify(&bench.state()).unwrap().ok, "the loss is accepted");
}

#[tokio::test]
async fn an_entry_whose_end_is_damaged_is_in_doubt_for_that_and_a_later_one_for_the_crash() {
    let (bench, mut lines) = ten().await;
    lines[10][40] ^= 1;
    fs::write(bench.segment(1), lines.concat()).unwrap();
    let ledger = bench.open();
    let first = ledger.totals();
    kill_after_next(&ledger);
    begin(&ledger, Some("late")).await;
    drop(ledger);

    let second = bench.open();
    let totals = second.totals();

    assert_eq!(in_doubt_now(&first, InDoubt::Damaged), 1);
    assert_eq!(first.billed().get(), 55 - 5);
    assert_eq!(in_doubt_now(&totals, InDoubt::Damaged), 1);
    assert_eq!(in_doubt_now(&totals, InDoubt::Crash), 1);
    assert_eq!(totals.requests(), 11);
}

#[tokio::test]
async fn a_segment_that_is_gone_is_named_be_it_the_first_or_the_last_but_an_empty_one() {
    for gone in ["first", "last"] {
        let bench = Bench::new();
        let options = LedgerOptions {
            segment_bytes_max: 3_000,
            ..bench.options()
        };
        let ledger = crate::ledger::Ledger::open(options).unwrap();
        for amount in 1..=12 {
            buy(&ledger, None, billed(amount)).await;
        }
        ledger.close().await;
        let count = fs::read_dir(bench.state().join("journal")).unwrap().count() - 1;
        let last = u32::try_from(count).unwrap();
        assert!(last >= 3);
        if gone == "first" {
            fs::remove_file(bench.segment(1)).unwrap();
        } else {
            let bytes = fs::read(bench.segment(last)).unwrap();
            let header = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            fs::write(bench.segment(last), &bytes[..=header]).unwrap();
            fs::remove_file(bench.segment(last - 1)).unwrap();
        }
        forget_index(&bench);

        let said = verify(&bench.state()).unwrap();
        let ledger = bench.open();
        buy(&ledger, None, billed(1_000)).await;
        ledger.close().await;
        let after = verify(&bench.state()).unwrap();

        assert!(!said.ok && !after.ok, "{gone}");
        let range = &said.damage[0];
        match gone {
            "first" => assert_eq!(range.first_seq, Some(1)),
            _ => assert_eq!(range.last_seq, Some(24), "{said:?}"),
        }
        assert_eq!(after.damage[0].first_seq, range.first_seq, "{gone}");
        assert!(after.journal.last_seq >= Some(26), "{gone}");
    }
}

#[tokio::test]
async fn a_lookup_finds_lines_that_were_moved_and_never_shows_another_entrys() {
    let (bench, mut lines) = ten().await;
    let line = lines.remove(5);
    lines.push(line);
    fs::write(bench.segment(1), lines.concat()).unwrap();

    let _ledger = bench.open();

    for amount in 1..=10u64 {
        let found = find(&bench.state(), &format!("k{amount}")).unwrap().entries;
        assert_eq!(found.len(), 1, "{amount}");
        let billed = found[0].billed_micro_usd.unwrap();
        assert_eq!(billed.get(), amount);
        assert!(found[0].model.is_some(), "{amount}");
    }
}

#[tokio::test]
async fn a_last_record_without_its_newline_is_listed_by_readers() {
    for ending in [&b""[..], b"\x0b"] {
        for limit in [None, Some(3)] {
            let (bench, lines) = ten().await;
            let bytes = lines.concat();
            let cut = [&bytes[..bytes.len() - 1], ending].concat();
            fs::write(bench.segment(1), cut).unwrap();
            let filter = Filter {
                limit,
                ..Filter::default()
            };

            let listed = entries(&bench.state(), &filter).unwrap();

            let last = listed.last().unwrap();
            assert_eq!(last.billed_micro_usd.unwrap().get(), 10, "{ending:?}");
            assert!(verify(&bench.state()).unwrap().ok);
        }
    }
}
