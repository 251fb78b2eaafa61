//! Machines that are often away, and machines that are gone soon.

use super::*;

/// It has 700 of the window of now, and may lease 500 of each of two ahead.
fn with_an_allowance(is_ephemeral: bool) -> Bench {
    let mut bench = Bench::new(rules(Limits::default(), &[], 0));
    let names = [TEAM.to_owned()];
    bench
        .engine
        .shared
        .obey(&names, is_ephemeral, Vec::new(), false);
    let Some(Errand::Present(_)) = bench.errand(0, Round::Ask) else {
        panic!("it presents what it holds first");
    };
    let ahead = SharedCap {
        ahead_windows: 2,
        ahead: usd(500),
        ..order(10_000)
    };
    bench.hears(&Heard::Held(Held {
        is_paused: false,
        caps: vec![ahead],
        leases: vec![live(7, totals(700, 0, 0), HOUR)],
    }));
    bench
}

#[test]
fn one_that_is_gone_soon_leases_single_requests_and_no_window_ahead() {
    let mut bench = Bench::new(rules(Limits::default(), &[], 0));
    let names = [TEAM.to_owned()];
    bench.engine.shared.obey(&names, true, Vec::new(), false);
    let Some(Errand::Present(_)) = bench.errand(0, Round::Ask) else {
        panic!("it presents what it holds first");
    };
    let ahead = SharedCap {
        ahead_windows: 3,
        ahead: usd(500),
        ..order(10_000)
    };
    bench.hears(&Heard::Held(Held {
        is_paused: false,
        caps: vec![ahead],
        leases: Vec::new(),
    }));
    assert_eq!(bench.errand(1, Round::Whole), None);
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    assert_eq!(bench.asks_for(2).want, usd(1));
    bench.is_answered(granted(7, 1, totals(1, 0, 0)));
    let entry = *bench.engine.flights.keys().next().unwrap();
    bench.settle_on(entry, 10);
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    assert_eq!(
        bench.asks_for(3).want,
        usd(9 + 4 * 10),
        "one request, with room to grow"
    );
}

/// An ephemeral one's ledger is a copy of one with an allowance, as from a golden image.
#[test]
fn one_that_is_gone_soon_or_for_good_keeps_no_allowance() {
    for (is_ephemeral, round, back) in [
        (true, Round::Last, 690),
        (false, Round::Leave, 690),
        (false, Round::Last, 190),
    ] {
        let mut bench = with_an_allowance(is_ephemeral);
        bench.admitted("a");
        let entry = *bench.engine.flights.keys().next().unwrap();
        bench.settle_on(entry, 10);
        let Some(Errand::GiveBack(part)) = bench.errand(1, round) else {
            panic!("the rest is open");
        };
        assert_eq!(part.amount, usd(back), "{round:?}");
    }
}

#[test]
fn an_allowance_is_leased_ahead_once_a_window_and_is_kept_when_idle() {
    let mut bench = with_an_allowance(false);
    for far in 1..=2 {
        let ask = bench.asks_for(far.into());
        assert_eq!((ask.ahead, ask.want), (far, usd(500)));
        bench.is_answered(LeaseAnswer::Share { limit: usd(10_000) });
    }
    assert_eq!(bench.errand(3, Round::Ask), None, "once");
    bench.admitted("a");
    let entry = *bench.engine.flights.keys().next().unwrap();
    bench.ends_on(entry, State::Failed);
    bench.pass(60_000);
    let Some(Errand::GiveBack(part)) = bench.errand(4, Round::Whole) else {
        panic!("the rest is idle");
    };
    assert_eq!(
        part.amount,
        usd(200),
        "the allowance stays for the time away"
    );
}

/// The laptop of the weekend: Saturday's part is for Saturday, and nothing of it for Sunday.
#[test]
fn away_each_window_has_the_part_that_was_leased_of_it_and_nothing_carries_over() {
    let mut bench = obeying();
    let next = Window::of(Period::Hour, window().until_ms, &TimeZone::UTC);
    let mut ahead = live(8, totals(50, 0, 0), 2 * HOUR);
    ahead.lease.window = next;
    ahead.begins_in_ms = HOUR;
    bench.engine.shared.present();
    bench.presents(&[live(7, totals(1_000, 0, 0), HOUR), ahead]);
    let (entry, _) = bench.admitted("a");
    assert_eq!(bench.leases_of(entry), [7]);
    bench.settle_on(entry, 20);
    bench.engine.shared.away();

    bench.pass(HOUR);
    for spent in [20, 40, 60] {
        let (entry, _) = bench.admitted("a");
        assert_eq!(bench.leases_of(entry), [8]);
        bench.settle_on(entry, 20);
        assert_eq!(bench.counted(8), (spent, 0));
    }
    assert_eq!(bench.counted(7), (20, 0));
    assert_eq!(bench.refuses(), SharedWhy::Away);
    bench.pass(HOUR);
    assert_eq!(bench.refuses(), SharedWhy::Away);
}
