use super::*;
use crate::ledger::state_dir::Directory;

fn token(number: usize) -> TokenHash {
    TokenHash::of(format!("the token {number}").as_bytes())
}

fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn directory(folder: &tempfile::TempDir) -> Directory {
    Directory::open_or_create(&folder.path().join("state")).unwrap()
}

#[test]
fn only_the_runs_of_before_are_waited_for_and_for_some_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    let before = Awaited::default();
    before.write(&directory, &[token(1), token(2)]).unwrap();

    let awaited = Awaited::read(&directory);
    assert!(
        !awaited.holds(token(1), at(0)),
        "no token is awaited before the start"
    );
    awaited.start(at(100));

    for (number, seconds, wanted) in [
        (1, 100, true),
        (2, 109, true),
        (3, 100, false),
        (1, 110, false),
        (1, 1_000, false),
    ] {
        let is_awaited = awaited.holds(token(number), at(seconds));
        assert_eq!(is_awaited, wanted, "{number} at {seconds} s");
    }
    awaited.settle(token(1));
    assert!(!awaited.holds(token(1), at(100)), "it is there");
    assert!(awaited.holds(token(2), at(100)));
}

#[test]
fn a_second_restart_also_finds_the_runs_that_were_still_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    Awaited::default()
        .write(&directory, &[token(1), token(2)])
        .unwrap();
    let awaited = Awaited::read(&directory);
    awaited.start(at(100));
    awaited.expect(token(1), at(101));
    awaited.settle(token(1));
    awaited.write(&directory, &[token(1)]).unwrap();

    let again = Awaited::read(&directory);
    again.start(at(105));
    assert!(again.holds(token(1), at(105)) && again.holds(token(2), at(105)));

    // A run that did not come in time is forgotten with the next one.
    again.expect(token(3), at(200));
    again.write(&directory, &[]).unwrap();
    let last = Awaited::read(&directory);
    last.start(at(300));
    assert!(last.holds(token(3), at(300)));
    assert!(!last.holds(token(2), at(300)));
}

#[test]
fn a_run_that_is_taken_up_slowly_is_waited_for_longer() {
    let awaited = Awaited::default();
    awaited.expect(token(1), at(100));
    assert!(awaited.holds(token(1), at(159)));
    assert!(!awaited.holds(token(1), at(160)));
}

#[test]
fn the_list_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    let awaited = Awaited::default();
    for number in 0..1_000 {
        awaited.expect(token(number), at(100));
        awaited.holds_orphan(token(number), at(100));
    }
    assert_eq!(awaited.missing.lock().len(), TOKENS_MAX);
    assert_eq!(awaited.orphans.lock().len(), TOKENS_MAX);
    let many: Vec<TokenHash> = (0..1_000).map(token).collect();
    awaited.write(&directory, &many).unwrap();
    assert_eq!(Awaited::read(&directory).missing.lock().len(), TOKENS_MAX);
}

#[test]
fn a_run_outlives_its_app_for_a_moment_after_it_is_missed() {
    let awaited = Awaited::default();
    assert!(awaited.holds_orphan(token(1), at(100)));
    assert!(awaited.holds_orphan(token(1), at(101)));
    assert!(!awaited.holds_orphan(token(1), at(102)));
    awaited.has_app(token(1));
    assert!(
        awaited.holds_orphan(token(1), at(200)),
        "it goes a second time"
    );
}

#[test]
fn a_file_that_is_no_list_costs_the_wait_alone_and_holds_no_token() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let directory = directory(&folder);
    Awaited::default().write(&directory, &[token(1)]).unwrap();
    let path = directory.path().join(FILE);
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains("the token"), "{text}");
    for text in [
        "",
        "{",
        "[]",
        r#"{"format":2,"tokens_blake3":[]}"#,
        r#"{"format":1,"tokens_blake3":["x"]}"#,
    ] {
        std::fs::write(&path, text).unwrap();
        assert!(
            Awaited::read(&directory).missing.lock().is_empty(),
            "{text}"
        );
    }
}
