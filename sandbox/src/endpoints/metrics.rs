//! The five metrics documents of an endpoint, computed from what it served.
//!
//! Interface: "Each accepts arbitrary query parameters"; "Response shapes, query parameter names …: not
//! shown". Assumed (endpoint-metrics): the shapes here; `window`, `from` and `to` are understood, and the
//! answer contains the window that was used.
//! Promise: a number without anything counted is `null`, never 0 by default; sums are over whole hours,
//! the first and last counted whole, and states are to the millisecond.

use super::{
    record::Endpoint,
    traffic::{EndpointHour, Traffic},
};
use crate::{
    error::ServiceError,
    rollup::{
        hours::{HOURS_KEPT, hour_of, start_of},
        times::percentiles_ms,
    },
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const WINDOW_DEFAULT_S: i64 = 24 * 3_600;
/// No longer than what is kept.
const WINDOW_MAX_S: i64 = HOURS_KEPT * 3_600;

/// What is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    pub from: Timestamp,
    pub to: Timestamp,
}

/// One of the five.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Performance,
    Uptime,
    Cost,
    Quality,
    Activity,
}

// === impl Metric ===

impl Metric {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "performance" => Some(Self::Performance),
            "uptime" => Some(Self::Uptime),
            "cost" => Some(Self::Cost),
            "quality" => Some(Self::Quality),
            "activity" => Some(Self::Activity),
            _ => None,
        }
    }

    /// The document.
    pub fn document(
        self,
        endpoint: &Endpoint,
        traffic: &Traffic,
        window: Window,
        now: Timestamp,
    ) -> Value {
        let seen = WindowTraffic::of(traffic, window);
        let members = match self {
            Self::Performance => seen.performance(),
            Self::Uptime => uptime(endpoint, window, now),
            Self::Cost => seen.cost(),
            Self::Quality => seen.quality(),
            Self::Activity => seen.activity(),
        };
        let mut document = Map::new();
        document.insert("endpoint_id".to_owned(), json!(endpoint.name));
        document.insert("from".to_owned(), json!(window.from.to_string()));
        document.insert("to".to_owned(), json!(window.to.to_string()));
        if let Value::Object(members) = members {
            document.extend(members);
        }
        Value::Object(document)
    }
}

// === impl Window ===

impl Window {
    /// Reads `window` (`90s`, `15m`, `24h`, `7d`, or bare seconds), `from` and `to` (RFC 3339 or Unix
    /// seconds). What cannot be read is refused by its name, for another window would pass for the wanted one;
    /// `to` is never in the future.
    pub fn read(query: &str, now: Timestamp) -> Result<Self, ServiceError> {
        let given = |wanted: &str| {
            query
                .split('&')
                .filter_map(|pair| pair.split_once('='))
                .find(|(name, _)| *name == wanted)
                .map(|(_, value)| {
                    let colons = value.replace("%3A", ":").replace("%3a", ":");
                    colons.replace("%2B", "+").replace("%2b", "+")
                })
        };
        let wrong = |name: &str, wanted: &str| {
            ServiceError::invalid(format!("{name} must be {wanted}")).assumed("endpoint-metrics")
        };
        let instant = |name| match given(name) {
            None => Ok(None),
            Some(text) => instant(&text)
                .map(Some)
                .ok_or_else(|| wrong(name, "an RFC 3339 time or Unix seconds")),
        };
        let to = instant("to")?.map_or(now, |to| to.min(now));
        let length_s = match given("window") {
            None => WINDOW_DEFAULT_S,
            Some(text) => seconds(&text)
                .filter(|seconds| *seconds > 0)
                .ok_or_else(|| wrong("window", "a length of time such as 90s, 15m, 24h or 7d"))?
                .min(WINDOW_MAX_S),
        };
        let back = |length_s| {
            to.checked_sub(SignedDuration::from_secs(length_s))
                .unwrap_or(Timestamp::MIN)
        };
        let from = instant("from")?.unwrap_or_else(|| back(length_s));
        let from = from.clamp(back(WINDOW_MAX_S).min(to), to);
        Ok(Self { from, to })
    }
}

fn instant(text: &str) -> Option<Timestamp> {
    match text.parse::<i64>() {
        Ok(seconds) => Timestamp::from_second(seconds).ok(),
        Err(_) => text.parse().ok(),
    }
}

fn seconds(text: &str) -> Option<i64> {
    let (digits, unit) = match text.strip_suffix(['s', 'm', 'h', 'd']) {
        Some(digits) => (digits, text.chars().last()?),
        None => (text, 's'),
    };
    let unit_s = match unit {
        'd' => 86_400,
        'h' => 3_600,
        'm' => 60,
        _ => 1,
    };
    digits.parse::<i64>().ok()?.checked_mul(unit_s)
}

