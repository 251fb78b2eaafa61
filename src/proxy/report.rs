//! The last act of a request: one access line and the request's own metrics.
//!
//! Promise: one line a request, with the words that metrics and ledger use; never a key, a header
//! value of the app, or a byte of a body.

use std::time::Duration;

use super::door::admit::Admitted;
use super::refuse::{Code, Refusal};
use super::settle::Measured;
use crate::clock::millis;
use crate::config::OTHER_APP;
use crate::ledger::entry::{EntryId, State};
use crate::protocol::routes::Route;
use crate::proxy::gateway::Gateway;
use crate::telemetry::ACCESS;
use crate::telemetry::metrics::{RequestTimes, TimedAs};

/// What is known of a request when it ends.
#[derive(Clone, Debug, Default)]
pub struct Report<'a> {
    /// `None` where the door refused before it asked whose request it is.
    pub app: Option<&'a str>,
    /// `None` where the door refused before a route was found.
    pub route: Option<&'a Route>,
    pub entry: Option<EntryId>,
    pub adopted: Option<EntryId>,
    pub stream: bool,
    pub status: u16,
    /// The code, where bursar answered by itself.
    pub code: Option<Code>,
    pub attempts: usize,
    pub state: Option<State>,
    pub measured: Measured,
}

/// Logs and counts one request.
pub fn report(gateway: &Gateway, report: &Report<'_>) {
    let metrics = &gateway.metrics;
    if let Some(code) = report.code {
        metrics.refusal(report.app.unwrap_or(OTHER_APP), code.as_str());
    }
    if let Some(route) = report.route {
        let of = TimedAs {
            lane: route.lane,
            operation: route.operation,
            stream: report.stream,
        };
        let times = RequestTimes {
            total: report.measured.total,
            first_byte: report.measured.first_byte,
            own: report.measured.own,
        };
        metrics.request(report.app.unwrap_or(OTHER_APP), of, report.status, &times);
    }
    tracing::info!(
        target: ACCESS,
        entry = report.entry.map(|id| tracing::field::display(id.0)),
        adopted = report.adopted.map(|id| tracing::field::display(id.0)),
        app = report.app,
        lane = report.route.map(|route| route.lane.as_str()),
        operation = report.route.map(|route| route.operation.as_str()),
        stream = report.stream,
        status = report.status,
        code = report.code.map(Code::as_str),
        attempts = report.attempts,
        state = report.state.map(|state| state.word().as_str()),
        billed_micro_usd = report.state.and_then(State::billed).map(|billed| billed.get()),
        total_ms = millis(report.measured.total),
        queue_ms = millis(report.measured.queue),
        first_byte_ms = report.measured.first_byte.map(millis),
        own_us = micros(report.measured.own),
        "request"
    );
}

/// Reports a request that was refused before it was sent, after `total`.
pub fn report_refusal(
    gateway: &Gateway,
    refusal: &Refusal,
    admitted: Option<&Admitted>,
    entry: EntryId,
    total: Duration,
) {
    let refused = Report {
        app: admitted.map(|admitted| &*admitted.caller.app.name),
        route: admitted.map(|admitted| &admitted.route),
        entry: Some(entry),
        status: refusal.status().as_u16(),
        code: Some(refusal.code),
        measured: Measured {
            total,
            queue: refusal.queued.unwrap_or_default(),
            ..Measured::default()
        },
        ..Report::default()
    };
    report(gateway, &refused);
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
