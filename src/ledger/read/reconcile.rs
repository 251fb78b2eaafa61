//! The ledger's sum held against a figure of the service: how far apart they are, and how much of that
//! what the ledger knows not to know can explain.
//!
//! How it is decided. The service's figure may be higher by entries in doubt or in flight; each is taken for at most
//! the dearest answer of its operation in the window, at the frontier's price where that is more, and for any amount
//! where no price of that operation is known; entries in doubt under one key are one purchase. It may be higher by unreported entries, by any amount: a price is
//! missing where the service gives none (a streamed agent turn), and the priced answers of the operation are others.
//! It may be higher by amounts that contradicted another one, by what a damaged journal lost (any amount), and by
//! entries just outside the window. It may be lower by entries just inside. What is left beyond all of this is not
//! explained; what rests on something without a bound is an amount of its own.
//!
//! Promise: integers only; an explanation is a bound, never added to a sum of billed money (rule I12).

use serde::{Deserialize, Serialize};

use crate::ledger::read::window::{Period, Unknown};
use crate::ledger::sums::MicroUsdSum;
use crate::protocol::closed_set;

closed_set! {
    /// What comes of the comparison.
    Conclusion {
        Equal => "equal",
        Explained => "explained",
        Unexplained => "unexplained",
    }
}

closed_set! {
    /// Kinds of things that make the two figures differ.
    Kind {
        InDoubt => "in_doubt",
        Unreported => "unreported",
        Open => "open",
        Anomalies => "anomalies",
        Damaged => "damaged",
        JustOutside => "just_outside",
        JustInside => "just_inside",
    }
}

/// How much a kind can come to, in micro-USD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Option<MicroUsdSum>", into = "Option<MicroUsdSum>")]
pub enum Ceiling {
    AtMost(MicroUsdSum),
    /// Nothing says how much.
    Any,
}

/// One kind that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reason {
    pub kind: Kind,
    /// The reason of a doubt, the operation of an unreported entry, the edge.
    pub detail: String,
    /// Entries; where amounts alone are known, `null`.
    pub count: Option<u64>,
    /// `null`: any amount.
    #[serde(rename = "at_most_micro_usd")]
    pub bound: Ceiling,
    /// `higher`: it can only make the service's figure the higher one; else `lower`.
    pub service_is: Side,
}

closed_set! {
    /// On which side of the ledger's sum the service's figure then is.
    Side {
        Higher => "higher",
        Lower => "lower",
    }
}

/// The comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comparison {
    pub service: MicroUsdSum,
    pub ledger: MicroUsdSum,
    /// The service's figure less the ledger's.
    pub difference: i128,
    pub conclusion: Conclusion,
    /// What is left of the difference when all reasons on its side have come to their most: spent
    /// outside bursar when the service is higher, counted by bursar alone when it is lower. 0 when it
    /// is explained.
    pub unexplained: MicroUsdSum,
    /// What is left when the reasons with a bound have come to their most, where only reasons without one are left to
    /// explain it. 0 where it is not explained.
    pub unbounded: MicroUsdSum,
    /// Both sides, whatever the difference is.
    pub reasons: Vec<Reason>,
}

/// Holds `service` against the window's sum.
pub fn compare(service: MicroUsdSum, window: &Period) -> Comparison {
    let ledger = window.billed;
    let reasons = reasons(window);
    let (side, apart) = if service >= ledger {
        (Side::Higher, service.get() - ledger.get())
    } else {
        (Side::Lower, ledger.get() - service.get())
    };
    let on_side = reasons.iter().filter(|reason| reason.service_is == side);
    let (mut most, mut is_open) = (MicroUsdSum::default(), false);
    for reason in on_side {
        match reason.bound {
            Ceiling::AtMost(more) => most.merge(more),
            Ceiling::Any => is_open = true,
        }
    }
    let beyond = apart.saturating_sub(most.get());
    let (left, unbounded) = if is_open { (0, beyond) } else { (beyond, 0) };
    let conclusion = match (apart, left) {
        (0, _) => Conclusion::Equal,
        (_, 0) => Conclusion::Explained,
        _ => Conclusion::Unexplained,
    };
    let magnitude = i128::try_from(apart).unwrap_or(i128::MAX);
    Comparison {
        service,
        ledger,
        difference: match side {
            Side::Higher => magnitude,
            Side::Lower => -magnitude,
        },
        conclusion,
        unexplained: MicroUsdSum::from_micro_usd(left),
        unbounded: MicroUsdSum::from_micro_usd(unbounded),
        reasons,
    }
}

fn reasons(window: &Period) -> Vec<Reason> {
    let mut reasons = Vec::new();
    for ((unknown, operation), count) in &window.unknown {
        let bound = match window.dearest.get(operation) {
            Some(dearest) if *unknown != Unknown::Unreported => {
                let same = window.same_purchase.get(&(*unknown, *operation));
                let purchases = count.saturating_sub(same.copied().unwrap_or(0));
                let most = u128::from(dearest.get()).saturating_mul(u128::from(purchases));
                Ceiling::AtMost(MicroUsdSum::from_micro_usd(most))
            }
            _ => Ceiling::Any,
        };
        let (kind, detail) = match unknown {
            Unknown::InDoubt(reason) => (Kind::InDoubt, format!("{reason}, {operation}")),
            Unknown::Unreported => (Kind::Unreported, operation.to_string()),
            Unknown::Open => (Kind::Open, operation.to_string()),
        };
        reasons.push(Reason {
            kind,
            detail,
            count: Some(*count),
            bound,
            service_is: Side::Higher,
        });
    }
    let anomalies: Vec<&str> = window.anomalies.keys().map(|kind| kind.as_str()).collect();
    // Other anomalies held no amount back: the doubt they left is counted above.
    if !window.not_added.is_zero() {
        reasons.push(Reason {
            kind: Kind::Anomalies,
            detail: anomalies.join(", "),
            count: Some(window.anomalies.values().sum()),
            bound: Ceiling::AtMost(window.not_added),
            service_is: Side::Higher,
        });
    }
    if window.damaged > 0 {
        reasons.push(Reason {
            kind: Kind::Damaged,
            detail: "see `bursar ledger verify`".to_owned(),
            count: Some(window.damaged),
            bound: Ceiling::Any,
            service_is: Side::Higher,
        });
    }
    let edges = [
        (
            Kind::JustOutside,
            "before the beginning",
            window.before_since,
        ),
        (Kind::JustOutside, "after the end", window.after_until),
        (Kind::JustInside, "after the beginning", window.after_since),
        (Kind::JustInside, "before the end", window.before_until),
    ];
    for (kind, detail, amount) in edges {
        if !amount.is_zero() {
            reasons.push(Reason {
                kind,
                detail: detail.to_owned(),
                count: None,
                bound: Ceiling::AtMost(amount),
                service_is: match kind {
                    Kind::JustInside => Side::Lower,
                    _ => Side::Higher,
                },
            });
        }
    }
    reasons
}

// === impl Ceiling ===

impl From<Option<MicroUsdSum>> for Ceiling {
    fn from(most: Option<MicroUsdSum>) -> Self {
        most.map_or(Self::Any, Self::AtMost)
    }
}

impl From<Ceiling> for Option<MicroUsdSum> {
    fn from(bound: Ceiling) -> Self {
        match bound {
            Ceiling::AtMost(most) => Some(most),
            Ceiling::Any => None,
        }
    }
}

#[cfg(test)]
mod tests;
