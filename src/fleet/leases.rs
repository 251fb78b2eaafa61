//! The database's functions for holders of shared caps, as calls: leases are presented, asked for and given back.
//!
//! Promise: as of all calls ([`super::database`]). An answer that cannot be read is refused whole; no amount is made up
//! for one that is absent.

use serde::{Deserialize, Serialize};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::database::{Fleet, FleetError, number, seq, value};
use super::identity::FleetIdentity;
use crate::caps::leases::{
    GiveBack, GiveBackAnswer, Grant, Held, Lease, LeaseAnswer, LeaseAsk, LeaseTotals, LiveLease,
    SharedCap,
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

// === impl Fleet ===

impl Fleet {
    /// Presents the caller's leases, which are this machine's from here on, and hears which there are. After `hello`,
    /// and once it is known that this is no copy. `machine` names the machine and its start; `mark_seq` is the highest
    /// line that was ever acknowledged to the caller by its present name.
    pub async fn hold(
        &self,
        caller: &FleetIdentity,
        machine: &str,
        mark_seq: u64,
        leases: &[Lease],
    ) -> Result<Held, FleetError> {
        let (mark_seq, leases) = (number(mark_seq), stated(leases)?);
        let row = self
            .one(
                "SELECT bursar_fleet.hold($1, $2, $3, $4, $5)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&machine, Type::TEXT),
                    (&mark_seq, Type::INT8),
                    (&leases, Type::TEXT),
                ],
            )
            .await?;
        held(value(&row, 0)?)
    }

    /// Asks for more of a cap.
    pub async fn lease(
        &self,
        caller: &FleetIdentity,
        machine: &str,
        ask: &LeaseAsk,
    ) -> Result<LeaseAnswer, FleetError> {
        let (want, least) = (number(ask.want.get()), number(ask.least.get()));
        let ahead = i32::try_from(ask.ahead).unwrap_or(i32::MAX);
        let row = self
            .one(
                "SELECT verdict, lease, since_ms, until_ms, begins_in_ms, ends_in_ms, granted, given_back, \
                 give_back_number, billed::text, amount, left_micro_usd, limit_micro_usd, may_return \
                 FROM bursar_fleet.lease($1, $2, $3, $4, $5, $6, $7, $8)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&machine, Type::TEXT),
                    (&ask.cap, Type::TEXT),
                    (&ask.request, Type::UUID),
                    (&want, Type::INT8),
                    (&least, Type::INT8),
                    (&ahead, Type::INT4),
                ],
            )
            .await?;
        answer(&row, &ask.cap)
    }

    /// Gives a part of a lease back.
    pub async fn give_back(
        &self,
        caller: &FleetIdentity,
        part: &GiveBack,
    ) -> Result<GiveBackAnswer, FleetError> {
        let part_number = i32::try_from(part.number).unwrap_or(i32::MAX);
        let (amount, up_to_seq) = (number(part.amount.get()), number(part.up_to_seq));
        let row = self
            .one(
                "SELECT verdict, granted, given_back, give_back_number \
                 FROM bursar_fleet.give_back($1, $2, $3, $4, $5, $6)",
                &[
                    (&caller.ledger, Type::UUID),
                    (&caller.secret(), Type::BYTEA),
                    (&part.lease, Type::UUID),
                    (&part_number, Type::INT4),
                    (&amount, Type::INT8),
                    (&up_to_seq, Type::INT8),
                ],
            )
            .await?;
        given_back(&row)
    }
}

/// Leases as their holder states them.
fn stated(leases: &[Lease]) -> Result<String, FleetError> {
    let stated: Vec<StatedLease<'_>> = leases.iter().map(StatedLease::of).collect();
    serde_json::to_string(&stated)
        .map_err(|error| FleetError::Refused(format!("leases cannot be written: {error}")))
}

/// The answer to them.
fn held(text: &str) -> Result<Held, FleetError> {
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
fn answer(row: &Row, cap: &str) -> Result<LeaseAnswer, FleetError> {
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
fn given_back(row: &Row) -> Result<GiveBackAnswer, FleetError> {
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
