//! The state behind the lock: what is charged, what is reserved, and the rule that admits a request.
//!
//! The rule, for each cap that a request counts in. T is what was billed and what is held in the cap's
//! window, L its limit.
//!
//! * T ≥ L: refused; but while a repeat of what is held is under way, which may bring its price, it waits.
//! * nothing else is under way here: admitted, whatever it may cost.
//! * else admitted while T + 4 · (dearest price of its kind), summed over what is under way and itself,
//!   is at most L; otherwise it waits. A kind of which no answer came yet goes alone; one whose answers
//!   have told no price counts with four times what is held for it.
//!
//! Why that bounds what is spent. Whoever was admitted beside others left T + all of it ≤ L, as long as
//! none costs more than four times the dearest of its kind so far (and of its size), or than four
//! times what is held where no price was told, so they end at or
//! below the limit. Only one that went alone can go beyond, when T < L: by less than its own price. So
//! the service's books exceed a cap by at most one request. What can break it: prices that grow more
//! than fourfold within what is under way at one moment, and entries without a price that cost more than
//! they are held for.
//!
//! Promise: integers only, no waiting, no file, no clock; an entry is counted at least once at every
//! moment from its admission to the end of its window, unless it is known to cost nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use super::orders::Orders;
use super::refused::Refused;
use super::rules::{Rules, Scope};
use super::window::{Period, Window};
use crate::ledger::entry::{EntryId, State};
use crate::ledger::totals::Held;
use crate::ledger::usage::{Charge, Charged, News, Price, Usage, quarter_of};
use crate::money::MicroUsd;
use crate::protocol::Operation;

mod line;
mod price;

pub use line::Answers;
use line::Waiter;

/// Ends that the ledger could not write yet and that are counted one by one. More than can wait there.
const UNBOOKED_MAX: usize = 8_192;

/// A request that wants to spend.
#[derive(Clone, Debug)]
pub struct Ask {
    pub entry: EntryId,
    pub app: Arc<str>,
    pub operation: Operation,
    pub request_bytes: u64,
    /// Its key is charged since then, Unix milliseconds: it repeats what was bought.
    pub charged_since_ms: Option<u64>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It never had an intent.
    Unsent,
    Settled(State),
    /// Its end could not be written, or its task died.
    Unknown,
}

/// A request under way.
#[derive(Clone, Debug)]
struct Flight {
    ask: Ask,
    at_ms: u64,
    reserved: MicroUsd,
    share: Share,
    /// The ledger told its end.
    booked: bool,
}

/// What a request takes of the room below a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    /// It counts as under way. A repeat does not: it is charged already.
    counts: bool,
    reserved: u128,
    /// What it may cost, for those beside it.
    room: u128,
    /// Nothing says what it may cost.
    unknown: bool,
}

/// Requests under way, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Under {
    pub requests: usize,
    pub reserved: u128,
    room: u128,
    unknown: usize,
    /// Repeats of what is charged: their evidence may make room.
    repeats: usize,
}

/// One cap in its window of now.
#[derive(Clone, Debug)]
pub struct Purse {
    pub limit: MicroUsd,
    /// As it is configured.
    pub configured: MicroUsd,
    pub window: Window,
    pub charge: Charge,
    /// A refusal was logged in this window.
    told: bool,
    /// Of this process.
    pub refusals: u64,
}

#[derive(Debug)]
struct Unbooked {
    app: Arc<str>,
    at_ms: u64,
    charge: Charge,
}

#[derive(Debug)]
pub struct Engine {
    pub rules: Rules,
    pub orders: Orders,
    usage: Usage,
    pub purses: BTreeMap<(Scope, Period), Purse>,
    /// The purses have to be made anew.
    stale: bool,
    flights: HashMap<EntryId, Flight>,
    under: BTreeMap<Scope, Under>,
    unbooked: HashMap<EntryId, Unbooked>,
    lines: BTreeMap<Arc<str>, VecDeque<Waiter>>,
    /// When an app was last given a turn, by number.
    turns: HashMap<Arc<str>, u64>,
    next_number: u64,
}

/// What is to become of an ask now.
enum Judged {
    Go(MicroUsd, Share),
    /// These scopes have no room for it.
    Wait(Vec<Scope>),
    Never(Refused),
}

// === impl Under ===

impl Under {
    fn add(&mut self, share: Share) {
        if !share.counts {
            self.repeats += 1;
            return;
        }
        self.requests += 1;
        self.reserved = self.reserved.saturating_add(share.reserved);
        self.room = self.room.saturating_add(share.room);
        self.unknown += usize::from(share.unknown);
    }

