//! What counts against caps, as the journal records it: by app and quarter hour what was billed and what
//! is held for entries whose price is not known, and how many of them are in doubt; by app and operation the
//! dearest of the last 1,000 receipts, as billed and at the frontier's price, from which reservations are made; and
//! what each session ([`super::sessions`]) and each lease of a shared cap came to ([`super::leases`]).
//!
//! An entry counts for the moment of its intent. Held amounts are estimates: they are kept apart from
//! billed money here and are in no other sum (rule I12).
//!
//! Promise: made of records alone, so that what a start reads equals what the process before it had,
//! also after kill -9; bounded by as many quarter hours as five weeks have and the apps that were seen in
//! them. Which are kept is no matter of the clock: one that was ahead takes nothing away.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::entry::{Labels, Leases, State};
use crate::ledger::fold::charge::Charge;
use crate::ledger::fold::effect::held_from;
use crate::ledger::fold::leases::LeaseSums;
use crate::ledger::fold::sessions::SessionSums;
use crate::ledger::id::EntryId;
use crate::ledger::kept_key::KeyOrigin;
use crate::ledger::marks::SessionHash;
use crate::ledger::record::Record;
use crate::ledger::rollup::GRAIN_MS;
use crate::ledger::sums::{HeldSums, MicroUsdSum, Standing};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How long usage is kept at least: the longest calendar month, and days for clocks and zones.
pub const KEPT_MS: u64 = 35 * 24 * 60 * 60 * 1000;

/// The quarter hours of that, and the one that is under way.
const QUARTERS_MAX: usize = 35 * 24 * 4 + 1;

/// "its last 1,000 receipts".
const RECEIPTS: u64 = 1_000;

/// A body larger than all those with a reported price is taken to cost more, in proportion, up to this.
const SCALE_MAX: u64 = 16;

/// The prices of one operation of one app, as far as reservations need them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceHistory {
    /// Receipts so far.
    receipts: u64,
    /// Numbers and amounts of the last 1,000 that no later one exceeds: the first is the dearest. The first
    /// format of the file had this list alone.
    #[serde(alias = "dearest")]
    billed: VecDeque<(u64, MicroUsd)>,
    /// The same of what the answers would have cost at the frontier's price.
    #[serde(default)]
    frontier: VecDeque<(u64, MicroUsd)>,
    /// The same of body sizes.
    largest: VecDeque<(u64, u64)>,
    /// An answer came that reports no price, as the interface has it for some operations, or that cost
    /// nothing.
    untold: bool,
}

/// What a record reports of a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Price {
    Nothing,
    /// One of the two amounts is more than 0. `bytes` is the request body's size, 0 if it is not known.
    Reported {
        billed: MicroUsd,
        /// What the answer would have cost at the frontier's price, 0 if that was not reported: the next one
        /// may be escalated.
        frontier: MicroUsd,
        bytes: u64,
    },
    /// Complete, and without a price, or for nothing: the next one may cost something.
    Unreported,
}

/// The dearest answers of a kind. They need not be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dearest {
    pub billed: MicroUsd,
    pub frontier: MicroUsd,
}

/// What one record does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charged {
    /// `None`: many entries that were compacted.
    pub entry: Option<EntryId>,
    pub app: Arc<str>,
    /// The run of `bursar exec` that it belongs to.
    pub run: Option<String>,
    /// The session of the app that it belongs to.
    pub session: Option<SessionHash>,
    /// The leases of shared caps that it spends.
    pub leases: Leases,
    /// An entry that may be billed, and repeats no other one's purchase.
    pub requests: u64,
    pub operation: Operation,
    /// The intent's time, Unix milliseconds.
    pub at_ms: u64,
    pub charge: Charge,
    /// Entries that came into doubt, or left it. No cap counts them; `bursar line` shows them.
    pub doubts: Standing,
    pub price: Price,
}

/// By the beginning of the quarter hour, Unix milliseconds, and app.
pub type ByQuarter<T> = BTreeMap<u64, BTreeMap<Arc<str>, T>>;

/// The prices of each app and operation.
pub type PricesOfKinds = BTreeMap<(Arc<str>, Operation), PriceHistory>;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CapUsage {
    quarters: ByQuarter<Charge>,
    doubts: ByQuarter<Standing>,
    prices: PricesOfKinds,
    sessions: SessionSums,
    leases: LeaseSums,
}

