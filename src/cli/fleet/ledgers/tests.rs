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
