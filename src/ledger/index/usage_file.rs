//! Usage in a file, so that a start need not read the journal of a month again.
//!
//! Promise: written whole or not at all, sealed with a checksum, and believed only for the ledger and
//! up to the record it names; without it the journal gives the same. It never says less than the
//! journal up to that record.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::ledger::error::LedgerError;
use crate::ledger::fold::charge::Charge;
use crate::ledger::fold::leases::{LeaseSum, LeaseSums};
use crate::ledger::fold::sessions::{SessionAt, SessionSum, SessionSums};
use crate::ledger::fold::usage::{ByQuarter, CapUsage, PriceHistory, PricesOfKinds};
use crate::ledger::journal::state_dir::Directory;
use crate::ledger::leases::LeaseId;
use crate::ledger::marks::SessionHash;
use crate::ledger::record::{sealed, unsealed};
use crate::ledger::shared_text;
use crate::ledger::sums::Standing;
use crate::protocol::Operation;

const NAME: &str = "usage";
const START: &[u8] = br#"{"kind":"usage""#;
/// 1 had one price of each receipt, the larger of the two. It stands for both: the journal has
/// nothing better of what was compacted.
const FORMAT: u32 = 2;
const FORMAT_OF_ONE_PRICE: u32 = 1;

/// What the file says.
#[derive(Clone, Debug, Default)]
pub struct UsageFile {
    /// The record it reaches; 0 for none.
    pub last_seq: u64,
    pub usage: CapUsage,
    /// It lacks what sessions came to: an older bursar wrote it.
    lacks_sessions: bool,
    /// The same of leases.
    lacks_leases: bool,
}

/// What every format has.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

#[derive(Serialize, Deserialize)]
struct UsageLine {
    format: u32,
    ledger: String,
    last_seq: u64,
    quarters: Vec<QuarterRow>,
    /// A file of an earlier bursar lacks them: what was in doubt then is not counted by day.
    #[serde(default)]
    doubts: Vec<DoubtRow>,
    prices: Vec<PriceRow>,
    /// An older bursar passes over them, and writes a file without them.
    sessions: Option<Vec<SessionRow>>,
    /// The same.
    leases: Option<Vec<LeaseRow>>,
}

/// One row as it is spelled in the file.
#[derive(Serialize, Deserialize)]
struct QuarterRow {
    at_ms: u64,
    #[serde(with = "shared_text")]
    app: Arc<str>,
    charge: Charge,
}

#[derive(Serialize, Deserialize)]
struct DoubtRow {
    at_ms: u64,
    #[serde(with = "shared_text")]
    app: Arc<str>,
    doubts: Standing,
}

#[derive(Serialize, Deserialize)]
struct PriceRow {
    #[serde(with = "shared_text")]
    app: Arc<str>,
    operation: Operation,
    prices: PriceHistory,
}

/// `session`: `null` for those that share their sums.
#[derive(Serialize, Deserialize)]
struct SessionRow {
    #[serde(with = "shared_text")]
    app: Arc<str>,
    session: Option<SessionHash>,
    charge: Charge,
    requests: u64,
    last_day: u64,
}

#[derive(Serialize, Deserialize)]
struct LeaseRow {
    lease: LeaseId,
    charge: Charge,
    last_day: u64,
}

// === impl SessionRow ===

impl SessionRow {
    fn add_to(self, sessions: &mut SessionSums) {
        let at = self.session.map_or(SessionAt::Overflow, SessionAt::Named);
        let sum = SessionSum {
            charge: self.charge,
            requests: self.requests,
            last_day: self.last_day,
        };
        sessions.add_sum(&self.app, at, sum);
    }

    fn list(sessions: &SessionSums) -> Vec<Self> {
        let row = |(app, at, sum): (&Arc<str>, SessionAt, SessionSum)| Self {
            app: Arc::clone(app),
            session: match at {
                SessionAt::Named(session) => Some(session),
                SessionAt::Overflow => None,
            },
            charge: sum.charge,
            requests: sum.requests,
            last_day: sum.last_day,
        };
        sessions.iter().map(row).collect()
    }
}

// === impl UsageFile ===