/// What a reader of usage gets.
#[derive(Clone, Debug)]
pub enum UsageUpdate {
    /// The journal was read again. `ended`: entries of the last moments that are in it with their end.
    All {
        usage: CapUsage,
        ended: Vec<EntryId>,
    },
    /// Records that were made durable, in their order.
    Records(Vec<Charged>),
}

/// Called with usage on the thread that committed it, before requests that wait for the records are answered.
pub type OnUsage = Box<dyn Fn(&UsageUpdate) + Send + Sync>;

// === impl PriceHistory ===

impl PriceHistory {
    fn add(&mut self, price: Price) {
        let (billed, frontier, bytes) = match price {
            Price::Nothing => return,
            Price::Unreported => {
                self.untold = true;
                return;
            }
            Price::Reported {
                billed,
                frontier,
                bytes,
            } => (billed, frontier, bytes),
        };
        self.receipts = self.receipts.saturating_add(1);
        let number = self.receipts;
        push(&mut self.billed, number, billed);
        push(&mut self.frontier, number, frontier);
        push(&mut self.largest, number, bytes);
    }

    /// Of a file that had one price of each receipt, billed or the frontier's: which of the two is not known.
    pub fn stand_for_both(&mut self) {
        self.frontier = self.billed.clone();
    }

    /// The dearest of the last 1,000; `None` while no price was reported.
    pub fn dearest(&self) -> Option<Dearest> {
        Some(Dearest {
            billed: self.billed.front()?.1,
            frontier: self.frontier.front()?.1,
        })
    }

    /// The dearest, in proportion to a body that is larger than all of theirs.
    pub fn for_body(&self, bytes: u64) -> Option<Dearest> {
        let dearest = self.dearest()?;
        let largest = self.largest.front().map_or(0, |(_, bytes)| *bytes);
        if largest == 0 || bytes <= largest {
            return Some(dearest);
        }
        let scaled = |amount: MicroUsd| {
            let amount = u128::from(amount.get());
            let scaled = amount
                .saturating_mul(u128::from(bytes))
                .div_ceil(u128::from(largest));
            let most = amount.saturating_mul(u128::from(SCALE_MAX));
            MicroUsd::new(u64::try_from(scaled.min(most)).unwrap_or(u64::MAX))
        };
        Some(Dearest {
            billed: scaled(dearest.billed),
            frontier: scaled(dearest.frontier),
        })
    }

    /// Neither a price nor the lack of one is known: what the next one may cost cannot be estimated.
    pub fn is_unknown(&self) -> bool {
        self.billed.is_empty() && !self.untold
    }
}

// === impl Dearest ===

impl Dearest {
    /// What is held for a request whose price is not known: one answer, escalated or not.
    pub fn of_one(self) -> MicroUsd {
        self.billed.max(self.frontier)
    }
}

/// Adds to a falling list, and lets go of what is out of the last 1,000.
fn push<T: Copy + PartialOrd>(falling: &mut VecDeque<(u64, T)>, number: u64, value: T) {
    while falling.back().is_some_and(|(_, last)| *last <= value) {
        falling.pop_back();
    }
    falling.push_back((number, value));
    while falling
        .front()
        .is_some_and(|(first, _)| number.saturating_sub(*first) >= RECEIPTS)
    {
        falling.pop_front();
    }
}

// === impl Charged ===

