//! One entry, in the order in which it happened.
//!
//! Promise: one fact, one line, with its label at the left edge.

use std::fmt::Write as _;

use jiff::tz::TimeZone;
use serde_json::Value;

use super::fields::{amount, list, number, text, time};
use crate::screen::shown;

/// Width of a label with its gap.
const LABEL: usize = 14;

/// Lines with a label each.
#[derive(Default)]
struct Facts(String);

/// All that is kept of an entry.
pub fn told(entry: &Value, zone: &TimeZone) -> String {
    let mut facts = Facts::default();
    facts.add("entry", text(entry, "id").unwrap_or("?"));
    let zone_name = zone.iana_name().unwrap_or("local time");
    facts.add(
        "began",
        &format!("{} ({zone_name})", time(entry, "at_ms", zone)),
    );
    facts.add("app", text(entry, "app").unwrap_or("?"));
    facts.add("request", &request(entry));
    if let Some(key) = text(entry, "key") {
        facts.add("key", &format!("{key} ({})", origin(entry)));
    } else if let Some(hash) = text(entry, "key_hash") {
        let told = format!("longer than 256 characters, kept as its hash {hash}");
        facts.add("key", &format!("{told} ({})", origin(entry)));
    } else if entry
        .get("key_origin")
        .is_some_and(|origin| !origin.is_null())
    {
        let told = "not shown on a port; the daemon's user can read it through the Unix socket";
        facts.add("key", &format!("{told} ({})", origin(entry)));
    } else {
        facts.add("key", "none: this route takes no Idempotency-Key");
    }
    for (at, attempt) in list(entry, "attempts").iter().enumerate() {
        let label = if at == 0 { "attempts" } else { "" };
        facts.add(label, &format!("{}. {}", at + 1, told_attempt(attempt)));
        for line in list(attempt, "receipt_lines") {
            facts.add("", &format!("     {}", line.as_str().unwrap_or("?")));
        }
    }
    for (at, closed) in list(entry, "closed").iter().enumerate() {
        facts.add(if at == 0 { "closed" } else { "" }, &told_closed(closed));
    }
    if let Some(delivery) = delivery(entry) {
        facts.add("delivery", &delivery);
    }
    if let Some(id) = text(entry, "request_id") {
        facts.add("request id", id);
    }
    let answer = answer(entry);
    if !answer.is_empty() {
        facts.add("answer", &answer);
    }
    let state = match (text(entry, "state"), text(entry, "reason")) {
        (Some(state), Some(reason)) => format!("{state} ({reason})").replace('_', " "),
        (state, _) => state.unwrap_or("?").to_owned(),
    };
    let billed = amount(entry, "billed_micro_usd");
    let billed = billed.unwrap_or_else(|| "amount not known".to_owned());
    facts.add("state", &format!("{state}, {billed}"));
    facts.add("why", text(entry, "why").unwrap_or("?"));
    if let Some(next) = text(entry, "what_would_settle") {
        facts.add("settles it", next);
    }
    for odd in list(entry, "odd") {
        facts.add("odd", odd.as_str().unwrap_or("?"));
    }
    if let Some(was) = text(entry, "was") {
        let reason = text(entry, "was_reason").map(|reason| format!(" ({reason})"));
        let was = format!("{was}{}", reason.unwrap_or_default()).replace('_', " ");
        facts.add(
            "evidence",
            &format!(
                "came {}; until then it was {was}",
                time(entry, "reconciled_ms", zone)
            ),
        );
    }
    if let Some(timings) = entry.get("timings") {
        facts.add("times", &times(timings));
    }
    facts.0
}

/// `chat, inference lane, stream, model auto, 312 bytes`.
fn request(entry: &Value) -> String {
    let mut parts = vec![text(entry, "operation").unwrap_or("?").to_owned()];
    if let Some(lane) = text(entry, "lane") {
        parts.push(format!("{lane} lane"));
    }
    match entry.get("stream").and_then(Value::as_bool) {
        Some(true) => parts.push("stream".to_owned()),
        Some(false) => {}
        None => parts.push("its intent line is damaged".to_owned()),
    }
    if let Some(model) = text(entry, "model") {
        parts.push(format!("model {model}"));
    }
    if let Some(bytes) = number(entry, "request_bytes") {
        parts.push(format!("{bytes} bytes"));
    }
    if let Some(run) = text(entry, "run") {
        parts.push(format!("run {run} of bursar exec"));
    }
    parts.join(", ")
}

fn origin(entry: &Value) -> String {
    let origin = entry.get("key_origin");
    match origin.and_then(Value::as_str) {
        Some("minted") => "minted by bursar".to_owned(),
        Some("app") => "the app's own".to_owned(),
        _ => match origin.and_then(|origin| origin.pointer("/adopted/from")) {
            Some(from) => format!(
                "taken over from entry {}, whose answer was not delivered",
                from.as_str().unwrap_or("?")
            ),
            None => "its origin is not known".to_owned(),
        },
    }
}

