use super::*;

#[test]
fn what_is_open_is_known_of_a_machine_that_is_heard_and_was_not_revoked() {
    let now_ms = 10 * HEARD_MS_MAX;
    // Revoked, for how long it was not heard, what is open, and whether that is known.
    let cases = [
        (false, 0, 7, true),
        (false, HEARD_MS_MAX, 7, true),
        (false, HEARD_MS_MAX + 1, 7, false),
        (true, 0, 7, false),
        (true, HEARD_MS_MAX + 1, 7, false),
        (false, HEARD_MS_MAX + 1, 0, true),
        (true, 0, 0, true),
    ];
    for (is_revoked, ago_ms, micro_usd, is_known) in cases {
        let lease = LeaseNow {
            cap: "team".to_owned(),
            host: "a".to_owned(),
            ledger: Uuid::nil(),
            since_ms: 0,
            until_ms: now_ms,
            granted: MicroUsd::new(9),
            given_back: MicroUsd::ZERO,
            billed: MicroUsdSum::from_micro_usd(2),
            charged: MicroUsdSum::from_micro_usd(9),
            open: MicroUsdSum::from_micro_usd(micro_usd),
            heard_ms: now_ms - ago_ms,
            is_revoked,
        };
        let case = (is_revoked, ago_ms, micro_usd);
        assert_eq!(open(&lease, now_ms).is_some(), is_known, "{case:?}");
    }
}
