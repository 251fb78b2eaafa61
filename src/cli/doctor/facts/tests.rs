use super::*;

#[test]
fn commits_are_the_sums_of_the_daemons_histogram() {
    let text = "# HELP bursar_journal_commit_seconds One group commit.\n\
                bursar_journal_commit_seconds_bucket{le=\"0.01\"} 4\n\
                bursar_journal_commit_seconds_sum 0.5\n\
                bursar_journal_commit_seconds_count 4\n";
    let wanted = Commits {
        count: 4,
        took: Duration::from_millis(500),
    };
    assert_eq!(commits_in(text), Some(wanted));
    assert_eq!(commits_in(""), None);
}

#[test]
fn each_state_directory_that_a_start_would_refuse_is_unsound() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let make = |name: &str, mode: u32| {
        std::fs::create_dir(at(name)).unwrap();
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(at(name), mode).unwrap();
    };
    make("sound", 0o700);
    make("open", 0o755);
    std::fs::write(at("file"), "").unwrap();
    std::os::unix::fs::symlink(at("sound"), at("link")).unwrap();
    let table = [
        ("sound", Ok(StateDirectory::Sound)),
        ("to/be/made", Ok(StateDirectory::ToBeMade)),
        ("open", Err("chmod 700")),
        ("file", Err("link or a file")),
        ("link", Err("link or a file")),
        ("file/below", Err("Not a directory")),
    ];
    for (name, wanted) in table {
        match (place(&at(name), false), wanted) {
            (StateDirectory::Unsound(why), Err(part)) => {
                assert!(why.contains(part), "{name}: {why}")
            }
            (found, Ok(wanted)) => assert_eq!(found, wanted, "{name}"),
            (found, Err(_)) => panic!("{name}: {found:?}"),
        }
    }
}
