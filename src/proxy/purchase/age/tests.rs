//! The age of a key on clocks that are moved by hand.

use std::time::Duration;

use super::may_repeat;
use crate::clock::{Clock, ManualClock};
use crate::ledger::undelivered::FirstSent;

const HOUR: Duration = Duration::from_secs(3600);
const START_MS: u64 = 1_790_000_000_000;

#[test]
fn a_key_is_repeated_until_it_is_23_h_old() {
    let clock = ManualClock::at(START_MS);
    let first = FirstSent::now(&clock);
    assert!(may_repeat(&first, &clock));
    clock.advance(23 * HOUR - Duration::from_millis(1));
    assert!(may_repeat(&first, &clock));
    clock.advance(Duration::from_millis(1));
    assert!(!may_repeat(&first, &clock));
}

#[test]
fn a_key_whose_age_is_in_doubt_is_not_repeated() {
    let rows: [(&str, Duration, i64, bool); 7] = [
        ("clocks agree", HOUR, 0, true),
        ("set back a little", Duration::ZERO, -1_000, true),
        (
            "set back before the first use",
            Duration::ZERO,
            -1_001,
            false,
        ),
        ("set back behind the first use", HOUR, -300_001, false),
        ("five minutes ahead", HOUR, 300_000, true),
        ("slept for more than that", HOUR, 300_001, false),
        ("slept for 60 h", Duration::ZERO, 60 * 3_600_000, false),
    ];
    for (name, runs, wall_moved_ms, wanted) in rows {
        let clock = ManualClock::at(START_MS);
        let first = FirstSent::now(&clock);
        clock.advance(runs);
        clock.set_wall_ms(clock.wall_ms().saturating_add_signed(wall_moved_ms));
        assert_eq!(may_repeat(&first, &clock), wanted, "{name}");
    }
}
