//! The last act of a request: one access line and the request's own metrics.
//!
//! Promise: one line a request, with the words that metrics and ledger use; never a key, a secret, or a byte of a
//! prompt or an answer. Of a request's head it has the trace, and of one that the door refuses or answers itself the
//! path, and the host or the origin that it was refused for, as [`quoted`] shows them.

use std::borrow::Cow;
use std::fmt::{self, Display};
use std::net::SocketAddr;
use std::time::Duration;

use http::Method;
use http::header::{HOST, ORIGIN};
use tracing::Level;

use super::door::admit::Admitted;
use super::downstream::Downstream;
use super::downstream::app_head::AppHead;
use super::quoted;
use super::refuse::{Code, Refusal};
use super::settings::Settings;
use super::settle::Measured;
use crate::clock::millis;
use crate::config::OTHER_APP;
use crate::ledger::entry::{EntryId, State};
use crate::protocol::browser::SEC_FETCH_SITE;
use crate::protocol::trace::TraceId;
use crate::proxy::gateway::Gateway;
use crate::screen::shown;
use crate::telemetry::ACCESS;
use crate::telemetry::metrics::{RequestTimes, TimedAs};

/// What is known of a request when it ends.
#[derive(Clone, Debug)]
pub struct Report<'a> {
    /// `None` where the door refused it, or answered it.
    pub admitted: Option<&'a Admitted>,
    /// The model that was asked for.
    pub model: Option<&'a str>,
    pub entry: EntryId,
    pub adopted: Option<EntryId>,
    pub stream: bool,
    pub status: u16,
    /// The code, where bursar answered by itself.
    pub code: Option<Code>,
    /// What bursar said then, where it is more than the code's own text.
    pub why: Option<&'a str>,
    pub attempts: usize,
    pub state: Option<State>,
    pub measured: Measured,
    /// What the service said when it last refused an attempt.
    pub detail: Option<&'a str>,
    /// Why the service was not reached.
    pub cause: Option<&'a str>,
}

/// Where a request came from.
enum CameFrom {
    Address(SocketAddr),
    User(u32),
}

/// What a request asked for that has no route: the door refused it, or answered it. Host and origin as far as they are
/// what it was refused for.
#[derive(Default)]
struct HeadParts {
    host: Option<String>,
    origin: Option<String>,
    /// Of a page without an origin: `cross-site`, `same-site`.
    site: Option<String>,
    path: Option<String>,
    /// The line of the configuration that lets its page in.
    remedy: Option<String>,
}

