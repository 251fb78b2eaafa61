//! One entry, in the order in which it happened: for `bursar explain` and the entry's page.
//!
//! Promise: one fact, one line, with its label at the left edge.

use std::fmt::{self, Display};

use jiff::tz::TimeZone;

use crate::admin::cells::{self, counted, seconds, tail};
use crate::admin::explain::ExplainedEntry;
use crate::calendar;
use crate::ledger::entry::{
    Attempt, AttemptEnd, Closed, EntryId, KeyOrigin, Side, Stage, State, Timings,
};
use crate::ledger::query::{DeliveryWord, EntryView};
use crate::protocol::{Dialect, Escalated};
use crate::screen::shown;

/// Width of a label with its gap.
pub const LABEL: usize = 14;

/// Facts with a label each; one without goes on with the fact before it.
#[derive(Debug, Default)]
pub struct Timeline(Vec<(&'static str, String)>);

/// All that is kept of an entry.
pub fn of(explained: &ExplainedEntry, zone: &TimeZone) -> Timeline {
    let ExplainedEntry { entry, said } = explained;
    let at = |ms: u64| calendar::shown(ms, zone);
    let mut facts = Timeline::default();
    facts.add("entry", &entry.id.to_string());
    let zone_name = zone.iana_name().unwrap_or("local time");
    facts.add("began", &format!("{} ({zone_name})", at(entry.at_ms)));
    facts.add("app", &entry.app);
    facts.add("request", &request(entry));
    if let Some(session) = &entry.session {
        facts.add("session", &session.to_string());
    }
    if let Some(user) = &entry.user {
        facts.add("user", user);
    }
    if !entry.tags.is_empty() {
        facts.add("tags", &entry.tags.to_string());
    }
    facts.add("key", &key(entry));
    for (at, attempt) in entry.attempts.iter().enumerate() {
        let label = if at == 0 { "attempts" } else { "" };
        facts.add(label, &format!("{}. {}", at + 1, attempt_line(attempt)));
        for line in &attempt.receipt_lines {
            facts.add("", &format!("     {line}"));
        }
    }
    if let Some(detail) = &entry.service_detail {
        facts.add("refused with", detail);
    }
    for (at, closed) in entry.closed.iter().enumerate() {
        facts.add(if at == 0 { "closed" } else { "" }, &closed_line(closed));
    }
    if let Some(delivery) = delivery(entry, &said.adopted_by) {
        facts.add("delivery", &delivery);
    }
    if let Some(id) = &entry.request_id {
        facts.add("request id", id);
    }
    if let Some(id) = &entry.trace_id {
        facts.add("trace", &id.to_string());
    }
    if !entry.spoken.is_chat() {
        facts.add("spoken", entry.spoken.as_str());
    }
    if !entry.dropped.is_empty() {
        facts.add("left out", &entry.dropped.to_string());
    }
    let answer = answer(entry);
    if !answer.is_empty() {
        facts.add("answer", &answer);
    }
    let billed = entry.billed_micro_usd;
    let billed = billed.map_or("amount not known".to_owned(), |sum| sum.to_string());
    facts.add("state", &format!("{}, {billed}", state(entry.state)));
    facts.add("why", &said.why);
    if let Some(next) = &said.what_would_settle {
        facts.add("settles it", next);
    }
    for odd in &said.odd {
        facts.add("odd", odd);
    }
    if let Some(was) = entry.was {
        let came = entry.reconciled_ms.map_or_else(|| "?".to_owned(), at);
        let was = state(was);
        facts.add("evidence", &format!("came {came}; until then it was {was}"));
    }
    if let Some(timings) = &entry.timings {
        facts.add("times", &times(timings));
    }
    facts
}

/// `settled`, `in doubt (no response)`.
fn state(state: State) -> String {
    let cell = cells::state(state.word(), state.reason());
    cell.replace('(', " (").replace('_', " ")
}

/// `chat, inference lane, stream, model auto, 312 bytes`.
fn request(entry: &EntryView) -> String {
    let mut parts = vec![entry.operation.to_string(), format!("{} lane", entry.lane)];
    match entry.stream {
        Some(true) => parts.push("stream".to_owned()),
        Some(false) => {}
        None => parts.push("its intent line is damaged".to_owned()),
    }
    parts.extend(entry.model.as_ref().map(|model| format!("model {model}")));
    let bytes = entry.request_bytes;
    parts.extend(bytes.map(|bytes| counted(bytes, "byte", "bytes")));
    let run = entry.run.as_ref();
    parts.extend(run.map(|run| format!("run {run} of bursar exec")));
    parts.join(", ")
}

fn key(entry: &EntryView) -> String {
    let Some(origin) = entry.key_origin else {
        return "none: this route takes no Idempotency-Key".to_owned();
    };
    let origin = match origin {
        KeyOrigin::Minted => "minted by bursar".to_owned(),
        KeyOrigin::App => "the app's own".to_owned(),
        KeyOrigin::Adopted { from } => {
            let from = tail(&from);
            format!("taken over from entry {from}, whose answer was not delivered")
        }
    };
    match (&entry.key, &entry.key_hash) {
        (Some(key), _) => format!("{key} ({origin})"),
        (None, Some(hash)) => {
            format!("longer than 256 characters, kept as its hash {hash} ({origin})")
        }
        (None, None) => format!(
            "not shown on a port; the daemon's user can read it through the Unix socket ({origin})"
        ),
    }
}

/// `after 0.200 s: 429, refused by the service, took 0.103 s`.
fn attempt_line(attempt: &Attempt) -> String {
    let began = match attempt.wait_ms {
        0 => "at once".to_owned(),
        wait_ms => format!("after {}", seconds(wait_ms)),
    };
    let status = attempt.status.map(|status| format!("{status}, "));
    let end = match attempt.end {
        AttemptEnd::NotSent => "was not sent whole",
        AttemptEnd::NoHead => "sent, and no answer came",
        AttemptEnd::Refused if attempt.status.is_some_and(|status| status >= 500) => {
            "failed at the service"
        }
        AttemptEnd::Refused => "refused by the service",
        AttemptEnd::Gateway => "answered by a gateway",
        AttemptEnd::Answered => "answered whole",
        AttemptEnd::Broken => "the answer broke off",
    };
    let cause = attempt.cause.as_deref().map(cause_in_words);
    let cause = cause.map(|cause| format!(" ({cause})"));
    format!(
        "{began}: {}{end}{}, took {}",
        status.unwrap_or_default(),
        cause.unwrap_or_default(),
        seconds(attempt.took_ms)
    )
}

fn cause_in_words(cause: &str) -> &str {
    match cause {
        "name" => "the service's name was not resolved",
        "connect" => "no connection",
        "connect_timeout" => "no connection in time",
        "tls" => "TLS failed",
        "certificate" => "its certificate was not accepted",
        "write" => "the request could not be written",
        "refused" => "the stream was refused",
        "closed" => "the connection was closed",
        "reset" => "the connection was reset",
        "timeout" => "bursar's read timeout",
        "protocol" => "not valid HTTP",
        "shutdown" => "bursar's shutdown",
        "stopped" => "bursar ended the reading",
        "too_large" => "the turn was too large to be made into a stream",
        other => other,
    }
}

/// `the app left before an answer came, 0.512 s after the request came`.
fn closed_line(closed: &Closed) -> String {
    let stage = match closed.stage {
        Stage::Waiting => "before an answer came",
        Stage::Answering => "while the answer was read or written",
        Stage::Streaming => "while the answer flowed",
    };
    let side = match (closed.by, closed.why.as_deref()) {
        (Side::App, _) => "the app left".to_owned(),
        (Side::Service, Some(why)) => {
            format!("the service broke off ({})", cause_in_words(why))
        }
        (Side::Service, None) => "the service broke off".to_owned(),
        (Side::Bursar, Some("shutdown")) => "bursar's shutdown ended it".to_owned(),
        (Side::Bursar, Some("read_timeout")) => {
            "bursar gave up after [upstream] read_timeout_s".to_owned()
        }
        (Side::Bursar, Some("drain_bound")) => {
            "bursar ended the reading for an app that had left ([streams])".to_owned()
        }
        (Side::Bursar, _) => "bursar ended it".to_owned(),
    };
    let after = seconds(closed.after_ms);
    format!("{side} {stage}, {after} after the request came")
}

/// What became of the answer, where it did not go straight to the app.
fn delivery(entry: &EntryView, adopted_by: &[EntryId]) -> Option<String> {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(entry.delivery.map(|delivery| match delivery {
        DeliveryWord::Missed => "the app did not receive the answer".to_owned(),
        DeliveryWord::AssumedMissed => {
            "bursar was killed before it was known whether the app received the answer; it counts as \
             not received"
                .to_owned()
        }
        DeliveryWord::Late => "an equal request of the app was given the answer later".to_owned(),
    }));
    if !adopted_by.is_empty() {
        let heirs: Vec<String> = adopted_by.iter().map(tail).collect();
        parts.push(format!("its key went on to entry {}", heirs.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// `served by specialist (coding), not escalated, route r-17, 12 tokens in, 34 out, 512 bytes`.
fn answer(entry: &EntryView) -> String {
    let mut parts = Vec::new();
    parts.extend(entry.served_by.map(|by| match &entry.specialist {
        Some(specialist) => format!("served by {by} ({specialist})"),
        None => format!("served by {by}"),
    }));
    match entry.escalated {
        Escalated::True => parts.push("escalated".to_owned()),
        Escalated::False => parts.push("not escalated".to_owned()),
        Escalated::Unknown => {}
    }
    let input = entry.input_required.as_ref();
    parts.extend(input.map(|input| format!("input required: {input}")));
    if entry.replayed {
        parts.push("a stored replay".to_owned());
    }
    let version = entry.route_version.as_ref();
    parts.extend(version.map(|version| format!("route version {version}")));
    for (tokens, what) in [
        (entry.usage.prompt_tokens, "in"),
        (entry.usage.completion_tokens, "out"),
    ] {
        match tokens {
            Some(count) => parts.push(format!("{} {what}", counted(count, "token", "tokens"))),
            None if has_counts(entry) => {
                parts.push(format!(
                    "tokens {what} not reported, which the answer shows as 0"
                ));
            }
            None => {}
        }
    }
    let audio_ms = entry.audio_ms;
    parts.extend(audio_ms.map(|ms| format!("{} of audio", seconds(ms))));
    let estimate = entry.would_have_cost_micro_usd;
    parts.extend(estimate.map(|cost| format!("frontier estimate {cost}")));
    let bytes = entry.response_bytes.filter(|bytes| *bytes > 0);
    parts.extend(bytes.map(|bytes| counted(bytes, "byte", "bytes")));
    parts.join(", ")
}

/// Whether the answer was given in a dialect that has no way to leave a count out.
fn has_counts(entry: &EntryView) -> bool {
    let last = entry.attempts.last();
    matches!(entry.spoken, Dialect::Responses | Dialect::Messages)
        && last.is_some_and(|attempt| attempt.end == AttemptEnd::Answered)
}

fn times(timings: &Timings) -> String {
    let first_byte = timings.first_byte_ms;
    let first_byte = first_byte.map(|ms| format!(", first byte after {}", seconds(ms)));
    format!(
        "queue {}{}, in all {}, bursar's own {}.{:03} ms",
        seconds(timings.queue_ms),
        first_byte.unwrap_or_default(),
        seconds(timings.total_ms),
        timings.own_us / 1000,
        timings.own_us % 1000
    )
}

// === impl Timeline ===

impl Timeline {
    pub fn facts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(label, fact)| (*label, fact.as_str()))
    }

    fn add(&mut self, label: &'static str, fact: &str) {
        self.0.push((label, fact.to_owned()));
    }
}

impl Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (label, fact) in self.facts() {
            writeln!(f, "{label:<LABEL$}{}", shown(fact))?;
        }
        Ok(())
    }
}
