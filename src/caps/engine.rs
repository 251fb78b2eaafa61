//! The state behind the lock: what is charged, what is reserved, and the rule that admits a request.
//!
//! The rule, for each cap that a request counts in, where T was billed or is held in its window and L is its limit:
//!
//! * T ≥ L: refused; but while a repeat of what is held is under way, which may bring its price, it waits.
//! * nothing else is under way here: admitted, whatever it may cost.
//! * else admitted while T + what each may cost, summed over what is under way and itself, is at most L; otherwise it
//!   waits. A request may cost four times the dearest that was billed of its kind, or once the dearest at the
//!   frontier's price, whichever is more; one of a kind whose answers have reported no price, four times what is held
//!   for it; one of a kind of which no answer came yet, 16 times the dearest of others ([`price`]), below the caps of
//!   all apps. Below those of its own app, and where no price is known at all, it goes alone: an app is not kept
//!   waiting for the first answers of another.
//!
//! The limit of a run ([`runs`]) is one more cap, whose window is the run's life, and so is that of a session
//! ([`sessions`]); and so is a cap that many machines share, whose limit is what this one leased of it ([`shared`]).
//!
//! So the service's books exceed a cap by at most one request. Why, and what can break it: docs/caps.md.
//!
//! Promise: integers only, no waiting, no file, no clock; an entry is counted at least once at every
//! moment from its admission to the end of its window, unless it is known to cost nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use uuid::Uuid;

use super::orders::Orders;
use super::refused::Refused;
use super::rules::{Rules, Scope};
use super::view::{CapsView, FrozenView, TodayView};
use super::window::{Period, Window};
use crate::ledger::entry::{EntryId, State};
use crate::ledger::marks::Session;
use crate::ledger::usage::{CapUsage, Charge, Charged, Price, UsageUpdate, quarter_of};
use crate::money::MicroUsd;

mod cap_window;
mod counts;
mod flight;
mod judge;
mod line;
mod price;
mod room;
mod runs;
mod sessions;
mod shared;
mod shown;

use self::cap_window::{CapWindow, Unbooked};
use self::counts::{Counts, of_lease};
use self::flight::Flight;
pub use self::flight::{Ask, FlightEnd, Repeats};
use self::judge::{Judge, Judged, OwnLimit};
pub use self::line::{Answers, Going};
use self::line::{Decision, WaitingLines, Way};
use self::price::Prices;
use self::room::{Share, Take, Under};
use self::runs::RunBudgets;
use self::sessions::{Sessions, UnderSessions};
use self::shared::SharedCaps;
pub use self::shared::{Call, Errand, Heard, Round, Slice};
use self::shown::{cap_view, log_once, log_shared};

/// Ends that the ledger could not write yet and that are counted one by one. More than can wait there.
const UNBOOKED_MAX: usize = 8_192;

#[derive(Debug)]
pub struct Engine {
    rules: Rules,
    orders: Orders,
    /// Freezes of the whole fleet; no cap is raised here.
    fleet: Orders,
    usage: CapUsage,
    caps: BTreeMap<(Scope, Period), CapWindow>,
    /// Refusals of this process. They outlive their cap, which may be set again.
    refusals: BTreeMap<(Scope, Period), u64>,
    runs: RunBudgets,
    shared: SharedCaps,
    under_sessions: UnderSessions,
    /// The windows of the caps have to be made anew.
    stale: bool,
    /// The quarter hour in which usage was cut to its bounds last, Unix milliseconds.
    pruned_ms: u64,
    flights: HashMap<EntryId, Flight>,
    under: BTreeMap<Scope, Under>,
    unbooked: HashMap<EntryId, Unbooked>,
    lines: WaitingLines,
}

// === impl Engine ===

