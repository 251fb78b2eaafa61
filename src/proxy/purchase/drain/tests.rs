use super::*;

const BOUNDS: DrainBounds = DrainBounds {
    time: Duration::from_secs(120),
    bytes: 1000,
};

const BEFORE: Duration = Duration::from_secs(10);

/// The table in the head of the file.
#[test]
fn each_state_answers_each_reader_as_the_table_says() {
    let suspected = Drain::Suspected { since: BEFORE };
    let on = |bytes| Drain::On {
        since: BEFORE,
        bytes,
    };
    let (soon, late) = (BEFORE + BOUNDS.time / 2, BEFORE + BOUNDS.time);
    let rows = [
        (Drain::Off, Readership::Uncertain, soon, DrainCheck::GoesOn),
        (Drain::Off, Readership::Absent, soon, DrainCheck::MayBegin),
        (suspected, Readership::Uncertain, soon, DrainCheck::GoesOn),
        (suspected, Readership::Uncertain, late, DrainCheck::MayBegin),
        (suspected, Readership::Absent, soon, DrainCheck::MayBegin),
        (on(0), Readership::Uncertain, soon, DrainCheck::GoesOn),
        (on(1000), Readership::Absent, soon, DrainCheck::GoesOn),
        (on(1001), Readership::Absent, soon, DrainCheck::Over),
        (on(0), Readership::Absent, late, DrainCheck::Over),
        (on(0), Readership::Uncertain, late, DrainCheck::Over),
    ];
    for (state, reader, now, wanted) in rows {
        let mut drain = state;
        let verdict = drain.look(reader, now, BOUNDS);
        assert_eq!(verdict, wanted, "{state:?} {reader:?} {now:?}");
        let verdict = drain.look(Readership::Present, now, BOUNDS);
        assert_eq!((verdict, drain), (DrainCheck::GoesOn, Drain::Off));
    }
}

#[test]
fn what_was_suspected_counts_and_what_came_before_does_not() {
    let mut drain = Drain::default();
    drain.took(5000);
    drain.look(Readership::Uncertain, BEFORE, BOUNDS);
    let late = BEFORE + BOUNDS.time;
    assert_eq!(
        drain.look(Readership::Uncertain, late, BOUNDS),
        DrainCheck::MayBegin
    );
    drain.begin(late);
    let on = Drain::On {
        since: BEFORE,
        bytes: 0,
    };
    assert_eq!(drain, on);
}

#[test]
fn only_time_without_any_reader_counts_against_an_answer_that_drips() {
    let limit = Duration::from_secs(600);
    let at = Duration::from_secs;
    let mut unread = UnreadSince::default();
    // Whether it has no reader, when it is asked, and whether that is too long.
    let rows = [
        (true, 10, false),
        (true, 610, false),
        (false, 611, false),
        (true, 700, false),
        (true, 1300, false),
        (true, 1301, true),
    ];
    for (is_unread, now, wanted) in rows {
        let is_late = unread.for_longer_than(limit, is_unread, at(now));
        assert_eq!(is_late, wanted, "at {now} s");
    }
}
