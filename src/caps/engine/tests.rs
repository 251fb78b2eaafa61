use jiff::tz::TimeZone;
use tokio::sync::oneshot;

use super::*;
use crate::caps::orders::{Frozen, Raise};
use crate::config::{self, App, Limits};
use crate::ledger::entry::{InDoubt, Leases};
use crate::ledger::totals::Standing;
use crate::protocol::Operation;

mod bound;
mod escalated;
mod others;
mod runs;
mod sessions;
mod shared;
mod today;

/// 2026-03-29T12:10:00Z.
const NOON: u64 = 1_774_786_200_000;
const HOUR: u64 = 3_600_000;

fn usd(micro: u64) -> MicroUsd {
    MicroUsd::new(micro)
}

fn limits(hour: Option<u64>, day: Option<u64>) -> Limits {
    Limits {
        hour: hour.map(usd),
        day: day.map(usd),
        month: None,
    }
}

fn rules(all: Limits, apps: &[(&str, Limits)], floor: u64) -> Rules {
    let caps = config::CapsTable {
        warn_at: Vec::new(),
        time_zone: TimeZone::UTC,
        all,
        request_floor: usd(floor),
    };
    let apps: Vec<App> = apps
        .iter()
        .map(|(name, limits)| App {
            limits: *limits,
            ..App::new(*name)
        })
        .collect();
    Rules::new(&caps, &apps)
}

/// An engine with a book of what the service really billed.
struct Bench {
    engine: Engine,
    now_ms: u64,
    numbers: u128,
    ways: Vec<(EntryId, oneshot::Receiver<Decision>)>,
}

/// What became of an ask.
#[derive(Debug, PartialEq, Eq)]
enum Became {
    Admitted(EntryId, u64),
    Waits(EntryId),
    Refused(String),
}

impl Bench {
    fn new(rules: Rules) -> Self {
        Self {
            engine: Engine::new(rules, Orders::default()),
            now_ms: NOON,
            numbers: 0,
            ways: Vec::new(),
        }
    }

    fn ask(&mut self, app: &str) -> Became {
        self.ask_of(app, Operation::Chat, 100, None)
    }

    fn ask_of(
        &mut self,
        app: &str,
        operation: Operation,
        request_bytes: u64,
        charged_since_ms: Option<u64>,
    ) -> Became {
        let ask = Ask {
            request_bytes,
            repeats: charged_since_ms.map(|since_ms| Repeats {
                since_ms,
                from: Vec::new(),
            }),
            ..self.asks(app, operation)
        };
        self.put(ask)
    }

    fn asks(&mut self, app: &str, operation: Operation) -> Ask {
        self.numbers += 1;
        Ask {
            entry: EntryId(Uuid::from_u128(self.numbers)),
            app: Arc::from(app),
            run: None,
            session: None,
            operation,
            request_bytes: 100,
            repeats: None,
        }
    }

    fn put(&mut self, ask: Ask) -> Became {
        let entry = ask.entry;
        let (way, decision) = oneshot::channel();
        let answers = self.engine.ask(ask, way, self.now_ms);
        self.ways.push((entry, decision));
        self.send(answers);
        self.became(entry)
    }

    /// As the handle does it.
    fn send(&mut self, answers: Answers) {
        let gone = answers.send();
        if !gone.is_empty() {
            let answers = self.engine.let_go(gone, self.now_ms);
            self.send(answers);
        }
    }

    fn became(&mut self, entry: EntryId) -> Became {
        let at = self.ways.iter().position(|(id, _)| *id == entry).unwrap();
        match self.ways[at].1.try_recv() {
            Ok(Ok(going)) => {
                self.ways.remove(at);
                Became::Admitted(entry, going.reserved.get())
            }
            Ok(Err(refused)) => {
                self.ways.remove(at);
                Became::Refused(refused.to_string())
            }
            Err(oneshot::error::TryRecvError::Empty) => Became::Waits(entry),
            Err(error) => panic!("{error}"),
        }
    }

    fn admitted(&mut self, app: &str) -> (EntryId, u64) {
        match self.ask(app) {
            Became::Admitted(entry, reserved) => (entry, reserved),
            other => panic!("{other:?}"),
        }
    }

