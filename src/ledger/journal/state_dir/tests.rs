use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::ledger::LedgerError;
use crate::ledger::fixtures::{Bench, billed, buy};

fn mode(path: &std::path::Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn directories_are_0700_and_files_0600() {
    let bench = Bench::new();
    let ledger = bench.open();
    buy(&ledger, None, billed(1)).await;
    ledger.close().await;

    let mut files = 0;
    let mut directories = vec![bench.state()];
    while let Some(directory) = directories.pop() {
        assert_eq!(mode(&directory), 0o700, "{}", directory.display());
        // What is in the index is sled's own; no other user gets through its directory.
        if directory.ends_with("index") {
            continue;
        }
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                assert_eq!(mode(&path), 0o600, "{}", path.display());
                files += 1;
            }
        }
    }
    assert!(files >= 4, "lock, identity, reserve, a segment");
}

#[test]
fn a_directory_that_others_may_enter_is_refused_with_the_command_that_helps() {
    let bench = Bench::new();
    fs::create_dir(bench.state()).unwrap();
    fs::set_permissions(bench.state(), Permissions::from_mode(0o750)).unwrap();

    let error = bench.try_open().err().unwrap();

    assert!(matches!(error, LedgerError::UnsafeDir { .. }));
    assert!(error.to_string().contains("run: chmod 700 "), "{error}");
}

#[test]
fn a_link_is_refused_as_directory_and_as_file() {
    let bench = Bench::new();
    let real = bench.root.path().join("real");
    fs::create_dir(&real).unwrap();
    fs::set_permissions(&real, Permissions::from_mode(0o700)).unwrap();
    symlink(&real, bench.state()).unwrap();

    let as_directory = bench.try_open().err().unwrap();
    fs::remove_file(bench.state()).unwrap();
    drop(bench.open());
    let secret = bench.root.path().join("secret");
    fs::rename(bench.segment(1), &secret).unwrap();
    symlink(&secret, bench.segment(1)).unwrap();
    let as_file = bench.try_open().err().unwrap();

    assert!(
        matches!(as_directory, LedgerError::UnsafeDir { .. }),
        "{as_directory}"
    );
    assert!(matches!(as_file, LedgerError::Io { .. }), "{as_file}");
}

#[test]
fn a_lost_identity_is_restored_from_the_journal_and_a_damaged_one_is_not_overwritten() {
    let bench = Bench::new();
    drop(bench.open());
    let identity = bench.state().join("identity.json");
    let before = fs::read_to_string(&identity).unwrap();

    fs::remove_file(&identity).unwrap();
    drop(bench.open());
    let after = fs::read_to_string(&identity).unwrap();
    fs::write(&identity, "{").unwrap();
    let damaged = bench.try_open().err().unwrap();

    let ledger =
        |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap()["ledger"].clone();
    assert_eq!(ledger(&before), ledger(&after));
    assert!(
        matches!(damaged, LedgerError::ForeignFormat { .. }),
        "{damaged}"
    );
    assert_eq!(fs::read_to_string(&identity).unwrap(), "{");
}

#[test]
fn an_error_is_one_line() {
    let bench = Bench::new();
    let first = bench.open();

    let error = bench.try_open().err().unwrap().to_string();
    drop(first);

    assert!(
        !error.contains('\n') && error.contains("stop that daemon"),
        "{error}"
    );
}
