//! An entry as a row of comma-separated values: one column for each field the ledger keeps.
//!
//! Promise: columns are only ever added at the end; amounts are integers of micro-USD, and an empty cell is "not
//! known" or "not reported", never 0.

use std::fmt::Display;

use jiff::tz::TimeZone;

use super::csv::harmless;
use crate::calendar;
use crate::ledger::entry::{Closed, KeyOrigin, State};
use crate::ledger::query::{EntryView, How};
use crate::money::MicroUsd;

/// A column: its name in the header row, and its cell of an entry. An empty cell: not known, or not reported.
struct Column {
    name: &'static str,
    cell: fn(&EntryView, &TimeZone) -> String,
}

/// The header row. New columns go to the end.
const COLUMNS: &[Column] = &[
    column("id", |entry, _| entry.id.to_string()),
    column("seq", |entry, _| entry.seq.to_string()),
    column("at", |entry, _| text(calendar::rfc3339(entry.at_ms))),
    column("local_time", |entry, zone| {
        calendar::shown(entry.at_ms, zone)
    }),
    column("at_ms", |entry, _| entry.at_ms.to_string()),
    column("ended_ms", |entry, _| text(entry.ended_ms)),
    column("app", |entry, _| entry.app.to_string()),
    column("lane", |entry, _| entry.lane.to_string()),
    column("operation", |entry, _| entry.operation.to_string()),
    column("model", |entry, _| text(entry.model.as_ref())),
    column("stream", |entry, _| text(entry.stream)),
    column("state", |entry, _| entry.state.word().to_string()),
    column("reason", |entry, _| text(entry.state.reason())),
    column("billed_micro_usd", |entry, _| {
        micro_usd(entry.billed_micro_usd)
    }),
    column("receipt", |entry, _| entry.receipt.to_string()),
    column("would_have_cost_micro_usd", |entry, _| {
        micro_usd(entry.would_have_cost_micro_usd)
    }),
    column("receipt_source", |entry, _| text(entry.receipt_source)),
    column("served_by", |entry, _| text(entry.served_by)),
    column("specialist", |entry, _| text(entry.specialist.as_ref())),
    column("escalated", |entry, _| entry.escalated.to_string()),
    column("route_version", |entry, _| {
        text(entry.route_version.as_ref())
    }),
    column("input_required", |entry, _| {
        text(entry.input_required.as_ref())
    }),
    column("replayed", |entry, _| entry.replayed.to_string()),
    column("key", |entry, _| text(entry.key.as_ref())),
    column("key_origin", |entry, _| {
        text(entry.key_origin.map(|origin| match origin {
            KeyOrigin::Minted => "minted",
            KeyOrigin::App => "app",
            KeyOrigin::Adopted { .. } => "adopted",
        }))
    }),
    column("adopted_from", |entry, _| match entry.key_origin {
        Some(KeyOrigin::Adopted { from }) => from.to_string(),
        _ => String::new(),
    }),
    column("request_id", |entry, _| text(entry.request_id.as_ref())),
    column("run_id", |entry, _| text(entry.run_id.as_ref())),
    column("prompt_tokens", |entry, _| text(entry.usage.prompt_tokens)),
    column("completion_tokens", |entry, _| {
        text(entry.usage.completion_tokens)
    }),
    column("total_tokens", |entry, _| text(entry.usage.total_tokens)),
    column("audio_ms", |entry, _| text(entry.audio_ms)),
    column("attempts", |entry, _| entry.attempts.len().to_string()),
    column("attempt_ends", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.end))
    }),
    column("attempt_statuses", |entry, _| {
        each(&entry.attempts, |attempt| attempt.status)
    }),
    column("attempt_causes", |entry, _| {
        each(&entry.attempts, |attempt| attempt.cause.clone())
    }),
    column("attempt_waits_ms", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.wait_ms))
    }),
    column("attempt_took_ms", |entry, _| {
        each(&entry.attempts, |attempt| Some(attempt.took_ms))
    }),
    column("anomalies", |entry, _| {
        each(&entry.anomalies, |kind| Some(*kind))
    }),
    column("reconciled_by", |entry, _| {
        text(entry.reconciled_by.as_ref().map(|how| match how {
            How::Key { .. } => "key",
            How::Run { .. } => "run",
        }))
    }),
    column("reconciled_by_entry", |entry, _| {
        match &entry.reconciled_by {
            Some(How::Key { entry }) => entry.to_string(),
            _ => String::new(),
        }
    }),
    column("reconciled_by_run", |entry, _| match &entry.reconciled_by {
        Some(How::Run { run_id }) => run_id.clone(),
        _ => String::new(),
    }),
    column("request_bytes", |entry, _| text(entry.request_bytes)),
    column("response_bytes", |entry, _| text(entry.response_bytes)),
    column("queue_ms", |entry, _| {
        text(entry.timings.map(|times| times.queue_ms))
    }),
    column("first_byte_ms", |entry, _| {
        text(entry.timings.and_then(|times| times.first_byte_ms))
    }),
    column("total_ms", |entry, _| {
        text(entry.timings.map(|times| times.total_ms))
    }),
    column("own_us", |entry, _| {
        text(entry.timings.map(|times| times.own_us))
    }),
    column("broken_billed_micro_usd", |entry, _| {
        micro_usd(entry.broken_billed_micro_usd)
    }),
    column("drained", |entry, _| entry.drained.to_string()),
    column("closed_by", |entry, _| {
        closings(entry, |closed| closed.by.as_str())
    }),
    column("closed_stages", |entry, _| {
        closings(entry, |closed| closed.stage.as_str())
    }),
    column("reconciled_ms", |entry, _| text(entry.reconciled_ms)),
    column("delivery", |entry, _| text(entry.delivery)),
    column("reconciled_from", |entry, _| {
        text(entry.was.map(State::word))
    }),
    column("key_hash", |entry, _| text(entry.key_hash)),
    column("run", |entry, _| text(entry.run.as_ref())),
    column("trace_id", |entry, _| text(entry.trace_id)),
    column("service_detail", |entry, _| {
        text(entry.service_detail.as_ref())
    }),
    column("spoken", |entry, _| entry.spoken.to_string()),
    column("dropped", |entry, _| text(Some(&entry.dropped))),
    column("session", |entry, _| text(entry.session)),
    column("user", |entry, _| text(entry.user.as_ref())),
    column("tags", |entry, _| text(Some(&entry.tags))),
];

