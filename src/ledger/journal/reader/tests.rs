use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::ledger::fixtures::START_MS;
use crate::ledger::fixtures::paper::{Paper, begins, id};

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// The lines of a file with their end, last first.
fn backward(bytes: &[u8], block_bytes: usize) -> Vec<Vec<u8>> {
    let end = u64::try_from(bytes.len()).unwrap();
    let mut backward = Backward::new(file(bytes), 0, end, block_bytes);
    let mut lines = Vec::new();
    while let Some(line) = backward.next_line().unwrap() {
        lines.push(line);
    }
    lines
}

proptest! {
    #[test]
    fn backward_gives_the_same_lines_as_forward(
        bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'a'), Just(b'b')], 0..60),
        block_bytes in 1..20usize,
    ) {
        let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        // What stands behind the last newline is torn.
        lines.pop();
        lines.reverse();

        prop_assert_eq!(backward(&bytes, block_bytes), lines);
    }
}

#[test]
fn a_line_longer_than_any_record_is_empty_and_is_not_held() {
    let long = vec![b'x'; LINE_BYTES_MAX + 1];
    let just = vec![b'y'; LINE_BYTES_MAX];
    let bytes = [&b"one\n"[..], &long, b"\n", &just, b"\ntwo\n", &long].concat();

    let lines = backward(&bytes, BLOCK_BYTES);

    let lengths: Vec<usize> = lines.iter().map(Vec::len).collect();
    assert_eq!(lengths, [3, LINE_BYTES_MAX, 0, 3]);
}

#[test]
fn what_was_cut_off_meanwhile_is_no_record() {
    let file = file(b"one\n");
    let mut backward = Backward::new(file, 0, 5_000, 64);

    while let Some(line) = backward.next_line().unwrap() {
        assert!(Line::decode(&line).is_none());
    }
}

#[test]
fn the_place_of_a_number_is_found_near_before_it_over_damage() {
    let mut paper = Paper::new(200_000);
    for number in 0..3_000 {
        let is_sound = number % 7 != 0;
        paper.write(&begins(id(number), START_MS, "notes"), is_sound);
    }
    paper.finish();
    let reader = JournalReader::open(&paper.state()).unwrap();
    assert!(reader.segments.len() > 3);

    for seq in (0..=paper.last_seq).step_by(97) {
        let place = reader.place_after(seq).unwrap();

        let mut forward = reader.forward(place);
        let mut passed = 0;
        while let Some((known, _)) = forward.next_record().unwrap() {
            if known > seq {
                assert!(known <= seq + 2, "{known} after {seq}");
                break;
            }
            passed += 1;
        }
        assert!(passed < 500, "{passed} before {seq}");
    }
}
