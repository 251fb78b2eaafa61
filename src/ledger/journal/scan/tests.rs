//! Damage: what is cut, flipped, lost or swapped is reported, and nothing else is lost with it.

use std::fs;
use std::path::Path;

use super::scan;
use crate::ledger::entry::AttemptEnd;
use crate::ledger::fixtures::{Bench, begin, billed, buy, ended, kill_after_next};
use crate::ledger::journal::high_water::HighWater;
use crate::ledger::journal::report::{Gap, ScanReport};
use crate::ledger::journal::segments::segments;
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::query::verify;
use crate::ledger::{Durability, Ledger, LedgerOptions};

fn read(state: &Path) -> (ScanReport, Vec<u64>) {
    let journal = Directory::open_to_read(&state.join("journal")).unwrap();
    let all = segments(&journal, None).unwrap();
    let mut seen = Vec::new();
    let report = scan(&journal, &all, &mut |seq, _, _| seen.push(seq)).unwrap();
    (report, seen)
}

/// Room is made where records are synced.
fn durable(bench: &Bench) -> LedgerOptions {
    LedgerOptions {
        durability: Durability::Power,
        ..bench.options()
    }
}

/// Six records in one segment: header, then numbers 1 to 6.
async fn six_records() -> (Bench, Vec<u8>) {
    let bench = Bench::new();
    let ledger = bench.open();
    for amount in 1..=3 {
        buy(&ledger, Some(&format!("k{amount}")), billed(amount)).await;
    }
    ledger.close().await;
    let bytes = fs::read(bench.segment(1)).unwrap();
    (bench, bytes)
}

/// Where each line begins, and where the file ends.
fn starts(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    std::iter::once(0)
        .chain(ends.map(|(index, _)| index + 1))
        .collect()
}

#[tokio::test]
async fn a_tail_torn_at_any_byte_of_the_last_three_records_is_dropped_and_nothing_before_it() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);

    for cut in starts[4]..bytes.len() {
        fs::write(bench.segment(1), &bytes[..cut]).unwrap();

        let (report, seen) = read(&bench.state());

        // A record whose newline alone is missing is whole.
        let at_newline = starts.contains(&(cut + 1));
        let begun = starts.iter().filter(|start| **start <= cut).count() - 1;
        let whole = begun + usize::from(at_newline);
        let expected: Vec<u64> = (1..u64::try_from(whole).unwrap()).collect();
        assert_eq!(seen, expected, "cut at {cut}");
        assert_eq!(
            report.torn_tail.is_some(),
            !starts.contains(&cut) && !at_newline,
            "cut at {cut}"
        );
        assert_eq!((report.bad_count, report.gap_count), (0, 0), "cut at {cut}");
        assert_eq!(report.next_seq, u64::try_from(whole).unwrap());
    }
}

#[tokio::test]
async fn the_ledger_opens_after_a_torn_tail_and_goes_on_where_it_ended() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);

    let journal = Directory::open_to_read(&bench.state().join("journal")).unwrap();

    for cut in (starts[4]..bytes.len()).step_by(97) {
        let _ = fs::remove_dir_all(bench.state().join("index"));
        for remembers in ["stopped", "usage"] {
            let _ = fs::remove_file(bench.state().join(remembers));
        }
        fs::write(bench.segment(1), &bytes[..cut]).unwrap();
        // What was being written when the process died was not known to anybody.
        HighWater::write(&journal, 3).unwrap();
        let ledger = bench.open();
        buy(&ledger, None, billed(1_000)).await;
        ledger.close().await;

        let report = verify(&bench.state()).unwrap();

        assert!(report.ok, "cut at {cut}: {report:?}");
        assert!(report.billed_micro_usd.get() >= 1_001, "cut at {cut}");
    }
}

#[tokio::test]
async fn any_flipped_byte_is_reported_with_its_neighbours_and_costs_one_record() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);
    let third = starts[3]..starts[4] - 1;

    for index in third.clone().step_by(13) {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x01;
        fs::write(bench.segment(1), &damaged).unwrap();

        let (report, seen) = read(&bench.state());

        assert_eq!(seen, [1, 2, 4, 5, 6]);
        assert_eq!(report.bad_count, 1);
        let range = &report.bad[0];
        assert_eq!((range.after_seq, range.before_seq), (Some(2), Some(4)));
        assert_eq!(usize::try_from(range.offset).unwrap(), third.start);
        assert_eq!(usize::try_from(range.bytes).unwrap(), third.len() + 1);
        assert_eq!((report.gap_count, report.torn_tail), (0, None));
    }
}

