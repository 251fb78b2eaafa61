//! The model of the database that holders of shared caps are checked against, beside the database itself: the same calls
//! get the same answers.

use std::collections::BTreeMap;

use bursar::caps::leases::{
    GiveBack, GiveBackAnswer, Grant, Held, Lease, LeaseAnswer, LeaseAsk, LeaseTotals, LiveLease,
    SharedCap,
};
use bursar::caps::{Period, Window};
use bursar::clock::SystemClock;
use bursar::ledger::MicroUsdSum;
use bursar::ledger::entry::LeaseId;
use bursar::money::MicroUsd;
use jiff::tz::TimeZone;
use uuid::Uuid;

use super::holder::{Holder, part, wish};
use super::{DATABASE, fleet};
use crate::support::postgres::Postgres;

#[path = "../../../src/caps/engine/tests/shared/model.rs"]
mod model;

use model::{Database, Line, Terms};

const STEPS: usize = 250;

/// A generator of one run's choices.
struct Chance(u64);

struct Pair {
    postgres: Postgres,
    model: Database,
    holders: Vec<Holder>,
    chance: Chance,
}

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most.max(1)
    }
}

/// The database's clock is this machine's.
fn now_ms() -> u64 {
    SystemClock::shared().wall_ms()
}

/// Without what a moment more or less changes.
fn timeless(mut live: LiveLease) -> LiveLease {
    live.begins_in_ms = 0;
    live.ends_in_ms = 0;
    live
}

fn held(mut held: Held) -> Held {
    held.leases = held.leases.into_iter().map(timeless).collect();
    let window = |live: &LiveLease| (live.lease.window.since_ms, live.lease.window.until_ms);
    held.leases.sort_by_key(window);
    held
}

fn answered(answer: LeaseAnswer) -> LeaseAnswer {
    match answer {
        LeaseAnswer::Granted(grant) => LeaseAnswer::Granted(Grant {
            lease: timeless(grant.lease),
            ..grant
        }),
        other => other,
    }
}

impl Pair {
    async fn new(seed: u64) -> Self {
        let postgres = fleet();
        let mut chance = Chance(seed);
        let limit = 200 + chance.below(2_000);
        postgres.sql(
            DATABASE,
            &format!("SELECT bursar_fleet.order_cap('team', 'day', 'UTC', {limit})"),
        );
        let (largest, far, ahead) = (limit / 2, 2, 1 + chance.below(limit / 4));
        let mut model = Database::new(vec![Terms {
            name: "team".to_owned(),
            period: Period::Day,
            limit,
            largest: Some(largest),
            ahead_windows: far,
            ahead,
        }]);
        let mut holders = Vec::new();
        for number in 0..3_u32 {
            let holder = Holder::new(&postgres, number + 1).await;
            super::holder::share(&postgres, &holder, &largest.to_string(), far, ahead);
            let at = holders.len();
            model.hello(at, now_ms());
            model.hold(at, 1, 0, &[], now_ms());
            holders.push(holder);
        }
        Self {
            postgres,
            model,
            holders,
            chance,
        }
    }

    async fn step(&mut self) {
        let at = usize::try_from(self.chance.below(3)).expect("few");
        let holder = &self.holders[at];
        let mut leases = self.model.live(at, now_ms());
        let which = self
            .chance
            .below(leases.len().max(1).try_into().expect("few"));
        let lease = match leases.is_empty() {
            true => None,
            false => Some(
                leases
                    .swap_remove(usize::try_from(which).expect("few"))
                    .lease,
            ),
        };
        match (self.chance.below(10), lease) {
            (0..4, _) | (_, None) => {
                let ahead = u32::try_from(self.chance.below(8))
                    .expect("few")
                    .saturating_sub(4);
                let (want, least) = (1 + self.chance.below(300), self.chance.below(60));
                let ask = wish(want, least, ahead);
                // At times the answer is lost.
                for _ in 0..=self.chance.below(2) {
                    let there = holder.ask(&ask).await;
                    let fresh = match &there {
                        LeaseAnswer::Granted(grant) => grant.lease.lease.lease,
                        _ => Uuid::nil(),
                    };
                    let here = self.model.lease(at, 1, &ask, fresh, now_ms());
                    assert_eq!(answered(here), answered(there), "{ask:?}");
                }
            }
            (4..6, Some(lease)) => {
                let amounts = [self.chance.below(60), self.chance.below(60)];
                holder.bills(lease.lease, &amounts).await;
                let lines = amounts.map(|billed| Line {
                    leases: vec![LeaseId(lease.lease)],
                    billed,
                });
                self.model.hello(at, now_ms());
                self.model.ship(at, &lines);
            }
            (6..8, Some(lease)) => {
                let number = lease.totals.give_back_number
                    + u32::try_from(self.chance.below(3)).expect("few");
                let mark = u64::try_from(self.model.mark(at)).expect("few");
                let up_to_seq = mark + u64::from(self.chance.below(5) == 0);
                let part = part(&lease, number.max(1), self.chance.below(150), up_to_seq);
                let there = holder.gives_back(part).await;
                assert_eq!(self.model.give_back(at, &part), there, "{part:?}");
            }
            (_, Some(mut lease)) => {
                // At times as one that knows more of it than the database.
                if self.chance.below(4) == 0 {
                    let more = lease.totals.granted.get() + self.chance.below(100);
                    lease.totals.granted = MicroUsd::new(more);
                }
                holder.hello().await;
                self.model.hello(at, now_ms());
                let mark = self.model.mark(at);
                let stated = [lease];
                let there = holder
                    .hold_from(u64::try_from(mark).expect("few"), &stated)
                    .await;
                let here = self.model.hold(at, 1, mark, &stated, now_ms());
                assert_eq!(held(here), held(there), "{stated:?}");
            }
        }
        if self.chance.below(6) == 0 {
            self.postgres.sql(DATABASE, "SELECT bursar_fleet.resume()");
            self.model.resume();
        }
        if self.chance.below(25) == 0 {
            let terms = &mut self.model.caps[0];
            terms.period = match terms.period {
                Period::Month => Period::Day,
                _ => Period::Month,
            };
            let (period, limit) = (terms.period, terms.limit);
            let order =
                format!("SELECT bursar_fleet.order_cap('team', '{period}', 'UTC', {limit})");
            assert_eq!(self.postgres.sql(DATABASE, &order), "changed");
        }
        // The server starts again.
        if self.chance.below(9) == 0 {
            let before = "UPDATE bursar_fleet.about SET run = 'before';
                UPDATE bursar_fleet.ledgers SET heard_in = 'before', held_in = 'before'";
            self.postgres.sql(DATABASE, before);
            self.model.incarnation += 1;
        }
    }
}

#[tokio::test]
#[ignore = "needs PostgreSQL: make test-all"]
async fn the_model_of_the_check_answers_as_the_database_does() {
    for seed in [7, 77, 777] {
        let mut pair = Pair::new(seed).await;
        for _ in 0..STEPS {
            pair.step().await;
        }
        let leases = pair.model.leases.len();
        assert!(leases > 3, "{leases}: the steps met little");
    }
}
