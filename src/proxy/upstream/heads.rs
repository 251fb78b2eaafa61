//! Heads of the service's answers as they reach the app, and what they say to bursar.
//!
//! Promise: hop-by-hop headers and those that `Connection` nominates are dropped, and what would reach
//! beyond the answer; the organization's key stands in none (rule I9).

use std::borrow::Cow;

use http::header::{
    ALT_SVC, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, LOCATION,
    SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, Uri, Version};
use pingora::http::{RequestHeader, ResponseHeader};

use super::peers::Peers;
use crate::config::ApiKey;
use crate::protocol::names::members;

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_AUTHORIZATION: HeaderName = HeaderName::from_static("proxy-authorization");
const PROXY_AUTHENTICATE: HeaderName = HeaderName::from_static("proxy-authenticate");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");
const CLEAR_SITE_DATA: HeaderName = HeaderName::from_static("clear-site-data");
const REFRESH: HeaderName = HeaderName::from_static("refresh");

/// Room for what bursar says about an answer.
const OWN_FIELDS: usize = 6;

/// A head that cannot be written.
#[derive(Debug)]
pub struct HeadError;

/// Headers that belong to one connection.
pub fn is_hop_by_hop(name: &HeaderName) -> bool {
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
pub fn nominated(headers: &HeaderMap) -> Vec<HeaderName> {
    members(headers, &CONNECTION)
        .filter_map(|token| HeaderName::from_bytes(token).ok())
        .collect()
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
    let (mut head, ()) = Response::new(()).into_parts();
    head.status = upstream.status;
    head.headers
        .try_reserve(upstream.headers.len() + OWN_FIELDS)
        .map_err(|_| HeadError)?;
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
        head.headers.append(name, value);
    }
    // Said twice, or as a list, it was one length: pingora takes no two.
    if let Some(length) = content_length(&upstream.headers).filter(|_| keep_length) {
        head.headers
            .insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    // Without a map of how each name is spelt.
    Ok(ResponseHeader::from(head))
}

pub fn content_length(headers: &HeaderMap) -> Option<u64> {
    let first = headers.get(CONTENT_LENGTH)?.to_str().ok()?;
    first.split(',').next()?.trim().parse().ok()
}

/// What an answer's head contains for bursar itself, its ledger and its metrics: the key is struck out
/// before anything is cut to its length, so that no piece of it stays (rule I9).
pub fn without_key<'a>(headers: &'a HeaderMap, key: &ApiKey) -> Cow<'a, HeaderMap> {
    if !headers
        .values()
        .any(|value| key.occurs_in(value.as_bytes()))
    {
        return Cow::Borrowed(headers);
    }
    let mut clean = headers.clone();
    for value in clean.values_mut() {
        if let Some(struck) = key.redacted(value.as_bytes()) {
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

/// Whether an answer is a server-sent event stream.
pub fn is_event_stream(headers: &HeaderMap) -> bool {
    media_type(headers).is_some_and(|kind| kind.eq_ignore_ascii_case("text/event-stream"))
}

/// Whether a body is in a coding, though none was asked for. It is never undone here: a few bytes may
/// stand for a gigabyte.
pub fn is_encoded(headers: &HeaderMap) -> bool {
    members(headers, &CONTENT_ENCODING)
        .any(|coding| !coding.is_empty() && !coding.eq_ignore_ascii_case(b"identity"))
}

fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or(value).trim())
}

#[cfg(test)]
mod tests;
