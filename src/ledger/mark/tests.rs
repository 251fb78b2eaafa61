use std::fs;

use super::{Mark, NAME};
use crate::ledger::state_dir::Directory;

#[test]
fn a_mark_says_what_was_written_and_any_other_byte_is_damage() {
    let root = tempfile::tempdir().unwrap();
    let journal = Directory::open_to_read(root.path()).unwrap();

    let absent = Mark::read(&journal).unwrap();
    Mark::write(&journal, 4_711).unwrap();
    let written = Mark::read(&journal).unwrap();
    let path = root.path().join(NAME);
    let bytes = fs::read(&path).unwrap();

    assert_eq!((absent, written), (Mark::Absent, Mark::At(4_711)));
    for index in 0..bytes.len() - 1 {
        let mut damaged = bytes.clone();
        damaged[index] ^= 0x04;
        fs::write(&path, &damaged).unwrap();
        assert_eq!(Mark::read(&journal).unwrap(), Mark::Damaged, "byte {index}");
        fs::write(&path, &bytes[..index]).unwrap();
        assert_eq!(Mark::read(&journal).unwrap(), Mark::Damaged, "cut {index}");
    }
}