/// `after 0.200 s: 503, refused by the service, took 0.103 s`.
fn told_attempt(attempt: &Value) -> String {
    let wait = number(attempt, "wait_ms").unwrap_or_default();
    let began = if wait == 0 {
        "at once".to_owned()
    } else {
        format!("after {}", seconds(wait))
    };
    let status = number(attempt, "status").map(|status| format!("{status}, "));
    let end = text(attempt, "end").unwrap_or("?");
    let cause = text(attempt, "cause").map(cause_in_words);
    let cause = cause.map_or_else(String::new, |cause| format!(" ({cause})"));
    format!(
        "{began}: {}{}{cause}, took {}",
        status.unwrap_or_default(),
        end_in_words(end),
        seconds(number(attempt, "took_ms").unwrap_or_default())
    )
}

fn end_in_words(end: &str) -> &str {
    match end {
        "not_sent" => "was not sent whole",
        "no_head" => "sent, and no answer came",
        "refused" => "refused by the service",
        "gateway" => "answered by a gateway",
        "answered" => "answered whole",
        "broken" => "the answer broke off",
        other => other,
    }
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

/// `the app left while it waited for an answer, 0.512 s after it asked`.
fn told_closed(closed: &Value) -> String {
    let stage = match text(closed, "stage") {
        Some("waiting") => "before an answer came",
        Some("answering") => "while the answer was read or written",
        Some("streaming") => "while the answer flowed",
        _ => "at a time that is not known",
    };
    let why = text(closed, "why");
    let who = match (text(closed, "by"), why) {
        (Some("app"), _) => "the app left".to_owned(),
        (Some("service"), Some(why)) => {
            format!("the service broke off ({})", cause_in_words(why))
        }
        (Some("service"), None) => "the service broke off".to_owned(),
        (Some("bursar"), Some("shutdown")) => "bursar's shutdown ended it".to_owned(),
        (Some("bursar"), Some("read_timeout")) => {
            "bursar gave up after [upstream] read_timeout_s".to_owned()
        }
        (Some("bursar"), Some("drain_bound")) => {
            "bursar ended the reading for an app that had left ([streams])".to_owned()
        }
        _ => "bursar ended it".to_owned(),
    };
    let after = number(closed, "after_ms").unwrap_or_default();
    format!("{who} {stage}, {} after the request came", seconds(after))
}

/// What became of the answer, where it did not go straight to the app.
fn delivery(entry: &Value) -> Option<String> {
    let mut told = match text(entry, "delivery") {
        Some("missed") => "the app did not receive the answer",
        Some("assumed_missed") => {
            "bursar was killed before it was known whether the app received the answer; it counts as \
             not received"
        }
        Some("late") => "an equal request of the app was given the answer later",
        _ => "",
    }
    .to_owned();
    let adopted: Vec<&str> = list(entry, "adopted_by")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    if !adopted.is_empty() {
        let gap = if told.is_empty() { "" } else { "; " };
        // Writing into a string does not fail.
        let _ = write!(told, "{gap}its key went on to entry {}", adopted.join(", "));
    }
    (!told.is_empty()).then_some(told)
}

/// `served by specialist (coding), not escalated, route r-17, 12 tokens in, 34 out, 512 bytes`.
fn answer(entry: &Value) -> String {
    let mut parts = Vec::new();
    if let Some(by) = text(entry, "served_by") {
        parts.push(match text(entry, "specialist") {
            Some(specialist) => format!("served by {by} ({specialist})"),
            None => format!("served by {by}"),
        });
    }
    match text(entry, "escalated") {
        Some("true") => parts.push("escalated".to_owned()),
        Some("false") => parts.push("not escalated".to_owned()),
        _ => {}
    }
    if let Some(input) = text(entry, "input_required") {
        parts.push(format!("input required: {input}"));
    }
    if entry.get("replayed").and_then(Value::as_bool) == Some(true) {
        parts.push("a stored replay".to_owned());
    }
    if let Some(version) = text(entry, "route_version") {
        parts.push(format!("route version {version}"));
    }
    let tokens = |name: &str| entry.get("usage").and_then(|usage| number(usage, name));
    for (name, what) in [("prompt_tokens", "in"), ("completion_tokens", "out")] {
        if let Some(count) = tokens(name) {
            parts.push(format!("{count} tokens {what}"));
        }
    }
    if let Some(ms) = number(entry, "audio_ms") {
        parts.push(format!("{} of audio", seconds(ms)));
    }
    if let Some(cost) = amount(entry, "would_have_cost_micro_usd") {
        parts.push(format!("frontier estimate {cost}"));
    }
    if let Some(bytes) = number(entry, "response_bytes").filter(|bytes| *bytes > 0) {
        parts.push(format!("{bytes} bytes"));
    }
    parts.join(", ")
}

fn times(timings: &Value) -> String {
    let mut parts = Vec::new();
    for (name, what) in [
        ("queue_ms", "queue"),
        ("first_byte_ms", "first byte after"),
        ("total_ms", "in all"),
    ] {
        if let Some(ms) = number(timings, name) {
            parts.push(format!("{what} {}", seconds(ms)));
        }
    }
    if let Some(own) = number(timings, "own_us") {
        parts.push(format!("bursar's own {}.{:03} ms", own / 1000, own % 1000));
    }
    parts.join(", ")
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03} s", ms / 1000, ms % 1000)
}

// === impl Facts ===

impl Facts {
    fn add(&mut self, label: &str, fact: &str) {
        // Writing into a string does not fail.
        let _ = writeln!(self.0, "{label:<LABEL$}{}", shown(fact));
    }
}
