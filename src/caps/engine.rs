//! The state behind the lock: what is charged, what is reserved, and the rule that admits a request.
//!
//! The rule, for each cap that a request counts in. T is what was billed and what is held in the cap's
//! window, L its limit.
//!
//! * T ≥ L: refused; but while a repeat of what is held is under way, which may bring its price, it waits.
//! * nothing else is under way here: admitted, whatever it may cost.
//! * else admitted while T + what each may cost, summed over what is under way and itself, is at most L;
//!   otherwise it waits. A request may cost four times the dearest that was billed of its kind, or once
//!   the dearest at the frontier's price, whichever is more; one of a kind whose answers have told no
//!   price, four times what is held for it; one of a kind of which no answer came yet, 16 times the
//!   dearest of others ([`price`]), below the caps of all apps. Below those of its own app, and where no
//!   price is known at all, it goes alone: an app is not kept waiting for the first answers of another.
//!
//! The limit of a run ([`runs`]) is one more cap, whose window is the run's life.
//!
//! Why that bounds what is spent. Whoever was admitted beside others left T + all of it ≤ L, as long as
//! none costs more than it was taken to, so they end at or below the limit. Only one that went alone
//! can go beyond, when T < L: by less than its own price. One that goes beside others and costs more
//! than it was taken to is no worse: the others ended below L with its share to spare. So the service's
//! books exceed a cap by at most one request. What can break it: two requests under way at one moment
//! that each cost more than they were taken to, and entries without a price that cost more than they
//! are held for.
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
use crate::ledger::usage::{Charge, Charged, News, Price, Usage, quarter_of};
use crate::money::MicroUsd;
use crate::protocol::Operation;

mod line;
mod price;
mod room;
mod runs;

pub use line::Answers;
use line::{LineOf, Waiter};
use room::{Room, Share, Take, Under, sum};
use runs::RunPurse;

/// Ends that the ledger could not write yet and that are counted one by one. More than can wait there.
const UNBOOKED_MAX: usize = 8_192;

/// A request that wants to spend.
#[derive(Clone, Debug)]
pub struct Ask {
    pub entry: EntryId,
    pub app: Arc<str>,
    /// The run of `bursar exec` that spends.
    pub run: Option<Arc<str>>,
    pub operation: Operation,
    pub request_bytes: u64,
    pub repeats: Option<Repeats>,
}

/// A key that is charged: its request repeats what was bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// In whose window the charge counts, Unix milliseconds.
    pub since_ms: u64,
    /// The entries that it is charged to, as far as they are known.
    pub from: Vec<EntryId>,
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
    /// Its end is in the ledger.
    booked: bool,
    /// The ledger told it by itself, with its charge.
    told: bool,
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
    /// Refusals of this process. They outlive their cap, which may be set again.
    pub refusals: BTreeMap<(Scope, Period), u64>,
    runs: BTreeMap<Arc<str>, RunPurse>,
    /// The purses have to be made anew.
    stale: bool,
    flights: HashMap<EntryId, Flight>,
    under: BTreeMap<Scope, Under>,
    unbooked: HashMap<EntryId, Unbooked>,
    lines: BTreeMap<LineOf, VecDeque<Waiter>>,
    /// When an app was last given a turn, by number.
    turns: HashMap<Arc<str>, u64>,
    next_number: u64,
}

/// What is to become of an ask now.
enum Judged {
    Go(MicroUsd, Share),
    /// These scopes have no room for it; none: its run has not.
    Wait(Vec<Scope>),
    Never(Refused),
}

// === impl Engine ===

