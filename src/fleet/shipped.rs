//! What of a journal's line leaves the machine.
//!
//! Why: a line also holds what an app says of its users and what the service said of a request. Members are listed,
//! not struck out, so that a member that a later bursar adds stays here until it is listed.
//!
//! Promise: no user, tag or session, no app's own key, no words of the service, no fingerprint and no run of a
//! person's command, unless `ship_people` is set. The same line gives the same text.

use serde_json::{Map, Value};

/// Members of a line that are shipped as they stand.
const LISTED: [&str; 29] = [
    "seq",
    "kind",
    "id",
    "at_ms",
    "started_ms",
    "app",
    "lane",
    "operation",
    "model",
    "stream",
    "spoken",
    "request_bytes",
    "response_bytes",
    "reserved_micro_usd",
    "state",
    "was",
    "adds_micro_usd",
    "anomalies",
    "receipt",
    "served_by",
    "broken_billed",
    "usage",
    "audio_ms",
    "request_id",
    "run_id",
    "leases",
    "drained",
    "row",
    "timings",
];

/// The text that is shipped of a line. `None`: it is no line of a journal.
pub fn shipped(line: &[u8], ship_people: bool) -> Option<String> {
    let Ok(Value::Object(members)) = serde_json::from_slice(line) else {
        return None;
    };
    let mut text = Map::new();
    for (name, mut value) in members {
        let is_shipped = match name.as_str() {
            // The checksum is that of the whole line.
            "crc" => false,
            "key" => ship_people || minted(&mut value),
            _ => ship_people || LISTED.contains(&name.as_str()),
        };
        if is_shipped {
            storable(&mut value);
            text.insert(name, value);
        }
    }
    serde_json::to_string(&text).ok()
}

/// Leaves of a key what bursar made itself. `false`: the app chose it.
fn minted(key: &mut Value) -> bool {
    let Value::Object(members) = key else {
        return false;
    };
    if members.get("origin").is_none_or(|origin| origin == "app") {
        return false;
    }
    members.retain(|name, _| name == "value" || name == "origin");
    true
}

/// PostgreSQL takes no NUL in a text, nor in a JSON string.
fn storable(value: &mut Value) {
    match value {
        Value::String(text) if text.contains('\0') => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(values) => values.iter_mut().for_each(storable),
        Value::Object(members) => {
            let taken = std::mem::take(members);
            members.extend(taken.into_iter().map(|(name, mut value)| {
                storable(&mut value);
                (name.replace('\0', "\u{fffd}"), value)
            }));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