impl UsageFile {
    /// Reads the file. One that is missing, damaged, or of another ledger says nothing.
    pub fn read(state: &Directory, ledger: &str) -> Self {
        let text = match state.read(NAME) {
            Ok(Some(text)) => text,
            Ok(None) => return Self::default(),
            Err(error) => {
                tracing::warn!(%error, "what caps were charged is read from the journal");
                return Self::default();
            }
        };
        let version: Option<FormatOnly> = unsealed(START, text.as_bytes());
        if let Some(FormatOnly { format }) =
            version.filter(|version| ![FORMAT_OF_ONE_PRICE, FORMAT].contains(&version.format))
        {
            tracing::info!(
                format,
                "the file `usage` is of another version; what caps were charged is read from the journal"
            );
            return Self::default();
        }
        let body: Option<UsageLine> = unsealed(START, text.as_bytes());
        let Some(body) = body.filter(|body| body.ledger == ledger) else {
            tracing::warn!(
                "the file `usage` is damaged or of another ledger; what caps were charged is read from \
                 the journal"
            );
            return Self::default();
        };
        let mut quarters = ByQuarter::<Charge>::new();
        for row in body.quarters {
            let apps = quarters.entry(row.at_ms).or_default();
            *apps.entry(row.app).or_default() += row.charge;
        }
        let mut doubts = ByQuarter::<Standing>::new();
        for row in body.doubts {
            let apps = doubts.entry(row.at_ms).or_default();
            *apps.entry(row.app).or_default() += row.doubts;
        }
        let mut prices = PricesOfKinds::new();
        for mut row in body.prices {
            if body.format == FORMAT_OF_ONE_PRICE {
                row.prices.stand_for_both();
            }
            prices.insert((row.app, row.operation), row.prices);
        }
        let lacks_sessions = body.sessions.is_none();
        let mut sessions = SessionSums::default();
        for row in body.sessions.into_iter().flatten() {
            row.add_to(&mut sessions);
        }
        let lacks_leases = body.leases.is_none();
        let mut leases = LeaseSums::default();
        for row in body.leases.into_iter().flatten() {
            let (charge, last_day) = (row.charge, row.last_day);
            leases.add_sum(row.lease, LeaseSum { charge, last_day });
        }
        let usage = CapUsage::new(quarters, doubts, prices);
        Self {
            last_seq: body.last_seq,
            usage: usage.with_sessions(sessions).with_leases(leases),
            lacks_sessions,
            lacks_leases,
        }
    }

    /// The same with what sessions came to up to its record, read where it does not say so.
    pub fn with_sessions(
        mut self,
        read: impl FnOnce(u64) -> Result<SessionSums, LedgerError>,
    ) -> Result<Self, LedgerError> {
        if self.lacks_sessions {
            self.usage = self.usage.with_sessions(read(self.last_seq)?);
        }
        Ok(self)
    }

    /// The same of leases.
    pub fn with_leases(
        mut self,
        read: impl FnOnce(u64) -> Result<LeaseSums, LedgerError>,
    ) -> Result<Self, LedgerError> {
        if self.lacks_leases {
            self.usage = self.usage.with_leases(read(self.last_seq)?);
        }
        Ok(self)
    }

    /// Writes what was charged up to a record that is durable.
    pub fn write(
        state: &Directory,
        ledger: &str,
        last_seq: u64,
        usage: &CapUsage,
    ) -> Result<(), LedgerError> {
        let quarters = usage.quarters().iter().flat_map(|(at_ms, apps)| {
            apps.iter().map(|(app, charge)| QuarterRow {
                at_ms: *at_ms,
                app: app.clone(),
                charge: *charge,
            })
        });
        let doubts = usage.doubts().iter().flat_map(|(at_ms, apps)| {
            apps.iter().map(|(app, doubts)| DoubtRow {
                at_ms: *at_ms,
                app: app.clone(),
                doubts: *doubts,
            })
        });
        let prices = usage
            .all_prices()
            .iter()
            .map(|((app, operation), prices)| PriceRow {
                app: app.clone(),
                operation: *operation,
                prices: prices.clone(),
            });
        let leases = usage.leases().iter().map(|(lease, sum)| LeaseRow {
            lease,
            charge: sum.charge,
            last_day: sum.last_day,
        });
        let body = UsageLine {
            format: FORMAT,
            ledger: ledger.to_owned(),
            last_seq,
            quarters: quarters.collect(),
            doubts: doubts.collect(),
            prices: prices.collect(),
            sessions: Some(SessionRow::list(usage.sessions())),
            leases: Some(leases.collect()),
        };
        let failed = |error: serde_json::Error| LedgerError::io(state.path(), error);
        state.replace(NAME, &sealed(START, &body).map_err(failed)?)
    }
}