impl Engine {
    pub fn new(rules: Rules, orders: Orders) -> Self {
        Self {
            rules,
            orders,
            fleet: Orders::default(),
            usage: CapUsage::default(),
            caps: BTreeMap::new(),
            refusals: BTreeMap::new(),
            runs: RunBudgets::default(),
            shared: SharedCaps::default(),
            under_sessions: UnderSessions::default(),
            stale: true,
            pruned_ms: 0,
            flights: HashMap::new(),
            under: BTreeMap::new(),
            unbooked: HashMap::new(),
            lines: WaitingLines::default(),
        }
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Other rules are in force from now on.
    pub fn reload(&mut self, rules: Rules) {
        self.rules = rules;
        self.stale = true;
    }

    pub fn orders(&self) -> &Orders {
        &self.orders
    }

    /// Other orders of this machine are in force from now on.
    pub fn obey(&mut self, orders: Orders) {
        self.orders = orders;
        self.stale = true;
    }

    /// Freezes of the whole fleet.
    pub fn fleet(&self) -> &Orders {
        &self.fleet
    }

    /// Other freezes of the whole fleet. They raise no cap, so that the windows stay.
    pub fn obey_fleet(&mut self, freezes: Orders) {
        self.fleet = freezes;
    }

    /// The limits of runs.
    pub fn runs_mut(&mut self) -> &mut RunBudgets {
        &mut self.runs
    }

    /// What the fleet leased of caps that many machines share.
    pub fn shared(&self) -> &SharedCaps {
        &self.shared
    }

    pub fn shared_mut(&mut self) -> &mut SharedCaps {
        &mut self.shared
    }

    /// Brings the windows up to now. What was spent does not depend on the limits: it is summed again.
    pub fn roll(&mut self, now_ms: u64) {
        let quarter_ms = quarter_of(now_ms);
        if std::mem::replace(&mut self.pruned_ms, quarter_ms) != quarter_ms {
            self.usage.prune();
        }
        let is_over = |cap: &CapWindow| !cap.window.holds(now_ms);
        if !self.stale && !self.caps.values().any(is_over) {
            return;
        }
        self.stale = false;
        let before = std::mem::take(&mut self.caps);
        for (scope, period, configured) in self.rules.limits() {
            let window = Window::of(period, now_ms, &self.rules.zone);
            let limit = self.orders.limit(scope.app(), period, window, configured);
            let charge = self
                .usage
                .charged(scope.app(), window.since_ms, window.until_ms);
            let key = (scope, period);
            let same = before.get(&key).filter(|old| old.window == window);
            let cap = CapWindow {
                limit,
                configured,
                window,
                charge,
                is_logged: same.is_some_and(|old| old.is_logged),
            };
            self.caps.insert(key, cap);
        }
    }

    fn counts(&self) -> Counts<'_> {
        Counts {
            rules: &self.rules,
            orders: &self.orders,
            fleet: &self.fleet,
            usage: &self.usage,
            caps: &self.caps,
            unbooked: &self.unbooked,
        }
    }

