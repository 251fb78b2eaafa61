//! The head of a request as it goes to the service: an app's, and that of a call of bursar's own.
//!
//! Promise: hop-by-hop headers and those that `Connection` nominates are dropped before ours are set, so
//! that no app can nominate anything of ours away; an app's `Authorization` is dropped. The organization's key
//! is no part of it: it joins the head where that is written ([`super::upstream::outgoing`], rule I9).

use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, COOKIE,
    EXPECT, HOST, IF_RANGE, ORIGIN, RANGE, REFERER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use pingora::http::RequestHeader;

use super::door::admit::Admitted;
use super::settings::Settings;
use super::upstream::heads::{HeadError, is_hop_by_hop, nominated};
use crate::protocol::names::{IDEMPOTENCY_KEY, SESSIONS, X_BURSAR_TAGS, X_BURSAR_VIA};

/// Request headers that would make the service, or a hop before it, read another request, another
/// sender or other credentials into this one.
const FOREIGN: [&str; 19] = [
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
    // What programs before this one say to each other; only `traceparent` and `tracestate` are for others.
    "baggage",
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

/// What goes to the service of a request that is translated: the rest is meant for the service whose dialect
/// it is written in (account, user, version and beta headers), or says which program asks.
const OF_TRANSLATED: [HeaderName; 3] = [
    CONTENT_TYPE,
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// Room for the headers that are set here.
const OWN_FIELDS: usize = 6;

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
        X_BURSAR_TAGS,
    ]
    .contains(name)
        || SESSIONS.contains(name)
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
    let room = app_headers.len() + OWN_FIELDS;
    let mut head =
        RequestHeader::build_no_case(admitted.method.clone(), target.as_bytes(), Some(room))
            .map_err(|_| HeadError)?;
    let dropped = nominated(app_headers);
    let names = &settings.names;
    let is_translated =
        admitted.route.translation.is_some() || admitted.dialect != admitted.route.dialect();
    let app = &admitted.caller.app;
    let is_for_accounts = |name: &HeaderName| {
        [&app.session_header, &app.user_header]
            .iter()
            .any(|own| own.as_ref() == Some(name))
    };
    for (name, value) in app_headers {
        // The door judged the Content-Type: it stays, whatever `Connection` nominates.
        let is_dropped = *name != CONTENT_TYPE && dropped.contains(name);
        let is_set_below =
            is_ours_to_set(name) || *name == names.session || *name == names.rte_query;
        let is_foreign = is_translated && !OF_TRANSLATED.contains(name) || is_for_accounts(name);
        if !is_hop_by_hop(name) && !is_dropped && !is_set_below && !is_foreign {
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
    // Comments and body fields of a compressed answer could not be read.
    set(ACCEPT_ENCODING, HeaderValue::from_static("identity"))?;
    set(X_BURSAR_VIA, admitted.hops.clone())?;
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
    let mut head = RequestHeader::build_no_case(Method::GET, target.as_bytes(), None)
        .map_err(|_| HeadError)?;
    let host = HeaderValue::from_str(settings.peers.authority()).map_err(|_| HeadError)?;
    let hops = settings.hops.of(&HeaderMap::new()).map_err(|_| HeadError)?;
    for (name, value) in [
        (HOST, host),
        (X_BURSAR_VIA, hops),
        (ACCEPT, HeaderValue::from_static("application/json")),
        (ACCEPT_ENCODING, HeaderValue::from_static("identity")),
    ] {
        head.insert_header(name, value).map_err(|_| HeadError)?;
    }
    Ok(head)
}
