//! The door: which requests may come in, decided on the exact bytes that came. Checks go from cheap to costly
//! and stop at the first that fails.
//!
//! The order: framing of the head, request line, Host, Origin and Sec-Fetch-Site, preflight, local
//! answers, whether it has been here, the app's token, route and method, content type, body length, headers that rules depend
//! on.
//!
//! Promise: no web page can spend, no path trick reaches another upstream route, and what is
//! forwarded is rebuilt from what was judged here.

mod body;
mod caller;
pub mod head;
mod marks;
mod single;
pub mod slips;
mod web;

use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, EXPECT};
use http::{HeaderMap, HeaderValue, Method, Version};

pub use self::body::{BODY_BYTES_MAX, form_type};
use self::head::{Framing, RequestLine};
use self::single::single_value;
pub use self::web::{AllowedOrigin, LocalAnswer, refusal_reader};
use crate::apps::{Apps, Caller};
use crate::config::ModelList;
use crate::ledger::marks::{Marks, Session};
use crate::ledger::{FingerprintParts, GivenAs};
use crate::protocol::names::{
    IDEMPOTENCY_KEY, X_STAINLESS_READ_TIMEOUT, X_STAINLESS_RETRY_COUNT, X_STAINLESS_TIMEOUT,
};
use crate::protocol::routes::{BodyForm, Lookup, Route};
use crate::protocol::{Dialect, Operation};
use crate::proxy::door::spoken;
use crate::proxy::downstream::Downstream;
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settings::Settings;

/// A request that passed the door.
#[derive(Debug)]
pub struct Admitted {
    /// The app that spends.
    pub caller: Caller,
    pub route: Route,
    /// What the app is answered in.
    pub dialect: Dialect,
    pub method: Method,
    /// Path and query at the service: byte for byte as they came, but of a translated route.
    pub target: String,
    /// The app's own Idempotency-Key.
    pub own_key: Option<String>,
    /// `X-Service-Session` as it is sent: the app's own, and where it has none, on the agent lane, one made of the
    /// session that it names elsewhere.
    pub session: Option<HeaderValue>,
    /// What the app says of it for its own accounts.
    pub marks: Option<Arc<Marks>>,
    pub rte_query: Option<HeaderValue>,
    /// How long the app said it will wait for an answer.
    pub patience: Option<Duration>,
    /// `x-stainless-retry-count` of at least 1: the app says that this is a retry.
    pub marked_retry: bool,
    /// `None` for a chunked body.
    pub content_length: Option<u64>,
    pub expects_continue: bool,
    pub origin: Option<AllowedOrigin>,
    /// Ids of the bursars that it has passed, this one at the end, as their header has them.
    pub hops: HeaderValue,
}

/// What the door decided.
#[derive(Debug)]
pub enum Inbound {
    Relay(Box<Admitted>),
    /// `/`, `/favicon.ico`, and preflights of listed origins are answered here.
    Local(LocalAnswer),
}

// === impl Admitted ===

impl Admitted {
    /// The app's session that it belongs to, wherever the app named it.
    pub fn app_session(&self) -> Option<Session> {
        self.marks.as_ref()?.session
    }

    /// What makes it this request, but for its body.
    pub fn without_body(&self) -> FingerprintParts<'_> {
        FingerprintParts {
            method: self.method.as_str(),
            path_and_query: &self.target,
            body: &[],
            session: self.session.as_ref().map(HeaderValue::as_bytes),
            rte_query: self.rte_query.as_ref().map(HeaderValue::as_bytes),
            given_as: GivenAs::Served,
        }
    }
}

