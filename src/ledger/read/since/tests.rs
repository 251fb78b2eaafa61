//! Lines behind a number.

use std::time::Duration;

use super::{GapWhy, Place, Shelved, Since, last_seq, lines_since};
use crate::ledger::fixtures::{Bench, billed, buy};
use crate::ledger::{Ledger, LedgerOptions, compact};

fn these(bench: &Bench, after: u64, lines_max: usize) -> Vec<Shelved> {
    match lines_since(&bench.state(), &mut Place::at(after), lines_max).expect("the journal") {
        Since::These(lines) => lines,
        Since::Compacted => panic!("nothing was compacted"),
    }
}

fn seqs(lines: &[Shelved]) -> Vec<u64> {
    lines.iter().map(Shelved::last_seq).collect()
}

#[tokio::test]
async fn each_number_is_in_one_answer_whatever_the_size_of_a_batch() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..20 {
        buy(&ledger, None, billed(5)).await;
    }
    assert_eq!(last_seq(&bench.state()).expect("a number"), 40);
    for lines_max in [1, 7, 500] {
        let mut after = 0;
        let mut all = Vec::new();
        loop {
            let lines = these(&bench, after, lines_max);
            assert!(lines.len() <= lines_max);
            let Some(last) = lines.last() else { break };
            after = last.last_seq();
            all.extend(lines);
        }
        assert_eq!(seqs(&all), (1..=40).collect::<Vec<_>>(), "{lines_max}");
    }
}

#[tokio::test]
async fn numbers_without_lines_are_a_range_and_lines_in_another_order_are_none() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..3 {
        buy(&ledger, None, billed(5)).await;
    }
    ledger.close().await;
    let path = bench.segment(1);
    let text = std::fs::read_to_string(&path).expect("a journal");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let [header, one, two, three, four, five, six] = lines[..] else {
        panic!("{} lines", lines.len());
    };
    std::fs::write(&path, [header, one, four, two, three, five, six].concat()).expect("written");
    assert_eq!(seqs(&these(&bench, 0, 500)), [1, 2, 3, 4, 5, 6]);
    std::fs::write(&path, [header, one, four, five, six].concat()).expect("written");
    let found = these(&bench, 0, 500);
    assert_eq!(seqs(&found), [1, 3, 4, 5, 6]);
    let gap = Shelved::Gap {
        first_seq: 2,
        last_seq: 3,
        why: GapWhy::Lost,
    };
    assert_eq!(found[1], gap);
}

#[tokio::test]
async fn a_range_that_is_lost_makes_no_answer_longer_than_it_may_be() {
    let bench = Bench::new();
    let ledger = bench.open();
    for _ in 0..3 {
        buy(&ledger, None, billed(5)).await;
    }
    ledger.close().await;
    let path = bench.segment(1);
    let text = std::fs::read_to_string(&path).expect("a journal");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let kept = [&lines[..2], &lines[4..]].concat();
    std::fs::write(&path, kept.concat()).expect("written");
    let cases: [(usize, &[&[u64]]); 3] = [
        (1, &[&[1], &[3], &[4], &[5], &[6]]),
        (2, &[&[1, 3], &[4, 5], &[6]]),
        (3, &[&[1, 3, 4], &[5, 6]]),
    ];
    for (lines_max, answers) in cases {
        let mut after = 0;
        for answer in answers {
            let found = seqs(&these(&bench, after, lines_max));
            assert_eq!(found, *answer, "{lines_max} behind {after}");
            after = found.last().copied().expect("a number");
        }
        assert!(these(&bench, after, lines_max).is_empty());
    }
}

/// The header of the sums says which numbers were compacted. The numbers behind those are the sums' own.
#[tokio::test]
async fn numbers_of_sums_that_are_gone_are_lost_and_those_before_the_sums_were_compacted() {
    let bench = Bench::new();
    let options = || LedgerOptions {
        segment_bytes_max: 4_000,
        ..bench.options()
    };
    let ledger = Ledger::open(options()).expect("a ledger");
    for _ in 0..30 {
        buy(&ledger, None, billed(5)).await;
        bench.clock.advance(Duration::from_secs(4 * 3600));
    }
    ledger.close().await;
    compact(options(), Duration::from_secs(2 * 24 * 3600)).expect("it can be");
    let whole = these(&bench, 0, 500);
    let gap = |first_seq, last_seq, why| Shelved::Gap {
        first_seq,
        last_seq,
        why,
    };
    let before = whole[0].last_seq();
    assert_eq!(whole[0], gap(1, before, GapWhy::Compacted));

    let path = bench.segment(0);
    let text = std::fs::read_to_string(&path).expect("sums");
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    assert!(lines.len() > 4, "a header and sums: {}", lines.len());
    for gone in [2, lines.len() - 1] {
        let kept = [lines[..1].concat(), lines[1 + gone..].concat()];
        std::fs::write(&path, kept.concat()).expect("written");
        let found = these(&bench, 0, 500);
        let last = before + u64::try_from(gone).expect("a count");
        assert_eq!(
            found[..2],
            [
                gap(1, before, GapWhy::Compacted),
                gap(before + 1, last, GapWhy::Lost)
            ]
        );
        assert_eq!(found[2..], whole[1 + gone..]);
    }
}
