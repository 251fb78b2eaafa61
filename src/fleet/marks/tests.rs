//! Marks, and the file that they are in.

use std::collections::BTreeMap;

use super::{DENSE, FILE, Marks, SLACK, line, parsed, thinned};
use crate::fleet::chain::Chain;
use crate::ledger::state_dir::Directory;

#[test]
fn a_line_of_the_file_is_taken_whole_or_not_at_all() {
    let mark = line(7, &[0xab; 32]);
    assert_eq!(parsed(mark.trim_end()), Some((7, [0xab; 32])));
    let earlier = mark.rsplit_once(' ').expect("a checksum").0;
    assert_eq!(parsed(earlier), Some((7, [0xab; 32])));
    for damaged in [
        mark.replacen('b', "c", 1),
        mark.replacen('7', "8", 1),
        mark[..mark.len() - 2].to_owned(),
        String::new(),
    ] {
        assert_eq!(parsed(damaged.trim_end_matches('\n')), None, "{damaged}");
    }
}

#[test]
fn from_each_mark_that_stays_to_the_next_there_is_one_read_of_the_journal() {
    let known: BTreeMap<u64, [u8; 32]> = (1..1_000).map(|at| (at * 7, [0; 32])).collect();
    let kept: Vec<u64> = thinned(&known, 10, 50).into_keys().collect();
    let mut before = 0;
    for seq in &kept {
        assert!(seq - before <= 50, "{before} to {seq}");
        before = *seq;
    }
    assert_eq!(before, 999 * 7, "the last one stays");
    assert!(kept.len() < 999 / 6, "{}", kept.len());
    let newest: Vec<u64> = (990..1_000).map(|at| at * 7).collect();
    assert!(kept.ends_with(&newest));
    // What was shipped at once is not divided.
    let wide = BTreeMap::from([(9, [0; 32]), (900, [1; 32]), (901, [2; 32])]);
    assert_eq!(thinned(&wide, 1, 50), wide);
}

#[test]
fn the_file_of_a_busy_machine_does_not_grow_for_ever() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = Directory::open_or_create(&directory.path().join("state")).expect("a directory");
    let chain = Chain::from_bytes(vec![5; 32]).expect("a hash");
    let lines = |state: &Directory| {
        let text = state.read(FILE).expect("it is read").expect("it is there");
        text.lines().count()
    };
    let mut marks = Marks::read(&state, u64::MAX).expect("marks");
    let count = u64::try_from(DENSE + 2 * SLACK).expect("a count");
    for seq in 1..=count {
        marks.add(seq, &chain).expect("it is written");
    }
    assert!(marks.are_many());
    let marks = Marks::read(&state, u64::MAX).expect("marks");
    assert!(!marks.are_many() && lines(&state) <= DENSE + SLACK);
    assert_eq!(marks.last_seq(), count);
    assert_eq!(marks.before(count - 5).0, count - 5);
}
