//! What one app's requests take from the others, what a repeat may in a later window, and what counts
//! before the ledger has it.

use super::*;

fn counted(bench: &Bench, scope: &Scope, period: Period) -> (u128, u128) {
    let cap = &bench.engine.caps[&(scope.clone(), period)];
    let charge = bench.engine.counted(scope, cap);
    (charge.billed.get(), charge.held.now())
}

fn waits(became: &Became) -> bool {
    matches!(became, Became::Waits(_))
}

#[test]
fn the_first_request_of_an_app_holds_up_no_other_below_the_cap_of_all() {
    let own = [("slow", limits(None, Some(500_000)))];
    let mut bench = Bench::new(rules(limits(None, Some(1_000_000)), &own, 10));
    bench.buy("a", 100);
    // A minute or an hour: what it costs is not known yet.
    let (slow, reserved) = bench.admitted("slow");
    assert_eq!(reserved, 100, "the dearest of others");
    for _ in 0..5 {
        bench.admitted("a");
    }
    let other_kind = bench.ask_of("b", Operation::Speech, 10, None);
    assert!(matches!(other_kind, Became::Admitted(..)), "{other_kind:?}");
    let Became::Waits(second) = bench.ask("slow") else {
        panic!("below its own cap the first of its kind goes alone");
    };
    bench.admitted("a");
    bench.settle(slow, "slow", 1_000);
    assert_eq!(bench.became(second), Became::Admitted(second, 1_000));
}

#[test]
fn a_kind_not_seen_before_counts_with_sixteen_times_the_dearest_of_others() {
    // 100 are spent, 1600 may be the first of b, 400 the next of a.
    for (cap, goes) in [(2_100, true), (2_099, false)] {
        let mut bench = Bench::new(rules(limits(None, Some(cap)), &[], 0));
        bench.buy("a", 100);
        bench.admitted("b");
        assert_eq!(!waits(&bench.ask("a")), goes, "{cap}");
    }
}

#[test]
fn an_app_whose_requests_fail_or_cost_nothing_holds_up_no_other() {
    for state in [State::Failed, State::Settled { billed: usd(0) }] {
        let mut bench = Bench::new(rules(limits(None, Some(100_000)), &[], 10));
        bench.buy("a", 100);
        for _ in 0..4 {
            let (idle, _) = bench.admitted("idle");
            bench.buy("a", 100);
            bench.end(idle, "idle", state);
        }
    }
}

#[test]
fn answers_for_nothing_are_an_answer_and_with_no_measure_at_all_one_goes_at_a_time() {
    let own = [("a", limits(None, Some(1_000)))];
    let mut bench = Bench::new(rules(Limits::default(), &own, 10));
    bench.buy("a", 0);
    bench.admitted("a");
    let (_, reserved) = bench.admitted("a");
    assert_eq!(reserved, 10, "the floor, four times");
    // No price was reported and no floor is set: the next one may cost anything.
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 0);
    bench.admitted("a");
    assert!(waits(&bench.ask("a")));
}

#[test]
fn in_a_later_window_a_repeat_is_judged_as_a_new_request() {
    // Both are reached in the first hour; the day's holds what is repeated, the next hour's does not.
    let mut bench = Bench::new(rules(limits(Some(100), Some(100)), &[], 0));
    bench.buy("a", 100);
    let repeat = |bench: &mut Bench| bench.ask_of("a", Operation::Chat, 100, Some(NOON));
    let Became::Admitted(same_hour, 0) = repeat(&mut bench) else {
        panic!("charged in every window of now");
    };
    bench.end(same_hour, "a", State::Replayed);
    bench.now_ms += HOUR;
    let Became::Admitted(first, 100) = repeat(&mut bench) else {
        panic!("nothing is spent in this hour");
    };
    let Became::Waits(second) = repeat(&mut bench) else {
        panic!("it may be billed anew beside the first");
    };
    bench.settle(first, "a", 100);
    let Became::Refused(text) = bench.became(second) else {
        panic!("the hour is spent");
    };
    assert!(text.contains("in the hour"), "{text}");
    let now = bench.ask_of("a", Operation::Chat, 100, Some(bench.now_ms));
    assert!(matches!(now, Became::Admitted(_, 0)), "{now:?}");
}

