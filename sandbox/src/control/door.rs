//! Admission to the control routes: programs, not web pages.
//!
//! The routes ask for no key, and a page on any site can make its reader's browser send requests to this
//! machine: it could empty the balance or read the books. A page cannot hide its Origin, nor send another
//! Host than the name it was opened by.
//! Promise: a program on this machine, curl with `-d` included, is admitted as it is; any request that a
//! page can send gets 403, before a byte of its body is read.

use crate::error::ServiceError;
use axum::{
    extract::Request,
    middleware::Next,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderName, header};
use std::net::IpAddr;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The permitted types of a body. The second is what `curl -d` sends for any body; a page that sends it
/// cannot leave its Origin out.
const BODY_TYPES: [&str; 2] = ["application/json", "application/x-www-form-urlencoded"];

pub async fn door(request: Request, next: Next) -> Response {
    match check(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(why) => ServiceError::ControlRefused(why).into_response(),
    }
}

fn check(headers: &HeaderMap) -> Result<(), &'static str> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    if hosts.next().is_some() || !host.is_none_or(is_own_host) {
        return Err("control routes answer to localhost, an IP address or a name without a dot");
    }
    // For an address that a person typed in, the browser says `none`.
    let by_a_page = headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site.as_bytes() != b"none");
    if headers.contains_key(header::ORIGIN) || by_a_page {
        return Err("control routes are not for web pages");
    }
    let typed = headers.get_all(header::CONTENT_TYPE).iter();
    let all_known = typed
        .map(|value| value.to_str().unwrap_or("?"))
        .all(|value| {
            let kind = value.split(';').next().unwrap_or("").trim();
            BODY_TYPES
                .iter()
                .any(|known| known.eq_ignore_ascii_case(kind))
        });
    match all_known {
        true => Ok(()),
        false => Err("control routes take JSON: Content-Type application/json, or none"),
    }
}

/// Whether a page opened by this name cannot be a stranger's: this machine's own names, an address (a page
/// at an address is this listener's own answer), and a name without a dot, which no public name service
/// assigns (a container's name is one).
fn is_own_host(host: &str) -> bool {
    let name = without_port(host);
    let bare = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    bare.parse::<IpAddr>().is_ok() || (!name.is_empty() && !name.contains(['.', ':', '[']))
}

/// `name:port`, `[v6]:port` or either without a port; anything odd is returned whole.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port))
            if !host.ends_with(']')
                && (1..=5).contains(&port.len())
                && port.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => host,
    }
}

#[cfg(test)]
mod tests;
