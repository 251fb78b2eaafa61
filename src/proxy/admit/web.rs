//! Browser and network defences: a page on any site can make the user's browser send requests to
//! localhost. Host names stop DNS rebinding; Origin and Sec-Fetch-Site stop everything that a page
//! sends on purpose.
//!
//! Sec-Fetch-Mode and Sec-Fetch-Dest are never judged: plain Node programs send them (measured).

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use pingora::http::RequestHeader;

use super::LocalAnswer;
use crate::proxy::refuse::{Code, Refusal};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names of this machine itself. Any port: tunnels and port maps are ordinary.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// An origin that the config lists, as the app sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin(pub HeaderValue);

/// Exact allow-list. A missing Host was refused before, except on HTTP/1.0, which no browser sends.
pub fn check_host(header: &RequestHeader, allowed_hosts: &[String]) -> Result<(), Refusal> {
    let Some(value) = header.headers.get(HOST) else {
        return match header.version {
            Version::HTTP_10 => Ok(()),
            _ => Err(Code::HostRefused.into()),
        };
    };
    let Ok(host) = value.to_str() else {
        return Err(Code::HostRefused.into());
    };
    let name = without_port(host);
    let known = LOOPBACK_NAMES
        .iter()
        .copied()
        .chain(allowed_hosts.iter().map(String::as_str))
        .any(|allowed| allowed.eq_ignore_ascii_case(name));
    if known {
        Ok(())
    } else {
        Err(Code::HostRefused.into())
    }
}

/// `name:port`, `[v6]:port` or either without a port. Anything odd is returned whole, and matches
/// nothing.
fn without_port(host: &str) -> &str {
    let (name, port) = match host.rfind(':') {
        Some(colon) if !host.ends_with(']') => host.split_at(colon),
        _ => return host,
    };
    let digits = port.get(1..).unwrap_or_default();
    if !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        name
    } else {
        host
    }
}

/// Any Origin, and any Sec-Fetch-Site but `none`, is refused unless the origin is listed.
pub fn check_origin(
    headers: &HeaderMap,
    allowed_origins: &[String],
) -> Result<Option<AllowedOrigin>, Refusal> {
    let mut origins = headers.get_all(ORIGIN).iter();
    let origin = origins.next();
    if origins.next().is_some() {
        return Err(Code::OriginRefused.into());
    }
    if let Some(origin) = origin {
        let listed = origin.to_str().is_ok_and(|given| {
            allowed_origins
                .iter()
                .any(|allowed| allowed.eq_ignore_ascii_case(given))
        });
        return if listed {
            Ok(Some(AllowedOrigin(origin.clone())))
        } else {
            Err(Code::OriginRefused.into())
        };
    }
    let crosses = headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site.as_bytes() != b"none");
    if crosses {
        return Err(Code::SiteRefused.into());
    }
    Ok(None)
}

/// OPTIONS: a preflight of a listed origin is answered, everything else is refused without any
/// Access-Control header.
pub fn preflight(
    headers: &HeaderMap,
    origin: Option<AllowedOrigin>,
) -> Result<LocalAnswer, Refusal> {
    let asks = headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    match origin {
        Some(origin) if asks => Ok(LocalAnswer::Preflight(origin)),
        _ => Err(Code::PreflightRefused.into()),
    }
}

#[cfg(test)]
mod tests;
