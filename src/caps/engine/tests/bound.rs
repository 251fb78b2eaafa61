//! The bound that `bursar caps` states, in random worlds of asks, ends and kills.

use proptest::prelude::*;

use super::*;

/// One step of a world.
#[derive(Clone, Debug)]
enum Step {
    Ask {
        app: u8,
        operation: bool,
    },
    /// The n-th of what is under way ends; its price is this many quarters of the dearest of its kind
    /// when it was admitted.
    End {
        which: usize,
        quarters: u64,
        state: u8,
    },
    Kill,
}

/// What was known of a kind's price when a request of it was admitted.
#[derive(Clone, Copy, Debug)]
enum Dearest {
    /// No answer came.
    Nothing,
    /// Answers came, and none told a price; so much is held for the request.
    Untold(u64),
    Told(u64),
}

impl Dearest {
    fn of(bench: &Bench, app: &str, operation: Operation) -> Self {
        match bench.engine.usage.prices(&Arc::from(app), operation) {
            None => Self::Nothing,
            Some(prices) => prices
                .dearest()
                .map_or(Self::Untold(0), |dearest| Self::Told(dearest.get())),
        }
    }

    fn held(self, bench: &Bench, entry: EntryId) -> Self {
        match self {
            Self::Untold(_) => Self::Untold(bench.engine.flights[&entry].reserved.get()),
            known => known,
        }
    }

    /// At most four times what was known; of a new kind at most `first`. `quarters`: 0 to 16.
    fn price(self, first: u64, quarters: u64) -> u64 {
        match self {
            Self::Nothing => first * quarters / 16,
            Self::Untold(known) | Self::Told(known) => known * quarters / 4,
        }
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3u8, any::<bool>()).prop_map(|(app, operation)| Step::Ask { app, operation }),
        5 => (any::<usize>(), 0..=16u64, 0..12u8)
            .prop_map(|(which, quarters, state)| Step::End { which, quarters, state }),
        1 => Just(Step::Kill),
    ];
    proptest::collection::vec(step, 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The service's books exceed no cap by more than one request, whatever the order, the prices (none
    /// more than four times the dearest of its kind) and the kills, as long as entries without a price
    /// do not cost more than they are held for.
    #[test]
    fn books_exceed_no_cap_by_more_than_one_request(
        steps in steps(),
        all in 1..20_000u64,
        own in 1..20_000u64,
        floor in 0..50u64,
        first in 1..3_000u64,
    ) {
        let names = ["a", "b", "c"];
        let limited = [("a", limits(Some(own), Some(own * 2)))];
        let rules = rules(limits(None, Some(all)), &limited, floor);
        let mut bench = Bench::new(rules.clone());
        let mut under: Vec<(EntryId, &str, Operation, Dearest)> = Vec::new();
        let mut waiting: Vec<(EntryId, &str, Operation)> = Vec::new();
        let (mut books_all, mut books_a, mut dearest) = (0u64, 0u64, 0u64);
        for step in steps {
            let mut bill = |app: &str, price: u64| {
                dearest = dearest.max(price);
                books_all += price;
                books_a += if app == "a" { price } else { 0 };
            };
            match step {
                Step::Ask { app, operation } => {
                    let app = names[usize::from(app)];
                    let operation = if operation { Operation::Chat } else { Operation::AgentTurn };
                    let known = Dearest::of(&bench, app, operation);
                    match bench.ask_of(app, operation, 100, None) {
                        Became::Admitted(entry, _) => {
                            under.push((entry, app, operation, known.held(&bench, entry)));
                        }
                        Became::Waits(entry) => waiting.push((entry, app, operation)),
                        Became::Refused(_) => {}
                    }
                }
                Step::End { which, quarters, state } if !under.is_empty() => {
                    let (entry, app, _, known) = under.remove(which % under.len());
                    let reserved = bench.engine.flights[&entry].reserved.get();
                    let price = known.price(first, quarters);
                    match state {
                        0 => bench.end(entry, app, State::Failed),
                        1 => {
                            bill(app, price.min(reserved));
                            bench.end(entry, app, DOUBT);
                        }
                        2 => {
                            bill(app, price.min(reserved));
                            bench.end(entry, app, State::Unreported);
                        }
                        _ => {
                            bill(app, price);
                            bench.settle(entry, app, price);
                        }
                    }
                }
                Step::End { .. } => {}
                Step::Kill => {
                    for (entry, app, operation, known) in under.drain(..) {
                        let reserved = bench.engine.flights[&entry].reserved;
                        let price = known.price(first, 4).min(reserved.get());
                        bill(app, price);
                        let dead = charged(entry, app, operation, NOON, DOUBT, reserved, 100);
                        bench.engine.book(&dead);
                    }
                    waiting.clear();
                    let usage = std::mem::take(&mut bench.engine.usage);
                    bench.engine = Engine::new(rules.clone(), Orders::default());
                    bench.engine.tell(&News::All { usage, ended: Vec::new() });
                    bench.ways.clear();
                }
            }
            let mut still = Vec::new();
            for (entry, app, operation) in waiting.drain(..) {
                let known = Dearest::of(&bench, app, operation);
                match bench.became(entry) {
                    Became::Admitted(..) => {
                        under.push((entry, app, operation, known.held(&bench, entry)));
                    }
                    Became::Waits(_) => still.push((entry, app, operation)),
                    Became::Refused(_) => {}
                }
            }
            waiting = still;
            prop_assert!(!waiting.is_empty() <= !under.is_empty(), "somebody waits for nothing");
            prop_assert!(books_all <= all + dearest, "{books_all} > {all} + {dearest}");
            prop_assert!(books_a <= own + dearest, "{books_a} > {own} + {dearest}");
        }
    }
}
