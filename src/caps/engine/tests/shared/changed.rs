//! A cap whose period is changed while leases of it are out.

use super::*;

/// A longer one has a window that began earlier, a shorter one that begins later.
fn changes() -> [(Window, Window); 2] {
    let day = Window::of(Period::Day, NOON, &TimeZone::UTC);
    assert!(day.since_ms < window().since_ms);
    [(window(), day), (day, window())]
}

fn of_window(lease: u128, amount: u64, window: Window) -> LiveLease {
    let mut live = live(lease, totals(amount, 0, 0), HOUR);
    live.lease.window = window;
    live
}

/// It has 10 of this amount billed.
fn holding(amount: u64, window: Window) -> Bench {
    let mut bench = obeying();
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
    bench.asks_for(1);
    bench.is_answered(grants(7, amount, window));
    let entry = *bench.engine.flights.keys().next().unwrap();
    assert_eq!(bench.leases_of(entry), [7]);
    bench.settle_on(entry, 10);
    bench
}

fn grants(lease: u128, amount: u64, window: Window) -> LeaseAnswer {
    LeaseAnswer::Granted(Grant {
        lease: of_window(lease, amount, window),
        amount: usd(amount),
        left: MicroUsd::ZERO,
        limit: usd(10_000),
    })
}

/// The holder has not heard of the change: the grant is the first to say so.
#[test]
fn what_is_granted_of_the_new_window_is_spent_and_is_asked_for_once() {
    for (old, new) in changes() {
        let mut bench = holding(10, old);
        let Became::Waits(entry) = bench.ask("a") else {
            panic!("its slice is used up");
        };
        assert_eq!(bench.asks_for(2).ahead, 0);

        bench.is_answered(grants(8, 500, new));

        assert!(matches!(bench.became(entry), Became::Admitted(..)));
        assert_eq!(bench.leases_of(entry), [8], "{new:?}");
        assert_eq!(bench.errand(3, Round::Ask), None, "{new:?}");
    }
}

#[test]
fn before_a_grant_of_the_new_window_what_is_open_of_the_old_is_spent() {
    for (old, new) in changes() {
        let mut bench = holding(1_000, old);
        orders(&mut bench, new, vec![of_window(7, 1_000, old)]);
        let (entry, _) = bench.admitted("a");
        assert_eq!(bench.leases_of(entry), [7], "{new:?}");
    }
}

#[test]
fn after_it_that_goes_back_at_once() {
    for (old, new) in changes() {
        let mut bench = holding(1_000, old);
        let (under_way, _) = bench.admitted("a");
        let mut leases = vec![of_window(7, 1_000, old), of_window(8, 500, new)];
        leases.sort_by_key(|live| live.lease.window.since_ms);
        orders(&mut bench, new, leases);

        let (entry, _) = bench.admitted("a");
        assert_eq!(bench.leases_of(entry), [8], "{new:?}");
        assert_eq!(
            bench.errand(2, Round::Whole),
            None,
            "something is under way on the old one"
        );
        bench.settle_on(under_way, 10);
        let part = GiveBack {
            lease: Uuid::from_u128(7),
            number: 1,
            amount: usd(1_000 - 2 * 10),
            up_to_seq: 0,
        };
        assert_eq!(
            bench.errand(2, Round::Whole),
            Some(Errand::GiveBack(part)),
            "{new:?}"
        );
    }
}

/// The window is not known after it, and the database is away.
#[test]
fn after_a_restart_what_is_open_is_spent() {
    for (old, new) in changes() {
        let mut slices = Vec::new();
        for (mut live, billed) in [(of_window(7, 100, old), 100), (of_window(8, 500, new), 0)] {
            live.billed = MicroUsdSum::from_micro_usd(billed);
            let call = Call {
                began_up_ms: 0,
                ended_up_ms: 0,
            };
            slices.push(Slice::of(&live, call));
        }
        slices.sort_by_key(|slice| slice.window.since_ms);
        let mut bench = Bench::new(rules(Limits::default(), &[], 0));
        let names = [TEAM.to_owned()];
        bench.engine.shared.obey(&names, false, slices, false);
        bench.engine.shared.away();

        let (entry, _) = bench.admitted("a");

        assert_eq!(bench.leases_of(entry), [8], "{new:?}");
    }
}

/// The same, where the database had heard nothing of what was spent of the old lease.
#[test]
fn after_a_restart_what_this_ledger_knows_to_be_used_up_is_passed_over() {
    for (old, new) in changes() {
        let mut bench = holding(10, old);
        let mut slices = Vec::new();
        for live in [of_window(7, 10, old), of_window(8, 500, new)] {
            let call = Call {
                began_up_ms: 0,
                ended_up_ms: 0,
            };
            slices.push(Slice::of(&live, call));
        }
        slices.sort_by_key(|slice| slice.window.since_ms);
        let names = [TEAM.to_owned()];
        bench.engine.shared.obey(&names, false, slices, false);
        bench.engine.shared.away();

        let (entry, _) = bench.admitted("a");

        assert_eq!(bench.leases_of(entry), [8], "{new:?}");
    }
}

/// With the next hello.
fn orders(bench: &mut Bench, window: Window, leases: Vec<LiveLease>) {
    bench.engine.shared.present();
    let Some(Errand::Present(_)) = bench.errand(0, Round::Ask) else {
        panic!("it presents what it holds first");
    };
    let ordered = SharedCap {
        window,
        ..order(10_000)
    };
    bench.hears(&Heard::Held(Held {
        is_paused: false,
        caps: vec![ordered],
        leases,
    }));
}