    fn remove(&mut self, share: Share) {
        if !share.counts {
            self.repeats = self.repeats.saturating_sub(1);
            return;
        }
        self.requests = self.requests.saturating_sub(1);
        self.reserved = self.reserved.saturating_sub(share.reserved);
        self.room = self.room.saturating_sub(share.room);
        self.unknown = self.unknown.saturating_sub(usize::from(share.unknown));
    }
}

// === impl Engine ===

impl Engine {
    pub fn new(rules: Rules, orders: Orders) -> Self {
        Self {
            rules,
            orders,
            usage: Usage::default(),
            purses: BTreeMap::new(),
            stale: true,
            flights: HashMap::new(),
            under: BTreeMap::new(),
            unbooked: HashMap::new(),
            lines: BTreeMap::new(),
            turns: HashMap::new(),
            next_number: 0,
        }
    }

    /// Rules or orders have changed.
    pub fn changed(&mut self) {
        self.stale = true;
    }

    /// Brings the windows up to now. What was spent does not depend on the limits: it is summed anew.
    pub fn roll(&mut self, now_ms: u64) {
        let is_over = |purse: &Purse| !purse.window.holds(now_ms);
        if !self.stale && !self.purses.values().any(is_over) {
            return;
        }
        self.stale = false;
        self.usage.prune(now_ms);
        let before = std::mem::take(&mut self.purses);
        for (scope, period, configured) in self.rules.limits() {
            let window = Window::of(period, now_ms, &self.rules.zone);
            let raised = self.orders.raised_to(scope.app(), period, window);
            let charge = self
                .usage
                .charged(scope.app(), window.since_ms, window.until_ms);
            let key = (scope, period);
            let old = before.get(&key);
            let same = old.filter(|old| old.window == window);
            let purse = Purse {
                limit: raised.unwrap_or(configured),
                configured,
                window,
                charge,
                told: same.is_some_and(|old| old.told),
                refusals: old.map_or(0, |old| old.refusals),
            };
            self.purses.insert(key, purse);
        }
    }

    /// What is billed and held in a purse.
    pub fn counted(&self, scope: &Scope, purse: &Purse) -> Charge {
        let mut charge = purse.charge;
        for unbooked in self.unbooked.values() {
            if scope.holds(&unbooked.app) && purse.window.holds(quarter_of(unbooked.at_ms)) {
                charge.merge(unbooked.charge);
            }
        }
        charge
    }

    pub fn under(&self, scope: &Scope) -> Under {
        self.under.get(scope).copied().unwrap_or_default()
    }

    /// Why this app, or everybody, may send nothing.
    pub fn frozen(&self, app: &str) -> Option<Refused> {
        let frozen = self.orders.frozen(app)?;
        let is_all = self.orders.all.is_some();
        Some(Refused::frozen(app, is_all, frozen, &self.rules.zone))
    }

    fn judge(&mut self, ask: &Ask, now_ms: u64) -> Judged {
        self.roll(now_ms);
        if let Some(refused) = self.frozen(&ask.app) {
            return Judged::Never(refused);
        }
        let scopes = [Scope::All, Scope::App(Arc::clone(&ask.app))];
        let of_ask = |key: &(Scope, Period)| scopes.contains(&key.0);
        let (reserved, share) = self.estimate(ask);
        if let Some(since_ms) = ask.charged_since_ms {
            let purses = self.purses.iter().filter(|(key, _)| of_ask(key));
            let covered = purses
                .map(|(_, purse)| purse)
                .all(|purse| purse.window.holds(since_ms));
            // What it repeats is charged in these windows; in a later one it is not.
            return if covered {
                Judged::Go(MicroUsd::ZERO, Share::default())
            } else {
                Judged::Go(reserved, share)
            };
        }
        let mut without_room = Vec::new();
        for ((scope, period), purse) in self.purses.iter().filter(|(key, _)| of_ask(key)) {
            let charge = self.counted(scope, purse);
            let counted = charge.billed.get().saturating_add(charge.held.now());
            let limit = u128::from(purse.limit.get());
            let under = self.under(scope);
            if counted >= limit && charge.billed.get() < limit && under.repeats > 0 {
                // What is held for the request that one of them repeats may turn out not to be owed.
                without_room.push(scope.clone());
                continue;
            }
            if counted >= limit {
                let refused = Refused::reached(
                    (scope, *period),
                    purse.limit,
                    counted,
                    purse.window,
                    &self.rules.zone,
                );
                return Judged::Never(refused);
            }
            let needed = counted
                .saturating_add(under.room)
                .saturating_add(share.room);
            let is_alone = under.requests == 0;
            let goes_beside = under.unknown == 0 && !share.unknown && needed <= limit;
            if !is_alone && !goes_beside {
                without_room.push(scope.clone());
            }
        }
        if without_room.is_empty() {
            Judged::Go(reserved, share)
        } else {
            Judged::Wait(without_room)
        }
    }