#[test]
fn a_repeat_of_an_earlier_window_stands_in_line_with_the_others() {
    let mut bench = Bench::new(rules(limits(Some(300), None), &[], 0));
    bench.buy("a", 100);
    bench.now_ms += HOUR;
    let (running, _) = bench.admitted("a");
    let Became::Waits(first) = bench.ask("a") else {
        panic!("400 may be under way");
    };
    let Became::Waits(repeat) = bench.ask_of("a", Operation::Chat, 100, Some(NOON)) else {
        panic!("it does not pass a request that came before it");
    };
    bench.end(running, "a", State::Failed);
    assert!(matches!(bench.became(first), Became::Admitted(..)));
    assert!(waits(&bench.became(repeat)));
}

#[test]
fn a_limit_that_is_reached_meanwhile_stops_a_repeat_only_where_it_would_be_bought_anew() {
    let mut bench = Bench::new(rules(limits(Some(1_000), None), &[], 0));
    bench.buy("a", 100);
    bench.now_ms += HOUR;
    let repeated =
        |bench: &mut Bench, since_ms| match bench.ask_of("a", Operation::Chat, 100, Some(since_ms))
        {
            Became::Admitted(entry, _) => entry,
            other => panic!("{other:?}"),
        };
    let dear = repeated(&mut bench, NOON);
    let anew = repeated(&mut bench, NOON);
    let since_ms = bench.now_ms;
    let again = repeated(&mut bench, since_ms);
    let now_ms = bench.now_ms;
    assert_eq!(bench.engine.over(anew, now_ms), None);
    bench.settle(dear, "a", 1_000);
    assert!(bench.engine.over(anew, now_ms).is_some());
    assert_eq!(bench.engine.over(again, now_ms), None);
}

#[test]
fn a_reported_price_counts_before_the_ledger_has_it_and_once() {
    let day = |bench: &Bench| counted(bench, &Scope::All, Period::Day);
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 100);
    let (dear, _) = bench.admitted("a");
    let (behind, _) = bench.admitted("a");
    let state = State::Settled { billed: usd(950) };
    bench.engine.foresee(dear, state);
    assert_eq!(day(&bench), (1_050, 0));
    assert!(
        bench.engine.over(behind, NOON).is_some(),
        "it took the place"
    );
    bench.settle(dear, "a", 950);
    assert_eq!(day(&bench), (1_050, 0));

    // A price that cannot be written is still known; one that was not reported is held.
    for (heard, end) in [
        (State::Settled { billed: usd(7) }, (1_057, 0)),
        (State::Unreported, (1_050, 950)),
        (State::Failed, (1_050, 950)),
    ] {
        let mut bench = Bench::new(rules(limits(None, Some(9_000)), &[], 0));
        bench.buy("a", 950);
        bench.buy("a", 100);
        let (entry, _) = bench.admitted("a");
        bench.engine.foresee(entry, heard);
        bench.engine.release(entry, FlightEnd::Unknown);
        assert_eq!(day(&bench), end, "{heard:?}");
    }
}

#[test]
fn refusals_are_counted_on_when_a_cap_is_taken_away_and_set_again() {
    let capped = rules(limits(None, Some(100)), &[], 0);
    let mut bench = Bench::new(capped.clone());
    bench.buy("a", 100);
    bench.refused("a");
    bench.refused("a");
    bench.engine.reload(rules(Limits::default(), &[], 0));
    let (entry, _) = bench.admitted("a");
    bench.end(entry, "a", State::Failed);
    bench.engine.reload(capped);
    bench.refused("a");
    assert_eq!(bench.engine.refusals[&(Scope::All, Period::Day)], 3);
}
