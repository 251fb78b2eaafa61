//! Clocks that are set: what was reported under a key, and the day that money counts for, stay as they were.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::tz::TimeZone;

use super::settled;
use crate::clock::Clock;
use crate::ledger::entry::{AttemptEnd, InDoubt, State};
use crate::ledger::fixtures::{Bench, START_MS, begin, billed, buy, ended};
use crate::ledger::query::spend;
use crate::ledger::read::spend::GroupBy;
use crate::ledger::{Ledger, LedgerOptions};
use crate::protocol::receipt::Receipt;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn reopen(bench: &Bench, ledger: Ledger) -> Ledger {
    drop(ledger);
    bench.open()
}

/// The service counts the key's 24 h by a clock of its own, so ours may be set back without a second
/// amount being believed.
#[tokio::test]
async fn a_keys_amount_stands_when_the_clock_is_set_back_and_for_24_h_by_its_first_use() {
    let moves: [(&str, u64, bool); 6] = [
        ("an hour back", START_MS - HOUR_MS, false),
        ("a day back", START_MS - DAY_MS, false),
        ("a month back", START_MS - 30 * DAY_MS, false),
        ("one ms before 24 h", START_MS + DAY_MS - 1, false),
        ("24 h", START_MS + DAY_MS, true),
        ("a month ahead", START_MS + 30 * DAY_MS, true),
    ];
    for (name, wall_ms, is_new) in moves {
        for restarts in [false, true] {
            let bench = Bench::new();
            let mut ledger = bench.open();
            buy(&ledger, Some("k"), billed(100)).await;
            bench.clock.set_wall_ms(wall_ms);
            if restarts {
                ledger = reopen(&bench, ledger);
            }
            let second = buy(&ledger, Some("k"), billed(200)).await;
            let wanted = if is_new {
                settled(200)
            } else {
                State::Replayed
            };
            assert_eq!(second.state, wanted, "{name}, restarts: {restarts}");
        }
    }
}

/// The first use by the clock that was put right is the last that the 24 h can begin with.
#[tokio::test]
async fn a_clock_that_was_ahead_binds_a_key_for_no_more_than_24_h_once_it_is_right() {
    for restarts in [false, true] {
        let bench = Bench::new();
        let mut ledger = bench.open();
        bench.clock.set_wall_ms(START_MS + 30 * DAY_MS);
        buy(&ledger, Some("k"), billed(5)).await;
        for (at_ms, amount, wanted) in [
            (START_MS, 5, State::Replayed),
            (START_MS + DAY_MS - 1, 5, State::Replayed),
            (START_MS + DAY_MS, 5, settled(5)),
            (START_MS + DAY_MS + 1, 5, State::Replayed),
            (START_MS + 2 * DAY_MS, 7, settled(7)),
        ] {
            bench.clock.set_wall_ms(at_ms);
            if restarts {
                ledger = reopen(&bench, ledger);
            }
            let bought = buy(&ledger, Some("k"), billed(amount)).await;
            assert_eq!(bought.state, wanted, "{at_ms}, restarts: {restarts}");
        }
    }
}

/// While an entry is open its key is not forgotten, wherever the clock goes meanwhile.
#[tokio::test]
async fn a_clock_that_jumps_ahead_and_comes_back_does_not_open_a_key_again() {
    let bench = Bench::new();
    let ledger = bench.open();
    let lost = begin(&ledger, Some("k")).await;
    bench.clock.set_wall_ms(START_MS + 3 * DAY_MS);
    buy(&ledger, None, billed(1)).await;
    bench.clock.set_wall_ms(START_MS + 1000);
    let paid = buy(&ledger, Some("k"), billed(100)).await;
    let late = ledger
        .settle(ended(lost, AttemptEnd::Answered, billed(200)))
        .await
        .unwrap();
    assert_eq!(paid.state, settled(100));
    assert_eq!(late.state, State::Replayed, "one amount for one key");
    let ledger = reopen(&bench, ledger);
    assert_eq!(ledger.totals().billed().get(), 101);
}

/// A clock that is ahead while one record is written, or while the ledger is opened, drops no key: beside a
/// doubt a 0 without a mark stays in doubt.
#[tokio::test]
async fn a_clock_that_is_ahead_for_a_moment_forgets_no_doubt() {
    for restarts in [false, true] {
        let bench = Bench::new();
        let mut ledger = bench.open();
        let lost = begin(&ledger, Some("k")).await;
        let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
        ledger.settle(broken).await.unwrap();

        bench.clock.set_wall_ms(START_MS + 2 * DAY_MS);
        if restarts {
            ledger = reopen(&bench, ledger);
        } else {
            buy(&ledger, None, billed(1)).await;
        }
        bench.clock.set_wall_ms(START_MS + 1000);

        let repeat = buy(&ledger, Some("k"), billed(0)).await;
        let reason = InDoubt::ReplayLostAmount;
        assert_eq!(
            repeat.state,
            State::InDoubt { reason },
            "restarts: {restarts}"
        );
    }
}

