//! Lines behind a number.

use super::{GapWhy, Place, Shelved, Since, last_seq, lines_since};
use crate::ledger::fixtures::{Bench, billed, buy};

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
