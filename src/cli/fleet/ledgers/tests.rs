use super::*;

fn ledger(clock_ahead_ms: i64) -> FleetLedger {
    FleetLedger {
        ledger: Uuid::nil(),
        host: "a".to_owned(),
        bursar: "0.1.0".to_owned(),
        heard_ms: 1,
        lines_behind: 0,
        lag_s: 0,
        mark_seq: 1,
        losses: 0,
        clock_ahead_ms,
        copy_of: None,
        is_revoked: false,
        is_gone: false,
        is_awaited: false,
    }
}

#[test]
fn a_clock_that_is_more_than_five_seconds_off_is_remarked_with_its_side() {
    let cases = [
        (9_000, "clock 9 s ahead"),
        (-9_000, "clock 9 s behind"),
        (4_000, ""),
        (-4_000, ""),
        (0, ""),
    ];
    for (ahead_ms, wanted) in cases {
        assert_eq!(remarks(&ledger(ahead_ms)), wanted, "{ahead_ms} ms");
    }
}

/// What a machine that is gone for good did not ship is missing in periods in which it was heard, and in no later one.
#[test]
fn lines_behind_are_of_the_ledgers_that_were_heard_since_the_period_began() {
    let behind = |heard_ms, lines_behind| FleetLedger {
        heard_ms,
        lines_behind,
        ..ledger(0)
    };
    let ledgers = [behind(99, 20), behind(100, 3), behind(200, 4)];
    let cases = [(0, 27), (99, 27), (100, 7), (101, 4), (201, 0)];
    for (since_ms, wanted) in cases {
        assert_eq!(lines_behind(&ledgers, since_ms), wanted, "since {since_ms}");
    }
}

#[test]
fn a_revoke_names_the_copies_that_are_still_in_or_says_that_they_are_not_known() {
    let both = vec!["x".to_owned(), "y".to_owned()];
    let cases = [
        (Ok(Vec::new()), None),
        (Ok(both), Some("shuts all of them out: x, y")),
        (Err(FleetError::Slow), Some("is not known")),
    ];
    for (copies, wanted) in cases {
        let said = said_of_copies(Uuid::nil(), &copies);
        assert_eq!(said.is_some(), wanted.is_some(), "{said:?}");
        let said = said.unwrap_or_default();
        assert!(said.contains(wanted.unwrap_or_default()), "{said}");
    }
}
