//! The day so far, of one app or of all, capped or not: for those that look each second.
//!
//! Promise: figures in memory alone, at most the quarter hours of a day for each app; what is not billed is in no
//! billed sum.

use super::Engine;
use crate::caps::rules::Scope;
use crate::caps::view::TodayView;
use crate::caps::window::{Period, Window};
use crate::ledger::usage::quarter_of;

// === impl Engine ===

impl Engine {
    /// The day of the caps so far, of one app or of all.
    pub fn today(&mut self, app: Option<&str>, now_ms: u64) -> TodayView {
        self.roll(now_ms);
        let day = Window::of(Period::Day, now_ms, &self.rules.zone);
        let (since_ms, until_ms) = (day.since_ms, day.until_ms);
        let mut charge = self.usage.charged(app, since_ms, until_ms);
        for unbooked in self.unbooked.values() {
            if app.is_none_or(|app| app == &*unbooked.app) && day.holds(quarter_of(unbooked.at_ms))
            {
                charge.merge(unbooked.charge);
            }
        }
        let is_meant = |scope: &Scope| scope.app() == app;
        let mut caps = self.caps.iter();
        let cap = caps.find(|((scope, period), _)| is_meant(scope) && *period == Period::Day);
        TodayView {
            spent: charge.billed,
            limit: cap.map(|(_, cap)| cap.limit),
            in_doubt: self.usage.in_doubt(app, since_ms, until_ms),
            frozen: match app {
                Some(app) => self.orders.frozen(app).is_some(),
                None => self.orders.frozen_by().next().is_some(),
            },
        }
    }
}
