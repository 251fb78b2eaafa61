//! What counts, for those that only read it: what is in the ledger, and what it could not write yet.
//!
//! Promise: figures in memory alone, at most the quarter hours of a day for each app; what is not billed is in no
//! billed sum.

use std::collections::{BTreeMap, HashMap};

use super::cap_window::{CapWindow, Unbooked};
use crate::caps::orders::Orders;
use crate::caps::refused::Refused;
use crate::caps::rules::{Rules, Scope};
use crate::caps::view::TodayView;
use crate::caps::window::{Period, Window};
use crate::ledger::entry::{EntryId, LeaseId};
use crate::ledger::usage::{CapUsage, Charge, quarter_of};

/// All of it, of one engine.
#[derive(Clone, Copy)]
pub struct Counts<'a> {
    pub rules: &'a Rules,
    pub orders: &'a Orders,
    pub fleet: &'a Orders,
    pub usage: &'a CapUsage,
    pub caps: &'a BTreeMap<(Scope, Period), CapWindow>,
    pub unbooked: &'a HashMap<EntryId, Unbooked>,
}

/// What is billed and held of a lease: in the ledger, and what it could not write yet.
pub fn of_lease(usage: &CapUsage, unbooked: &HashMap<EntryId, Unbooked>, lease: LeaseId) -> Charge {
    let mut charge = usage.leases().charged(lease);
    let named = unbooked.values();
    let named = named.filter(|unbooked| unbooked.leases.contains(lease));
    named.for_each(|unbooked| charge += unbooked.charge);
    charge
}

// === impl Counts ===

impl Counts<'_> {
    /// What is billed and held in a cap's window.
    pub fn of_cap(&self, scope: &Scope, cap: &CapWindow) -> Charge {
        let mut charge = cap.charge;
        charge += self.not_booked(scope.app(), cap.window);
        charge
    }

    /// What is billed and held of a lease.
    pub fn of_lease(&self, lease: LeaseId) -> Charge {
        of_lease(self.usage, self.unbooked, lease)
    }

    /// Why this app may send nothing: it was removed, it is frozen, or all apps are.
    pub fn frozen(&self, app: &str) -> Option<Refused> {
        if self.rules.is_removed(app) {
            return Some(Refused::removed(app));
        }
        let frozen_by = |orders: &Orders, thaw| {
            let (frozen, is_all) = (orders.frozen(app)?, orders.all.is_some());
            let zone = &self.rules.zone;
            Some(Refused::frozen(app, is_all, frozen, thaw, zone))
        };
        frozen_by(self.orders, "bursar thaw").or_else(|| frozen_by(self.fleet, "bursar fleet thaw"))
    }

    /// The day of the caps so far, of one app or of all.
    pub fn today(&self, app: Option<&str>, now_ms: u64) -> TodayView {
        let day = Window::of(Period::Day, now_ms, &self.rules.zone);
        let (since_ms, until_ms) = (day.since_ms, day.until_ms);
        let mut charge = self.usage.charged(app, since_ms, until_ms);
        charge += self.not_booked(app, day);
        let is_meant = |scope: &Scope| scope.app() == app;
        let mut caps = self.caps.iter();
        let cap = caps.find(|((scope, period), _)| is_meant(scope) && *period == Period::Day);
        TodayView {
            spent: charge.billed,
            limit: cap.map(|(_, cap)| cap.limit),
            in_doubt: self.usage.in_doubt(app, since_ms, until_ms),
            frozen: [self.orders, self.fleet].iter().any(|orders| match app {
                Some(app) => orders.frozen(app).is_some(),
                None => orders.frozen_by().next().is_some(),
            }),
        }
    }

    /// What the ledger could not write yet, of one app or of all.
    fn not_booked(&self, app: Option<&str>, window: Window) -> Charge {
        let mut charge = Charge::default();
        for unbooked in self.unbooked.values() {
            let is_meant = app.is_none_or(|app| app == &*unbooked.app);
            if is_meant && window.holds(quarter_of(unbooked.at_ms)) {
                charge += unbooked.charge;
            }
        }
        charge
    }
}