    fn refused(&mut self, app: &str) -> String {
        match self.ask(app) {
            Became::Refused(text) => text,
            other => panic!("{other:?}"),
        }
    }

    /// The ledger reports the end of an entry, and the permit is dropped.
    fn end(&mut self, entry: EntryId, app: &str, state: State) {
        self.end_with_frontier(entry, app, state, 0);
    }

    /// The same, of an answer that carries the frontier's price.
    fn end_with_frontier(&mut self, entry: EntryId, app: &str, state: State, frontier: u64) {
        let reserved = self.engine.flights[&entry].reserved;
        let at_ms = self.engine.flights[&entry].at_ms;
        let operation = self.engine.flights[&entry].ask.operation;
        let bytes = self.engine.flights[&entry].ask.request_bytes;
        let run = self.engine.flights[&entry].ask.run.clone();
        let session = self.engine.flights[&entry].ask.session;
        let mut charged = Charged {
            run: run.map(|run| run.to_string()),
            session: session.map(|session| session.hash),
            ..charged(entry, app, operation, at_ms, state, reserved, bytes)
        };
        if frontier > 0 {
            charged.price = Price::Reported {
                billed: state.adds(),
                frontier: usd(frontier),
                bytes,
            };
        }
        self.engine.update(&UsageUpdate::Records(vec![charged]));
        self.engine.release(entry, FlightEnd::Settled(state));
        let answers = self.engine.serve(self.now_ms);
        self.send(answers);
    }

    fn settle(&mut self, entry: EntryId, app: &str, price: u64) {
        let billed = usd(price);
        self.end(entry, app, State::Settled { billed });
    }

    /// One purchase from beginning to end.
    fn buy(&mut self, app: &str, price: u64) {
        let (entry, _) = self.admitted(app);
        self.settle(entry, app, price);
    }
}

fn charged(
    entry: EntryId,
    app: &str,
    operation: Operation,
    at_ms: u64,
    state: State,
    reserved: MicroUsd,
    bytes: u64,
) -> Charged {
    let amount = state.adds();
    let mut charge = Charge {
        billed: amount.into(),
        ..Charge::default()
    };
    if state.is_unresolved() {
        charge.held.came = reserved.into();
    }
    Charged {
        entry: Some(entry),
        app: Arc::from(app),
        run: None,
        session: None,
        leases: Leases::default(),
        requests: u64::from(state != State::Failed),
        operation,
        at_ms,
        charge,
        doubts: Standing {
            came: u64::from(matches!(state, State::InDoubt { .. })),
            ..Standing::default()
        },
        price: match state {
            State::Unreported => Price::Unreported,
            State::Settled { .. } if amount.is_zero() => Price::Unreported,
            _ if amount.is_zero() => Price::Nothing,
            _ => Price::Reported {
                billed: amount,
                frontier: MicroUsd::ZERO,
                bytes,
            },
        },
    }
}

const DOUBT: State = State::InDoubt {
    reason: InDoubt::Crash,
};

#[test]
fn without_caps_everybody_goes_and_reservations_are_made_all_the_same() {
    let mut bench = Bench::new(rules(Limits::default(), &[], 70));
    for _ in 0..500 {
        assert_eq!(bench.admitted("a").1, 70);
    }
    assert_eq!(bench.engine.under(&Scope::All).requests(), 500);
}

#[test]
fn the_first_of_its_kind_goes_alone_until_its_price_is_known() {
    let own = [("a", limits(None, Some(100_000)))];
    let mut bench = Bench::new(rules(Limits::default(), &own, 10));
    let (first, reserved) = bench.admitted("a");
    assert_eq!(reserved, 10, "the floor, for want of a price");
    let Became::Waits(second) = bench.ask("a") else {
        panic!("a second one beside the first unknown price");
    };
    bench.settle(first, "a", 300);
    assert_eq!(bench.became(second), Became::Admitted(second, 300));
    let Became::Admitted(third, 300) = bench.ask("a") else {
        panic!("there is room for many now");
    };
    let Became::Waits(other_kind) = bench.ask_of("a", Operation::Speech, 10, None) else {
        panic!("nothing says what speech costs");
    };
    bench.settle(second, "a", 300);
    bench.settle(third, "a", 300);
    assert!(matches!(bench.became(other_kind), Became::Admitted(..)));
}