#[tokio::test]
async fn a_bad_record_is_quarantined_and_the_sums_say_that_they_lack_it() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);
    let mut damaged = bytes.clone();
    damaged[starts[4] + 20] ^= 0x01;
    fs::write(bench.segment(1), &damaged).unwrap();
    fs::remove_dir_all(bench.state().join("index")).unwrap();

    let ledger = bench.open();
    let health = ledger.health();
    let billed_now = ledger.totals().billed().get();
    ledger.close().await;
    let report = verify(&bench.state()).unwrap();

    let quarantine = bench.state().join("quarantine");
    let kept = fs::read_dir(quarantine).unwrap().next().unwrap().unwrap();
    assert_eq!(
        fs::read(kept.path()).unwrap(),
        damaged[starts[4]..starts[5]]
    );
    assert_eq!(health.quarantined, 1);
    // The second outcome is lost, so its entry was found open.
    assert_eq!(billed_now, 1 + 3);
    assert!(!report.ok);
    assert_eq!(report.journal.bad[0].after_seq, Some(3));
    assert_eq!(report.journal.bad[0].before_seq, Some(5));
}

#[tokio::test]
async fn a_last_record_without_its_newline_is_kept_and_the_next_begins_a_line() {
    for ending in [&b""[..], b"\x0b", b"\x8a"] {
        let (bench, bytes) = six_records().await;
        let damaged = [&bytes[..bytes.len() - 1], ending].concat();
        fs::write(bench.segment(1), &damaged).unwrap();

        let (report, seen) = read(&bench.state());
        let ledger = bench.open();
        let before = ledger.totals().billed().get();
        buy(&ledger, None, billed(1_000)).await;
        ledger.close().await;

        assert_eq!(seen, [1, 2, 3, 4, 5, 6], "{ending:?}");
        assert_eq!((report.bad_count, report.gap_count), (0, 0));
        let odd = report.torn_tail.map_or(0, |torn| torn.bytes);
        assert_eq!(odd, u64::try_from(ending.len()).unwrap());
        assert_eq!(before, 1 + 2 + 3, "{ending:?}");
        let now = fs::read(bench.segment(1)).unwrap();
        assert_eq!(now[..bytes.len()], bytes);
        let (_, seen) = read(&bench.state());
        assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7, 8], "{ending:?}");
        assert!(verify(&bench.state()).unwrap().ok, "{ending:?}");
    }
}

#[tokio::test]
async fn a_whole_last_line_that_is_damaged_is_no_torn_tail() {
    let (bench, bytes) = six_records().await;
    let mut damaged = bytes.clone();
    let last = damaged.len() - 30;
    damaged[last] ^= 0x01;
    fs::write(bench.segment(1), &damaged).unwrap();
    fs::remove_dir_all(bench.state().join("index")).unwrap();

    let ledger = bench.open();
    buy(&ledger, None, billed(9)).await;
    ledger.close().await;
    let (report, seen) = read(&bench.state());

    // Number 6 stays with the damaged line; 7 ends the entry that lost its outcome.
    assert_eq!(seen, [1, 2, 3, 4, 5, 7, 8, 9]);
    assert_eq!(report.bad[0].before_seq, Some(7));
    assert!(!verify(&bench.state()).unwrap().ok);
}

#[tokio::test]
async fn lost_and_swapped_records_are_gaps() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);
    let line = |index: usize| &bytes[starts[index]..starts[index + 1]];
    let file = |order: &[usize]| {
        order
            .iter()
            .flat_map(|index| line(*index).to_vec())
            .collect()
    };
    let cases: [(&str, Vec<u8>); 3] = [
        ("lost", file(&[0, 1, 2, 4, 5, 6])),
        ("swapped", file(&[0, 1, 2, 4, 3, 5, 6])),
        ("twice", file(&[0, 1, 2, 2, 3, 4, 5, 6])),
    ];

    for (what, damaged) in cases {
        fs::write(bench.segment(1), &damaged).unwrap();

        let (report, seen) = read(&bench.state());

        let once: Vec<u64> = (1..=6).filter(|seq| what != "lost" || *seq != 3).collect();
        assert_eq!(seen, once, "{what}");
        assert!(report.gap_count + report.misplaced_count > 0, "{what}");
        let lost = report.missing_records;
        assert_eq!(lost, u64::from(what == "lost"), "{what}");
        assert!(!verify(&bench.state()).unwrap().ok, "{what}");
        if what == "lost" {
            assert_eq!(
                report.gaps,
                [Gap {
                    after_seq: 2,
                    before_seq: 4
                }]
            );
        }
    }
}

#[tokio::test]
async fn a_damaged_header_costs_no_record() {
    let (bench, mut bytes) = six_records().await;
    bytes[5] ^= 0x01;
    fs::write(bench.segment(1), &bytes).unwrap();

    let (report, seen) = read(&bench.state());

    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    assert_eq!(
        (report.bad_count, report.gap_count, report.next_seq),
        (1, 0, 7)
    );
}

#[tokio::test]
async fn random_bytes_never_panic_and_never_pass_for_a_ledger() {
    let (bench, bytes) = six_records().await;
    let mut state = 1u64;
    for round in 0..200 {
        let mut damaged = bytes.clone();
        for _ in 0..=round % 5 {
            // A plain generator: the same damage in each run.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = usize::try_from(state >> 33).unwrap() % damaged.len();
            match state % 3 {
                0 => damaged[at] ^= 1 << (state % 8),
                1 => damaged.truncate(at.max(1)),
                _ => damaged.insert(at, b'\n'),
            }
        }
        fs::write(bench.segment(1), &damaged).unwrap();
        let _ = fs::remove_dir_all(bench.state().join("index"));

        let (report, seen) = read(&bench.state());
        let ledger = bench.open();
        ledger.close().await;

        let lost = seen.len() < 6;
        let is_reported = report.bad_count + report.gap_count > 0 || report.torn_tail.is_some();
        // A cut at the end of a line is the one thing a reader cannot see.
        let cut_between_lines = damaged.last() == Some(&b'\n') && damaged.len() < bytes.len();
        assert!(!lost || is_reported || cut_between_lines, "round {round}");
    }
}