impl Charged {
    /// What a record does; `None` for one that does nothing. `bytes`: the request body's size, where
    /// it is known.
    pub fn of(record: &Record, bytes: u64) -> Option<Self> {
        match record {
            Record::Outcome(outcome, labels, verdict) => {
                let receipt = &outcome.receipt;
                let estimate = receipt.would_have_cost.value().filter(|_| {
                    !receipt.replayed && !matches!(verdict.state, State::Replayed | State::Failed)
                });
                let billed = verdict.adds_micro_usd;
                let frontier = estimate.unwrap_or(MicroUsd::ZERO);
                let price = match verdict.state {
                    _ if !billed.is_zero() || !frontier.is_zero() => Price::Reported {
                        billed,
                        frontier,
                        bytes,
                    },
                    // The price of a run is reported when the run is over.
                    State::Unreported if outcome.run_id.is_none() => Price::Unreported,
                    State::Settled { .. } => Price::Unreported,
                    _ => Price::Nothing,
                };
                let id = outcome.id;
                Self::one(id, labels, verdict.adds_micro_usd, verdict.state, price)
            }
            Record::Crashed(ended, labels) | Record::Withdrawn(ended, labels) => Self::one(
                ended.id,
                labels,
                MicroUsd::ZERO,
                ended.state,
                Price::Nothing,
            ),
            Record::Reconciled(evidence, labels) => {
                let adds = evidence.adds_micro_usd;
                let price = if adds.is_zero() {
                    Price::Nothing
                } else {
                    Price::Reported {
                        billed: adds,
                        frontier: MicroUsd::ZERO,
                        bytes: 0,
                    }
                };
                let left = held_from(evidence.was, labels).came;
                Some(Self {
                    entry: Some(evidence.id),
                    charge: Charge {
                        billed: adds.into(),
                        held: HeldSums {
                            left,
                            ..HeldSums::default()
                        },
                    },
                    doubts: Standing {
                        left: in_doubt(evidence.was),
                        ..Standing::default()
                    },
                    price,
                    ..Self::nothing(labels)
                })
            }
            Record::Rollup(rollup) => {
                let (row, labels) = (&rollup.row, rollup.labels());
                let mut doubts = Standing::default();
                row.in_doubt.values().for_each(|one| doubts += *one);
                let mean = |sum: MicroUsdSum, count: u64| {
                    let mean = sum.get().div_ceil(u128::from(count.max(1)));
                    MicroUsd::new(u64::try_from(mean).unwrap_or(u64::MAX))
                };
                let billed = mean(row.billed, row.settled.saturating_add(row.reconciled));
                // Answers without an estimate make that of the others no smaller; a line of an earlier
                // release does not count them.
                let frontier = mean(row.compared.frontier, row.compared.answers)
                    .max(mean(row.would_have_cost, row.answers.values().sum()));
                // The dearest of them is not known any more, and no mean is it: the larger one stands
                // for what was billed, too, and so has the room to grow that a frontier's price has not.
                let price = match billed.max(frontier) {
                    MicroUsd::ZERO if row.settled > 0 => Price::Unreported,
                    MicroUsd::ZERO => Price::Nothing,
                    billed => Price::Reported {
                        billed,
                        frontier,
                        bytes: 0,
                    },
                };
                Some(Self {
                    charge: Charge {
                        billed: row.billed,
                        held: row.held,
                    },
                    doubts,
                    price,
                    ..Self::nothing(&labels)
                })
            }
            Record::Intent(_) | Record::Delivery(..) | Record::Unknown => None,
        }
    }

    fn one(
        id: EntryId,
        labels: &Labels,
        adds: MicroUsd,
        state: State,
        price: Price,
    ) -> Option<Self> {
        let may_be_billed = !matches!(state, State::Failed | State::Replayed);
        let origin = labels.key.as_ref().map(|key| key.origin);
        let is_repeat = matches!(origin, Some(KeyOrigin::Adopted { .. }));
        Some(Self {
            entry: Some(id),
            charge: Charge {
                billed: adds.into(),
                held: held_from(state, labels),
            },
            requests: u64::from(may_be_billed && !is_repeat),
            doubts: Standing {
                came: in_doubt(state),
                ..Standing::default()
            },
            price,
            ..Self::nothing(labels)
        })
    }

    /// An entry that has no end yet, with what is held for it.
    pub fn under_way(id: EntryId, labels: &Labels, held: Option<MicroUsd>) -> Self {
        Self {
            entry: Some(id),
            charge: Charge {
                held: HeldSums {
                    came: held.unwrap_or(MicroUsd::ZERO).into(),
                    ..HeldSums::default()
                },
                ..Charge::default()
            },
            requests: 1,
            ..Self::nothing(labels)
        }
    }

    fn nothing(labels: &Labels) -> Self {
        Self {
            entry: None,
            app: Arc::clone(&labels.app),
            run: labels.run.clone(),
            session: labels.session().map(|session| session.hash),
            leases: labels.leases.clone(),
            requests: 0,
            operation: labels.operation,
            at_ms: labels.started_ms,
            charge: Charge::default(),
            doubts: Standing::default(),
            price: Price::Nothing,
        }
    }

    /// The beginning of its quarter hour: what is compacted counts for that, so everything does.
    pub const fn quarter_ms(&self) -> u64 {
        quarter_of(self.at_ms)
    }
}

fn in_doubt(state: State) -> u64 {
    u64::from(matches!(state, State::InDoubt { .. }))
}

/// The beginning of a moment's quarter hour.
pub const fn quarter_of(at_ms: u64) -> u64 {
    at_ms - at_ms % GRAIN_MS
}

// === impl CapUsage ===

