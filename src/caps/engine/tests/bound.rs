//! The bound that `bursar caps` states, in random worlds of asks, ends and kills.

use proptest::prelude::*;

use super::*;
use crate::ledger::usage::{Dearest, RunSoFar};

/// One step of a world.
#[derive(Clone, Debug)]
enum Step {
    Ask {
        app: u8,
        operation: bool,
        in_run: bool,
    },
    /// The n-th of what is under way ends; its price is this many quarters of the dearest that was
    /// billed of its kind when it was admitted, or, escalated, so many sixteenths of the dearest at the
    /// frontier's price.
    End {
        which: usize,
        quarters: u64,
        is_escalated: bool,
        state: u8,
    },
    Kill,
}

/// What was known of a kind's price when a request of it was admitted.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// No price is known at all.
    Nothing,
    /// No answer of its kind came; so much is held for the request, for what others cost.
    New(u64),
    /// Answers came, and none reported a price; so much is held for the request.
    Unreported(u64),
    Reported(Dearest),
}

/// A request under way.
struct Request {
    entry: EntryId,
    app: &'static str,
    operation: Operation,
    in_run: bool,
    known: Known,
}

impl Known {
    fn of(bench: &Bench, app: &str, operation: Operation) -> Self {
        let mut all = bench.engine.usage.all_prices().values();
        let others = all.any(|prices| prices.dearest().is_some());
        match bench.engine.usage.prices(&Arc::from(app), operation) {
            None if others => Self::New(0),
            None => Self::Nothing,
            Some(prices) => prices.dearest().map_or(Self::Unreported(0), Self::Reported),
        }
    }

    fn held(self, bench: &Bench, entry: EntryId) -> Self {
        let reserved = bench.engine.flights[&entry].reserved.get();
        match self {
            Self::Unreported(_) if reserved == 0 => Self::Nothing,
            Self::Unreported(_) => Self::Unreported(reserved),
            Self::New(_) => Self::New(reserved),
            known => known,
        }
    }