impl Engine {
    pub fn new(rules: Rules, orders: Orders) -> Self {
        Self {
            rules,
            orders,
            usage: Usage::default(),
            purses: BTreeMap::new(),
            refusals: BTreeMap::new(),
            runs: BTreeMap::new(),
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
        self.usage.prune();
        let before = std::mem::take(&mut self.purses);
        for (scope, period, configured) in self.rules.limits() {
            let window = Window::of(period, now_ms, &self.rules.zone);
            let limit = self.orders.limit(scope.app(), period, window, configured);
            let charge = self
                .usage
                .charged(scope.app(), window.since_ms, window.until_ms);
            let key = (scope, period);
            let same = before.get(&key).filter(|old| old.window == window);
            let purse = Purse {
                limit,
                configured,
                window,
                charge,
                told: same.is_some_and(|old| old.told),
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
        if self.rules.is_removed(app) {
            return Some(Refused::removed(app));
        }
        let frozen = self.orders.frozen(app)?;
        let is_all = self.orders.all.is_some();
        Some(Refused::frozen(app, is_all, frozen, &self.rules.zone))
    }

    fn judge(&mut self, ask: &Ask, now_ms: u64) -> Judged {
        self.roll(now_ms);
        if let Some(refused) = self.frozen(&ask.app) {
            return Judged::Never(refused);
        }
        let (reserved, share) = self.estimate(ask);
        let mut waits = false;
        let mut without_room = Vec::new();
        let mut is_covered = true;
        for ((scope, period), purse) in self.purses_of(ask) {
            is_covered = false;
            let charge = self.counted(scope, purse);
            let take = if *scope == Scope::All {
                share.all
            } else {
                share.own
            };
            match self.under(scope).room(charge, purse.limit, take) {
                Room::Enough => {}
                Room::Taken => {
                    waits = true;
                    without_room.push(scope.clone());
                }
                Room::Reached => return Judged::Never(self.reached(scope, *period, purse)),
            }
        }
        if let Some((run, purse)) = self.run_of(ask).filter(|(_, purse)| !purse.covers(ask)) {
            is_covered = false;
            match purse.under.room(purse.counted(), purse.limit(), share.own) {
                Room::Enough => {}
                // It could not go with room below the caps either: nobody else waits for that.
                Room::Taken => {
                    waits = true;
                    without_room.clear();
                }
                Room::Reached => return Judged::Never(purse.refusal(run, &ask.app)),
            }
        }
        if waits {
            Judged::Wait(without_room)
        } else if is_covered && ask.repeats.is_some() {
            Judged::Go(MicroUsd::ZERO, Share::default())
        } else {
            Judged::Go(reserved, share)
        }
    }

    /// The caps that a request counts in. What a repeat repeats is charged in the windows in which it
    /// was bought, and is no new purchase there; in a later one it may be billed anew.
    fn purses_of(&self, ask: &Ask) -> impl Iterator<Item = (&(Scope, Period), &Purse)> {
        self.purses.iter().filter(|((scope, _), purse)| {
            let is_charged = |repeats: &Repeats| purse.window.holds(repeats.since_ms);
            scope.holds(&ask.app) && !ask.repeats.as_ref().is_some_and(is_charged)
        })
    }

    fn reached(&self, scope: &Scope, period: Period, purse: &Purse) -> Refused {
        let counted = sum(self.counted(scope, purse));
        let zone = &self.rules.zone;
        Refused::reached((scope, period), purse.limit, counted, purse.window, zone)
    }

    /// A limit that is reached by now, for a request that was admitted.
    pub fn over(&mut self, entry: EntryId, now_ms: u64) -> Option<Refused> {
        self.roll(now_ms);
        let ask = &self.flights.get(&entry)?.ask;
        let over = self
            .purses_of(ask)
            .find(|((scope, _), purse)| self.is_reached(scope, purse));
        if let Some(((scope, period), purse)) = over {
            return Some(self.reached(scope, *period, purse));
        }
        let (run, purse) = self.run_of(ask)?;
        let is_over = purse.is_reached() && !purse.covers(ask);
        is_over.then(|| purse.refusal(run, &ask.app))
    }

    fn is_reached(&self, scope: &Scope, purse: &Purse) -> bool {
        sum(self.counted(scope, purse)) >= u128::from(purse.limit.get())
    }

    /// A limit that is reached by now, for what takes no room: it is billed for nothing, and lets
    /// something cost from then on.
    pub fn reached_for(
        &mut self,
        app: &str,
        run: Option<&Arc<str>>,
        now_ms: u64,
    ) -> Option<Refused> {
        self.roll(now_ms);
        let mut purses = self.purses.iter();
        let over =
            purses.find(|((scope, _), purse)| scope.holds(app) && self.is_reached(scope, purse));
        let refused = match over {
            Some(((scope, period), purse)) => self.reached(scope, *period, purse),
            None => {
                let (run, purse) = self.runs.get_key_value(run?)?;
                purse.is_reached().then(|| purse.refusal(run, app))?
            }
        };
        self.count_refusal(&refused);
        Some(refused)
    }

    fn admit(&mut self, ask: Ask, reserved: MicroUsd, share: Share, now_ms: u64) {
        let app = Scope::App(Arc::clone(&ask.app));
        for (scope, take) in [(Scope::All, share.all), (app, share.own)] {
            self.under.entry(scope).or_default().add(share, take);
        }
        self.run_begins(&ask, share);
        let flight = Flight {
            at_ms: now_ms,
            reserved,
            share,
            booked: false,
            told: false,
            ask,
        };
        self.flights.insert(flight.ask.entry, flight);
    }

    /// What a request under way came to is known, and is on its way to the ledger: it counts from now on.
    pub fn hear(&mut self, entry: EntryId, state: State) {
        let flight = self.flights.get(&entry);
        let Some(flight) = flight.filter(|flight| flight.share.counts && !flight.booked) else {
            return;
        };
        let charge = flight.came_to(End::Settled(state));
        let (app, at_ms) = (Arc::clone(&flight.ask.app), flight.at_ms);
        let run = flight.ask.run.clone();
        if charge == Charge::default() || self.unbooked.len() >= UNBOOKED_MAX {
            return;
        }
        self.run_hears(run.as_deref(), entry, charge);
        self.unbooked.insert(entry, Unbooked { app, at_ms, charge });
    }

    /// A request has ended.
    pub fn release(&mut self, entry: EntryId, end: End) {
        let Some(flight) = self.flights.remove(&entry) else {
            return;
        };
        let app = Scope::App(Arc::clone(&flight.ask.app));
        self.leave(&Scope::All, flight.share, flight.share.all);
        self.leave(&app, flight.share, flight.share.own);
        // The ledger was not told, or cannot write now: what is known here counts until it can.
        let heard = self.unbooked.remove(&entry).map(|unbooked| unbooked.charge);
        let charge = match (end, heard) {
            (End::Unknown, Some(heard)) => heard,
            _ => flight.came_to(end),
        };
        self.run_ends(&flight, (end != End::Unsent).then_some(charge));
        if flight.booked || charge == Charge::default() {
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
                run: None,
                operation: flight.ask.operation,
                at_ms: unbooked.at_ms,
                charge,
                price: Price::Nothing,
            };
            self.book(&charged);
        }
    }

    fn leave(&mut self, scope: &Scope, share: Share, take: Take) {
        if let Some(under) = self.under.get_mut(scope) {
            under.remove(share, take);
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
                self.keep_untold(ended);
                self.stale = true;
                self.estimate_anew(|_| true);
            }
            News::Records(records) => records.iter().for_each(|charged| {
                self.book(charged);
                self.charge_run(charged);
                if let Some(entry) = charged.entry {
                    self.booked(entry);
                    if let Some(flight) = self.flights.get_mut(&entry) {
                        flight.told = true;
                    }
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

// === impl Flight ===

impl Flight {
    /// What an end of it is charged with.
    fn came_to(&self, end: End) -> Charge {
        let mut charge = Charge::default();
        match end {
            End::Unsent => {}
            End::Settled(state) if !state.is_unresolved() => charge.billed = state.adds().into(),
            End::Settled(_) | End::Unknown => charge.held.came = self.reserved.into(),
        }
        charge
    }
}

#[cfg(test)]
mod tests;
