//! What is to become of a request now, by the rule of [`super`]: each cap that it counts in, the limits of its run and
//! of its session, and what is leased of shared caps.
//!
//! Promise: reads only, and answers the same to the same; a refusal names the first limit that has nothing left.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cap_window::CapWindow;
use super::counts::Counts;
use super::flight::{Ask, Flight, Repeats};
use super::line::Going;
use super::price::Prices;
use super::room::{Room, Share, Under, sum};
use super::runs::RunBudgets;
use super::sessions::Sessions;
use super::shared::{Lacking, SharedCaps, SharedRoom};
use crate::caps::refused::Refused;
use crate::caps::rules::Scope;
use crate::caps::window::Period;
use crate::ledger::entry::LeaseId;
use crate::ledger::marks::Session;
use crate::money::MicroUsd;

/// What is to become of an ask now.
#[derive(Debug)]
pub enum Judged {
    Go(Going, Share),
    /// These scopes have no room for it.
    Wait(Vec<Scope>),
    /// A limit of its own has none: no other request waits for that.
    WaitForOwn(OwnLimit),
    Never(Refused),
}

/// A limit that holds for no other request of its app.
#[derive(Clone, Copy, Debug)]
pub enum OwnLimit {
    Run,
    Session,
}

/// The same, and what is to be leased for it.
#[derive(Debug)]
pub struct Judgement {
    pub judged: Judged,
    pub lacking: Vec<Lacking>,
    /// The shared cap whose slice is used up: it waits for the database.
    pub used_up: Option<Lacking>,
}

/// All that it rests on.
pub struct Judge<'a> {
    pub counts: Counts<'a>,
    pub prices: Prices<'a>,
    pub under: &'a BTreeMap<Scope, Under>,
    pub runs: &'a RunBudgets,
    pub sessions: Sessions<'a>,
    pub shared: &'a SharedCaps,
}

/// Shared caps as an ask finds them.
#[derive(Default)]
struct OfShared {
    leases: Vec<LeaseId>,
    lacking: Vec<Lacking>,
    used_up: Option<Lacking>,
    never: Option<Refused>,
    waits: bool,
    /// It is a new purchase in one of them.
    is_new: bool,
}

// === impl Judgement ===

impl From<Judged> for Judgement {
    fn from(judged: Judged) -> Self {
        Self {
            judged,
            lacking: Vec::new(),
            used_up: None,
        }
    }
}

// === impl Judge ===

impl<'a> Judge<'a> {
    pub fn judge(&self, ask: &Ask) -> Judgement {
        if let Some(refused) = self.counts.frozen(&ask.app) {
            return Judged::Never(refused).into();
        }
        let (reserved, share) = self.prices.estimate(ask);
        let mut waits = false;
        let mut without_room = Vec::new();
        let mut is_covered = true;
        for ((scope, period), cap) in self.caps_of(ask) {
            is_covered = false;
            let charge = self.counts.of_cap(scope, cap);
            let take = if *scope == Scope::All {
                share.all
            } else {
                share.own
            };
            match self.under(scope).room(charge, cap.limit, take) {
                Room::Enough => {}
                Room::Taken => {
                    waits = true;
                    without_room.push(scope.clone());
                }
                Room::Reached => return Judged::Never(self.reached(scope, *period, cap)).into(),
            }
        }
        let shared = self.of_shared(ask, share);
        if let Some(refused) = shared.never {
            return Judgement {
                lacking: shared.lacking,
                ..Judged::Never(refused).into()
            };
        }
        is_covered &= !shared.is_new;
        if shared.waits {
            waits = true;
            // Every app spends of a shared cap.
            without_room.push(Scope::All);
        }
        let mut own = None;
        if let Some((run, budget)) = self.runs.of(ask).filter(|(_, budget)| !budget.covers(ask)) {
            is_covered = false;
            match budget.room(share.own) {
                Room::Enough => {}
                // It could not be sent with room below the caps either: no other request waits for that.
                Room::Taken => own = Some(OwnLimit::Run),
                Room::Reached => return Judged::Never(budget.refusal(run, &ask.app)).into(),
            }
        }
        match self.sessions.room(ask, share) {
            // As with a run.
            Ok(Room::Taken) => own = own.or(Some(OwnLimit::Session)),
            Ok(_) => {}
            Err(refused) => return Judged::Never(refused).into(),
        }
        if let Some(own) = own {
            // Nothing is leased for what could not go either.
            return Judged::WaitForOwn(own).into();
        }
        let judged = if waits {
            Judged::Wait(without_room)
        } else {
            let is_repeat = is_covered && ask.repeats.is_some();
            let (reserved, share) = match is_repeat {
                true => (MicroUsd::ZERO, Share::default()),
                false => (reserved, share),
            };
            let leases = shared.leases.into_iter().collect();
            Judged::Go(Going { reserved, leases }, share)
        };
        Judgement {
            judged,
            lacking: shared.lacking,
            used_up: shared.used_up,
        }
    }

