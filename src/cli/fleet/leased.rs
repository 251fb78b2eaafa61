//! What is leased of shared caps, and the pause after a restored database, as commands show them.
//!
//! Promise: what a machine that is not heard, or was revoked, has spent of its lease is not known, and is not shown as left.

use jiff::tz::TimeZone;
use serde::Serialize;
use uuid::Uuid;

use crate::calendar;
use crate::cli::cells::counted;
use crate::cli::error::CliError;
use crate::cli::look::{Ink, Look};
use crate::cli::output::say;
use crate::cli::table::TextTable;
use crate::clock::SystemClock;
use crate::fleet::{CapNow, LeaseNow, Pause};
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;
use crate::screen::shown;

/// A ledger that is not heard for longer may have spent what is open of its lease.
const HEARD_MS_MAX: u64 = 5 * 60 * 1_000;

#[derive(Serialize)]
pub struct PauseDocument<'a> {
    since: Option<String>,
    ends: Option<String>,
    /// The one whose leases or lines the database had forgotten.
    ledger: Option<String>,
    host: Option<&'a str>,
    awaited: u64,
}

#[derive(Serialize)]
pub struct LeaseDocument<'a> {
    cap: &'a str,
    host: &'a str,
    ledger: String,
    since: Option<String>,
    until: Option<String>,
    granted_micro_usd: MicroUsd,
    given_back_micro_usd: MicroUsd,
    billed_micro_usd: MicroUsdSum,
    charged_micro_usd: MicroUsdSum,
    /// `null`: not known.
    open_micro_usd: Option<MicroUsdSum>,
    heard: Option<String>,
}

/// The end of an id, which tells the ledgers of a fleet apart.
pub fn end(ledger: Uuid) -> String {
    let text = ledger.simple().to_string();
    text.get(20..).unwrap_or_default().to_owned()
}

/// That nothing is granted, and how much may be spent until then. Nothing where leases are granted.
pub fn say_pause(
    pause: Option<&Pause>,
    caps: &[CapNow],
    zone: &TimeZone,
    look: &Look,
) -> Result<(), CliError> {
    let Some(pause) = pause else {
        return Ok(());
    };
    let at = |ms| calendar::shown(ms, zone);
    let by = match (&pause.host, pause.ledger) {
        (Some(host), Some(ledger)) => format!("{} ({})", shown(host), end(ledger)),
        _ => "a ledger".to_owned(),
    };
    let awaited = counted(pause.awaited, "ledger has", "ledgers have");
    let text = format!(
        "PAUSED since {}: the database was restored from a backup, which {by} showed, and grants nothing more of a cap. \
         {awaited} not been heard since. It goes on when all have been, at {} at the latest, or by `bursar fleet resume`",
        at(pause.since_ms),
        at(pause.ends_ms)
    );
    say(look.inked(Ink::Red, look.wrapped(&text, 0)))?;
    for of in caps {
        let text = format!(
            "{}: until all have been heard, at most {} and what was leased since the backup, of which {} is put back",
            of.cap, of.limit, of.put_back
        );
        say(look.inked(Ink::Red, look.wrapped(&text, 2)))?;
    }
    Ok(())
}

pub fn leases_table(leases: &[LeaseNow], zone: &TimeZone, look: &Look) -> String {
    let now_ms = SystemClock::shared().wall_ms();
    let mut table =
        TextTable::new("cap|machine|=ledger|>leased|>billed|>open|=from|=until|~remarks");
    for of in leases {
        let remark = match (of.is_revoked, is_heard(of, now_ms)) {
            (true, _) => "revoked: counted until the end".to_owned(),
            (false, true) => String::new(),
            (false, false) => format!("heard last {}", calendar::shown(of.heard_ms, zone)),
        };
        table.row([
            of.cap.clone(),
            of.host.clone(),
            end(of.ledger),
            of.charged.to_string(),
            of.billed.to_string(),
            open(of, now_ms).map_or_else(|| "not known".to_owned(), |open| open.to_string()),
            calendar::shown(of.since_ms, zone),
            calendar::shown(of.until_ms, zone),
            remark,
        ]);
    }
    table.laid_out(look)
}

/// What may still be spent of a lease. It is not known of a machine that is not heard, nor of one that was revoked, whose
/// lines are not taken though it says hello.
fn open(of: &LeaseNow, now_ms: u64) -> Option<MicroUsdSum> {
    let is_known = (!of.is_revoked && is_heard(of, now_ms)) || of.open.is_zero();
    is_known.then_some(of.open)
}

fn is_heard(of: &LeaseNow, now_ms: u64) -> bool {
    now_ms.saturating_sub(of.heard_ms) <= HEARD_MS_MAX
}

// === impl PauseDocument ===

impl<'a> PauseDocument<'a> {
    pub fn of(of: &'a Pause) -> Self {
        Self {
            since: calendar::rfc3339(of.since_ms),
            ends: calendar::rfc3339(of.ends_ms),
            ledger: of.ledger.map(|ledger| ledger.to_string()),
            host: of.host.as_deref(),
            awaited: of.awaited,
        }
    }
}

// === impl LeaseDocument ===

impl<'a> LeaseDocument<'a> {
    pub fn of(of: &'a LeaseNow) -> Self {
        Self {
            cap: &of.cap,
            host: &of.host,
            ledger: of.ledger.to_string(),
            since: calendar::rfc3339(of.since_ms),
            until: calendar::rfc3339(of.until_ms),
            granted_micro_usd: of.granted,
            given_back_micro_usd: of.given_back,
            billed_micro_usd: of.billed,
            charged_micro_usd: of.charged,
            open_micro_usd: open(of, SystemClock::shared().wall_ms()),
            heard: calendar::rfc3339(of.heard_ms),
        }
    }
}

#[cfg(test)]
mod tests;
