//! Shared caps, as an operator sets them and a reader sees them.
//!
//! Promise: what the login may not do, the database refuses. What a machine that is not heard has spent of its leases is
//! not known, and no figure here says otherwise (rule I12).

use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use super::database::{FleetError, number, seq, value};
use super::operator::Operator;
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

// === impl Operator ===

impl Operator {
    /// Sets a cap over all ledgers that obey it.
    pub async fn order_cap(
        &self,
        cap: &str,
        period: Period,
        zone: &str,
        limit: MicroUsd,
    ) -> Result<CapOrdered, FleetError> {
        let limit = number(limit.get());
        let period = period.as_str();
        let parameters = [
            (&cap as _, Type::TEXT),
            (&period as _, Type::TEXT),
            (&zone as _, Type::TEXT),
            (&limit as _, Type::INT8),
        ];
        let sql = "SELECT bursar_fleet.order_cap($1, $2, $3, $4)";
        let ordered: String = self.only(sql, &parameters).await?;
        CapOrdered::from_word(&ordered).ok_or_else(|| unreadable("an outcome"))
    }

    /// What was leased of it stays leased.
    pub async fn remove_cap(&self, cap: &str) -> Result<CapOrdered, FleetError> {
        let sql = "SELECT bursar_fleet.order_cap($1, NULL, NULL, NULL)";
        let ordered: String = self.only(sql, &[(&cap, Type::TEXT)]).await?;
        CapOrdered::from_word(&ordered).ok_or_else(|| unreadable("an outcome"))
    }

    pub async fn order_share(
        &self,
        ledger: Uuid,
        cap: &str,
        largest: Option<MicroUsd>,
        ahead_windows: u32,
        ahead: MicroUsd,
    ) -> Result<ShareOrdered, FleetError> {
        let largest = largest.map(|largest| number(largest.get()));
        let (windows, ahead) = (
            i32::try_from(ahead_windows).unwrap_or(i32::MAX),
            number(ahead.get()),
        );
        let parameters = [
            (&ledger as _, Type::UUID),
            (&cap as _, Type::TEXT),
            (&largest as _, Type::INT8),
            (&windows as _, Type::INT4),
            (&ahead as _, Type::INT8),
        ];
        let sql = "SELECT bursar_fleet.order_share($1, $2, $3, $4, $5)";
        let ordered: String = self.only(sql, &parameters).await?;
        ShareOrdered::from_word(&ordered).ok_or_else(|| unreadable("an outcome"))
    }

    /// `false`: nothing was paused.
    pub async fn resume(&self) -> Result<bool, FleetError> {
        self.only("SELECT bursar_fleet.resume()", &[]).await
    }

    /// `None`: leases are granted.
    pub async fn pause(&self) -> Result<Option<Pause>, FleetError> {
        let sql = "SELECT (extract(epoch FROM since) * 1000)::bigint, (extract(epoch FROM ends) * 1000)::bigint, \
                   ledger, host, awaited FROM bursar_fleet.pause";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            Ok(Pause {
                since_ms: seq(row, 0)?,
                ends_ms: seq(row, 1)?,
                ledger: value(row, 2)?,
                host: value(row, 3)?,
                awaited: seq(row, 4)?,
            })
        };
        rows.first().map(read).transpose()
    }

    /// By name.
    pub async fn caps(&self) -> Result<Vec<CapNow>, FleetError> {
        let sql = "SELECT cap, period, zone, (extract(epoch FROM since) * 1000)::bigint, \
                   (extract(epoch FROM until) * 1000)::bigint, limit_micro_usd, charged_micro_usd::text, \
                   billed_micro_usd::text, open_micro_usd::text, holders, over_micro_usd::text, \
                   put_back_micro_usd::text, ordered_by FROM bursar_fleet.caps_now ORDER BY cap";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            let period: &str = value(row, 1)?;
            Ok(CapNow {
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
        };
        rows.iter().map(read).collect()
    }

    /// By cap, window and machine.
    pub async fn leases(&self) -> Result<Vec<LeaseNow>, FleetError> {
        let sql = "SELECT cap, host, ledger, (extract(epoch FROM since) * 1000)::bigint, \
                   (extract(epoch FROM until) * 1000)::bigint, granted_micro_usd, given_back_micro_usd, \
                   billed_micro_usd::text, charged_micro_usd::text, open_micro_usd::text, \
                   (extract(epoch FROM heard) * 1000)::bigint, is_revoked FROM bursar_fleet.leases_now \
                   ORDER BY cap, since, host, ledger, lease";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            Ok(LeaseNow {
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
        };
        rows.iter().map(read).collect()
    }

    /// By cap and machine.
    pub async fn shares(&self) -> Result<Vec<LedgerShare>, FleetError> {
        let sql = "SELECT cap, host, ledger, largest_micro_usd, ahead_windows, ahead_micro_usd \
                   FROM bursar_fleet.largest_shares ORDER BY cap, host, ledger";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            let largest = value::<Option<i64>>(row, 3)?.map(u64::try_from);
            let largest = largest.transpose().map_err(|_| unreadable("an amount"))?;
            let windows: i32 = value(row, 4)?;
            Ok(LedgerShare {
                cap: value(row, 0)?,
                host: value(row, 1)?,
                ledger: value(row, 2)?,
                largest: largest.map(MicroUsd::new),
                ahead_windows: u32::try_from(windows).map_err(|_| unreadable("a count"))?,
                ahead: MicroUsd::new(seq(row, 5)?),
            })
        };
        rows.iter().map(read).collect()
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
