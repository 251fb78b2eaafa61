//! What a request may cost: from the prices of its kind, else from those of others.
//!
//! Promise: an estimate is in no sum of billed money; what is under way is never estimated lower than
//! it was.

use std::sync::Arc;

use super::{Ask, Engine, Share};
use crate::caps::rules::Scope;
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How much dearer than all before it a request may be that goes beside others.
const GROWTH: u128 = 4;

// === impl Engine ===

impl Engine {
    /// The largest price that one request is expected to have, of a scope.
    pub fn dearest(&self, scope: &Scope) -> Option<MicroUsd> {
        let prices = self.usage.prices.iter();
        let seen = prices
            .filter(|((app, _), _)| scope.holds(app))
            .filter_map(|(_, prices)| prices.dearest());
        let flights = self.flights.values();
        let reserved = flights
            .filter(|flight| scope.holds(&flight.ask.app))
            .map(|flight| flight.reserved);
        seen.chain(reserved).max()
    }

    /// What a request may cost, from the prices of its kind.
    pub(super) fn estimate(&self, ask: &Ask) -> (MicroUsd, Share) {
        let floor = self.rules.floor(&ask.app);
        let known = self.usage.prices(&ask.app, ask.operation);
        let own = known.and_then(|prices| prices.for_body(ask.request_bytes));
        let price = own.or_else(|| self.price_of_others(ask));
        let reserved = price.map_or(floor, |price| price.max(floor));
        // Of a kind whose answers have told no price so far, the next one may.
        let basis = own.unwrap_or(reserved);
        let growing = u128::from(basis.get()).saturating_mul(GROWTH);
        let share = Share {
            counts: true,
            reserved: u128::from(reserved.get()),
            room: growing.max(u128::from(floor.get())),
            unknown: known.is_none(),
        };
        (reserved, share)
    }

    /// Where no price of its kind was told: the dearest of the same operation, else of the same app,
    /// else of all.
    fn price_of_others(&self, ask: &Ask) -> Option<MicroUsd> {
        let dearest = |fits: &dyn Fn(&Arc<str>, Operation) -> bool| {
            let prices = self.usage.prices.iter();
            prices
                .filter(|((app, operation), _)| fits(app, *operation))
                .filter_map(|(_, prices)| prices.for_body(ask.request_bytes))
                .max()
        };
        dearest(&|_, operation| operation == ask.operation)
            .or_else(|| dearest(&|app, _| *app == ask.app))
            .or_else(|| dearest(&|_, _| true))
    }

    /// A dearer receipt raises what is under way.
    pub(super) fn estimate_anew(&mut self, concerns: impl Fn(&Ask) -> bool) {
        let flights = self.flights.values();
        let raised: Vec<_> = flights
            .filter(|flight| flight.share.counts && concerns(&flight.ask))
            .filter_map(|flight| {
                let (reserved, mut share) = self.estimate(&flight.ask);
                let before = flight.share;
                share.reserved = share.reserved.max(before.reserved);
                share.room = share.room.max(before.room);
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
            let app = Scope::App(Arc::clone(&flight.ask.app));
            for scope in [Scope::All, app] {
                let under = self.under.entry(scope).or_default();
                under.remove(before);
                under.add(share);
            }
        }
    }
}