#[test]
fn a_kind_that_never_reports_a_price_goes_beside_others_after_its_first_answer() {
    let mut bench = Bench::new(rules(limits(None, Some(100_000)), &[], 10));
    let first = match bench.ask_of("a", Operation::Speech, 10, None) {
        Became::Admitted(entry, _) => entry,
        other => panic!("{other:?}"),
    };
    bench.end(first, "a", State::Unreported);
    for _ in 0..5 {
        let became = bench.ask_of("a", Operation::Speech, 10, None);
        assert!(matches!(became, Became::Admitted(_, 10)), "{became:?}");
    }
    let view = bench
        .engine
        .counted(&Scope::All, &bench.engine.caps[&(Scope::All, Period::Day)]);
    assert_eq!(view.held.now(), 10, "its reservation stays charged");
    assert!(view.billed.is_zero(), "and is no billed money");
}

/// Such a kind may report a price all the same: an agent turn that is not a stream does.
#[test]
fn a_kind_without_a_price_so_far_counts_with_four_times_what_is_held() {
    let mut bench = Bench::new(rules(limits(None, Some(100)), &[], 10));
    let (first, _) = bench.admitted("a");
    bench.end(first, "a", State::Unreported);
    // 90 are left: two of up to 40 fit beside each other.
    for _ in 0..2 {
        bench.admitted("a");
    }
    assert!(matches!(bench.ask("a"), Became::Waits(_)));
}