/// Judges one request head, at the monotonic time `now`.
pub fn admit(
    settings: &Settings,
    apps: &Apps,
    downstream: &Downstream,
    now: Duration,
) -> Result<Inbound, Refusal> {
    let header = downstream.head();
    let framing = Framing::read(&header.raw, header.version)
        .map_err(|refusal| slips::of_framing(refusal, header, downstream))?;
    let line = RequestLine::read(&header.raw)?;
    web::check_host(header, &settings.config.listen.allowed_hosts)?;
    let origin = web::check_origin(&header.headers, &settings.config.listen.allowed_origins)?;
    if header.method == Method::OPTIONS {
        check_bodyless(&header.method, framing)?;
        return web::preflight(&header.headers, origin).map(Inbound::Local);
    }
    let path = line.path();
    if matches!(header.method, Method::GET | Method::HEAD) {
        let answer = match path {
            "/" => Some(LocalAnswer::Greeting),
            "/favicon.ico" => Some(LocalAnswer::NoContent),
            _ => None,
        };
        if let Some(answer) = answer {
            check_bodyless(&header.method, framing)?;
            return Ok(Inbound::Local(answer));
        }
    }
    // A request of bursar's own bears the organization's key, and no app's token.
    let hops = settings.hops.of(&header.headers)?;
    let caller = caller::of(apps, &header.headers, downstream.user(), now)?;
    let route = find_route(settings, &header.method, path)
        .map_err(|refusal| slips::of_path(refusal, settings, &header.method, path, downstream))?;
    check_bodyless(&header.method, framing)?;
    check_content_type(&header.headers, route.body, framing.has_body())
        .map_err(|refusal| slips::of_form(refusal, &route, &header.headers, downstream))?;
    check_content_coding(&header.headers, framing)
        .map_err(|refusal| slips::of_coding(refusal, &header.headers))?;
    if framing.content_length > BODY_BYTES_MAX {
        // "request body over 30 MB; not to be retried"
        return Err(slips::too_large(&route, &header.headers));
    }
    let dialect = spoken::on(settings, &route, &header.headers);
    let own_session = single_value(&header.headers, &settings.names.session)?;
    let marks = marks::of(settings, &caller.app, &header.headers, own_session.as_ref())?;
    Ok(Inbound::Relay(Box::new(Admitted {
        caller,
        own_key: own_key(&header.headers)?,
        session: own_session.or_else(|| marks::session_sent(&route, &marks)),
        marks: marks.into_shared(),
        rte_query: single_value(&header.headers, &settings.names.rte_query)?,
        patience: patience(&header.headers),
        marked_retry: is_marked_retry(&header.headers),
        content_length: (!framing.chunked).then_some(framing.content_length),
        expects_continue: expects_continue(header),
        method: match is_made_over(settings, &route, dialect) {
            // A list that something is made of has to be there, also for a HEAD.
            true => route.method.clone(),
            false => header.method.clone(),
        },
        target: match route.translation {
            Some(translation) => translation.to.to_owned(),
            // Pages of a list are Anthropic's.
            None if dialect != route.dialect() => path.to_owned(),
            None => line.target,
        },
        route,
        dialect,
        origin,
        hops,
    })))
}

/// Whether the app is given something that is made of the answer.
fn is_made_over(settings: &Settings, route: &Route, dialect: Dialect) -> bool {
    route.translation.is_some()
        || route.operation == Operation::Models
            && (dialect != route.dialect() || settings.config.models.list == ModelList::Aliases)
}

fn find_route(settings: &Settings, method: &Method, path: &str) -> Result<Route, Refusal> {
    let relayed = [Method::GET, Method::HEAD, Method::POST, Method::DELETE];
    match settings.table.look_up(method, path) {
        Lookup::Found(route) => Ok(route.clone()),
        Lookup::OtherMethods(methods) => {
            let names: Vec<&str> = methods.iter().map(Method::as_str).collect();
            Err(Refusal {
                allow: Some(names.join(", ")),
                ..Refusal::new(Code::MethodRefused)
            })
        }
        Lookup::Unknown if !relayed.contains(method) => Err(Code::MethodRefused.into()),
        Lookup::Unknown => Err(Code::RouteUnknown.into()),
    }
}