    pub fn sessions(&self) -> Sessions<'_> {
        Sessions {
            counts: self.counts(),
            under: &self.under_sessions,
        }
    }

    /// What is billed and held in a cap's window.
    pub fn counted(&self, scope: &Scope, cap: &CapWindow) -> Charge {
        self.counts().of_cap(scope, cap)
    }

    pub fn under(&self, scope: &Scope) -> Under {
        self.under.get(scope).copied().unwrap_or_default()
    }

    pub fn frozen(&self, app: &str) -> Option<Refused> {
        self.counts().frozen(app)
    }

    fn judging(&self) -> Judge<'_> {
        Judge {
            counts: self.counts(),
            prices: self.prices(),
            under: &self.under,
            runs: &self.runs,
            sessions: self.sessions(),
            shared: &self.shared,
        }
    }

    fn judge(&mut self, ask: &Ask, now_ms: u64) -> Judged {
        self.roll(now_ms);
        let judgement = self.judging().judge(ask);
        self.shared.lack(judgement.lacking);
        judgement.judged
    }

    /// A limit that is reached by now, for a request that was admitted.
    pub fn over(&mut self, entry: EntryId, now_ms: u64) -> Option<Refused> {
        self.roll(now_ms);
        self.judging().over(self.flights.get(&entry)?)
    }

    /// A limit that is reached by now, for what takes no room: it is billed for nothing, and lets
    /// something cost from then on.
    pub fn reached_for(
        &mut self,
        app: &Arc<str>,
        run: Option<&Arc<str>>,
        session: Option<Session>,
        now_ms: u64,
    ) -> Option<Refused> {
        self.roll(now_ms);
        let refused = self.judging().reached_for(app, run, session)?;
        self.count_refusal(&refused);
        Some(refused)
    }

    /// Whether a waiting request waits for the fleet's database: the words for it when that takes too long.
    pub fn waits_for_lease(&mut self, entry: EntryId, now_ms: u64) -> Option<Refused> {
        // Many may wait for other things, and each looks.
        if !self.shared.is_lacking() {
            return None;
        }
        self.roll(now_ms);
        let ask = self.lines.ask_of(entry)?;
        let used_up = self.judging().judge(ask).used_up?;
        Some(self.shared.late(&used_up))
    }

    /// What is to be carried to the fleet's database now.
    pub fn errand(&mut self, request: Uuid, round: Round) -> Option<Errand> {
        let dearest = self.dearest(&Scope::All);
        let (usage, unbooked) = (&self.usage, &self.unbooked);
        let charged = |lease| of_lease(usage, unbooked, lease);
        self.shared.errand(request, dearest, round, &charged)
    }

    pub fn left_open(&self) -> u128 {
        self.shared
            .left_open(&|lease| self.counts().of_lease(lease))
    }

    fn admit(&mut self, ask: Ask, going: &Going, share: Share, now_ms: u64) {
        let app = Scope::App(Arc::clone(&ask.app));
        for (scope, take) in [(Scope::All, share.all), (app, share.own)] {
            self.under.entry(scope).or_default().add(share, take);
        }
        self.runs.begins(&ask, share);
        self.under_sessions.begins(&ask, share);
        let (usage, unbooked) = (&self.usage, &self.unbooked);
        let charged = |lease| of_lease(usage, unbooked, lease);
        self.shared.begins(&going.leases, share, &charged);
        let flight = Flight {
            at_ms: now_ms,
            reserved: going.reserved,
            share,
            leases: going.leases.clone(),
            booked: false,
            is_reported: false,
            ask,
        };
        self.flights.insert(flight.ask.entry, flight);
    }

    /// What a request under way came to is known, and is on its way to the ledger: it counts from now on.
    pub fn foresee(&mut self, entry: EntryId, state: State) {
        let flight = self.flights.get(&entry);
        let Some(flight) = flight.filter(|flight| flight.share.counts && !flight.booked) else {
            return;
        };
        let unbooked = Unbooked::of(flight, flight.came_to(FlightEnd::Settled(state)));
        if unbooked.charge.is_none() || self.unbooked.len() >= UNBOOKED_MAX {
            return;
        }
        let run = flight.ask.run.as_deref();
        self.runs.foresees(run, entry, unbooked.charge);
        self.unbooked.insert(entry, unbooked);
    }

    /// A request has ended.
    pub fn release(&mut self, entry: EntryId, end: FlightEnd) {
        let Some(flight) = self.flights.remove(&entry) else {
            return;
        };
        let app = Scope::App(Arc::clone(&flight.ask.app));
        self.leave(&Scope::All, flight.share, flight.share.all);
        self.leave(&app, flight.share, flight.share.own);
        // The ledger has no record of it, or cannot write now: what is known here counts until it can.
        let foreseen = self.unbooked.remove(&entry).map(|unbooked| unbooked.charge);
        let charge = match (end, foreseen) {
            (FlightEnd::Unknown, Some(foreseen)) => foreseen,
            _ => flight.came_to(end),
        };
        self.under_sessions.ends(&flight);
        self.shared.ends(&flight.leases, flight.share);
        self.runs
            .ends(&flight, (end != FlightEnd::Unsent).then_some(charge));
        if flight.booked || charge.is_none() {
            return;
        }
        let unbooked = Unbooked::of(&flight, charge);
        if self.unbooked.len() < UNBOOKED_MAX {
            self.unbooked.insert(entry, unbooked);
        } else {
            // Counted for good rather than forgotten.
            self.book(&unbooked.charged(flight.ask.operation));
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

    /// Takes from the ledger what is durable.
    pub fn update(&mut self, update: &UsageUpdate) {
        match update {
            UsageUpdate::All { usage, ended } => {
                self.usage = usage.clone();
                ended.iter().for_each(|entry| self.booked(*entry));
                let flights = &self.flights;
                self.runs
                    .keep_unreported(ended, |entry| flights.contains_key(entry));
                self.stale = true;
                self.estimate_anew(|_| true);
            }
            UsageUpdate::Records(records) => records.iter().for_each(|charged| {
                self.book(charged);
                self.runs.charge(charged);
                if let Some(entry) = charged.entry {
                    self.booked(entry);
                    if let Some(flight) = self.flights.get_mut(&entry) {
                        flight.is_reported = true;
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
        for ((scope, _), cap) in &mut self.caps {
            if scope.holds(&charged.app) && cap.window.holds(quarter_ms) {
                cap.charge += charged.charge;
            }
        }
    }

    fn booked(&mut self, entry: EntryId) {
        self.unbooked.remove(&entry);
        if let Some(flight) = self.flights.get_mut(&entry) {
            flight.booked = true;
        }
    }

    /// A dearer receipt raises what is under way.
    fn estimate_anew(&mut self, concerns: impl Fn(&Ask) -> bool) {
        let flights = self.flights.values();
        let raised: Vec<_> = flights
            .filter(|flight| flight.share.counts && concerns(&flight.ask))
            .filter_map(|flight| {
                let (reserved, mut share) = self.prices().estimate(&flight.ask);
                let before = flight.share;
                share.reserved = share.reserved.max(before.reserved);
                share.own.room = share.own.room.max(before.own.room);
                share.all.room = share.all.room.max(before.all.room);
                let reserved = reserved.max(flight.reserved);
                (share != before).then_some((flight.ask.entry, reserved, share))
            })
            .collect();
        for (entry, reserved, share) in raised {
            let Some(flight) = self.flights.get_mut(&entry) else {
                continue;
            };
            let before = std::mem::replace(&mut flight.share, share);
            flight.reserved = reserved;
            self.shared.changes(&flight.leases, before, share);
            let (app, run) = (Arc::clone(&flight.ask.app), flight.ask.run.clone());
            let of_all = (Scope::All, before.all, share.all);
            for (scope, from, to) in [of_all, (Scope::App(app), before.own, share.own)] {
                let under = self.under.entry(scope).or_default();
                under.remove(before, from);
                under.add(share, to);
            }
            self.runs.changes(run.as_deref(), before, share);
            self.under_sessions.changes(&flight.ask, before, share);
        }
    }

    /// The largest price that one request is expected to have, of a scope.
    fn dearest(&self, scope: &Scope) -> Option<MicroUsd> {
        let flights = self.flights.values();
        let reserved = flights
            .filter(|flight| scope.holds(&flight.ask.app))
            .map(|flight| flight.reserved);
        self.prices()
            .dearest(scope)
            .into_iter()
            .chain(reserved)
            .max()
    }

    fn prices(&self) -> Prices<'_> {
        Prices {
            rules: &self.rules,
            usage: &self.usage,
        }
    }

    /// Admits or refuses at once, or puts the request in line.
    pub fn ask(&mut self, mut ask: Ask, way: Way, now_ms: u64) -> Answers {
        let entry = ask.entry;
        // Without a limit it is a request like the others of its app, and waits in their line.
        ask.session = ask
            .session
            .filter(|_| self.rules.session(&ask.app).is_some());
        let waiting = self.lines.waiting();
        // With others in line it is the line that decides; what is charged in every window of now passes.
        if waiting == 0 || ask.repeats.is_some() {
            match self.judge(&ask, now_ms) {
                Judged::Go(going, share) if waiting == 0 || !share.counts => {
                    self.admit(ask, &going, share, now_ms);
                    return Answers::one(entry, way, Ok(going));
                }
                Judged::Never(refused) => {
                    self.count_refusal(&refused);
                    return Answers::one(entry, way, Err(refused));
                }
                Judged::Go(..) | Judged::Wait(_) | Judged::WaitForOwn(_) => {}
            }
        }
        match self.lines.push(ask, way) {
            Ok(()) => self.serve(now_ms),
            Err((way, refused)) => Answers::one(entry, way, Err(refused)),
        }
    }

    /// Removes a request from the line that does not wait any longer.
    pub fn give_up(&mut self, entry: EntryId, now_ms: u64) -> Answers {
        self.lines.give_up(entry);
        self.serve(now_ms)
    }

    /// Admits waiting requests in turn, as long as there is room. Where a cap has no room for the one whose
    /// turn it is, no other is admitted below that cap before it.
    pub fn serve(&mut self, now_ms: u64) -> Answers {
        let mut answers = Answers::default();
        while let Some((entry, way, decision)) = self.serve_one(now_ms) {
            answers.add(entry, way, decision);
        }
        answers
    }

    fn serve_one(&mut self, now_ms: u64) -> Option<(EntryId, Way, Decision)> {
        let mut closed: Vec<Scope> = Vec::new();
        for ask in self.lines.heads() {
            let judged = self.judge(&ask, now_ms);
            let is_closed = closed.iter().any(|scope| scope.holds(&ask.app));
            match judged {
                Judged::Never(refused) => {
                    self.count_refusal(&refused);
                    let way = self.lines.take_first(&ask)?;
                    return Some((ask.entry, way, Err(refused)));
                }
                Judged::Go(going, share) if !is_closed => {
                    let way = self.lines.take_first(&ask)?;
                    self.lines.took_turn(&ask.app);
                    let entry = ask.entry;
                    self.admit(ask, &going, share, now_ms);
                    return Some((entry, way, Ok(going)));
                }
                Judged::Go(..) | Judged::WaitForOwn(_) => {}
                Judged::Wait(scopes) => closed.extend(scopes),
            }
        }
        None
    }

    /// Releases what was admitted for requests that have left the line.
    pub fn let_go(&mut self, gone: Vec<EntryId>, now_ms: u64) -> Answers {
        for entry in gone {
            self.release(entry, FlightEnd::Unsent);
        }
        self.serve(now_ms)
    }

    /// Why a waiting request had no turn for so long.
    pub fn late(&mut self, entry: EntryId, seconds: u64, now_ms: u64) -> Refused {
        let Some(ask) = self.lines.ask_of(entry).cloned() else {
            return Refused::late(seconds);
        };
        let of_own = match self.judge(&ask, now_ms) {
            Judged::WaitForOwn(OwnLimit::Run) => {
                let of_run = self.runs.of(&ask);
                of_run.map(|(run, _)| Refused::run_late(run, &ask.app, seconds))
            }
            Judged::WaitForOwn(OwnLimit::Session) => self.sessions().late(&ask, seconds),
            Judged::Go(..) | Judged::Wait(_) | Judged::Never(_) => None,
        };
        of_own.unwrap_or_else(|| Refused::late(seconds))
    }

    pub fn count_refusal(&mut self, refused: &Refused) {
        let reached = match refused {
            Refused::Shared(refusal) => {
                if self.shared.count_refusal(refusal) {
                    log_shared(refusal);
                }
                return;
            }
            Refused::Reached(reached) => reached,
            _ => return,
        };
        let key = (reached.scope.clone(), reached.period);
        let refusals = self.refusals.entry(key.clone()).or_default();
        *refusals = refusals.saturating_add(1);
        if let Some(cap) = self.caps.get_mut(&key) {
            log_once(reached, cap);
        }
    }

    /// The day of the caps so far, of one app or of all.
    pub fn today(&mut self, app: Option<&str>, now_ms: u64) -> TodayView {
        self.roll(now_ms);
        self.counts().today(app, now_ms)
    }

    /// What is shown of it, but for its sessions.
    pub fn view(&mut self, now_ms: u64) -> CapsView {
        self.roll(now_ms);
        let caps = self.caps.iter().map(|(key, cap)| {
            let (charge, under) = (self.counted(&key.0, cap), self.under(&key.0));
            let refusals = self.refusals.get(key).copied().unwrap_or(0);
            cap_view(key, cap, charge, under, self.dearest(&key.0), refusals)
        });
        CapsView {
            time_zone: self.rules.zone.iana_name().map(str::to_owned),
            caps: caps.collect(),
            frozen: FrozenView::list(&self.orders, &self.fleet),
            waiting: self.lines.waiting(),
            sessions: Vec::new(),
            shared: self.shared.view(self.dearest(&Scope::All), &|lease| {
                self.counts().of_lease(lease)
            }),
        }
    }
}

#[cfg(test)]
mod tests;
