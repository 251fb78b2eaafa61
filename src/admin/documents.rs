//! The JSON that the reading API answers and that `--json` prints: built here once, so that asking
//! the daemon and reading the journal give the same text.
//!
//! Promise: names and meanings stay put, fields are only ever added. An amount that is not known is
//! `null`, never 0; amounts are integers in micro-USD.

use jiff::tz::TimeZone;
use serde_json::{Map, Value, json};

use crate::calendar;
use crate::ledger::LedgerHealth;
use crate::ledger::entry::State;
use crate::ledger::query::{EntryView, GroupBy, Listing, Spend};
use crate::ledger::totals::Totals;
use crate::telemetry::metrics::Traffic;

/// What `/api/spend` and `bursar spend` ask.
#[derive(Clone, Debug)]
pub struct SpendQuestion {
    pub since_ms: Option<u64>,
    pub until_ms: Option<u64>,
    pub by: Vec<GroupBy>,
    /// Whose midnights days begin at.
    pub zone: TimeZone,
}

/// What `/api/status` reports, beside the ledger.
#[derive(Clone, Debug)]
pub struct Process {
    pub started_ms: u64,
    pub now_ms: u64,
    pub in_flight: usize,
    /// Callers that are no app may spend.
    pub anonymous: bool,
    pub draining: bool,
    pub proxy: Vec<String>,
    pub upstream: String,
    pub state_dir: String,
    pub traffic: Traffic,
}

/// The answer to a question about spend: the sums, then the same by group.
pub fn spend(asked: &SpendQuestion, spend: &Spend) -> serde_json::Result<Value> {
    let mut document = Map::new();
    let at = |ms: Option<u64>| ms.and_then(calendar::rfc3339);
    document.insert("since".to_owned(), json!(at(asked.since_ms)));
    document.insert("until".to_owned(), json!(at(asked.until_ms)));
    let zone = asked.zone.iana_name().unwrap_or("local");
    document.insert("time_zone".to_owned(), json!(zone));
    document.insert("by".to_owned(), serde_json::to_value(&asked.by)?);
    if let Value::Object(total) = serde_json::to_value(&spend.total)? {
        document.extend(total);
    }
    // Damaged ranges and gaps: the sums lack what was in them.
    document.insert("damaged".to_owned(), json!(spend.damaged));
    // A bound cut through a quarter hour that is kept in sums only: it counts for its beginning.
    document.insert("rounded".to_owned(), json!(spend.is_rounded));
    document.insert("rows".to_owned(), serde_json::to_value(&spend.rows)?);
    Ok(Value::Object(document))
}

/// One entry. Its state is one word; why it is in doubt stands beside it.
pub fn receipt(view: &EntryView) -> serde_json::Result<Value> {
    let mut document = serde_json::to_value(view)?;
    if let Value::Object(fields) = &mut document {
        fields.insert("at".to_owned(), json!(calendar::rfc3339(view.at_ms)));
        fields.insert("state".to_owned(), json!(view.state.word()));
        if let State::InDoubt { reason } = view.state {
            fields.insert("reason".to_owned(), json!(reason));
        }
    }
    Ok(document)
}

/// A list of entries, and the sequence number to go on from.
pub fn receipts(listing: &Listing) -> serde_json::Result<Value> {
    let receipts: Vec<Value> = listing
        .entries
        .iter()
        .map(receipt)
        .collect::<Result<_, _>>()?;
    Ok(json!({ "receipts": receipts, "last_seq": listing.last_seq }))
}

/// A list of entries or an explanation, as other users of this machine may read it: with a key, any of them
/// could fetch its answer again, which another app has paid for.
pub fn without_keys(mut document: Value) -> Value {
    let strip = |entry: &mut Value| {
        if let Value::Object(fields) = entry {
            fields.shift_remove("key");
            fields.shift_remove("key_hash");
        }
    };
    for name in ["receipts", "entries"] {
        if let Some(Value::Array(entries)) = document.get_mut(name) {
            entries.iter_mut().for_each(strip);
        }
    }
    if let Some(purchase) = document.get_mut("purchase") {
        strip(purchase);
    }
    document
}

/// The daemon at this moment.
pub fn status(
    process: &Process,
    totals: &Totals,
    health: &LedgerHealth,
) -> serde_json::Result<Value> {
    // Not known while the journal is added up; never lower than it is.
    let whole = Some(totals).filter(|_| !health.is_adding_up);
    let in_doubt = whole.map(|totals| totals.in_doubt().values().sum::<u64>());
    let unreported = whole.map(|totals| totals.unreported().values().sum::<u64>());
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "started": calendar::rfc3339(process.started_ms),
        "uptime_s": process.now_ms.saturating_sub(process.started_ms) / 1000,
        "draining": process.draining,
        "in_flight": process.in_flight,
        "anonymous": process.anonymous,
        "proxy": process.proxy,
        "upstream": process.upstream,
        "traffic": {
            "waiting": process.traffic.waiting,
            "at_service": process.traffic.in_flight,
            // 0: bursar sets no limit.
            "in_flight_limit": process.traffic.in_flight_limit,
            "per_minute_limit": process.traffic.per_minute_limit,
            "held_back_by": process.traffic.breaking,
        },
        "billed_micro_usd": serde_json::to_value(whole.map(Totals::billed))?,
        "drained_micro_usd": serde_json::to_value(whole.map(Totals::drained))?,
        "requests": whole.map(Totals::requests),
        "in_doubt": in_doubt,
        "unreported": unreported,
        "ledger": {
            "state_dir": process.state_dir,
            "writable": health.is_writable(),
            "unavailable": health.unavailable,
            "last_commit": health.last_commit_ms.and_then(calendar::rfc3339),
            "commits": health.commits,
            "journal_bytes": health.journal_bytes,
            "index_lag_records": health.index_lag_records,
            "adding_up": health.is_adding_up,
            "quarantined": health.quarantined,
            "unwritten_waiting": health.waiting,
            "unwritten_dropped": health.dropped,
        },
    }))
}

#[cfg(test)]
mod tests;
