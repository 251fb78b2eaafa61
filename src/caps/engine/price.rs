//! What a request may cost: from the prices of its kind, else from those of others.
//!
//! Of its kind the two prices stand apart. One answer is either billed as those before it were, which may
//! grow fourfold, or it is escalated and costs what the frontier's model takes; that was told beside each
//! cheap answer, so it needs no growth. What is *held* for a price that never comes is the larger of the
//! two, once.
//!
//! Promise: an estimate is in no sum of billed money; what is under way is never estimated lower than
//! it was.

use std::sync::Arc;

use super::room::Take;
use super::{Ask, Engine, Share};
use crate::caps::rules::Scope;
use crate::ledger::usage::Dearest;
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How much dearer than all that were billed before it a request may be that goes beside others.
const GROWTH: u128 = 4;

/// The same of one whose kind nobody has seen, over the dearest of others: as far as a price is scaled by
/// the size of a body.
const GROWTH_OF_OTHERS: u128 = 16;

// === impl Engine ===

impl Engine {
    /// The largest price that one request is expected to have, of a scope.
    pub fn dearest(&self, scope: &Scope) -> Option<MicroUsd> {
        let prices = self.usage.prices.iter();
        let seen = prices
            .filter(|((app, _), _)| scope.holds(app))
            .filter_map(|(_, prices)| prices.dearest().map(Dearest::of_one));
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
        let others = own.is_none().then(|| self.price_of_others(ask)).flatten();
        let reserved = own.map(Dearest::of_one).or(others);
        let reserved = reserved.map_or(floor, |price| price.max(floor));
        let times = |price: MicroUsd, growth| u128::from(price.get()).saturating_mul(growth);
        // Of a kind whose answers have told no price so far, the next one may. Nothing is no measure.
        let room = match own {
            Some(dearest) => times(dearest.billed, GROWTH).max(dearest.frontier.get().into()),
            None => times(reserved, GROWTH),
        };
        let own = Take {
            room: room.max(floor.get().into()),
            unknown: known.is_none() || (own.is_none() && reserved.is_zero()),
        };
        let all = match others {
            // Other apps do not wait for the first answers of this one.
            Some(_) if own.unknown => Take {
                room: times(reserved, GROWTH_OF_OTHERS),
                unknown: false,
            },
            _ => own,
        };
        let share = Share {
            counts: true,
            reserved: u128::from(reserved.get()),
            own,
            all,
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
                .map(Dearest::of_one)
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
            let (app, run) = (Arc::clone(&flight.ask.app), flight.ask.run.clone());
            let of_all = (Scope::All, before.all, share.all);
            for (scope, from, to) in [of_all, (Scope::App(app), before.own, share.own)] {
                let under = self.under.entry(scope).or_default();
                under.remove(before, from);
                under.add(share, to);
            }
            self.run_changes(run.as_deref(), before, share);
        }
    }
}
