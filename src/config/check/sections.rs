//! `[retry]`, `[shaping]`, `[streams]`, `[models]` and `[log]`: tables whose keys stand for themselves.

use std::time::Duration;

use super::Check;
use crate::config::file::{At, LogTable, RetryTable, ShapingTable, StreamsTable};
use crate::config::settings::{
    Adopt, AgentReceipts, Log, LogFormat, LogLevel, OnDisconnect, Retry, Shaping, Streams,
};
use crate::config::value::Aliases;

/// More than this many requests cannot come at once: connections are bounded.
const PLACES_MAX: u64 = 1_000;
const PER_MINUTE_MAX: u64 = 1_000_000;

pub fn retry(check: &mut Check<'_>, file: RetryTable) -> Retry {
    let attempts = check.number("retry", "attempts", file.attempts, 3, 1..=10);
    let cap_place = file.cap_ms.as_ref().map(|given| given.place.clone());
    let base_place = file.base_ms.as_ref().map(|given| given.place.clone());
    let base = check.number("retry", "base_ms", file.base_ms, 500, 1..=60_000);
    let cap = check.number("retry", "cap_ms", file.cap_ms, 8000, 1..=600_000);
    if let Some(place) = cap_place.or(base_place).filter(|_| cap < base) {
        check.refuse(
            &place,
            format!("cap_ms ({cap}) must not be below base_ms ({base})"),
        );
    }
    Retry {
        attempts: u32::try_from(attempts).unwrap_or(1),
        base: Duration::from_millis(base),
        cap: Duration::from_millis(cap),
        adopt: check.word(file.adopt, Adopt::Always, Adopt::ALL, Adopt::as_str),
        adopt_window: check.seconds(
            "retry",
            "adopt_window_s",
            file.adopt_window_s,
            900,
            1..=82_800,
        ),
    }
}

pub fn shaping(check: &mut Check<'_>, file: ShapingTable) -> Shaping {
    let queue_max = check.number("shaping", "queue_max", file.queue_max, 500, 0..=PLACES_MAX);
    Shaping {
        in_flight: ceiling(check, "in_flight", file.in_flight, 8, PLACES_MAX),
        per_minute: ceiling(check, "per_minute", file.per_minute, 120, PER_MINUTE_MAX),
        queue_max: usize::try_from(queue_max).unwrap_or(usize::MAX),
        queue_wait: check.seconds("shaping", "queue_wait_s", file.queue_wait_s, 90, 1..=3600),
    }
}

/// 0 is no limit.
fn ceiling(
    check: &mut Check<'_>,
    key: &str,
    given: Option<At<i64>>,
    default: u64,
    most: u64,
) -> Option<usize> {
    let ceiling = check.number("shaping", key, given, default, 0..=most);
    usize::try_from(ceiling).ok().filter(|limit| *limit > 0)
}

pub fn streams(check: &mut Check<'_>, file: StreamsTable) -> Streams {
    Streams {
        on_disconnect: check.word(
            file.on_disconnect,
            OnDisconnect::Drain,
            OnDisconnect::ALL,
            OnDisconnect::as_str,
        ),
        drain_timeout: check.seconds(
            "streams",
            "drain_timeout_s",
            file.drain_timeout_s,
            120,
            1..=3600,
        ),
        agent_receipts: check.word(
            file.agent_receipts,
            AgentReceipts::Unreported,
            AgentReceipts::ALL,
            AgentReceipts::as_str,
        ),
    }
}

pub fn aliases(check: &mut Check<'_>, given: Vec<(String, At<String>)>) -> Aliases {
    let mut aliases = Aliases::default();
    for (asked, sent) in given {
        if let Err(why) = aliases.add(asked, sent.value) {
            check.refuse(&sent.place, why);
        }
    }
    aliases
}

pub fn log(check: &mut Check<'_>, file: LogTable) -> Log {
    Log {
        format: check.word(
            file.format,
            LogFormat::Text,
            LogFormat::ALL,
            LogFormat::as_str,
        ),
        level: check.word(file.level, LogLevel::Info, LogLevel::ALL, LogLevel::as_str),
    }
}