/// The same where the key lies in an earlier segment than the last, and something is written while the clock is
/// still ahead.
#[tokio::test]
async fn a_start_under_a_clock_that_is_ahead_forgets_no_doubt() {
    for is_written in [false, true] {
        let bench = Bench::new();
        let options = LedgerOptions {
            segment_bytes_max: 2_000,
            ..bench.options()
        };
        let ledger = Ledger::open(options).unwrap();
        let lost = begin(&ledger, Some("k")).await;
        let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
        ledger.settle(broken).await.unwrap();
        for amount in 1..=10 {
            buy(&ledger, None, billed(amount)).await;
        }
        ledger.close().await;

        bench.clock.set_wall_ms(START_MS + 2 * DAY_MS);
        let ledger = bench.open();
        if is_written {
            buy(&ledger, None, billed(1)).await;
        }
        bench.clock.set_wall_ms(START_MS + 1000);

        let repeat = buy(&ledger, Some("k"), billed(0)).await;
        let reason = InDoubt::ReplayLostAmount;
        assert_eq!(repeat.state, State::InDoubt { reason }, "{is_written}");
    }
}

/// Money by day, as `bursar spend --by day` prints it.
fn days(bench: &Bench) -> BTreeMap<String, u128> {
    let by = [GroupBy::Day];
    let spend = spend(&bench.state(), None, None, &by, &TimeZone::UTC).unwrap();
    let row = |row: &crate::ledger::query::SpendRow| {
        let day = row.labels[&GroupBy::Day].clone();
        (day, row.billed_micro_usd.get())
    };
    spend.rows.iter().map(row).collect()
}

/// An entry counts for the day of its intent, whatever the clock shows when it ends, when its amount
/// comes, and when it is asked.
#[tokio::test]
async fn a_clock_that_jumps_moves_no_money_between_days() {
    for jump_ms in [-2 * DAY_MS.cast_signed(), 2 * DAY_MS.cast_signed()] {
        let bench = Bench::new();
        let jump = || {
            let to = bench.clock.wall_ms().saturating_add_signed(jump_ms);
            bench.clock.set_wall_ms(to);
        };
        let ledger = bench.open();
        bench.clock.advance(Duration::from_millis(DAY_MS - 1));
        buy(&ledger, Some("before"), billed(1)).await;
        let across = begin(&ledger, Some("across")).await;
        let lost = begin(&ledger, Some("lost")).await;
        let run = begin(&ledger, None).await;
        let mut started = ended(run, AttemptEnd::Answered, Receipt::default());
        started.run_id = Some("run".to_owned());
        ledger.settle(started).await.unwrap();
        jump();
        let answered = ended(across, AttemptEnd::Answered, billed(10));
        ledger.settle(answered).await.unwrap();
        let broken = ended(lost, AttemptEnd::NoHead, Receipt::default());
        ledger.settle(broken).await.unwrap();
        let amount = crate::money::MicroUsd::new(100);
        ledger.reconcile_run("run", amount).await.unwrap();
        let (billed_then, days_then) = (ledger.totals().billed(), days(&bench));
        let first_day = "2026-05-09".to_owned();
        assert_eq!(days_then, BTreeMap::from([(first_day, 111)]), "{jump_ms}");

        // The clock is put right, the index is lost, and the key's amount comes for the lost one.
        bench.clock.set_wall_ms(START_MS + DAY_MS);
        drop(ledger);
        std::fs::remove_dir_all(bench.state().join("index")).unwrap();
        let ledger = bench.open();
        assert_eq!(ledger.totals().billed(), billed_then, "{jump_ms}");
        assert_eq!(days(&bench), days_then, "{jump_ms}");
        buy(&ledger, Some("lost"), billed(1000)).await;
        let after = days(&bench);
        assert_eq!(after["2026-05-09"], 111, "{jump_ms}");
        assert_eq!(after["2026-05-10"], 1000, "{jump_ms}: of its own intent");
        assert_eq!(ledger.totals().billed().get(), 1111, "{jump_ms}");
    }
}