/// Logs and counts one request.
pub fn report(gateway: &Gateway, downstream: &Downstream, report: &Report<'_>) {
    let app = report.admitted.map(|admitted| &*admitted.caller.app.name);
    let route = report.admitted.map(|admitted| &admitted.route);
    let measured = report.measured;
    let metrics = &gateway.metrics;
    if let Some(code) = report.code {
        metrics.refusal(app.unwrap_or(OTHER_APP), code.as_str());
    }
    if let Some(route) = route {
        let of = TimedAs {
            lane: route.lane,
            operation: route.operation,
            stream: report.stream,
        };
        let times = RequestTimes {
            total: measured.total,
            first_byte: measured.first_byte,
            own: measured.own,
        };
        metrics.request(app.unwrap_or(OTHER_APP), of, report.status, &times);
    }
    let head = downstream.request();
    let parts = match (head, route) {
        (Some(head), None) => HeadParts::of(head, report.code, &gateway.settings.load()),
        _ => HeadParts::default(),
    };
    // A level is part of what a line is made from.
    macro_rules! line {
        ($level:expr) => {
            tracing::event!(
                target: ACCESS,
                $level,
                entry = display(report.entry.0),
                adopted = report.adopted.map(|id| display(id.0)),
                trace_id = head.and_then(|head| TraceId::of(&head.headers)).map(display),
                peer = CameFrom::of(downstream).map(display),
                app,
                method = head.and_then(|head| known_method(&head.method)),
                route = report.admitted.map(pattern),
                host = parts.host,
                origin = parts.origin,
                site = parts.site,
                path = parts.path,
                remedy = parts.remedy,
                lane = route.map(|route| route.lane.as_str()),
                operation = route.map(|route| route.operation.as_str()),
                model = report.model.map(shown).as_deref(),
                stream = report.stream,
                status = report.status,
                code = report.code.map(Code::as_str),
                why = report.why,
                detail = report.detail,
                attempts = report.attempts,
                state = report.state.map(|state| state.word().as_str()),
                billed_micro_usd = report.state.and_then(State::billed).map(|billed| billed.get()),
                total_ms = millis(measured.total),
                queue_ms = millis(measured.queue),
                first_byte_ms = measured.first_byte.map(millis),
                own_us = micros(measured.own),
                // Last: it is many words, in no quotes.
                cause = report.cause.map(display),
                "request"
            )
        };
    }
    match report.status {
        500.. => line!(Level::WARN),
        _ => line!(Level::INFO),
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

// === impl Report ===

impl<'a> Report<'a> {
    pub fn new(entry: EntryId) -> Self {
        Self {
            admitted: None,
            model: None,
            entry,
            adopted: None,
            stream: false,
            status: 0,
            code: None,
            why: None,
            attempts: 0,
            state: None,
            measured: Measured::default(),
            detail: None,
            cause: None,
        }
    }

    /// Of a request that was refused before it was sent.
    pub fn of_refusal(refusal: &'a Refusal, entry: EntryId) -> Self {
        Self {
            status: refusal.status().as_u16(),
            code: Some(refusal.code),
            why: match &refusal.detail {
                Cow::Owned(words) => Some(words),
                Cow::Borrowed(_) => None,
            },
            measured: Measured {
                queue: refusal.queued.unwrap_or_default(),
                ..Measured::default()
            },
            ..Self::new(entry)
        }
    }
}

// === impl CameFrom ===

impl CameFrom {
    fn of(downstream: &Downstream) -> Option<Self> {
        let address = downstream.address().map(Self::Address);
        address.or_else(|| downstream.user().map(Self::User))
    }
}

impl Display for CameFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => write!(f, "{address}"),
            Self::User(user) => write!(f, "uid:{user}"),
        }
    }
}

// === impl HeadParts ===

impl HeadParts {
    fn of(head: &AppHead, code: Option<Code>, settings: &Settings) -> Self {
        let key = &settings.key;
        let header = |name, is_asked: bool| {
            let value = head.headers.get(name).filter(|_| is_asked)?;
            Some(quoted::part(key, value.as_bytes()))
        };
        let is_of_a_page = matches!(
            code,
            Some(Code::OriginRefused | Code::SiteRefused | Code::PreflightRefused)
        );
        let origin = header(&ORIGIN, is_of_a_page);
        let remedy = origin.as_deref().and_then(|origin| {
            let config = &settings.config.listen;
            config.line_that_allows(origin)
        });
        Self {
            host: header(&HOST, code == Some(Code::HostRefused)),
            origin,
            remedy,
            site: header(&SEC_FETCH_SITE, is_of_a_page),
            path: path(&head.raw).map(|path| quoted::part(key, path)),
        }
    }
}

/// Any other word is a text of the app's.
fn known_method(method: &Method) -> Option<&str> {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
        Method::CONNECT,
    ];
    known.contains(method).then(|| method.as_str())
}

/// A route beyond the interface is one path.
fn pattern(admitted: &Admitted) -> &str {
    match admitted.route.pattern {
        "" => admitted.target.split('?').next().unwrap_or_default(),
        pattern => pattern,
    }
}

/// The path of a request line, whatever form it has. A query is not the path's, nor is a fragment, and a user with a
/// password before a host is nobody's to read.
fn path(raw_head: &[u8]) -> Option<&[u8]> {
    let line = raw_head.split(|byte| *byte == b'\r').next()?;
    let target = line.split(|byte| *byte == b' ').nth(1)?;
    let path = target.split(|byte| matches!(byte, b'?' | b'#')).next()?;
    match path.first() {
        Some(b'/') => Some(path),
        _ => path.rsplit(|byte| *byte == b'@').next(),
    }
}
