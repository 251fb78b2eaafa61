use super::*;

#[test]
fn only_the_stream_that_systemd_names_is_the_journal() {
    let own = rustix::fs::fstat(io::stderr()).expect("standard error");
    let (device, inode) = (own.st_dev, own.st_ino);
    let table = [
        (format!("{device}:{inode}"), LogPlace::Journal),
        (format!("{device}:{}", inode + 1), LogPlace::Plain),
        (format!("{}:{inode}", device + 1), LogPlace::Plain),
        (format!("{device}"), LogPlace::Plain),
        (format!("{device}:x"), LogPlace::Plain),
        (String::new(), LogPlace::Plain),
    ];
    for (named, place) in table {
        let env = Env::from_pairs([(JOURNAL_STREAM, named.as_str())]);
        assert_eq!(LogPlace::of_standard_error(&env), place, "{named}");
    }
    assert_eq!(
        LogPlace::of_standard_error(&Env::default()),
        LogPlace::Plain
    );
}

#[test]
fn each_level_has_the_priority_that_journalctl_filters_by() {
    let table = [
        (Level::ERROR, "<3>"),
        (Level::WARN, "<4>"),
        (Level::INFO, "<6>"),
        (Level::DEBUG, "<7>"),
        (Level::TRACE, "<7>"),
    ];
    for (level, prefix) in table {
        assert_eq!(LogPlace::Journal.prefix(priority(level)), prefix);
        assert_eq!(LogPlace::Plain.prefix(priority(level)), "");
    }
}
