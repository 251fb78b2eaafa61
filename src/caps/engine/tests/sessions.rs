//! The caps of sessions: one session is stopped, and no other.

use super::*;
use crate::config::SessionLimits;
use crate::ledger::marks::SessionHasher;
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::{RunSoFar, SESSIONS_MAX};

fn session(id: &str) -> Session {
    SessionHasher::default().session("a", id)
}

fn bench(cap: Option<u64>, requests: Option<u64>) -> Bench {
    let caps = config::CapsTable {
        warn_at: Vec::new(),
        time_zone: TimeZone::UTC,
        all: Limits::default(),
        request_floor: usd(10),
    };
    let app = App {
        session: SessionLimits {
            cap: cap.map(usd),
            requests,
        },
        ..App::new("a")
    };
    Bench::new(Rules::new(&caps, &[app, App::new("b")]))
}

impl Bench {
    fn ask_of_session(&mut self, app: &str, id: &str) -> Became {
        let ask = Ask {
            session: Some(session(id)),
            ..self.asks(app, Operation::Chat)
        };
        self.put(ask)
    }

    fn buy_in(&mut self, id: &str, price: u64) {
        match self.ask_of_session("a", id) {
            Became::Admitted(entry, _) => self.settle(entry, "a", price),
            other => panic!("{other:?}"),
        }
    }

    /// The ledger has it from an earlier time.
    fn bought_in(&mut self, app: &str, id: &str, price: u64) {
        let bought = Unbooked {
            app: Arc::from(app),
            session: Some(session(id).hash),
            leases: Leases::default(),
            at_ms: NOON,
            charge: Charge {
                billed: usd(price).into(),
                ..Charge::default()
            },
        };
        self.engine.usage.add(&bought.charged(Operation::Chat));
    }