/// What an element that lacks the value shows in a list. A `-` would look like a formula.
const NONE_IN_LIST: &str = "none";

const fn column(name: &'static str, cell: fn(&EntryView, &TimeZone) -> String) -> Column {
    Column { name, cell }
}

fn text(value: Option<impl Display>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn micro_usd(amount: Option<MicroUsd>) -> String {
    text(amount.map(MicroUsd::get))
}

/// From each element one value, with spaces between.
fn each<T, V: Display>(list: &[T], value: impl Fn(&T) -> Option<V>) -> String {
    let words = list.iter().map(|element| match value(element) {
        Some(value) => value.to_string(),
        None => NONE_IN_LIST.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Empty where no side left early.
fn closings(entry: &EntryView, word: fn(&Closed) -> &'static str) -> String {
    each(&entry.closed, |closed| Some(word(closed)))
}

/// The header row.
pub fn names() -> impl Iterator<Item = String> {
    COLUMNS.iter().map(|column| column.name.to_owned())
}

/// The cells of an entry. Local times are of the zone.
pub fn cells(entry: &EntryView, zone: &TimeZone) -> impl Iterator<Item = String> {
    COLUMNS.iter().map(|column| column.of(entry, zone))
}

// === impl Column ===

impl Column {
    fn of(&self, entry: &EntryView, zone: &TimeZone) -> String {
        harmless(&(self.cell)(entry, zone))
    }
}

#[cfg(test)]
mod tests;
