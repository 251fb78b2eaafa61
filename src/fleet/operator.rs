//! What a person does with the fleet's database: lets ledgers in and out, gives orders, and reads the sums.
//!
//! Promise: what the login may not do, the database refuses; sums are integers of micro-dollars, and what has no price
//! is counted beside them (rule I12).

use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, Type};
use uuid::Uuid;

use super::answer::{FleetError, number, seq, value};
use super::database::Fleet;
use super::shared::{CapNow, CapOrdered, LeaseNow, LedgerShare, Pause, ShareOrdered};
use crate::caps::Period;
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;
use crate::protocol::closed_set;

/// A connection of an operator, or of one who only reads.
pub struct Operator(pub Fleet);

closed_set! {
    /// What the fleet's sums are grouped by.
    FleetBy {
        Host => "host",
        App => "app",
        Lane => "lane",
        Operation => "operation",
        ServedBy => "served_by",
        State => "state",
        Hour => "hour",
        Day => "day",
        Week => "week",
        Month => "month",
    }
}

/// A row of sums. A count is below zero where the line that began it was lost and what moved it on was not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetSpend {
    /// In the order in which it was asked for.
    pub labels: Vec<String>,
    pub requests: i64,
    pub billed: MicroUsdSum,
    pub in_doubt: i64,
    /// Those whose amount cannot be read among them, as in a ledger's sums.
    pub unreported: i64,
}

/// A ledger of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetLedger {
    pub ledger: Uuid,
    pub host: String,
    pub bursar: String,
    /// When it last said hello or shipped, Unix milliseconds.
    pub heard_ms: u64,
    /// It has said so itself, in its last hello.
    pub lines_behind: u64,
    /// For how long, seconds.
    pub lag_s: u64,
    pub mark_seq: u64,
    pub losses: u64,
    pub clock_ahead_ms: i64,
    pub copy_of: Option<Uuid>,
    pub is_revoked: bool,
    pub is_gone: bool,
    /// The database was restored, and has not heard its leases since.
    pub is_awaited: bool,
}

// === impl Operator ===

impl Operator {
    /// Lets one ledger in within 24 hours. The note is for people.
    pub async fn invite(&self, code: &str, note: Option<&str>) -> Result<(), FleetError> {
        let sql = "SELECT bursar_fleet.invite($1, $2)";
        let parameters = [(&code as _, Type::TEXT), (&note as _, Type::TEXT)];
        self.0.call(sql, &parameters).await.map(|_| ())
    }

    /// Of each code that can still let a ledger in: until when, Unix milliseconds, and its note. The first to end first. None
    /// where the schema is older.
    pub async fn invitations(&self) -> Result<Vec<(u64, Option<String>)>, FleetError> {
        let sql = "SELECT (extract(epoch FROM expires) * 1000)::bigint, note FROM bursar_fleet.open_invitations \
                   ORDER BY expires, note";
        let rows = match self.0.call(sql, &[]).await {
            Err(FleetError::NoSchema) => Vec::new(),
            rows => rows?,
        };
        let read = |row: &Row| Ok((seq(row, 0)?, value(row, 1)?));
        rows.iter().map(read).collect()
    }

    /// With `copies` also all that came of it by copies. `false`: the fleet has no such ledger.
    pub async fn revoke(&self, ledger: Uuid, copies: bool) -> Result<bool, FleetError> {
        let sql = "SELECT bursar_fleet.revoke_ledger($1, $2)";
        self.only(sql, &[(&ledger, Type::UUID), (&copies, Type::BOOL)])
            .await
    }

    /// An app, or all. `false`: it was frozen before.
    pub async fn freeze(&self, app: Option<&str>) -> Result<bool, FleetError> {
        let app = app.unwrap_or_default();
        let sql = "SELECT bursar_fleet.order_freeze($1)";
        self.only(sql, &[(&app, Type::TEXT)]).await
    }