    /// At most four times what was billed, or once the frontier's price; of a new kind 16 times what was
    /// known of others, and with nothing known at most `first`. `quarters`: 0 to 16.
    fn price(self, first: u64, quarters: u64, is_escalated: bool) -> u64 {
        match self {
            Self::Nothing => first * quarters / 16,
            Self::New(known) => known * quarters,
            Self::Unreported(known) => known * quarters / 4,
            Self::Reported(dearest) if is_escalated => dearest.frontier.get() * quarters / 16,
            Self::Reported(dearest) => dearest.billed.get() * quarters / 4,
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3u8, any::<bool>(), any::<bool>())
            .prop_map(|(app, operation, in_run)| Step::Ask { app, operation, in_run }),
        5 => (any::<usize>(), 0..=16u64, any::<bool>(), 0..12u8)
            .prop_map(|(which, quarters, is_escalated, state)| {
                Step::End { which, quarters, is_escalated, state }
            }),
        1 => Just(Step::Kill),
    ];
    proptest::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The service's books exceed no cap and no limit of a run by more than one request, whatever the
    /// order, the prices (none more than four times the dearest that was billed of its kind or once the
    /// dearest at the frontier's price, or 16 times the dearest of others) and the kills, as long as
    /// entries without a price do not cost more than they are held for.
    #[test]
    fn books_exceed_no_cap_by_more_than_one_request(
        steps in steps(),
        all in 1..20_000u64,
        own in 1..20_000u64,
        of_run in 1..20_000u64,
        floor in 0..50u64,
        first in 1..3_000u64,
        // What an answer would have cost at the frontier's price, over what is billed.
        times in 0..30u64,
    ) {
        let names = ["a", "b", "c"];
        let limited = [("a", limits(Some(own), Some(own * 2)))];
        let rules = rules(limits(None, Some(all)), &limited, floor);
        let mut bench = Bench::new(rules.clone());
        let run: Arc<str> = Arc::from("r");
        bench.engine.runs.open(&run, usd(of_run), RunSoFar::default());
        let mut under: Vec<Request> = Vec::new();
        let mut waiting: Vec<Request> = Vec::new();
        let (mut books_all, mut books_a, mut books_run, mut dearest) = (0u64, 0u64, 0u64, 0u64);
        for step in steps {
            let mut bill = |request: &Request, price: u64| {
                dearest = dearest.max(price);
                books_all += price;
                books_a += if request.app == "a" { price } else { 0 };
                books_run += if request.in_run { price } else { 0 };
            };
            match step {
                Step::Ask { app, operation, in_run } => {
                    let app = names[usize::from(app)];
                    let operation = if operation { Operation::Chat } else { Operation::AgentTurn };
                    let in_run = in_run && app != "c";
                    let known = Known::of(&bench, app, operation);
                    let asks = Ask {
                        run: in_run.then(|| Arc::clone(&run)),
                        ..bench.asks(app, operation)
                    };
                    let entry = asks.entry;
                    let request = Request { entry, app, operation, in_run, known };
                    match bench.put(asks) {
                        Became::Admitted(..) => {
                            let known = known.held(&bench, entry);
                            under.push(Request { known, ..request });
                        }
                        Became::Waits(_) => waiting.push(request),
                        Became::Refused(_) => {}
                    }
                }
                Step::End { which, quarters, is_escalated, state } if !under.is_empty() => {
                    let request = under.remove(which % under.len());
                    let (entry, app) = (request.entry, request.app);
                    let reserved = bench.engine.flights[&entry].reserved.get();
                    let price = request.known.price(first, quarters, is_escalated);
                    match state {
                        0 => bench.end(entry, app, State::Failed),
                        1 => {
                            bill(&request, price.min(reserved));
                            bench.end(entry, app, DOUBT);
                        }
                        2 => {
                            bill(&request, price.min(reserved));
                            bench.end(entry, app, State::Unreported);
                        }
                        _ => {
                            bill(&request, price);
                            let frontier = if is_escalated { price } else { price * times };
                            let billed = usd(price);
                            bench.end_with_frontier(entry, app, State::Settled { billed }, frontier);
                        }
                    }
                }
                Step::End { .. } => {}
                Step::Kill => {
                    for request in under.drain(..) {
                        let Request { entry, app, operation, in_run, known } = request;
                        let reserved = bench.engine.flights[&entry].reserved;
                        let price = known.price(first, 4, false).min(reserved.get());
                        bill(&request, price);
                        let dead = Charged {
                            run: in_run.then(|| run.to_string()),
                            ..charged(entry, app, operation, NOON, DOUBT, reserved, 100)
                        };
                        bench.engine.update(&UsageUpdate::Records(vec![dead]));
                    }
                    let charge = bench.engine.runs.get(&run).expect("its budget").1.counted();
                    waiting.clear();
                    let usage = std::mem::take(&mut bench.engine.usage);
                    bench.engine = Engine::new(rules.clone(), Orders::default());
                    bench.engine.update(&UsageUpdate::All { usage, ended: Vec::new() });
                    let so_far = RunSoFar { charge, entries: Vec::new() };
                    bench.engine.runs.open(&run, usd(of_run), so_far);
                    bench.ways.clear();
                }
            }
            let mut still = Vec::new();
            for request in waiting.drain(..) {
                let known = Known::of(&bench, request.app, request.operation);
                match bench.became(request.entry) {
                    Became::Admitted(entry, _) => {
                        let known = known.held(&bench, entry);
                        under.push(Request { known, ..request });
                    }
                    Became::Waits(_) => still.push(request),
                    Became::Refused(_) => {}
                }
            }
            waiting = still;
            prop_assert!(!waiting.is_empty() <= !under.is_empty(), "somebody waits for nothing");
            prop_assert!(books_all <= all + dearest, "{books_all} > {all} + {dearest}");
            prop_assert!(books_a <= own + dearest, "{books_a} > {own} + {dearest}");
            prop_assert!(books_run <= of_run + dearest, "{books_run} > {of_run} + {dearest}");
        }
    }
}
