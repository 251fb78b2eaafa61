use std::io::Write;

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn begun(path: &Path, text: &str) -> WholeFile {
    let whole = WholeFile::create(path).expect("a file");
    whole.file().write_all(text.as_bytes()).expect("written");
    whole
}

/// What a process leaves that is killed between its write and its rename.
fn kill(mut whole: WholeFile) {
    whole.is_kept = true;
}

#[test]
fn what_a_kill_left_is_gone_after_the_next_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api-key");
    std::fs::write(&path, "old").expect("a file");
    for number in 0..3 {
        kill(begun(&path, &format!("left {number}")));
        assert_eq!(names(folder.path()), ["api-key", "api-key.bursar-next"]);
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), "old");
    }
    begun(&path, "new").keep().expect("kept");
    assert_eq!(names(folder.path()), ["api-key"]);
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "new");
    kill(begun(&path, "left"));
    drop(begun(&path, "given up"));
    assert_eq!(names(folder.path()), ["api-key"]);
}

#[test]
fn of_two_at_a_time_one_is_refused_and_the_other_is_whole() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api-key");
    let first = begun(&path, "first");
    let refused = WholeFile::create(&path).err().expect("refused").to_string();
    assert!(
        refused.contains("another bursar is writing it"),
        "{refused}"
    );
    first.keep().expect("kept");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "first");
    begun(&path, "second").keep().expect("kept");
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "second");
}

#[test]
fn a_link_or_a_directory_in_the_way_is_not_written_to() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("api-key");
    let (next, other) = (
        folder.path().join("api-key.bursar-next"),
        folder.path().join("other"),
    );
    std::fs::write(&other, "untouched").expect("a file");
    std::os::unix::fs::symlink(&other, &next).expect("a link");
    assert!(WholeFile::create(&path).is_err());
    std::fs::remove_file(&next).expect("gone");
    std::fs::create_dir(&next).expect("a directory");
    assert!(WholeFile::create(&path).is_err());
    assert_eq!(
        std::fs::read_to_string(&other).expect("a file"),
        "untouched"
    );
}
