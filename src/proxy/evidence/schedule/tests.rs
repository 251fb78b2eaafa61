use uuid::Uuid;

use super::*;
use crate::ledger::entry::EntryId;

const START_MS: u64 = 1_778_284_800_000;
const DAY_MS: u64 = 24 * 3600 * 1000;

fn run(id: &str) -> WaitingRun {
    WaitingRun {
        run_id: id.into(),
        entry: EntryId(Uuid::nil()),
        started_ms: START_MS,
    }
}

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn due(schedule: &Schedule, now: Duration) -> Vec<String> {
    schedule.due(now).iter().map(ToString::to_string).collect()
}

#[test]
fn a_run_is_looked_at_after_3_seconds_and_then_seldomer_up_to_a_minute() {
    let mut schedule = Schedule::default();
    schedule.sync(&[run("r")], s(100));
    let mut at = s(100);
    for wait in [3, 6, 12, 24, 48, 60, 60, 60] {
        let due_at = at + s(wait);
        assert!(due(&schedule, due_at - Duration::from_millis(1)).is_empty());
        assert_eq!(due(&schedule, due_at), ["r"], "after {wait} s");
        assert_eq!(schedule.next(), Some(due_at));
        schedule.sync(&[run("r")], due_at);
        schedule.looked("r", RunLook::NotYet, due_at, START_MS);
        at = due_at;
    }
}

#[test]
fn what_is_over_or_gone_is_not_looked_at_again_and_what_left_the_list_is_forgotten() {
    for look in [RunLook::Over, RunLook::Gone] {
        let mut schedule = Schedule::default();
        schedule.sync(&[run("r")], s(0));
        assert!(!schedule.looked("r", look, s(3), START_MS));
        // The ledger still has it when it reported no amount.
        schedule.sync(&[run("r")], s(4));
        assert_eq!(schedule.next(), None, "{look:?}");
        schedule.sync(&[], s(5));
        assert!(schedule.runs.is_empty());
    }
}

#[test]
fn an_old_run_is_looked_at_once_and_given_up() {
    let mut schedule = Schedule::default();
    schedule.sync(&[run("r")], s(0));
    assert_eq!(due(&schedule, s(3)), ["r"], "also when it is a day old");
    assert!(!schedule.looked("r", RunLook::NotYet, s(3), START_MS + DAY_MS - 1));
    assert!(schedule.looked("r", RunLook::NotYet, s(9), START_MS + DAY_MS));
    assert_eq!(schedule.next(), None);
    // A day without an answer is no reason to stop: nothing was learnt.
    let mut schedule = Schedule::default();
    schedule.sync(&[run("r")], s(0));
    assert!(!schedule.looked("r", RunLook::Busy { asked: None }, s(3), START_MS + DAY_MS));
    assert!(schedule.next().is_some());
}

#[test]
fn many_runs_are_taken_up_spread_and_few_are_looked_at_at_once() {
    let runs: Vec<WaitingRun> = (0..40).map(|n| run(&format!("r{n:02}"))).collect();
    let mut schedule = Schedule::default();
    schedule.sync(&runs, s(0));
    assert_eq!(due(&schedule, s(3)), ["r00"]);
    assert_eq!(due(&schedule, s(60)), ["r00", "r01", "r02", "r03"]);
}

#[test]
fn a_service_that_wants_quiet_gets_it_and_is_then_tried_with_one_run() {
    let runs: Vec<WaitingRun> = (0..8).map(|n| run(&format!("r{n}"))).collect();
    let mut schedule = Schedule::default();
    schedule.sync(&runs, s(0));
    let mut now = s(10);
    for pause in [5, 10, 20, 40, 80, 160, 300, 300] {
        schedule.looked("r0", RunLook::Busy { asked: None }, now, START_MS);
        assert!(due(&schedule, now + s(pause) - Duration::from_millis(1)).is_empty());
        now += s(pause);
        assert_eq!(schedule.next(), Some(now));
        assert_eq!(due(&schedule, now).len(), 1, "after {pause} s");
    }
    schedule.looked("r0", RunLook::NotYet, now, START_MS);
    assert_eq!(due(&schedule, now).len(), AT_ONCE, "it is well again");
}

#[test]
fn a_longer_retry_after_counts_up_to_an_hour() {
    for (asked, pause) in [(1, 5), (90, 90), (1_000_000, 3600)] {
        let mut schedule = Schedule::default();
        schedule.sync(&[run("r")], s(0));
        let asked = Some(s(asked));
        schedule.looked("r", RunLook::Busy { asked }, s(10), START_MS);
        assert_eq!(schedule.next(), Some(s(10 + pause)));
    }
}