    fn of_shared(&self, ask: &Ask, share: Share) -> OfShared {
        let mut found = OfShared::default();
        for cap in self.shared.names() {
            let charged = |lease| self.counts.of_lease(lease);
            if let Some(lease) = self.shared.covers(cap, ask, &charged) {
                found.leases.push(lease);
                continue;
            }
            found.is_new = true;
            match self.shared.room(cap, share, share.all, &charged) {
                SharedRoom::Enough(lease) => found.leases.push(lease),
                SharedRoom::Taken(lacking) => {
                    found.waits = true;
                    found.lacking.extend(lacking);
                }
                SharedRoom::UsedUp(lacking) => {
                    found.waits = true;
                    found.used_up.get_or_insert_with(|| lacking.clone());
                    found.lacking.push(lacking);
                }
                SharedRoom::Never(refused, lacking) => {
                    found.lacking.extend(lacking);
                    found.never.get_or_insert(refused);
                }
            }
        }
        found
    }

    /// The caps that a request counts in. What a repeat repeats is charged in the windows in which it
    /// was bought, and is no new purchase there; in a later one it may be billed anew.
    fn caps_of(&self, ask: &Ask) -> impl Iterator<Item = (&'a (Scope, Period), &'a CapWindow)> {
        self.counts.caps.iter().filter(|((scope, _), cap)| {
            let is_charged = |repeats: &Repeats| cap.window.holds(repeats.since_ms);
            scope.holds(&ask.app) && !ask.repeats.as_ref().is_some_and(is_charged)
        })
    }

    fn under(&self, scope: &Scope) -> Under {
        self.under.get(scope).copied().unwrap_or_default()
    }

    fn reached(&self, scope: &Scope, period: Period, cap: &CapWindow) -> Refused {
        let charge = self.counts.of_cap(scope, cap);
        let zone = &self.counts.rules.zone;
        Refused::reached((scope, period), cap.limit, charge, cap.window, zone)
    }

    fn is_reached(&self, scope: &Scope, cap: &CapWindow) -> bool {
        sum(self.counts.of_cap(scope, cap)) >= u128::from(cap.limit.get())
    }

    /// A limit that is reached by now, for a request that was admitted.
    pub fn over(&self, flight: &Flight) -> Option<Refused> {
        let ask = &flight.ask;
        let mut caps = self.caps_of(ask);
        let over = caps.find(|((scope, _), cap)| self.is_reached(scope, cap));
        if let Some(((scope, period), cap)) = over {
            return Some(self.reached(scope, *period, cap));
        }
        let charged = |lease| self.counts.of_lease(lease);
        if let Some(over) = self.shared.over(ask, &flight.leases, &charged) {
            return Some(over);
        }
        if let Some(over) = self.sessions.over(ask) {
            return Some(over);
        }
        let (run, budget) = self.runs.of(ask)?;
        let is_over = budget.is_reached() && !budget.covers(ask);
        is_over.then(|| budget.refusal(run, &ask.app))
    }

    /// A limit that is reached by now, for what takes no room: it is billed for nothing, and lets
    /// something cost from then on.
    pub fn reached_for(
        &self,
        app: &Arc<str>,
        run: Option<&Arc<str>>,
        session: Option<Session>,
    ) -> Option<Refused> {
        let mut caps = self.counts.caps.iter();
        let over = caps.find(|((scope, _), cap)| scope.holds(app) && self.is_reached(scope, cap));
        if let Some(((scope, period), cap)) = over {
            return Some(self.reached(scope, *period, cap));
        }
        let charged = |lease| self.counts.of_lease(lease);
        let of_shared = self.shared.reached(&charged);
        let of_run = || run.and_then(|run| self.runs.reached(run, app));
        let of_session = || self.sessions.reached(app, session?);
        of_shared.or_else(of_run).or_else(of_session)
    }
}
