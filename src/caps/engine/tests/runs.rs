//! The limit of a run (`bursar exec --max-usd`) is a cap whose window is the run's life.

use super::*;
use crate::ledger::usage::RunSoFar;

const RUN: &str = "0199-run";

fn bench(limit: u64, floor: u64) -> Bench {
    let mut bench = Bench::new(rules(Limits::default(), &[], floor));
    let run = Arc::from(RUN);
    bench
        .engine
        .runs
        .open(&run, usd(limit), RunSoFar::default());
    bench
}

impl Bench {
    fn ask_in(&mut self, run: &str, repeats: Option<Repeats>) -> Became {
        let ask = Ask {
            run: Some(Arc::from(run)),
            repeats,
            ..self.asks("a", Operation::Chat)
        };
        self.put(ask)
    }

    fn goes(&mut self) -> EntryId {
        match self.ask_in(RUN, None) {
            Became::Admitted(entry, _) => entry,
            other => panic!("{other:?}"),
        }
    }

    fn waits(&mut self) -> EntryId {
        match self.ask_in(RUN, None) {
            Became::Waits(entry) => entry,
            other => panic!("{other:?}"),
        }
    }

    fn stopped(&mut self) -> String {
        match self.ask_in(RUN, None) {
            Became::Refused(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// What its run has billed and held.
    fn of_run(&self) -> (u128, u128) {
        let charge = self
            .engine
            .runs
            .get(&Arc::from(RUN))
            .expect("its budget")
            .1
            .counted();
        (charge.billed.get(), charge.held.now())
    }
}

fn again(from: EntryId) -> Option<Repeats> {
    Some(Repeats {
        since_ms: NOON,
        from: vec![from],
    })
}

#[test]
fn requests_of_a_run_go_beside_others_while_four_times_their_price_is_left() {
    let mut bench = bench(1_000, 0);
    let first = bench.goes();
    let second = bench.waits();
    bench.settle(first, "a", 100);
    // 900 are left: two of up to 400 fit.
    assert!(matches!(bench.became(second), Became::Admitted(..)));
    bench.goes();
    let third = bench.waits();
    bench.end(second, "a", State::Failed);
    assert!(matches!(bench.became(third), Became::Admitted(..)));
    // A body larger than all before may cost more in proportion.
    let mut bench = self::bench(1_000, 0);
    let first = bench.goes();
    bench.settle(first, "a", 100);
    let large = Ask {
        run: Some(Arc::from(RUN)),
        request_bytes: 200,
        ..bench.asks("a", Operation::Chat)
    };
    bench.put(large);
    bench.waits();
}

#[test]
fn at_its_limit_a_run_is_refused_by_name_and_other_requests_go_on() {
    let mut bench = bench(100, 0);
    let only = bench.goes();
    bench.settle(only, "a", 150);
    let text = bench.stopped();
    for part in [RUN, "of a has reached its limit", "$0.000100", "$0.000150"] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    bench.admitted("a");
    assert!(matches!(
        bench.ask_in("0199-unlimited", None),
        Became::Admitted(..)
    ));
    let mut nothing = self::bench(0, 0);
    nothing.stopped();
}

#[test]
fn a_run_without_room_holds_up_only_itself_and_its_own_go_in_the_order_of_arrival() {
    let mut bench = bench(1_000, 10);
    let mut running = bench.goes();
    let line: Vec<_> = (0..4).map(|_| bench.waits()).collect();
    bench.admitted("a");
    for expected in line {
        bench.settle(running, "a", 200);
        let went = bench.became(expected);
        assert!(matches!(went, Became::Admitted(..)), "{went:?}");
        running = expected;
    }
}

#[test]
fn a_refusal_after_waiting_names_the_run_that_was_waited_for() {
    let mut bench = bench(1_000, 0);
    bench.goes();
    let entry = bench.waits();
    let text = bench.engine.late(entry, 60, NOON).to_string();
    assert!(text.contains(RUN) && text.contains("60 s"), "{text}");
}

#[test]
fn later_evidence_reaches_the_run() {
    let mut bench = bench(100, 100);
    let started = bench.goes();
    bench.end(started, "a", State::Unreported);
    assert_eq!(bench.of_run(), (0, 100));
    bench.stopped();
    let state = State::Reconciled { billed: usd(10) };
    let mut evidence = Charged {
        run: Some(RUN.to_owned()),
        ..charged(started, "a", Operation::Chat, NOON, state, usd(100), 0)
    };
    evidence.charge.held.left = usd(100).into();
    bench.engine.update(&UsageUpdate::Records(vec![evidence]));
    assert_eq!(bench.of_run(), (10, 0));
    bench.goes();
}

#[test]
fn a_retry_of_its_own_passes_at_the_limit_and_one_of_another_does_not() {
    let mut bench = bench(50, 60);
    let lost = bench.goes();
    bench.end(lost, "a", DOUBT);
    assert_eq!(bench.of_run(), (0, 60));
    let mut from = lost;
    for _ in 0..2 {
        let Became::Admitted(retry, 0) = bench.ask_in(RUN, again(from)) else {
            panic!("it is charged already");
        };
        bench.end(retry, "a", DOUBT);
        assert_eq!(bench.of_run(), (0, 60), "one purchase");
        from = retry;
    }
    let (foreign, _) = bench.admitted("a");
    let other = bench.ask_in(RUN, again(foreign));
    assert!(matches!(other, Became::Refused(_)), "{other:?}");
}

#[test]
fn what_came_to_nothing_in_the_run_covers_no_repeat() {
    let mut bench = bench(50, 60);
    let (foreign, _) = bench.admitted("a");
    bench.end(foreign, "a", DOUBT);
    let Became::Admitted(taken, _) = bench.ask_in(RUN, again(foreign)) else {
        panic!("there is room for it");
    };
    bench.end(taken, "a", State::Failed);
    assert_eq!(bench.of_run(), (0, 0));
    let own = bench.goes();
    bench.settle(own, "a", 60);
    let repeat = bench.ask_in(RUN, again(taken));
    assert!(matches!(repeat, Became::Refused(_)), "{repeat:?}");
    let paid = bench.ask_in(RUN, again(own));
    assert!(matches!(paid, Became::Admitted(_, 0)), "{paid:?}");
}

#[test]
fn a_run_that_waits_for_itself_closes_no_cap_to_others() {
    let all = Limits {
        hour: Some(usd(850)),
        ..Limits::default()
    };
    let mut bench = Bench::new(rules(all, &[], 0));
    let run = Arc::from(RUN);
    bench.engine.runs.open(&run, usd(300), RunSoFar::default());
    let (cheap, _) = bench.admitted("b");
    bench.settle(cheap, "b", 10);
    let first = bench.goes();
    bench.settle(first, "a", 100);
    bench.goes();
    // Neither its run nor the cap has room for it: 110 + 400 + 400.
    bench.waits();
    bench.admitted("b");
}

#[test]
fn a_run_that_is_taken_up_again_finds_what_is_under_way() {
    let mut bench = bench(1_000, 0);
    let flying = bench.goes();
    bench.engine.runs.close(RUN);
    assert!(bench.engine.runs.hold(RUN, usd(1_000)));
    let behind = bench.waits();
    bench.settle(flying, "a", 1_000);
    assert!(matches!(bench.became(behind), Became::Refused(_)));
    // And one that this process does not know, with what its journal holds.
    let so_far = RunSoFar {
        charge: Charge {
            billed: usd(70).into(),
            ..Charge::default()
        },
        entries: vec![flying],
    };
    let mut bench = Bench::new(rules(Limits::default(), &[], 0));
    assert!(!bench.engine.runs.hold(RUN, usd(70)));
    bench.engine.runs.open(&Arc::from(RUN), usd(70), so_far);
    bench.stopped();
    let retry = bench.ask_in(RUN, again(flying));
    assert!(matches!(retry, Became::Admitted(_, 0)), "{retry:?}");
}

#[test]
fn an_end_counts_once_whether_the_ledger_reports_it_late_anew_or_never() {
    let state = State::Settled { billed: usd(300) };
    let reports = |bench: &mut Bench, entry| {
        let late = Charged {
            run: Some(RUN.to_owned()),
            ..charged(entry, "a", Operation::Chat, NOON, state, usd(0), 100)
        };
        bench.engine.update(&UsageUpdate::Records(vec![late]));
    };
    let anew = |bench: &mut Bench, entry| {
        let usage = bench.engine.usage.clone();
        let ended = vec![entry];
        bench.engine.update(&UsageUpdate::All { usage, ended });
    };
    // Known before it is written, and written later.
    let mut bench = bench(1_000, 0);
    let entry = bench.goes();
    bench.engine.foresee(entry, state);
    assert_eq!(bench.of_run(), (300, 0));
    bench.engine.release(entry, FlightEnd::Unknown);
    assert_eq!(bench.of_run(), (300, 0));
    reports(&mut bench, entry);
    assert_eq!(bench.of_run(), (300, 0));
    // The journal is read anew while it is under way, and after it.
    let entry = bench.goes();
    bench.engine.foresee(entry, state);
    anew(&mut bench, entry);
    bench.engine.release(entry, FlightEnd::Settled(state));
    assert_eq!(bench.of_run(), (600, 0));
    let entry = bench.goes();
    bench.engine.release(entry, FlightEnd::Settled(state));
    anew(&mut bench, entry);
    assert_eq!(bench.of_run(), (900, 0));
    // It was never sent.
    let entry = bench.goes();
    bench.engine.release(entry, FlightEnd::Unsent);
    assert_eq!(bench.of_run(), (900, 0));
    let entry = bench.goes();
    bench.settle(entry, "a", 1);
    assert_eq!(bench.of_run(), (901, 0));
}

#[test]
fn budgets_of_ended_runs_are_bounded_and_none_with_something_under_way_is_forgotten() {
    let mut bench = bench(1_000, 0);
    bench.goes();
    bench.engine.runs.close(RUN);
    for number in 0..1_000 {
        let run = Arc::from(format!("0200-{number:04}"));
        bench.engine.runs.open(&run, usd(1), RunSoFar::default());
        bench.engine.runs.close(&run);
    }
    assert_eq!(bench.engine.runs.len(), 257);
    assert!(bench.engine.runs.hold(RUN, usd(1_000)));
    assert!(bench.engine.runs.hold("0200-0999", usd(1)));
    assert!(!bench.engine.runs.hold("0200-0000", usd(1)));
}
