//! Which keys there are, and what to say of one that there is not.

use toml::de::DeValue;

use crate::config::errors::{Place, bracketed};

/// Every accepted key, by table; `""` is the top level. A test holds the reader, the shipped
/// `config.toml` and this list together.
pub(crate) const ACCEPTED: &[(&str, &[&str])] = &[
    ("", &["service_name"]),
    (
        "upstream",
        &[
            "base_url",
            "api_key_file",
            "ca_file",
            "connect_timeout_s",
            "read_timeout_s",
            "extra_routes",
        ],
    ),
    (
        "listen",
        &[
            "proxy",
            "admin",
            "anonymous",
            "allow_remote",
            "allowed_hosts",
            "allowed_origins",
            "shutdown_timeout_s",
        ],
    ),
    (
        "retry",
        &["attempts", "base_ms", "cap_ms", "adopt", "adopt_window_s"],
    ),
    (
        "shaping",
        &["in_flight", "per_minute", "queue_max", "queue_wait_s"],
    ),
    (
        "ledger",
        &["state_dir", "durability", "on_failure", "retention_days"],
    ),
    (
        "streams",
        &["on_disconnect", "drain_timeout_s", "agent_receipts"],
    ),
    (
        "caps",
        &[
            "time_zone",
            "hour_micro_usd",
            "day_micro_usd",
            "month_micro_usd",
            "request_floor_micro_usd",
        ],
    ),
    (
        "app",
        &[
            "name",
            "token_file",
            "uids",
            "cap_hour_micro_usd",
            "cap_day_micro_usd",
            "cap_month_micro_usd",
            "request_floor_micro_usd",
            "on_disconnect",
            "agent_receipts",
            "on_clarification",
        ],
    ),
    (
        "reconcile",
        &["poll_eval_runs", "window_days", "spend_field"],
    ),
    ("models", &["aliases"]),
    ("errors", &["add_error_object"]),
    ("log", &["format", "level"]),
];

/// Keys that a later release brings, so that they are not taken for misspelt. `*`: every key.
const LATER: &[(&str, &[&str])] = &[("streams", &["strip_comments"])];

/// What to say of a key that is not accepted.
pub(super) fn refusal(table: &str, key: &str, value: &DeValue<'_>) -> String {
    let is_table = matches!(value, DeValue::Table(_)) || is_list_of_tables(value);
    let full = match (table, value) {
        ("", DeValue::Table(_)) => format!("[{key}]"),
        ("", _) if is_table => format!("[[{key}]]"),
        ("", _) => key.escape_debug().to_string(),
        (table, _) => format!("{} {}", bracketed(table), key.escape_debug()),
    };
    if is_later(table, key) {
        return format!("{full} is not in this release; a later one brings it");
    }
    if table == "upstream" && matches!(key, "api_key" | "key" | "token") {
        return format!(
            "{full} is unknown: the key itself never stands in this file; put it into a file of its own and name that in [upstream] api_key_file"
        );
    }
    let elsewhere = ACCEPTED
        .iter()
        .find(|(other, keys)| *other != table && keys.contains(&key));
    if let Some((other, _)) = elsewhere {
        return match *other {
            "" => format!("{full} is unknown here; {key} stands above all tables"),
            other => {
                let place = bracketed(other);
                format!("{full} is unknown here; {key} belongs to {place}")
            }
        };
    }
    match nearest(table, key, is_table) {
        Some(near) => format!("{full} is unknown; did you mean {near}?"),
        None => format!("{full} is unknown; known here: {}", known(table).join(", ")),
    }
}

/// The key that an unknown one was perhaps meant to be: in its table, or the same in another.
pub(super) fn meant(table: &str, key: &str) -> Option<Place> {
    if table == "upstream" && matches!(key, "api_key" | "key" | "token") {
        return Some(Place::key(table, "api_key_file"));
    }
    let elsewhere = ACCEPTED
        .iter()
        .find(|(other, keys)| *other != table && keys.contains(&key));
    match elsewhere {
        Some((other, _)) => Some(Place::key(other, key)),
        None => nearest(table, key, false).map(|near| Place::key(table, &near)),
    }
}

fn is_later(table: &str, key: &str) -> bool {
    LATER.iter().any(|(later_table, keys)| {
        let whole = *keys == ["*"];
        (table.is_empty() && whole && key == *later_table)
            || (table == *later_table && keys.contains(&key))
    })
}

/// The known key or table that `key` most resembles, when it resembles any.
fn nearest(table: &str, key: &str, is_table: bool) -> Option<String> {
    const RESEMBLES: f64 = 0.8;
    let tables = ACCEPTED
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| table.is_empty() && !name.is_empty())
        .map(|name| (name, bracketed(name)));
    let keys = keys_of(table)
        .iter()
        .filter(|_| !is_table)
        .map(|name| (*name, (*name).to_owned()));
    keys.chain(tables)
        .map(|(name, shown)| (strsim::jaro_winkler(key, name), shown))
        .filter(|(score, _)| *score >= RESEMBLES)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, shown)| shown)
}

fn known(table: &str) -> Vec<String> {
    let tables = ACCEPTED
        .iter()
        .filter(|(name, _)| table.is_empty() && !name.is_empty())
        .map(|(name, _)| bracketed(name));
    keys_of(table)
        .iter()
        .map(|key| (*key).to_owned())
        .chain(tables)
        .collect()
}

fn keys_of(table: &str) -> &'static [&'static str] {
    ACCEPTED
        .iter()
        .find(|(name, _)| *name == table)
        .map_or(&[], |(_, keys)| *keys)
}

fn is_list_of_tables(value: &DeValue<'_>) -> bool {
    value.as_array().is_some_and(|list| {
        list.iter()
            .all(|element| matches!(element.get_ref(), DeValue::Table(_)))
            && list.iter().next().is_some()
    })
}