impl CapUsage {
    /// What was charged before, and how many were in doubt.
    pub fn new(
        quarters: ByQuarter<Charge>,
        doubts: ByQuarter<Standing>,
        prices: PricesOfKinds,
    ) -> Self {
        Self {
            quarters,
            doubts,
            prices,
            ..Self::default()
        }
    }

    /// With these sums of sessions, whatever it had.
    #[must_use]
    pub fn with_sessions(self, sessions: SessionSums) -> Self {
        Self { sessions, ..self }
    }

    /// The same of leases.
    #[must_use]
    pub fn with_leases(self, leases: LeaseSums) -> Self {
        Self { leases, ..self }
    }

    pub fn quarters(&self) -> &ByQuarter<Charge> {
        &self.quarters
    }

    /// Entries in doubt, where there are any.
    pub fn doubts(&self) -> &ByQuarter<Standing> {
        &self.doubts
    }

    pub fn all_prices(&self) -> &PricesOfKinds {
        &self.prices
    }

    pub fn sessions(&self) -> &SessionSums {
        &self.sessions
    }

    pub fn leases(&self) -> &LeaseSums {
        &self.leases
    }

    pub fn add(&mut self, charged: &Charged) {
        if !charged.charge.is_none() {
            let apps = self.quarters.entry(charged.quarter_ms()).or_default();
            *apps.entry(Arc::clone(&charged.app)).or_default() += charged.charge;
        }
        if let Some(session) = charged.session {
            let Charged {
                charge, requests, ..
            } = *charged;
            self.sessions
                .add(&charged.app, session, charged.at_ms, charge, requests);
        }
        self.leases
            .add(&charged.leases, charged.at_ms, charged.charge);
        if !charged.doubts.is_none() {
            let apps = self.doubts.entry(charged.quarter_ms()).or_default();
            *apps.entry(Arc::clone(&charged.app)).or_default() += charged.doubts;
        }
        if charged.price != Price::Nothing {
            let key = (Arc::clone(&charged.app), charged.operation);
            self.prices.entry(key).or_default().add(charged.price);
        }
    }

    /// Forgets the oldest beyond the bound.
    pub fn prune(&mut self) {
        while self.quarters.len() > QUARTERS_MAX {
            self.quarters.pop_first();
        }
        self.sessions.prune();
        self.leases.prune();
        while self.doubts.len() > QUARTERS_MAX {
            self.doubts.pop_first();
        }
    }

    /// What was charged from the first moment on and before the second, by one app or all.
    pub fn charged(&self, app: Option<&str>, since_ms: u64, until_ms: u64) -> Charge {
        let mut sum = Charge::default();
        if since_ms >= until_ms {
            return sum;
        }
        for apps in self
            .quarters
            .range(since_ms..until_ms)
            .map(|(_, apps)| apps)
        {
            match app {
                Some(app) => {
                    if let Some(charge) = apps.get(app) {
                        sum += *charge;
                    }
                }
                None => apps.values().for_each(|charge| sum += *charge),
            }
        }
        sum
    }

    /// How many entries that began from the first moment on and before the second are in doubt, of one app or all.
    pub fn in_doubt(&self, app: Option<&str>, since_ms: u64, until_ms: u64) -> u64 {
        let mut doubts = Standing::default();
        if since_ms >= until_ms {
            return 0;
        }
        for apps in self.doubts.range(since_ms..until_ms).map(|(_, apps)| apps) {
            let of_app = apps
                .iter()
                .filter(|(name, _)| app.is_none_or(|app| app == &***name));
            of_app.for_each(|(_, one)| doubts += *one);
        }
        doubts.now()
    }

    /// The prices of an operation of an app, where one was reported or is known never to be reported.
    pub fn prices(&self, app: &Arc<str>, operation: Operation) -> Option<&PriceHistory> {
        let prices = self.prices.get(&(Arc::clone(app), operation))?;
        (!prices.is_unknown()).then_some(prices)
    }

    /// What an entry is held at: its reservation, or more when a dearer one was seen meanwhile.
    pub fn raised(&self, labels: &Labels, bytes: u64) -> Option<MicroUsd> {
        let reserved = labels.reserved?;
        // An entry that took over a key holds nothing: the entry that it was taken from does.
        if reserved.is_zero() {
            return Some(reserved);
        }
        let key = (Arc::clone(&labels.app), labels.operation);
        let seen = self
            .prices
            .get(&key)
            .and_then(|prices| prices.for_body(bytes));
        Some(seen.map_or(reserved, |seen| seen.of_one().max(reserved)))
    }
}

#[cfg(test)]
mod tests;
