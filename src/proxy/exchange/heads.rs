//! Heads that are forwarded: the request's towards the service, the answer's towards the app.
//!
//! Promise: hop-by-hop headers and those that `Connection` nominates are dropped both ways, before
//! ours are set, so that no app can nominate the key away; the organization's key goes into
//! `Authorization` towards the service and nowhere else (rule I9).

use std::borrow::Cow;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCESS_CONTROL_EXPOSE_HEADERS, ALT_SVC, AUTHORIZATION, CONNECTION,
    CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, IF_RANGE, LOCATION, RANGE,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, Version};
use pingora::http::{RequestHeader, ResponseHeader};

use super::peers::Peers;
use crate::config::ApiKey;
use crate::ledger::entry::EntryId;
use crate::protocol::names::{IDEMPOTENCY_KEY, X_BURSAR_ADOPTED, X_BURSAR_ENTRY, X_BURSAR_VIA};
use crate::proxy::Settings;
use crate::proxy::admit::{Admitted, AllowedOrigin};
use crate::proxy::hops;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
const REFRESH: HeaderName = HeaderName::from_static("refresh");
const COOKIE: HeaderName = http::header::COOKIE;
const ORIGIN: HeaderName = http::header::ORIGIN;
const REFERER: HeaderName = http::header::REFERER;

/// Request headers that would make the service, or a hop before it, read another request, another
/// sender or other credentials into this one.
const FOREIGN: [&str; 18] = [
    "forwarded",
    "via",
    "proxy",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "x-host",
    "x-rewrite-url",
    "x-override-url",
    "x-remote-user",
    "remote-user",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-auth-token",
    "x-access-token",
];
const FOREIGN_PREFIXES: [&str; 7] = [
    "sec-fetch-",
    "x-forwarded",
    "x-original-",
    "x-http-method",
    "x-method-override",
    "x-envoy-",
    "proxy-",
];

/// A head that cannot be written.
#[derive(Debug)]
pub struct HeadError;

/// Headers that belong to one connection.
fn is_hop_by_hop(name: &HeaderName) -> bool {
    [
        CONNECTION,
        KEEP_ALIVE,
        PROXY_AUTHENTICATE,
        PROXY_AUTHORIZATION,
        PROXY_CONNECTION,
        TE,
        TRAILER,
        TRANSFER_ENCODING,
        UPGRADE,
        HTTP2_SETTINGS,
    ]
    .contains(name)
}

/// What `Connection` nominates.
fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|token| token.trim().parse().ok())
        .collect()
}

