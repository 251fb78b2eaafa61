use super::*;
use crate::ledger::totals::HeldSums;

/// The person behind the program sees whether it is spent, or waits for prices, and until when.
#[test]
fn a_cap_that_is_reached_says_what_is_spent_and_what_is_held_apart() {
    let sum = MicroUsdSum::from_micro_usd;
    let charge = Charge {
        billed: sum(7_198),
        held: HeldSums {
            came: sum(150_000),
            left: sum(40_000),
        },
    };
    let window = Window {
        since_ms: 1_769_817_600_000,
        until_ms: 1_769_904_000_000,
    };
    let limit = MicroUsd::new(100_000);
    let cap = (&Scope::App("nightly".into()), Period::Day);
    let text = Refused::reached(cap, limit, charge, window, &TimeZone::UTC).to_string();
    assert_eq!(
        text,
        "The cap of the app nightly is reached: of $0.100000 in the day, $0.007198 are spent and $0.110000 are held for \
         requests whose price is not known. It begins anew at 2026-02-01 00:00:00 (UTC). Nothing was sent. See \
         `bursar caps`; `bursar caps raise` raises it until then."
    );
}
