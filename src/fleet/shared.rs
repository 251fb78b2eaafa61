//! Shared caps, what is leased of them, and the pause after a restored database, as the views have them.
//!
//! Promise: what a machine that is not heard has spent of its leases is not known, and no figure here says otherwise
//! (rule I12).

use tokio_postgres::Row;
use uuid::Uuid;

use super::answer::{FleetError, seq, value};
use crate::caps::Period;
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;
use crate::protocol::closed_set;

/// A shared cap in its window of now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapNow {
    pub cap: String,
    pub period: Period,
    /// An IANA name.
    pub zone: String,
    pub since_ms: u64,
    pub until_ms: u64,
    pub limit: MicroUsd,
    /// What was leased, or billed where that is more.
    pub charged: MicroUsdSum,
    pub billed: MicroUsdSum,
    /// Of what was leased, what is not billed yet.
    pub open: MicroUsdSum,
    pub holders: u64,
    /// Charged above the limit.
    pub over: MicroUsdSum,
    /// What machines stated that a restored database had forgotten.
    pub put_back: MicroUsdSum,
    pub ordered_by: String,
}

/// A lease whose window is not over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseNow {
    pub cap: String,
    pub host: String,
    pub ledger: Uuid,
    pub since_ms: u64,
    pub until_ms: u64,
    pub granted: MicroUsd,
    pub given_back: MicroUsd,
    pub billed: MicroUsdSum,
    pub charged: MicroUsdSum,
    pub open: MicroUsdSum,
    /// When its ledger was, Unix milliseconds.
    pub heard_ms: u64,
    pub is_revoked: bool,
}

/// What one ledger may have of a cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerShare {
    pub cap: String,
    pub host: String,
    pub ledger: Uuid,
    /// Of a window. `None`: all of it.
    pub largest: Option<MicroUsd>,
    pub ahead_windows: u32,
    /// Of each window ahead.
    pub ahead: MicroUsd,
}

/// The database was restored, and grants nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    pub since_ms: u64,
    /// Whoever has come by then.
    pub ends_ms: u64,
    /// The one whose lines or leases the database did not know.
    pub ledger: Option<Uuid>,
    pub host: Option<String>,
    /// How many ledgers have not presented their leases yet.
    pub awaited: u64,
}

closed_set! {
    /// What became of an order about a cap.
    CapOrdered {
        Made => "made",
        Changed => "changed",
        Same => "same",
        Removed => "removed",
        /// There was none to remove.
        Missing => "none",
    }
}

closed_set! {
    /// What became of an order about a share.
    ShareOrdered {
        Set => "set",
        NoLedger => "no_ledger",
        NoCap => "no_cap",
    }
}

// === impl CapNow ===

impl CapNow {
    pub(super) fn read(row: &Row) -> Result<Self, FleetError> {
        let period: &str = value(row, 1)?;
        Ok(Self {
            cap: value(row, 0)?,
            period: Period::from_word(period).ok_or_else(|| unreadable("a period"))?,
            zone: value(row, 2)?,
            since_ms: seq(row, 3)?,
            until_ms: seq(row, 4)?,
            limit: MicroUsd::new(seq(row, 5)?),
            charged: sum(row, 6)?,
            billed: sum(row, 7)?,
            open: sum(row, 8)?,
            holders: seq(row, 9)?,
            over: sum(row, 10)?,
            put_back: sum(row, 11)?,
            ordered_by: value(row, 12)?,
        })
    }
}

// === impl LeaseNow ===

impl LeaseNow {
    pub(super) fn read(row: &Row) -> Result<Self, FleetError> {
        Ok(Self {
            cap: value(row, 0)?,
            host: value(row, 1)?,
            ledger: value(row, 2)?,
            since_ms: seq(row, 3)?,
            until_ms: seq(row, 4)?,
            granted: MicroUsd::new(seq(row, 5)?),
            given_back: MicroUsd::new(seq(row, 6)?),
            billed: sum(row, 7)?,
            charged: sum(row, 8)?,
            open: sum(row, 9)?,
            heard_ms: seq(row, 10)?,
            is_revoked: value(row, 11)?,
        })
    }
}

// === impl LedgerShare ===

impl LedgerShare {
    pub(super) fn read(row: &Row) -> Result<Self, FleetError> {
        let largest = value::<Option<i64>>(row, 3)?.map(u64::try_from);
        let largest = largest.transpose().map_err(|_| unreadable("an amount"))?;
        let windows: i32 = value(row, 4)?;
        Ok(Self {
            cap: value(row, 0)?,
            host: value(row, 1)?,
            ledger: value(row, 2)?,
            largest: largest.map(MicroUsd::new),
            ahead_windows: u32::try_from(windows).map_err(|_| unreadable("a count"))?,
            ahead: MicroUsd::new(seq(row, 5)?),
        })
    }
}

// === impl Pause ===

impl Pause {
    pub(super) fn read(row: &Row) -> Result<Self, FleetError> {
        Ok(Self {
            since_ms: seq(row, 0)?,
            ends_ms: seq(row, 1)?,
            ledger: value(row, 2)?,
            host: value(row, 3)?,
            awaited: seq(row, 4)?,
        })
    }
}

/// A column of `numeric`, as text.
fn sum(row: &Row, at: usize) -> Result<MicroUsdSum, FleetError> {
    let text: &str = value(row, at)?;
    let sum = text.parse().map_err(|_| unreadable("a sum"))?;
    Ok(MicroUsdSum::from_micro_usd(sum))
}

fn unreadable(what: &str) -> FleetError {
    FleetError::Refused(format!("it answered {what} that cannot be read"))
}