/// Interface: `uptime` (availability). Assumed (endpoint-metrics): the share of the time it was meant to
/// serve; time it was stopped on purpose does not count against it.
fn uptime(endpoint: &Endpoint, window: Window, now: Timestamp) -> Value {
    let spans = endpoint.spans(window.from, window.to);
    let wanted_s = spans.live_s + spans.starting_s;
    json!({
        "status": endpoint.status(now).as_str(),
        "availability": (wanted_s > 0.0).then(|| spans.live_s / wanted_s),
        "live_s": spans.live_s,
        "starting_s": spans.starting_s,
        "stopped_s": spans.stopped_s,
    })
}

/// Sets a member of an object.
pub fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}

/// The hours of a window, and their sum.
struct WindowTraffic<'a> {
    hours: Vec<(i64, &'a EndpointHour)>,
    sum: EndpointHour,
}

// === impl WindowTraffic ===

impl<'a> WindowTraffic<'a> {
    fn of(traffic: &'a Traffic, window: Window) -> Self {
        let hours: Vec<_> = traffic
            .hours()
            .between(hour_of(window.from), hour_of(window.to))
            .collect();
        let mut sum = EndpointHour::default();
        hours.iter().for_each(|(_, hour)| sum += *hour);
        Self { hours, sum }
    }

    /// Interface: `performance` (p50/p95/p99 latency); to the head of an answer, failures left out.
    fn performance(&self) -> Value {
        let latencies = |hours: &[(i64, &EndpointHour)]| {
            let times = hours.iter().map(|(_, hour)| &hour.times);
            let [p50, p95, p99] = percentiles_ms(times, [50, 95, 99]);
            json!({"p50_ms": p50, "p95_ms": p95, "p99_ms": p99})
        };
        let mut document = latencies(&self.hours);
        put(&mut document, "requests", json!(self.sum.served));
        let hourly = self.hourly(|hour| {
            let mut one = latencies(&[(0, hour)]);
            put(&mut one, "requests", json!(hour.served));
            one
        });
        put(&mut document, "hourly", hourly);
        document
    }

    /// Interface: `cost` (per-endpoint spend and savings versus a frontier baseline; not the account balance).
    fn cost(&self) -> Value {
        let amounts = |hour: &EndpointHour| {
            json!({
                "requests": hour.served,
                "spend_micro_usd": hour.billed,
                "frontier_baseline_micro_usd": hour.baseline,
                "savings_micro_usd": hour.baseline.checked_sub(hour.billed),
            })
        };
        let mut document = amounts(&self.sum);
        put(&mut document, "daily", self.daily(amounts));
        document
    }

    /// Interface: `quality` (judge-window scores).
    fn quality(&self) -> Value {
        let scores = |hour: &EndpointHour| json!({"score": hour.score(), "judged": hour.judged});
        let mut document = scores(&self.sum);
        put(&mut document, "hourly", self.hourly(scores));
        document
    }

    /// Interface: `activity` (usage stats).
    fn activity(&self) -> Value {
        let usage = |hour: &EndpointHour| {
            json!({
                "requests": hour.requests(),
                "succeeded": hour.served,
                "errors": hour.failed(),
                "prompt_tokens": hour.prompt_tokens,
                "completion_tokens": hour.completion_tokens,
                "total_tokens": hour.prompt_tokens.saturating_add(hour.completion_tokens),
            })
        };
        let mut document = usage(&self.sum);
        put(&mut document, "errors_by_status", json!(self.sum.errors));
        put(&mut document, "hourly", self.hourly(usage));
        put(&mut document, "daily", self.daily(usage));
        document
    }

    /// Hours that saw a request, each with its begin.
    fn hourly(&self, show: impl Fn(&EndpointHour) -> Value) -> Value {
        let hours = self.hours.iter().map(|(at, hour)| {
            let mut one = show(hour);
            put(
                &mut one,
                "hour",
                json!(start_of(*at).map(|at| at.to_string())),
            );
            one
        });
        hours.collect()
    }

    /// The same by days (UTC).
    fn daily(&self, show: impl Fn(&EndpointHour) -> Value) -> Value {
        let mut days: BTreeMap<i64, EndpointHour> = BTreeMap::new();
        for (at, hour) in &self.hours {
            *days.entry(at.div_euclid(24)).or_default() += *hour;
        }
        let days = days.iter().map(|(day, sum)| {
            let begin = start_of(day * 24);
            let mut one = show(sum);
            let date = begin.map(|begin| begin.to_zoned(TimeZone::UTC).date().to_string());
            put(&mut one, "day", json!(date));
            one
        });
        days.collect()
    }
}

#[cfg(test)]
mod tests;