/// Request headers that are not the app's to send, or that are set here.
fn is_ours_to_set(name: &HeaderName) -> bool {
    [
        AUTHORIZATION,
        HOST,
        CONTENT_LENGTH,
        ACCEPT_ENCODING,
        EXPECT,
        IDEMPOTENCY_KEY,
        COOKIE,
        ORIGIN,
        REFERER,
        // A part of an answer has no receipt that can be read.
        RANGE,
        IF_RANGE,
        // Bodies are plain; nothing else passes the door.
        CONTENT_ENCODING,
        X_BURSAR_VIA,
    ]
    .contains(name)
        || FOREIGN.contains(&name.as_str())
        || FOREIGN_PREFIXES
            .iter()
            .any(|prefix| name.as_str().starts_with(prefix))
        // Variants with an underscore, a dot or the like are read as the hyphen form by some servers.
        || !name.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The request as it goes to the service, in HTTP/1.1 form.
pub fn request_head(
    settings: &Settings,
    admitted: &Admitted,
    app_headers: &HeaderMap,
    key: Option<&str>,
    body_bytes: usize,
) -> Result<RequestHeader, HeadError> {
    let target = format!(
        "{}{}",
        settings.config.upstream.base_url.path_prefix, admitted.target
    );
    let mut head = RequestHeader::build(admitted.method.clone(), target.as_bytes(), None)
        .map_err(|_| HeadError)?;
    let dropped = nominated(app_headers);
    let names = &settings.names;
    for (name, value) in app_headers {
        // The door judged the Content-Type: it stays, whatever `Connection` nominates.
        let is_dropped = *name != CONTENT_TYPE && dropped.contains(name);
        let is_set_below =
            is_ours_to_set(name) || *name == names.session || *name == names.rte_query;
        if !is_hop_by_hop(name) && !is_dropped && !is_set_below {
            head.append_header(name.clone(), value.clone())
                .map_err(|_| HeadError)?;
        }
    }
    // What a key is bound to goes out even where `Connection` nominated it away: dropped on one
    // attempt and not on another it would be another request (rule I6).
    let bound = [
        (&names.session, &admitted.session),
        (&names.rte_query, &admitted.rte_query),
    ];
    for (name, value) in bound {
        if let Some(value) = value {
            head.insert_header(name.clone(), value.clone())
                .map_err(|_| HeadError)?;
        }
    }
    let mut set = |name: HeaderName, value: HeaderValue| {
        head.insert_header(name, value).map_err(|_| HeadError)
    };
    set(
        HOST,
        HeaderValue::from_str(settings.peers.authority()).map_err(|_| HeadError)?,
    )?;
    set(AUTHORIZATION, settings.key.header_value())?;
    // Comments and body fields of a compressed answer could not be read.
    set(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
    set(X_BURSAR_VIA, hops::value(&admitted.hops).ok_or(HeadError)?)?;
    if let Some(key) = key {
        let value = HeaderValue::from_str(key).map_err(|_| HeadError)?;
        set(IDEMPOTENCY_KEY, value)?;
    }
    if body_bytes > 0 || admitted.method == Method::POST {
        set(CONTENT_LENGTH, HeaderValue::from(body_bytes))?;
    }
    Ok(head)
}

/// The head of a GET that bursar makes for itself.
pub fn own_head(settings: &Settings, target: &str) -> Result<RequestHeader, HeadError> {
    let prefix = &settings.config.upstream.base_url.path_prefix;
    let target = format!("{prefix}{target}");
    let mut head =
        RequestHeader::build(Method::GET, target.as_bytes(), None).map_err(|_| HeadError)?;
    let host = HeaderValue::from_str(settings.peers.authority()).map_err(|_| HeadError)?;
    let hops = settings.hops.of(&HeaderMap::new()).map_err(|_| HeadError)?;
    for (name, value) in [
        (HOST, host),
        (X_BURSAR_VIA, hops::value(&hops).ok_or(HeadError)?),
        (AUTHORIZATION, settings.key.header_value()),
        (ACCEPT, HeaderValue::from_static("application/json")),
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ] {
        head.insert_header(name, value).map_err(|_| HeadError)?;
    }
    Ok(head)
}

/// The same head for an HTTP/2 connection: an absolute URI, no Host.
pub fn to_http2(head: &mut RequestHeader, peers: &Peers) -> Result<(), HeadError> {
    let path = head
        .uri
        .path_and_query()
        .map_or("/", http::uri::PathAndQuery::as_str)
        .to_owned();
    let uri = Uri::builder()
        .scheme(peers.scheme())
        .authority(peers.authority())
        .path_and_query(path)
        .build()
        .map_err(|_| HeadError)?;
    head.set_uri(uri);
    head.set_version(Version::HTTP_2);
    head.remove_header(&HOST);
    Ok(())
}

/// The service's answer head as the app sees it. The body's framing is left to the writer, except
/// for a Content-Length that still holds.
pub fn answer_head(
    upstream: &ResponseHeader,
    keep_length: bool,
    key: &ApiKey,
) -> Result<ResponseHeader, HeadError> {
    let mut head = ResponseHeader::build(upstream.status, None).map_err(|_| HeadError)?;
    let dropped = nominated(&upstream.headers);
    for (name, value) in &upstream.headers {
        let stays = !is_hop_by_hop(name)
            && !dropped.contains(name)
            && !is_stripped(name)
            && *name != CONTENT_LENGTH
            && !key.is_named_in(name.as_str());
        if !stays {
            continue;
        }
        let value = if key.occurs_in(value.as_bytes()) {
            HeaderValue::from_static("***")
        } else {
            value.clone()
        };
        head.append_header(name.clone(), value)
            .map_err(|_| HeadError)?;
    }
    // Said twice, or as a list, it was one length: pingora takes no two.
    if let Some(length) = content_length(&upstream.headers).filter(|_| keep_length) {
        head.insert_header(CONTENT_LENGTH, length)
            .map_err(|_| HeadError)?;
    }
    Ok(head)
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    let first = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    first.split(',').next()?.trim().parse().ok()
}

/// What an answer's head tells bursar itself, for the ledger and the metrics: the key is struck out
/// before anything is cut to its length, so that no piece of it stays (rule I9).
pub fn told<'a>(headers: &'a HeaderMap, key: &ApiKey) -> Cow<'a, HeaderMap> {
    if !headers
        .values()
        .any(|value| key.occurs_in(value.as_bytes()))
    {
        return Cow::Borrowed(headers);
    }
    let mut clean = headers.clone();
    for value in clean.values_mut() {
        if let Some(struck) = key.struck_out(value.as_bytes()) {
            *value = HeaderValue::from_bytes(&struck)
                .unwrap_or_else(|_| HeaderValue::from_static("***"));
        }
    }
    Cow::Owned(clean)
}

/// Answer headers that would reach beyond this answer: into other sites, into the browser's state,
/// or, by a redirect, to another address.
fn is_stripped(name: &HeaderName) -> bool {
    [SET_COOKIE, ALT_SVC, CLEAR_SITE_DATA, LOCATION, REFRESH].contains(name)
        || name.as_str().starts_with("access-control-")
        || name.as_str().starts_with("x-bursar-")
}

/// Adds what bursar says about an answer.
pub fn mark(
    head: &mut ResponseHeader,
    entry: EntryId,
    adopted: Option<EntryId>,
    origin: Option<&AllowedOrigin>,
) -> Result<(), HeadError> {
    let id = |id: EntryId| HeaderValue::from_str(&id.0.to_string()).map_err(|_| HeadError);
    let mut set = |name: HeaderName, value: HeaderValue| {
        head.insert_header(name, value).map_err(|_| HeadError)
    };
    set(X_BURSAR_ENTRY, id(entry)?)?;
    if let Some(adopted) = adopted {
        set(X_BURSAR_ADOPTED, id(adopted)?)?;
    }
    if let Some(AllowedOrigin(origin)) = origin {
        set(http::header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())?;
        set(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"))?;
        set(VARY, HeaderValue::from_static("Origin"))?;
    }
    Ok(())
}

/// Whether an answer is a server-sent event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

/// Whether an answer is JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// Whether a body is in a coding, though none was asked for. It is never undone here: a few bytes may
/// stand for a gigabyte.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}