    /// A cap that is reached by now, for a request that was admitted. A repeat is charged already.
    pub fn over(&mut self, entry: EntryId, now_ms: u64) -> Option<Refused> {
        self.roll(now_ms);
        let ask = &self.flights.get(&entry)?.ask;
        if ask.charged_since_ms.is_some() {
            return None;
        }
        let mut purses = self.purses.iter();
        purses.find_map(|((scope, period), purse)| {
            let charge = self.counted(scope, purse);
            let counted = charge.billed.get().saturating_add(charge.held.now());
            let is_over = scope.holds(&ask.app) && counted >= u128::from(purse.limit.get());
            let limit = purse.limit;
            let zone = &self.rules.zone;
            is_over.then(|| Refused::reached((scope, *period), limit, counted, purse.window, zone))
        })
    }

    fn admit(&mut self, ask: Ask, reserved: MicroUsd, share: Share, now_ms: u64) {
        for scope in [Scope::All, Scope::App(Arc::clone(&ask.app))] {
            self.under.entry(scope).or_default().add(share);
        }
        let flight = Flight {
            at_ms: now_ms,
            reserved,
            share,
            booked: false,
            ask,
        };
        self.flights.insert(flight.ask.entry, flight);
    }

    /// A request has ended.
    pub fn release(&mut self, entry: EntryId, end: End) {
        let Some(flight) = self.flights.remove(&entry) else {
            return;
        };
        let app = Scope::App(Arc::clone(&flight.ask.app));
        self.leave(&Scope::All, flight.share);
        self.leave(&app, flight.share);
        if flight.booked || end == End::Unsent {
            return;
        }
        // The ledger was not told, or cannot write now: what is known here counts until it can.
        let held = Charge {
            held: Held {
                came: flight.reserved.into(),
                ..Held::default()
            },
            ..Charge::default()
        };
        let charge = match end {
            End::Settled(state) if state.is_unresolved() => held,
            End::Settled(state) => Charge {
                billed: state.adds().into(),
                ..Charge::default()
            },
            End::Unknown | End::Unsent => held,
        };
        if charge == Charge::default() {
            return;
        }
        let unbooked = Unbooked {
            app: flight.ask.app,
            at_ms: flight.at_ms,
            charge,
        };
        if self.unbooked.len() < UNBOOKED_MAX {
            self.unbooked.insert(entry, unbooked);
        } else {
            // Counted for good rather than forgotten.
            let charged = Charged {
                entry: None,
                app: unbooked.app,
                operation: flight.ask.operation,
                at_ms: unbooked.at_ms,
                charge,
                price: Price::Nothing,
            };
            self.book(&charged);
        }
    }

    fn leave(&mut self, scope: &Scope, share: Share) {
        if let Some(under) = self.under.get_mut(scope) {
            under.remove(share);
            if *under == Under::default() {
                self.under.remove(scope);
            }
        }
    }

    /// The ledger tells what is durable.
    pub fn tell(&mut self, news: &News) {
        match news {
            News::All { usage, ended } => {
                self.usage = usage.clone();
                ended.iter().for_each(|entry| self.booked(*entry));
                self.stale = true;
                self.estimate_anew(|_| true);
            }
            News::Records(records) => records.iter().for_each(|charged| {
                self.book(charged);
                if let Some(entry) = charged.entry {
                    self.booked(entry);
                }
                if charged.price != Price::Nothing {
                    self.estimate_anew(|ask| {
                        ask.app == charged.app && ask.operation == charged.operation
                    });
                }
            }),
        }
    }

    fn book(&mut self, charged: &Charged) {
        self.usage.add(charged);
        let quarter_ms = charged.quarter_ms();
        for ((scope, _), purse) in &mut self.purses {
            if scope.holds(&charged.app) && purse.window.holds(quarter_ms) {
                purse.charge.merge(charged.charge);
            }
        }
    }

    fn booked(&mut self, entry: EntryId) {
        self.unbooked.remove(&entry);
        if let Some(flight) = self.flights.get_mut(&entry) {
            flight.booked = true;
        }
    }
}

#[cfg(test)]
mod tests;