    fn is_stopped(&mut self, id: &str) -> String {
        match self.ask_of_session("a", id) {
            Became::Refused(text) => text,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_session_at_its_cap_is_stopped_and_others_go_on() {
    let mut bench = bench(Some(100), None);
    bench.buy_in("loop-0001", 60);
    bench.buy_in("loop-0001", 60);
    let text = bench.is_stopped("loop-0001");
    for part in [
        "oop-0001.",
        "app a",
        "$0.000100",
        "$0.000120",
        "session_cap_micro_usd",
        "Nothing was sent",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    bench.buy_in("another", 60);
    bench.buy("a", 60);
    let of_other_app = bench.ask_of_session("b", "loop-0001");
    assert!(
        matches!(of_other_app, Became::Admitted(..)),
        "{of_other_app:?}"
    );
}

#[test]
fn a_number_of_requests_stops_a_loop_that_costs_next_to_nothing() {
    let mut bench = bench(None, Some(3));
    for _ in 0..2 {
        bench.buy_in("s", 1);
    }
    let Became::Admitted(third, _) = bench.ask_of_session("a", "s") else {
        panic!("the third goes");
    };
    let Became::Waits(fourth) = bench.ask_of_session("a", "s") else {
        panic!("the third may come to nothing");
    };
    bench.end(third, "a", State::Failed);
    assert!(matches!(bench.became(fourth), Became::Admitted(..)));
    bench.settle(fourth, "a", 1);
    assert!(bench.is_stopped("s").contains("may make 3 requests"));
}

#[test]
fn a_session_that_waits_for_room_delays_no_other_request() {
    let mut bench = bench(Some(100), None);
    bench.buy_in("s", 40);
    let Became::Admitted(first, _) = bench.ask_of_session("a", "s") else {
        panic!("there is room for one");
    };
    let Became::Waits(second) = bench.ask_of_session("a", "s") else {
        panic!("and for no other beside it");
    };
    bench.buy_in("t", 40);
    bench.buy("a", 40);
    bench.settle(first, "a", 70);
    let became = bench.became(second);
    assert!(matches!(became, Became::Refused(_)), "{became:?}");
}

#[test]
fn a_refusal_after_waiting_names_the_limit_that_was_waited_for_also_inside_a_run() {
    for (cap, of_run, words) in [
        (100, 1_000, "the cap of the session oop-0001."),
        (1_000, 100, "the limit of the run 0199-run of a"),
    ] {
        let mut bench = bench(Some(cap), None);
        bench.buy_in("loop-0001", 40);
        let run = Arc::from("0199-run");
        bench
            .engine
            .runs
            .open(&run, usd(of_run), RunSoFar::default());
        let mut asks = || {
            let ask = Ask {
                run: Some(Arc::clone(&run)),
                session: Some(session("loop-0001")),
                ..bench.asks("a", Operation::Chat)
            };
            bench.put(ask)
        };
        let first = asks();
        assert!(matches!(first, Became::Admitted(..)), "{first:?}");
        let Became::Waits(second) = asks() else {
            panic!("there is room for one");
        };
        let text = bench.engine.late(second, 60, NOON).to_string();
        assert!(text.contains(words) && text.contains("60 s"), "{text}");
    }
}

#[test]
fn a_repeat_of_what_is_charged_passes_at_the_cap() {
    let mut bench = bench(Some(50), Some(1));
    bench.buy_in("s", 60);
    let ask = Ask {
        session: Some(session("s")),
        repeats: Some(Repeats {
            since_ms: NOON,
            from: Vec::new(),
        }),
        ..bench.asks("a", Operation::Chat)
    };
    assert!(matches!(bench.put(ask), Became::Admitted(..)));
    bench.is_stopped("s");
}

#[test]
fn a_restart_forgets_no_session() {
    let mut bench = bench(Some(100), None);
    bench.buy_in("s", 120);
    let usage = std::mem::take(&mut bench.engine.usage);
    bench.engine = Engine::new(bench.engine.rules.clone(), Orders::default());
    bench.engine.update(&UsageUpdate::All {
        usage,
        ended: Vec::new(),
    });
    bench.is_stopped("s");
    bench.buy_in("t", 1);
}

#[test]
fn what_the_ledger_could_not_write_yet_counts() {
    let mut bench = bench(Some(100), None);
    let Became::Admitted(entry, _) = bench.ask_of_session("a", "s") else {
        panic!("it goes");
    };
    let billed = usd(120);
    bench
        .engine
        .release(entry, FlightEnd::Settled(State::Settled { billed }));
    bench.is_stopped("s");
}

#[test]
fn sessions_beyond_ten_thousand_share_one_cap() {
    let mut bench = bench(Some(100), None);
    for number in 0..SESSIONS_MAX {
        bench.bought_in("a", &format!("old {number}"), 1);
    }
    bench.buy_in("new 1", 60);
    let Became::Admitted(second, _) = bench.ask_of_session("a", "new 2") else {
        panic!("there is room for one");
    };
    let Became::Waits(third) = bench.ask_of_session("a", "new 3") else {
        panic!("and for no other session beside it");
    };
    let text = bench.engine.late(third, 60, NOON).to_string();
    assert!(text.contains("the sessions of a beyond 10000"), "{text}");
    bench.settle(second, "a", 60);
    let Became::Refused(text) = bench.became(third) else {
        panic!("nothing is left");
    };
    for part in [
        "The app a has 10000 sessions",
        "share one cap, which is reached",
        "together they may cost $0.000100 (session_cap_micro_usd)",
        "$0.000120",
        "silent for 35 days",
        "Nothing was sent",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    for untrue in ["explain", "cap of its own"] {
        assert!(!text.contains(untrue), "{untrue:?} is in {text}");
    }
    bench.is_stopped("new 4");
    bench.buy_in("old 7", 60);
}

#[test]
fn what_a_session_was_billed_is_of_one_app_or_of_all_and_unknown_where_sums_are_shared() {
    let mut bench = bench(None, None);
    bench.bought_in("a", "s", 7);
    bench.bought_in("b", "s", 30);
    for number in 0..=SESSIONS_MAX {
        bench.bought_in("full", &number.to_string(), 1);
    }
    let billed = |app, id| {
        let billed = bench.engine.sessions().billed(app, |_| session(id).hash);
        billed.map(MicroUsdSum::get)
    };
    assert_eq!(billed(Some("a"), "s"), Some(7));
    assert_eq!(billed(None, "s"), Some(37));
    assert_eq!(billed(Some("full"), "s"), None);
    assert_eq!(billed(None, "t"), None);
    assert_eq!(billed(Some("full"), "0"), Some(1));
    let late = SESSIONS_MAX.to_string();
    assert_eq!(billed(Some("full"), &late), None, "it shares its sum");
}
