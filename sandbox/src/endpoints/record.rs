//! One endpoint: what was deployed, and its state at every instant.
//!
//! A warm-up is written as a change in the future, so no timer has to fire for an endpoint to become live,
//! and a restart in the middle of it changes nothing.
//! Promise: the state is a function of the record and the time; real model ids are in neither.

use crate::money::MicroUsd;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// Changes kept of one endpoint; older ones are forgotten with the time before them.
const CHANGES_MAX: usize = 1_000;

/// Interface, Endpoint, `status`: "`live`, `starting`, `stopped`, and others".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndpointStatus {
    /// Assumed (deploy-stages): the other one, until the deploy's `complete`.
    Deploying,
    Starting,
    Live,
    Stopped,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Endpoint {
    /// Of this deploy: a later endpoint of the same name has another one.
    pub uid: String,
    pub org: String,
    pub name: String,
    /// The public alias.
    pub model: String,
    pub task: String,
    pub created_s: i64,
    /// The deploy's extra fields, checked, as received.
    pub extras: Map<String, Value>,
    /// Oldest first; the last may lie ahead. Empty while the deploy runs.
    changes: VecDeque<StatusChange>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StatusChange {
    at_ms: i64,
    status: EndpointStatus,
}

/// How long an endpoint was in each state, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spans {
    pub live_s: f64,
    pub starting_s: f64,
    pub stopped_s: f64,
}

// === impl EndpointStatus ===

impl EndpointStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deploying => "deploying",
            Self::Starting => "starting",
            Self::Live => "live",
            Self::Stopped => "stopped",
        }
    }
}

// === impl Endpoint ===

impl Endpoint {
    /// An endpoint whose deploy has begun.
    pub fn deploying(uid: String, org: &str, name: String, task: &str, at: Timestamp) -> Self {
        Self {
            uid,
            org: org.to_owned(),
            name,
            model: String::new(),
            task: task.to_owned(),
            created_s: at.as_second(),
            extras: Map::new(),
            changes: VecDeque::new(),
        }
    }

    pub fn status(&self, now: Timestamp) -> EndpointStatus {
        let now_ms = now.as_millisecond();
        let reached = self
            .changes
            .iter()
            .rev()
            .find(|change| change.at_ms <= now_ms);
        // If the clock is before the first change, it was set back: the first state holds.
        reached
            .or(self.changes.front())
            .map_or(EndpointStatus::Deploying, |change| change.status)
    }

    /// The deploy succeeded.
    #[must_use]
    pub fn into_live(self, now: Timestamp) -> Self {
        self.turned(now.as_millisecond(), EndpointStatus::Live)
    }

    /// Interface: `stopped` to `live`, after a warm-up. `None` when that changes nothing.
    pub fn started(&self, now: Timestamp, warm_up_ms: u64) -> Option<Self> {
        if self.status(now) != EndpointStatus::Stopped {
            return None;
        }
        let now_ms = now.as_millisecond();
        let warm_up_ms = i64::try_from(warm_up_ms).unwrap_or(i64::MAX);
        let starting = self.clone().turned(now_ms, EndpointStatus::Starting);
        Some(starting.turned(now_ms.saturating_add(warm_up_ms), EndpointStatus::Live))
    }

    /// Interface: `live` to `stopped`. Assumed (endpoint-transitions): a stop also ends a warm-up.
    /// `None` when that changes nothing.
    pub fn stopped(&self, now: Timestamp) -> Option<Self> {
        let status = self.status(now);
        if !matches!(status, EndpointStatus::Live | EndpointStatus::Starting) {
            return None;
        }
        let now_ms = now.as_millisecond();
        let mut reached = self.clone();
        reached.changes.retain(|change| change.at_ms <= now_ms);
        Some(reached.turned(now_ms, EndpointStatus::Stopped))
    }

    /// Whole seconds until it is live, at least one; `None` when it is not starting.
    pub fn warm_in_s(&self, now: Timestamp) -> Option<u32> {
        if self.status(now) != EndpointStatus::Starting {
            return None;
        }
        let left_ms = self
            .changes
            .back()?
            .at_ms
            .saturating_sub(now.as_millisecond());
        let left_s = u64::try_from(left_ms).unwrap_or(0).div_ceil(1_000).max(1);
        Some(u32::try_from(left_s).unwrap_or(u32::MAX))
    }

    /// The time from `from` to `to` by state; before the first change there was none.
    pub fn spans(&self, from: Timestamp, to: Timestamp) -> Spans {
        let (from_ms, to_ms) = (from.as_millisecond(), to.as_millisecond());
        let mut spans = Spans::default();
        for (at, change) in self.changes.iter().enumerate() {
            let begins = change.at_ms.max(from_ms);
            let next = self.changes.get(at + 1).map_or(to_ms, |next| next.at_ms);
            let ends = next.min(to_ms);
            let seconds = ends.saturating_sub(begins).max(0) as f64 / 1_000.0;
            match change.status {
                EndpointStatus::Live => spans.live_s += seconds,
                EndpointStatus::Starting => spans.starting_s += seconds,
                EndpointStatus::Stopped => spans.stopped_s += seconds,
                EndpointStatus::Deploying => {}
            }
        }
        spans
    }

    pub fn cost_per_request(&self) -> Option<MicroUsd> {
        self.amount("cost_per_request_micro_usd")
    }

    pub fn frontier_cost_per_request(&self) -> Option<MicroUsd> {
        self.amount("frontier_cost_per_request_micro_usd")
    }

    /// Interface, Resources, Endpoint; further members are Assumed (endpoint-record).
    ///
    /// `base` is the address the service was reached at, as in `http://127.0.0.1:8329`.
    pub fn view(&self, now: Timestamp, base: &str) -> Value {
        let mut view = self.extras.clone();
        let own = [
            ("id", json!(self.name)),
            ("name", json!(self.name)),
            ("model", json!(self.model)),
            ("status", json!(self.status(now).as_str())),
            ("task", json!(self.task)),
            ("url", json!(format!("{base}/v1/endpoints/{}", self.name))),
            ("created", json!(self.created_s)),
        ];
        view.extend(own.map(|(name, value)| (name.to_owned(), value)));
        view.entry("region").or_insert(json!("local"));
        if let Some(seconds) = self.warm_in_s(now) {
            view.insert("warm_in_s".to_owned(), json!(seconds));
        }
        Value::Object(view)
    }

    fn amount(&self, name: &str) -> Option<MicroUsd> {
        self.extras
            .get(name)
            .and_then(Value::as_u64)
            .and_then(MicroUsd::new)
    }

    /// With one more change.
    fn turned(mut self, at_ms: i64, status: EndpointStatus) -> Self {
        self.changes.push_back(StatusChange { at_ms, status });
        if self.changes.len() > CHANGES_MAX {
            self.changes.pop_front();
        }
        self
    }
}

#[cfg(test)]
mod tests;