    /// `false`: it was not frozen.
    pub async fn thaw(&self, app: Option<&str>) -> Result<bool, FleetError> {
        let app = app.unwrap_or_default();
        let sql = "SELECT bursar_fleet.order_thaw($1)";
        self.only(sql, &[(&app, Type::TEXT)]).await
    }

    /// Whether any machine has spent as this app.
    pub async fn knows_app(&self, app: &str) -> Result<bool, FleetError> {
        let sql = "SELECT EXISTS (SELECT FROM bursar_fleet.changes WHERE app = $1)";
        self.only(sql, &[(&app, Type::TEXT)]).await
    }

    /// The apps that are frozen on every machine, `None` for all of them, and since when.
    pub async fn frozen(&self) -> Result<Vec<(Option<String>, u64, String)>, FleetError> {
        let sql = "SELECT app, (extract(epoch FROM since) * 1000)::bigint, ordered_by FROM bursar_fleet.orders \
                   ORDER BY app";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            let app: String = value(row, 0)?;
            let app = Some(app).filter(|app| !app.is_empty());
            Ok((app, seq(row, 1)?, value(row, 2)?))
        };
        rows.iter().map(read).collect()
    }

    /// All ledgers, those that were heard last first.
    pub async fn ledgers(&self) -> Result<Vec<FleetLedger>, FleetError> {
        let sql = "SELECT ledger, host, bursar, (extract(epoch FROM heard) * 1000)::bigint, lines_behind, mark_seq, \
                   losses, clock_ahead_ms, copy_of, revoked IS NOT NULL, gone IS NOT NULL, is_awaited, lag_s \
                   FROM bursar_fleet.fleet \
                   ORDER BY heard DESC, ledger";
        let rows = self.0.call(sql, &[]).await?;
        let read = |row: &Row| {
            Ok(FleetLedger {
                ledger: value(row, 0)?,
                host: value(row, 1)?,
                bursar: value(row, 2)?,
                heard_ms: seq(row, 3)?,
                lines_behind: seq(row, 4)?,
                mark_seq: seq(row, 5)?,
                losses: seq(row, 6)?,
                clock_ahead_ms: value(row, 7)?,
                copy_of: value(row, 8)?,
                is_revoked: value(row, 9)?,
                is_gone: value(row, 10)?,
                is_awaited: value(row, 11)?,
                lag_s: seq(row, 12)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Of a range: how many requests have no end here, and what keys with an amount on several ledgers add to its sums beyond
    /// what the service billed. The database looks through all lines for it. Nothing can be asked behind one that was too
    /// slow: it goes on there.
    pub async fn beside(
        &self,
        since_ms: u64,
        until_ms: u64,
    ) -> Result<(u64, MicroUsdSum), FleetError> {
        let range = "started >= to_timestamp($1::bigint / 1000.0) AND started < to_timestamp($2::bigint / 1000.0)";
        let sql = format!(
            "SELECT (SELECT count(*) FROM bursar_fleet.under_way WHERE {range}), \
             (SELECT coalesce(sum(counted_twice_micro_usd), 0) FROM bursar_fleet.anomalies WHERE {range})::text"
        );
        let (since_ms, until_ms) = (time(since_ms), time(until_ms));
        let parameters = [(&since_ms as _, Type::INT8), (&until_ms as _, Type::INT8)];
        let row = self.0.one(&sql, &parameters).await?;
        let twice: String = value(&row, 1)?;
        let twice = twice.parse().map_err(|_| unreadable("a sum"))?;
        Ok((seq(&row, 0)?, MicroUsdSum::from_micro_usd(twice)))
    }

    /// How many ledgers that have not left with all their lines were heard last in a range, by the database's clock.
    pub async fn heard_last(&self, since_ms: u64, until_ms: u64) -> Result<u64, FleetError> {
        let sql = "SELECT count(*) FROM bursar_fleet.fleet WHERE heard >= to_timestamp($1::bigint / 1000.0) \
                   AND heard < to_timestamp($2::bigint / 1000.0) AND NOT (gone IS NOT NULL AND lines_behind = 0)";
        let (since_ms, until_ms) = (time(since_ms), time(until_ms));
        let parameters = [(&since_ms as _, Type::INT8), (&until_ms as _, Type::INT8)];
        let row = self.0.one(sql, &parameters).await?;
        seq(&row, 0)
    }

    /// Ranges of journals that were found to be lost from then on: others hold nothing that began since.
    pub async fn losses(&self, since_ms: u64) -> Result<u64, FleetError> {
        let sql = "SELECT count(*) FROM bursar_fleet.losses WHERE received >= to_timestamp($1::bigint / 1000.0)";
        let since_ms = time(since_ms);
        let row = self.0.one(sql, &[(&since_ms, Type::INT8)]).await?;
        seq(&row, 0)
    }

    /// Whether the database takes a zone's name for one of its abbreviations, whose distance from UTC is the same all year.
    pub async fn is_abbreviation(&self, zone: &str) -> Result<bool, FleetError> {
        let sql = "SELECT upper($1) NOT IN ('UTC', 'GMT', 'UCT', 'ZULU', 'EST', 'MST', 'HST') \
                   AND EXISTS (SELECT FROM pg_timezone_abbrevs WHERE abbrev = upper($1))";
        self.only(sql, &[(&zone, Type::TEXT)]).await
    }

    /// Sums over entries that began in a range, by the clocks of their machines; Unix milliseconds. `zone`: an IANA
    /// name, for parts of the calendar.
    pub async fn spend(
        &self,
        since_ms: u64,
        until_ms: Option<u64>,
        by: &[FleetBy],
        zone: &str,
    ) -> Result<Vec<FleetSpend>, FleetError> {
        let columns: Vec<&str> = by.iter().map(|by| by.column()).collect();
        let labels = match &*columns {
            [] => "ARRAY[]::text[]".to_owned(),
            columns => format!("ARRAY[{}]", columns.join(", ")),
        };
        // What was compacted before its ledger joined has the unreadable amounts under a word of their own.
        let sql = format!(
            "SELECT {labels}, coalesce(sum(requests), 0)::bigint, coalesce(sum(billed_micro_usd), 0)::text, \
             coalesce(sum(requests) FILTER (WHERE state = 'in_doubt'), 0)::bigint, \
             coalesce(sum(requests) FILTER (WHERE state IN ('unreported', 'malformed')), 0)::bigint \
             FROM bursar_fleet.changes WHERE $3::text IS NOT NULL AND started >= to_timestamp($1::bigint / 1000.0) \
             AND started < to_timestamp($2::bigint / 1000.0) {} ORDER BY 1",
            match by {
                [] => "",
                _ => "GROUP BY 1",
            }
        );
        let (since_ms, until_ms) = (time(since_ms), time(until_ms.unwrap_or(MS_MAX)));
        let parameters = [
            (&since_ms as _, Type::INT8),
            (&until_ms as _, Type::INT8),
            (&zone as _, Type::TEXT),
        ];
        let rows = self.0.call(&sql, &parameters).await?;
        let read = |row: &Row| {
            let billed: String = value(row, 2)?;
            let billed = billed.parse().map_err(|_| unreadable("a sum"))?;
            Ok(FleetSpend {
                labels: value(row, 0)?,
                requests: value(row, 1)?,
                billed: MicroUsdSum::from_micro_usd(billed),
                in_doubt: value(row, 3)?,
                unreported: value(row, 4)?,
            })
        };
        rows.iter().map(read).collect()
    }

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
        rows.first().map(Pause::read).transpose()
    }

    /// By name.
    pub async fn caps(&self) -> Result<Vec<CapNow>, FleetError> {
        let sql = "SELECT cap, period, zone, (extract(epoch FROM since) * 1000)::bigint, \
                   (extract(epoch FROM until) * 1000)::bigint, limit_micro_usd, charged_micro_usd::text, \
                   billed_micro_usd::text, open_micro_usd::text, holders, over_micro_usd::text, \
                   put_back_micro_usd::text, ordered_by FROM bursar_fleet.caps_now ORDER BY cap";
        let rows = self.0.call(sql, &[]).await?;
        rows.iter().map(CapNow::read).collect()
    }

    /// By cap, window and machine.
    pub async fn leases(&self) -> Result<Vec<LeaseNow>, FleetError> {
        let sql = "SELECT cap, host, ledger, (extract(epoch FROM since) * 1000)::bigint, \
                   (extract(epoch FROM until) * 1000)::bigint, granted_micro_usd, given_back_micro_usd, \
                   billed_micro_usd::text, charged_micro_usd::text, open_micro_usd::text, \
                   (extract(epoch FROM heard) * 1000)::bigint, is_revoked FROM bursar_fleet.leases_now \
                   ORDER BY cap, since, host, ledger, lease";
        let rows = self.0.call(sql, &[]).await?;
        rows.iter().map(LeaseNow::read).collect()
    }

    /// By cap and machine.
    pub async fn shares(&self) -> Result<Vec<LedgerShare>, FleetError> {
        let sql = "SELECT cap, host, ledger, largest_micro_usd, ahead_windows, ahead_micro_usd \
                   FROM bursar_fleet.largest_shares ORDER BY cap, host, ledger";
        let rows = self.0.call(sql, &[]).await?;
        rows.iter().map(LedgerShare::read).collect()
    }

    async fn only<T: for<'a> FromSql<'a>>(
        &self,
        sql: &str,
        parameters: &[(&(dyn tokio_postgres::types::ToSql + Sync), Type)],
    ) -> Result<T, FleetError> {
        value(&self.0.one(sql, parameters).await?, 0)
    }
}

// === impl FleetLedger ===

impl FleetLedger {
    /// `in`, `revoked`, or `left`.
    pub fn state(&self) -> &'static str {
        match (self.is_revoked, self.is_gone) {
            (true, _) => "revoked",
            (false, true) => "left",
            (false, false) => "in",
        }
    }
}

/// As of one ledger: an hour that the clocks go through twice is named twice, the second time with its distance from UTC.
const HOUR: &str = "to_char(started AT TIME ZONE $3, 'YYYY-MM-DD HH24:00') || \
    CASE WHEN date_trunc('hour', started AT TIME ZONE $3) NOT IN \
        (date_trunc('hour', (started - interval '1 hour') AT TIME ZONE $3), \
        date_trunc('hour', (started - interval '2 hours') AT TIME ZONE $3)) THEN '' \
    ELSE to_char(trunc(extract(epoch FROM (started AT TIME ZONE $3) - (started AT TIME ZONE 'UTC')) / 3600), 'FMSG00') \
        || coalesce(to_char(nullif(abs(extract(minute FROM (started AT TIME ZONE $3) \
            - (started AT TIME ZONE 'UTC'))), 0), 'FM\":\"00'), '') END";

/// The year 5138.
const MS_MAX: u64 = 100_000_000_000_000;

/// Not beyond what a timestamp may be.
fn time(unix_ms: u64) -> i64 {
    number(unix_ms.min(MS_MAX))
}

fn unreadable(what: &str) -> FleetError {
    FleetError::Refused(format!("it answered {what} that cannot be read"))
}

// === impl FleetBy ===

impl FleetBy {
    /// Whether its rows begin by a time zone's clock.
    pub fn is_of_calendar(self) -> bool {
        matches!(self, Self::Hour | Self::Day | Self::Week | Self::Month)
    }

    /// An expression of text. `$3` is the time zone.
    fn column(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::App => "coalesce(app, '')",
            Self::Lane => "coalesce(lane, '')",
            Self::Operation => "coalesce(operation, '')",
            Self::ServedBy => "coalesce(served_by, 'unknown')",
            Self::State => "coalesce(state, '')",
            Self::Hour => HOUR,
            Self::Day => "to_char(started AT TIME ZONE $3, 'YYYY-MM-DD')",
            Self::Week => "to_char(started AT TIME ZONE $3, 'IYYY-\"W\"IW')",
            Self::Month => "to_char(started AT TIME ZONE $3, 'YYYY-MM')",
        }
    }
}
