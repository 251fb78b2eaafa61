use std::fs;

use super::{HighWater, HighWaterFile, NAME, line};
use crate::ledger::journal::state_dir::Directory;

#[test]
fn a_mark_says_what_was_written_and_any_other_byte_is_damage() {
    let root = tempfile::tempdir().unwrap();
    let journal = Directory::open_to_read(root.path()).unwrap();

    let absent = HighWater::read(&journal).unwrap();
    HighWater::write(&journal, 4_711).unwrap();
    let written = HighWater::read(&journal).unwrap();
    let path = root.path().join(NAME);
    // As an older bursar wrote it: one line.
    let bytes = line(4_711);
    fs::write(&path, &bytes).unwrap();
    let single = HighWater::read(&journal).unwrap();

    assert_eq!((absent, written), (HighWater::Absent, HighWater::At(4_711)));
    assert_eq!(single, HighWater::At(4_711));
    for index in 0..bytes.len() - 1 {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x04;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(
            HighWater::read(&journal).unwrap(),
            HighWater::Damaged,
            "byte {index}"
        );
        fs::write(&path, &bytes[..index]).unwrap();
        assert_eq!(
            HighWater::read(&journal).unwrap(),
            HighWater::Damaged,
            "cut {index}"
        );
    }
}

#[test]
fn a_note_that_is_torn_at_any_byte_leaves_the_mark_before_it() {
    let root = tempfile::tempdir().unwrap();
    let journal = Directory::open_to_read(root.path()).unwrap();
    let path = root.path().join(NAME);
    let mut marker = HighWaterFile::begin(&journal, 98).unwrap();

    for last_seq in [99, 100, u64::MAX] {
        let before = fs::read(&path).unwrap();
        let known = HighWater::read(&journal).unwrap();
        marker.note(last_seq).unwrap();
        let after = fs::read(&path).unwrap();

        assert_eq!(HighWater::read(&journal).unwrap(), HighWater::At(last_seq));
        assert_eq!(before.len(), after.len());
        let at = before.iter().zip(&after).position(|(old, new)| old != new);
        let end = before.iter().zip(&after).rposition(|(old, new)| old != new);
        for torn in at.unwrap() + 1..end.unwrap() {
            fs::write(&path, [&after[..torn], &before[torn..]].concat()).unwrap();
            assert_eq!(HighWater::read(&journal).unwrap(), known, "torn at {torn}");
            fs::write(&path, [&before[..torn], &after[torn..]].concat()).unwrap();
            assert_eq!(
                HighWater::read(&journal).unwrap(),
                known,
                "its end first, {torn}"
            );
        }
        fs::write(&path, &after).unwrap();
    }
}