#[test]
fn near_the_cap_requests_go_one_at_a_time_and_at_the_cap_none_does() {
    let mut bench = Bench::new(rules(limits(None, Some(999)), &[], 0));
    bench.buy("a", 100);
    // 899 are left: two of up to 400 fit beside each other, a third does not.
    let (one, _) = bench.admitted("a");
    let (two, _) = bench.admitted("a");
    let Became::Waits(three) = bench.ask("a") else {
        panic!("three may cost 1200");
    };
    bench.settle(one, "a", 100);
    assert!(matches!(bench.became(three), Became::Waits(_)));
    bench.settle(two, "a", 100);
    assert!(matches!(bench.became(three), Became::Admitted(..)));
    bench.settle(three, "a", 100);
    for spent in [500, 600, 700, 800, 900] {
        bench.buy("a", 100);
        let cap = &bench.engine.caps[&(Scope::All, Period::Day)];
        assert_eq!(cap.charge.billed.get(), spent);
    }
    let (last, _) = bench.admitted("a");
    let Became::Waits(behind) = bench.ask("a") else {
        panic!("what is under way may leave room");
    };
    bench.settle(last, "a", 100);
    assert!(matches!(bench.became(behind), Became::Refused(_)));
    let text = bench.refused("a");
    for part in [
        "all apps together",
        "$0.000999",
        "day",
        "2026-03-30 00:00:00 (UTC)",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_cap_of_zero_allows_nothing_and_one_of_another_app_does_not_count() {
    let mut bench = Bench::new(rules(Limits::default(), &[("a", limits(Some(0), None))], 0));
    assert!(bench.refused("a").contains("the app a"));
    bench.admitted("b");
}

#[test]
fn a_new_window_begins_with_nothing_spent_and_admits_a_waiting_request() {
    let mut bench = Bench::new(rules(limits(Some(100), None), &[], 0));
    bench.buy("a", 100);
    bench.refused("a");
    bench.now_ms += HOUR;
    let (entry, _) = bench.admitted("a");
    let Became::Waits(waiting) = bench.ask("a") else {
        panic!("no room");
    };
    // Its price counts for the hour it began in.
    bench.now_ms += HOUR;
    bench.settle(entry, "a", 100);
    assert!(matches!(bench.became(waiting), Became::Admitted(..)));
    let cap = &bench.engine.caps[&(Scope::All, Period::Hour)];
    assert!(cap.charge.billed.is_zero());
}

#[test]
fn what_failed_gives_back_at_once_and_what_is_in_doubt_holds() {
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 400);
    let (failed, _) = bench.admitted("a");
    bench.end(failed, "a", State::Failed);
    let (doubtful, _) = bench.admitted("a");
    bench.end(doubtful, "a", DOUBT);
    let cap = &bench.engine.caps[&(Scope::All, Period::Day)];
    assert_eq!(cap.charge.billed.get(), 400);
    assert_eq!(cap.charge.held.now(), 400);
    let (last, _) = bench.admitted("a");
    bench.end(last, "a", DOUBT);
    bench.refused("a");
    // Evidence: the first of the two cost 10.
    let mut evidence = charged(
        doubtful,
        "a",
        Operation::Chat,
        NOON,
        State::Reconciled { billed: usd(10) },
        usd(400),
        0,
    );
    evidence.charge.held.left = usd(400).into();
    bench.engine.update(&UsageUpdate::Records(vec![evidence]));
    bench.admitted("a");
}

#[test]
fn a_repeat_takes_the_charge_over_and_passes_at_the_cap() {
    let mut bench = Bench::new(rules(limits(Some(100), None), &[], 0));
    bench.buy("a", 100);
    bench.refused("a");
    let repeat = bench.ask_of("a", Operation::Chat, 100, Some(NOON));
    assert!(matches!(repeat, Became::Admitted(_, 0)), "{repeat:?}");
    // In a later window what it repeats is not charged: it is reserved for, and passes.
    bench.now_ms += HOUR;
    let later = bench.ask_of("a", Operation::Chat, 100, Some(NOON));
    assert!(matches!(later, Became::Admitted(_, 100)), "{later:?}");
}

#[test]
fn while_a_repeat_is_under_way_requests_wait_for_the_held_amount_that_it_may_free() {
    let mut bench = Bench::new(rules(limits(Some(100), None), &[], 0));
    bench.buy("a", 50);
    let (doubtful, _) = bench.admitted("a");
    bench.end(doubtful, "a", DOUBT);
    let Became::Admitted(repeat, 0) = bench.ask_of("a", Operation::Chat, 100, Some(NOON)) else {
        panic!("a repeat passes");
    };
    let Became::Waits(waiting) = bench.ask("a") else {
        panic!("50 are billed, 50 held, and the repeat may show that they are not owed");
    };
    bench.end(repeat, "a", DOUBT);
    assert!(
        matches!(bench.became(waiting), Became::Refused(_)),
        "nothing may make room any more"
    );
}

#[test]
fn a_dearer_receipt_raises_what_is_under_way() {
    let mut bench = Bench::new(rules(limits(None, Some(100_000)), &[], 0));
    bench.buy("a", 10);
    let (one, _) = bench.admitted("a");
    let (_two, _) = bench.admitted("a");
    assert_eq!(bench.engine.under(&Scope::All).reserved(), 20);
    bench.settle(one, "a", 700);
    assert_eq!(bench.engine.under(&Scope::All).reserved(), 700);
}

#[test]
fn a_body_larger_than_all_before_is_taken_to_cost_more() {
    let mut bench = Bench::new(rules(limits(None, Some(1_000_000)), &[], 0));
    bench.buy("a", 10);
    for (bytes, reserved) in [(50, 10), (100, 10), (101, 11), (250, 25), (1_000_000, 160)] {
        let became = bench.ask_of("a", Operation::Chat, bytes, None);
        let Became::Admitted(_, got) = became else {
            panic!("{became:?}");
        };
        assert_eq!(got, reserved, "{bytes} bytes");
    }
}

#[test]
fn apps_take_turns_and_the_requests_of_one_keep_their_order() {
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 200);
    bench.buy("b", 200);
    let (mut running, mut app) = (bench.admitted("a").0, "a");
    let mut waiting = Vec::new();
    for name in ["a", "a", "a", "b", "b"] {
        let Became::Waits(entry) = bench.ask(name) else {
            panic!("600 left and up to 800 under way");
        };
        waiting.push((entry, name));
    }
    let mut order = Vec::new();
    while !waiting.is_empty() {
        bench.settle(running, app, 1);
        let admitted: Vec<_> = waiting
            .iter()
            .copied()
            .filter(|(entry, _)| matches!(bench.became_or_gone(*entry), Some(true)))
            .collect();
        assert_eq!(admitted.len(), 1, "one at a time");
        (running, app) = admitted[0];
        waiting.retain(|(entry, _)| *entry != running);
        order.push(app);
    }
    assert_eq!(order, ["a", "b", "a", "b", "a"]);
}

