//! Leases as they cross to the fleet's database and back: one JSON text each way, or one row.
//!
//! Promise: an answer that cannot be read is refused whole; no amount is made up for one that is absent.

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use uuid::Uuid;

use super::answer::{FleetError, seq, value};
use crate::caps::leases::{
    GiveBackAnswer, Grant, Held, Lease, LeaseAnswer, LeaseTotals, LiveLease, SharedCap,
};
use crate::caps::{Period, Window};
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

#[derive(Serialize)]
struct StatedLease<'a> {
    lease: String,
    cap: &'a str,
    since_ms: u64,
    until_ms: u64,
    granted_micro_usd: MicroUsd,
    given_back_micro_usd: MicroUsd,
    give_back_number: u32,
}

#[derive(Deserialize)]
struct HeldText {
    paused: bool,
    caps: Vec<CapText>,
    leases: Vec<LeaseText>,
}

#[derive(Deserialize)]
struct CapText {
    cap: String,
    period: Period,
    zone: String,
    limit_micro_usd: MicroUsd,
    charged_micro_usd: MicroUsdSum,
    since_ms: u64,
    until_ms: u64,
    largest_micro_usd: Option<MicroUsd>,
    ahead_windows: u32,
    ahead_micro_usd: MicroUsd,
}

#[derive(Deserialize)]
struct LeaseText {
    lease: String,
    cap: String,
    since_ms: u64,
    until_ms: u64,
    begins_in_ms: u64,
    ends_in_ms: u64,
    granted_micro_usd: MicroUsd,
    given_back_micro_usd: MicroUsd,
    give_back_number: u32,
    billed_micro_usd: MicroUsdSum,
}

/// Leases as their holder states them.
pub fn stated(leases: &[Lease]) -> Result<String, FleetError> {
    let stated: Vec<StatedLease<'_>> = leases.iter().map(StatedLease::of).collect();
    serde_json::to_string(&stated)
        .map_err(|error| FleetError::Refused(format!("leases cannot be written: {error}")))
}

/// The answer to them.
pub fn held(text: &str) -> Result<Held, FleetError> {
    let read: HeldText = serde_json::from_str(text)
        .map_err(|error| unreadable(&format!("leases that cannot be read: {error}")))?;
    let leases = read.leases.into_iter().map(LeaseText::read);
    Ok(Held {
        is_paused: read.paused,
        caps: read.caps.into_iter().map(SharedCap::from).collect(),
        leases: leases.collect::<Result<_, _>>()?,
    })
}

/// The answer to a wish for more of a cap.
pub fn answer(row: &Row, cap: &str) -> Result<LeaseAnswer, FleetError> {
    let limit = || seq(row, 12).map(MicroUsd::new);
    match value::<&str>(row, 0)? {
        "granted" => {
            let billed: &str = value(row, 9)?;
            let billed = billed
                .parse()
                .map_err(|_| unreadable("a sum that is none"))?;
            Ok(LeaseAnswer::Granted(Grant {
                lease: LiveLease {
                    lease: Lease {
                        lease: value(row, 1)?,
                        cap: cap.to_owned(),
                        window: Window {
                            since_ms: seq(row, 2)?,
                            until_ms: seq(row, 3)?,
                        },
                        totals: totals(row, 6)?,
                    },
                    begins_in_ms: seq(row, 4)?,
                    ends_in_ms: seq(row, 5)?,
                    billed: MicroUsdSum::from_micro_usd(billed),
                },
                amount: MicroUsd::new(seq(row, 10)?),
                left: MicroUsd::new(seq(row, 11)?),
                limit: limit()?,
            }))
        }
        "empty" => Ok(LeaseAnswer::Empty {
            may_return: value(row, 13)?,
            limit: limit()?,
        }),
        "no_cap" => Ok(LeaseAnswer::NoCap),
        "paused" => Ok(LeaseAnswer::Paused),
        "share" => Ok(LeaseAnswer::Share { limit: limit()? }),
        "elsewhere" => Ok(LeaseAnswer::Elsewhere),
        other => Err(unreadable(&format!("the verdict {other:?}"))),
    }
}

/// What became of a part that was given back: `verdict, granted, given_back, give_back_number`.
pub fn given_back(row: &Row) -> Result<GiveBackAnswer, FleetError> {
    match value::<&str>(row, 0)? {
        "taken" => Ok(GiveBackAnswer::Taken(totals(row, 1)?)),
        "known" => Ok(GiveBackAnswer::Known(totals(row, 1)?)),
        "behind" => Ok(GiveBackAnswer::Behind),
        "too_much" => Ok(GiveBackAnswer::TooMuch(totals(row, 1)?)),
        "unknown" => Ok(GiveBackAnswer::Unknown),
        other => Err(unreadable(&format!("the verdict {other:?}"))),
    }
}

/// Three columns from one on.
fn totals(row: &Row, at: usize) -> Result<LeaseTotals, FleetError> {
    let number: i32 = value(row, at + 2)?;
    Ok(LeaseTotals {
        granted: MicroUsd::new(seq(row, at)?),
        given_back: MicroUsd::new(seq(row, at + 1)?),
        give_back_number: u32::try_from(number).map_err(|_| unreadable("a negative number"))?,
    })
}

fn unreadable(what: &str) -> FleetError {
    FleetError::Refused(format!("it answered {what}"))
}

// === impl StatedLease ===

impl<'a> StatedLease<'a> {
    fn of(lease: &'a Lease) -> Self {
        Self {
            lease: lease.lease.to_string(),
            cap: &lease.cap,
            since_ms: lease.window.since_ms,
            until_ms: lease.window.until_ms,
            granted_micro_usd: lease.totals.granted,
            given_back_micro_usd: lease.totals.given_back,
            give_back_number: lease.totals.give_back_number,
        }
    }
}

// === impl LeaseText ===

impl LeaseText {
    fn read(self) -> Result<LiveLease, FleetError> {
        let lease = Uuid::try_parse(&self.lease).map_err(|_| unreadable("a name that is none"))?;
        Ok(LiveLease {
            lease: Lease {
                lease,
                cap: self.cap,
                window: Window {
                    since_ms: self.since_ms,
                    until_ms: self.until_ms,
                },
                totals: LeaseTotals {
                    granted: self.granted_micro_usd,
                    given_back: self.given_back_micro_usd,
                    give_back_number: self.give_back_number,
                },
            },
            begins_in_ms: self.begins_in_ms,
            ends_in_ms: self.ends_in_ms,
            billed: self.billed_micro_usd,
        })
    }
}

// === impl SharedCap ===

impl From<CapText> for SharedCap {
    fn from(text: CapText) -> Self {
        Self {
            cap: text.cap,
            period: text.period,
            zone: text.zone,
            limit: text.limit_micro_usd,
            charged: text.charged_micro_usd,
            window: Window {
                since_ms: text.since_ms,
                until_ms: text.until_ms,
            },
            largest: text.largest_micro_usd,
            ahead_windows: text.ahead_windows,
            ahead: text.ahead_micro_usd,
        }
    }
}

#[cfg(test)]
mod tests;
