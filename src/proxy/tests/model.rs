//! The model check: a seeded world of apps, network, disk, clocks and an idealised service drives
//! the real claim table, retry decision, route table, fold, books and record encoding, one atomic
//! event a step, and an auditor holds the rules after each. A restart decodes the journal's lines.
//!
//! What is checked, rule by rule (`audit.rs`, `books.rs`):
//! I1 no send without a durable intent · I2 no complete success without a durable outcome, and no
//! purchase delivered twice · I3, I12 for each purchase at most as much settled as debited, and equal
//! as soon as none of its entries is open, in doubt or unreported · I4 `failed` is debited nothing,
//! before and after · I5 settled only where an amount was told · I6 same key and body, no repeat at
//! 23 h or at a doubtful age · I7 unkeyed and perhaps run: not sent again · I10 sums never go back;
//! records, totals and rollups agree, also after a restart.
//! Not expressible without sockets: I8 bytes (`it::heads`), I9 the key (`it::door`,
//! `it::config_errors`), I11 bounds (the claim table's and the ledger's own tests).
//!
//! `BURSAR_SIM_SEED` replays one world, `BURSAR_SIM_STEPS` runs more of them.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

mod audit;
mod books;
mod dice;
mod service;
mod world;

use world::World;

/// Events of one world; small, so that a failing one is short.
const STEPS_OF_WORLD: u64 = 400;
const STEPS: u64 = 200_000;

/// What has to happen at least once in a run, or the model has gone blind.
const SEEN: &[&str] = &[
    "lead",
    "adopt",
    "follow",
    "look_again",
    "own_key",
    "not_sent",
    "no_head",
    "broken",
    "gateway",
    "answered",
    "replayed",
    "refused",
    "409",
    "422",
    "wait",
    "exhausted",
    "too_late",
    "age_refused",
    "malformed",
    "absent",
    "conflicting",
    "clarification",
    "app_left",
    "delivered",
    "followed",
    "disk_failed",
    "crash",
    "crash_in_commit",
    "shutdown",
    "restart_open",
    "restart_undelivered",
    "clock_set",
    "suspended",
    "hours",
    "run_reconciled",
    "settle_twice",
    "intent_refused",
    "settled",
    "failed",
    "state_replayed",
    "unreported",
    "in_doubt",
    "reconciled",
];

#[test]
fn the_rules_hold_after_each_step_of_any_interleaving() {
    let seed = number("BURSAR_SIM_SEED");
    let steps = number("BURSAR_SIM_STEPS").unwrap_or(STEPS);
    let mut seen = BTreeMap::new();
    let worlds = seed.map_or(1..1 + steps.div_ceil(STEPS_OF_WORLD), |seed| seed..seed + 1);
    for seed in worlds {
        let mut world = World::new(seed);
        let run = catch_unwind(AssertUnwindSafe(|| world.run(STEPS_OF_WORLD)));
        if let Err(broken) = run {
            eprintln!("BURSAR_SIM_SEED={seed} breaks a rule; its last events:");
            for (step, event, about) in &world.log {
                eprintln!("{step:5} {event} {about:x}");
            }
            resume_unwind(broken);
        }
        for (event, count) in world.seen {
            *seen.entry(event).or_insert(0u64) += count;
        }
    }
    println!("{steps} steps: {seen:?}");
    if seed.is_none() {
        let blind: Vec<_> = SEEN
            .iter()
            .filter(|event| !seen.contains_key(**event))
            .collect();
        assert!(blind.is_empty(), "never happened: {blind:?}");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a switch of the test, not of the product"
)]
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