/// What reads has no body, neither for the service nor for a local answer: one reader of two would
/// take it for the next request.
fn check_bodyless(method: &Method, framing: Framing) -> Result<(), Refusal> {
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if reads && framing.has_body() {
        return Err(Refusal {
            detail: "A request that reads (GET, HEAD, OPTIONS) has no body.".into(),
            ..Refusal::new(Code::ContentTypeRefused)
        });
    }
    Ok(())
}

/// A body in a coding says to the service what bursar cannot see: its model, its wish for a stream.
///
/// Assumed: the interface's bodies are plain; it does not speak of codings.
fn check_content_coding(headers: &HeaderMap, framing: Framing) -> Result<(), Refusal> {
    let plain = headers
        .get_all(CONTENT_ENCODING)
        .iter()
        .all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity"));
    if plain || !framing.has_body() {
        return Ok(());
    }
    Err(Refusal {
        detail: "Request bodies are relayed as they are: send them without Content-Encoding."
            .into(),
        ..Refusal::new(Code::ContentCodingRefused)
    })
}

/// A page can send forms, plain text and typeless bodies without a preflight, so JSON routes take
/// JSON and nothing else.
fn check_content_type(headers: &HeaderMap, form: BodyForm, has_body: bool) -> Result<(), Refusal> {
    let mut values = headers.get_all(CONTENT_TYPE).iter();
    let media_type = values
        .next()
        .and_then(|value| value.to_str().ok())
        .map(|value| value.split(';').next().unwrap_or(value).trim());
    if values.next().is_some() {
        return Err(Refusal::because(
            Code::ContentTypeRefused,
            "There is more than one Content-Type.",
        ));
    }
    let is = |wanted: &str| media_type.is_some_and(|given| given.eq_ignore_ascii_case(wanted));
    let json = is("application/json");
    let multipart = is("multipart/form-data");
    let fits = match form {
        BodyForm::Json => json,
        BodyForm::Multipart => multipart,
        BodyForm::JsonOrForm => json || multipart,
        BodyForm::Any => json || multipart || !has_body,
        BodyForm::None => json || !has_body,
    };
    match (fits, form) {
        (true, _) => Ok(()),
        (false, BodyForm::Multipart) => Err(Refusal {
            detail: "This route takes Content-Type: multipart/form-data.".into(),
            ..Refusal::new(Code::ContentTypeRefused)
        }),
        (false, _) => Err(Code::ContentTypeRefused.into()),
    }
}

/// "A printable string of up to 256 characters; longer keys are hashed" by the service, so longer
/// ones pass. An empty one counts as absent.
fn own_key(headers: &HeaderMap) -> Result<Option<String>, Refusal> {
    let Some(value) = single_value(headers, &IDEMPOTENCY_KEY)? else {
        return Ok(None);
    };
    let key = value.to_str().map_err(|_| Code::HeaderRefused)?.trim();
    Ok(Some(key.to_owned()).filter(|key| !key.is_empty()))
}

/// The app's announced read timeout in seconds, fractions possible.
fn patience(headers: &HeaderMap) -> Option<Duration> {
    [X_STAINLESS_READ_TIMEOUT, X_STAINLESS_TIMEOUT]
        .iter()
        .find_map(|name| headers.get(name))
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.trim().parse::<f64>().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .filter(|patience| !patience.is_zero())
}

fn is_marked_retry(headers: &HeaderMap) -> bool {
    headers
        .get(X_STAINLESS_RETRY_COUNT)
        .and_then(|value| value.to_str().ok())
        .and_then(|text| text.trim().parse::<u32>().ok())
        .is_some_and(|count| count >= 1)
}

/// "A server that receives a 100-continue expectation in an HTTP/1.0 request MUST ignore" it: the app
/// would take the 100 for its answer.
fn expects_continue(header: &AppHead) -> bool {
    let is_expected = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    header.version == Version::HTTP_11 && header.headers.get(EXPECT).is_some_and(is_expected)
}
