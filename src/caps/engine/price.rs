//! What a request may cost: from the prices of its kind, else from those of others.
//!
//! The two prices of its kind are kept apart. An answer is either billed as those before it were, which may
//! grow fourfold, or it is escalated and costs what the frontier's model takes; each cheap answer reports
//! that price too, so it needs no growth. What is *held* for a price that never comes is the larger of the
//! two, once.
//!
//! Promise: an estimate is in no sum of billed money; what is under way is never estimated lower than
//! it was.

use std::sync::Arc;

use super::flight::Ask;
use super::room::{Share, Take};
use crate::caps::rules::{Rules, Scope};
use crate::ledger::usage::{CapUsage, Dearest};
use crate::money::MicroUsd;
use crate::protocol::Operation;

/// How much dearer than all that were billed before it a request may be that goes beside others.
const GROWTH: u128 = 4;

/// The same for a kind without any answer so far, over the dearest of others: as far as a price is scaled by
/// the size of a body.
const GROWTH_OF_OTHERS: u128 = 16;

/// The prices that are known, and the least that is configured.
#[derive(Clone, Copy, Debug)]
pub struct Prices<'a> {
    pub rules: &'a Rules,
    pub usage: &'a CapUsage,
}

// === impl Prices ===

impl Prices<'_> {
    /// The largest price that was billed, of a scope.
    pub fn dearest(&self, scope: &Scope) -> Option<MicroUsd> {
        let prices = self.usage.all_prices().iter();
        let of_scope = prices.filter(|((app, _), _)| scope.holds(app));
        let seen = of_scope.filter_map(|(_, prices)| prices.dearest());
        seen.map(Dearest::of_one).max()
    }

    /// What a request may cost, from the prices of its kind.
    pub fn estimate(&self, ask: &Ask) -> (MicroUsd, Share) {
        let floor = self.rules.floor(&ask.app);
        let known = self.usage.prices(&ask.app, ask.operation);
        let own = known.and_then(|prices| prices.for_body(ask.request_bytes));
        let others = own.is_none().then(|| self.price_of_others(ask)).flatten();
        let reserved = own.map(Dearest::of_one).or(others);
        let reserved = reserved.map_or(floor, |price| price.max(floor));
        let times = |price: MicroUsd, growth| u128::from(price.get()).saturating_mul(growth);
        // The answers of this kind have reported no price so far; the next one may. Zero is no measure.
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

    /// Where no price of its kind was reported: the dearest of the same operation, else of the same app,
    /// else of all.
    fn price_of_others(&self, ask: &Ask) -> Option<MicroUsd> {
        let dearest = |fits: &dyn Fn(&Arc<str>, Operation) -> bool| {
            let prices = self.usage.all_prices().iter();
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
}
