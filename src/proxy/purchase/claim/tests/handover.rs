//! What a restarted process takes over, on clocks that are moved by hand: a step forward or back, a
//! sleep, a reboot, and the edges of 23 hours and of the adopt window.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::clock::{BootId, Clock, ManualClock};
use crate::config::Adopt;
use crate::ledger::entry::{EntryId, EntryKey, Fingerprint, KeyOrigin};
use crate::ledger::undelivered::{FirstSent, KeyUse, Remembered, Undelivered};
use crate::proxy::purchase::claim::{Claim, ClaimTable};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant, RequestKey};

const START_MS: u64 = 1_790_000_000_000;
const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

fn request_key() -> RequestKey {
    RequestKey {
        app: Arc::from("a"),
        fingerprint: Fingerprint([1; 32]),
    }
}

/// What the process before left: one request, sent just now.
fn row(clock: &ManualClock, number: u128) -> Undelivered {
    Undelivered {
        id: EntryId(Uuid::from_u128(number)),
        at_ms: clock.wall_ms(),
        app: request_key().app,
        fingerprint: request_key().fingerprint,
        key: EntryKey {
            value: Arc::from(format!("k{number}")),
            origin: KeyOrigin::Minted,
        },
        key_use: KeyUse {
            first_sent: FirstSent::now(clock),
            adoptions: 1,
        },
    }
}

/// The table of the next process.
fn restarted(clock: &ManualClock, rows: Vec<Undelivered>, journal_ended_ms: u64) -> ClaimTable {
    let table = ClaimTable::new(Arc::new(clock.clone()));
    table.restore(Remembered {
        rows,
        journal_ended_ms,
    });
    table
}

/// The key that an equal request goes out under, when it is one of before.
fn adopted_key(table: &ClaimTable, window: Duration) -> Option<String> {
    let claimant = Claimant {
        request_key: request_key(),
        entry: EntryId(Uuid::from_u128(99)),
        own_key: None,
        keyed: true,
        marked_retry: false,
        keeps_answer: true,
    };
    let policy = AdoptPolicy {
        adopt: Adopt::Always,
        window,
    };
    let Claim::Lead(purchase) = table.claim(&claimant, policy, false) else {
        panic!("there is no answer to follow");
    };
    let key = purchase.key.as_ref().expect("a key");
    let is_adopted = matches!(key.origin, KeyOrigin::Adopted { .. });
    assert_eq!(purchase.adoptions, if is_adopted { 2 } else { 0 });
    is_adopted.then(|| key.value.to_string())
}

/// No automatic repeat of a key that is 23 h old or whose age is in doubt (rule I6), over a restart.
#[test]
fn a_restart_takes_over_only_keys_whose_age_is_sure() {
    type Row = (&'static str, i64, i64, bool, bool);
    // What passes before the restart by the monotonic clock, how far the wall clock moves beside
    // that, and whether the machine starts anew.
    let rows: [Row; 12] = [
        ("at once", 0, 0, false, true),
        ("an hour later", HOUR, 0, false, true),
        ("one ms before 23 h", 23 * HOUR - 1, 0, false, true),
        ("at 23 h", 23 * HOUR, 0, false, false),
        ("one ms before 24 h", 24 * HOUR - 1, 0, false, false),
        ("set ahead a little", MINUTE, 5 * MINUTE, false, true),
        ("set ahead more", MINUTE, 5 * MINUTE + 1, false, false),
        ("set back a little", 10 * MINUTE, -5 * MINUTE, false, true),
        ("set back more", 10 * MINUTE, -5 * MINUTE - 1, false, false),
        ("slept for a night", MINUTE, 8 * HOUR, false, false),
        ("rebooted at once", 0, 0, true, false),
        ("rebooted, clocks like before", MINUTE, 0, true, false),
    ];
    for (name, passes_ms, wall_moves_ms, reboots, wanted) in rows {
        let clock = ManualClock::at(START_MS);
        let left = row(&clock, 1);
        if reboots {
            clock.reboot();
        }
        clock.advance(Duration::from_millis(passes_ms.unsigned_abs()));
        clock.set_wall_ms(clock.wall_ms().saturating_add_signed(wall_moves_ms));
        let table = restarted(&clock, vec![left], START_MS);
        let adopted = adopted_key(&table, Duration::from_secs(48 * 3600));
        assert_eq!(adopted.as_deref(), wanted.then_some("k1"), "{name}");
    }
}

#[test]
fn a_clock_behind_the_journals_last_record_is_doubtful() {
    for (behind_ms, wanted) in [(0, true), (1_000, true), (1_001, false), (90_000, false)] {
        let clock = ManualClock::at(START_MS);
        let left = row(&clock, 1);
        clock.advance(Duration::from_secs(120));
        let journal_ended_ms = clock.wall_ms() + behind_ms;
        let table = restarted(&clock, vec![left], journal_ended_ms);
        let adopted = adopted_key(&table, Duration::from_secs(900));
        assert_eq!(adopted.is_some(), wanted, "{behind_ms}");
    }
}

#[test]
fn a_boot_that_is_unknown_or_another_is_doubtful() {
    let clock = ManualClock::at(START_MS);
    for (boot, wanted) in [
        (clock.boot(), true),
        (None, false),
        (Some(BootId(77)), false),
    ] {
        let mut left = row(&clock, 1);
        left.key_use.first_sent.boot = boot;
        let table = restarted(&clock, vec![left], START_MS);
        let adopted = adopted_key(&table, Duration::from_secs(900));
        assert_eq!(adopted.is_some(), wanted, "{boot:?}");
    }
}

/// The clock may be set after the restart, too.
#[test]
fn a_key_that_was_taken_over_is_judged_again_when_it_is_asked_for() {
    let clock = ManualClock::at(START_MS);
    let table = restarted(&clock, vec![row(&clock, 1)], START_MS);
    clock.set_wall_ms(START_MS + 600_000);
    assert_eq!(adopted_key(&table, Duration::from_secs(900)), None);
}

#[test]
fn the_window_goes_on_over_the_restart() {
    for (age_s, wanted) in [(900, true), (901, false)] {
        let clock = ManualClock::at(START_MS);
        let left = row(&clock, 1);
        clock.advance(Duration::from_secs(800));
        let table = restarted(&clock, vec![left], START_MS);
        clock.advance(Duration::from_secs(age_s - 800));
        let adopted = adopted_key(&table, Duration::from_secs(900));
        assert_eq!(adopted.is_some(), wanted, "{age_s}");
    }
}

#[test]
fn the_oldest_goes_first_and_each_once() {
    let clock = ManualClock::at(START_MS);
    let rows = (1..=3).map(|number| row(&clock, number)).collect();
    let table = restarted(&clock, rows, START_MS);
    let window = Duration::from_secs(900);
    let keys: Vec<_> = (0..4).map(|_| adopted_key(&table, window)).collect();
    let wanted = ["k1", "k2", "k3"].map(|key| Some(key.to_owned()));
    assert_eq!(keys[..3], wanted);
    assert_eq!(keys[3], None);
}

#[test]
fn more_rows_than_are_kept_leave_the_newest() {
    let clock = ManualClock::at(START_MS);
    let rows = (1..=4097).map(|number| row(&clock, number)).collect();
    let table = restarted(&clock, rows, START_MS);
    assert_eq!(table.sizes(), (4096, 0, 0));
    let first = adopted_key(&table, Duration::from_secs(900));
    assert_eq!(first.as_deref(), Some("k2"));
}