impl Bench {
    fn became_or_gone(&mut self, entry: EntryId) -> Option<bool> {
        self.ways
            .iter()
            .any(|(id, _)| *id == entry)
            .then(|| matches!(self.became(entry), Became::Admitted(..)))
    }
}

#[test]
fn a_freeze_refuses_waiting_requests_and_an_edited_or_raised_cap_keeps_what_was_spent() {
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 300);
    let (running, _) = bench.admitted("a");
    let Became::Waits(waiting) = bench.ask("a") else {
        panic!("no room");
    };
    let frozen = Frozen {
        since_ms: NOON,
        by: "uid 1000".to_owned(),
    };
    bench.engine.orders = bench.engine.orders.freeze(Some("a"), frozen);
    let answers = bench.engine.serve(NOON);
    bench.send(answers);
    let Became::Refused(text) = bench.became(waiting) else {
        panic!("still in line");
    };
    assert!(
        text.contains("uid 1000") && text.contains("bursar thaw a"),
        "{text}"
    );
    assert!(bench.refused("a").contains("frozen"));
    let Became::Waits(other) = bench.ask("b") else {
        panic!("no room, and not frozen");
    };
    bench.settle(running, "a", 300);
    assert!(matches!(bench.became(other), Became::Admitted(..)));
    bench.engine.orders = bench.engine.orders.thaw(Some("a"));

    bench
        .engine
        .reload(rules(limits(Some(500), Some(1_000)), &[], 0));
    assert!(
        bench.refused("a").contains("in the hour"),
        "600 were spent in it"
    );
    let raise = bench
        .engine
        .rules
        .raise(None, Period::Hour, usd(700), NOON)
        .unwrap();
    assert_eq!(raise.until_ms - raise.since_ms, HOUR);
    bench.engine.obey(bench.engine.orders.raise(raise, NOON));
    bench.numbers += 1_000;
    assert!(
        matches!(bench.ask("b"), Became::Waits(_)),
        "b's first is under way"
    );
    bench.now_ms += HOUR;
    bench.engine.roll(bench.now_ms);
    let cap = &bench.engine.caps[&(Scope::All, Period::Hour)];
    assert_eq!((cap.limit, cap.configured), (usd(500), usd(500)));
}

#[test]
fn an_end_that_cannot_be_written_counts_from_memory_until_it_is() {
    let mut bench = Bench::new(rules(limits(None, Some(1_000)), &[], 0));
    bench.buy("a", 300);
    let (entry, _) = bench.admitted("a");
    let state = State::Settled { billed: usd(650) };
    bench.engine.release(entry, FlightEnd::Settled(state));
    let counted = |bench: &Bench| {
        let cap = &bench.engine.caps[&(Scope::All, Period::Day)];
        bench.engine.counted(&Scope::All, cap).billed.get()
    };
    assert_eq!(counted(&bench), 950);
    let late = charged(entry, "a", Operation::Chat, NOON, state, usd(300), 100);
    bench.engine.update(&UsageUpdate::Records(vec![late]));
    assert_eq!(counted(&bench), 950, "once");
    let (lost, _) = bench.admitted("a");
    bench.engine.release(lost, FlightEnd::Unknown);
    assert!(
        bench.refused("a").contains("reached"),
        "held at the dearest"
    );
}

#[test]
fn raising_says_what_cannot_be_raised() {
    let rules = rules(limits(None, Some(1_000)), &[], 0);
    assert!(
        rules
            .raise(Some("a"), Period::Day, usd(2_000), NOON)
            .is_err()
    );
    assert!(rules.raise(None, Period::Hour, usd(2_000), NOON).is_err());
    assert!(rules.raise(None, Period::Day, usd(999), NOON).is_err());
    let raise = Raise {
        app: None,
        period: Period::Day,
        since_ms: NOON - NOON % (24 * HOUR),
        until_ms: NOON - NOON % (24 * HOUR) + 24 * HOUR,
        to_micro_usd: usd(2_000),
        configured_micro_usd: Some(usd(1_000)),
    };
    assert_eq!(
        rules.raise(None, Period::Day, usd(2_000), NOON).unwrap(),
        raise
    );
}