#[tokio::test]
async fn a_ledger_beside_this_one_is_refused() {
    let (bench, _) = six_records().await;
    let other = Bench::new();
    let ledger = other.open();
    let id = begin(&ledger, None).await;
    ledger
        .settle(ended(id, AttemptEnd::Answered, billed(1)))
        .await
        .unwrap();
    ledger.close().await;
    fs::copy(other.segment(1), bench.segment(2)).unwrap();

    let error = bench.try_open().err().unwrap();

    assert!(
        error.to_string().contains("was not written by this ledger"),
        "{error}"
    );
}

#[tokio::test]
async fn behind_room_a_tail_is_what_it_is_without_it() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);

    for cut in starts[4]..=bytes.len() {
        fs::write(bench.segment(1), &bytes[..cut]).unwrap();
        let (alone, seen_alone) = read(&bench.state());
        // Of more than one block, too.
        for room in [2, 700, if cut % 97 == 0 { 200_000 } else { 3 }] {
            fs::write(
                bench.segment(1),
                [&bytes[..cut], &vec![b'\n'; room]].concat(),
            )
            .unwrap();

            let (report, seen) = read(&bench.state());

            assert_eq!(seen, seen_alone, "cut at {cut}, {room} bytes of room");
            assert_eq!((report.bad_count, report.gap_count), (0, 0), "cut at {cut}");
            assert_eq!(report.torn_tail, alone.torn_tail, "cut at {cut}");
            assert_eq!(report.next_seq, alone.next_seq, "cut at {cut}");
            // The room has the newline that the record lacks.
            assert!(!report.lacks_newline, "cut at {cut}");
        }
    }
}

#[tokio::test]
async fn room_that_was_not_overwritten_is_reported_and_counts_as_no_record() {
    let (bench, bytes) = six_records().await;
    let starts = starts(&bytes);
    let room = [b'\n'; 512];
    let parts = [&bytes[..starts[5]], &room, &bytes[starts[6]..]];
    fs::write(bench.segment(1), parts.concat()).unwrap();

    let (report, seen) = read(&bench.state());

    assert_eq!(seen, [1, 2, 3, 4, 6]);
    assert_eq!(report.bad_count, 1);
    assert_eq!(report.next_seq, 7);
}

/// A page of the last write may be on the disk, and the one before it not.
#[tokio::test]
async fn a_torn_line_behind_room_that_was_not_overwritten_is_cut_off_with_it() {
    let (bench, bytes) = six_records().await;
    let start = starts(&bytes)[5];
    let (room, more) = ([b'\n'; 512], [b'\n'; 700]);
    let parts: [&[u8]; 4] = [&bytes[..start], &room, b"garbage", &more];
    fs::write(bench.segment(1), parts.concat()).unwrap();

    let (report, seen) = read(&bench.state());

    assert_eq!(seen, [1, 2, 3, 4]);
    assert_eq!((report.bad_count, report.gap_count), (0, 0));
    assert_eq!(report.next_seq, 5);
    assert_eq!(report.last_segment_bytes, start as u64);
}

#[tokio::test]
async fn a_kill_leaves_room_that_the_next_start_cuts_off_and_an_orderly_stop_leaves_none() {
    let bench = Bench::new();
    let ends_in_room = || fs::read(bench.segment(1)).unwrap().ends_with(b"\n\n");
    let open = || Ledger::open(durable(&bench)).unwrap();
    let ledger = open();
    buy(&ledger, Some("k1"), billed(1)).await;
    assert!(ends_in_room());
    assert!(verify(&bench.state()).unwrap().ok);
    kill_after_next(&ledger);
    begin(&ledger, Some("k2")).await;
    drop(ledger);
    assert!(ends_in_room());
    assert!(verify(&bench.state()).unwrap().ok);

    let ledger = open();
    buy(&ledger, Some("k3"), billed(2)).await;
    ledger.close().await;

    assert!(!ends_in_room());
    let report = verify(&bench.state()).unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!(report.billed_micro_usd.get(), 3);
}

#[tokio::test]
async fn a_full_segment_ends_with_its_last_line() {
    let bench = Bench::new();
    let ledger = Ledger::open(LedgerOptions {
        segment_bytes_max: 2_000,
        ..durable(&bench)
    });
    let ledger = ledger.unwrap();
    while !bench.segment(2).exists() {
        buy(&ledger, None, billed(1)).await;
    }
    let first = fs::read(bench.segment(1)).unwrap();

    assert!(first.ends_with(b"}\n"));
    ledger.close().await;
    assert!(verify(&bench.state()).unwrap().ok);
}
