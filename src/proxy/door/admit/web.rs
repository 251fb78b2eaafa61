//! Browser and network defences: a page on any site can make the user's browser send requests to
//! localhost. Host names stop DNS rebinding; Origin and Sec-Fetch-Site stop everything that a page
//! sends on purpose.

use http::header::{ACCESS_CONTROL_REQUEST_METHOD, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Method, Version};

use crate::config::Listen;
use crate::protocol::browser::{is_host, is_known_host, is_made_by_a_page};
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::refuse::{Code, Refusal};

/// An origin that the config lists, as the app sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin(pub HeaderValue);

/// Answers that need no upstream.
#[derive(Debug, PartialEq, Eq)]
pub enum LocalAnswer {
    /// `GET /`: says what this port is.
    Greeting,
    /// `GET /favicon.ico`.
    NoContent,
    Preflight(AllowedOrigin),
}

/// Exact allow-list. A missing Host was refused before, except on HTTP/1.0, which no browser sends.
pub fn check_host(header: &AppHead, allowed_hosts: &[String]) -> Result<(), Refusal> {
    let Some(value) = header.headers.get(HOST) else {
        return match header.version {
            Version::HTTP_10 => Ok(()),
            _ => Err(Code::HostRefused.into()),
        };
    };
    let valid = value.to_str().ok().filter(|_| is_host(value.as_bytes()));
    let Some(host) = valid else {
        return Err(Refusal::because(
            Code::HeadMalformed,
            "The Host header is no host with or without a port.",
        ));
    };
    if is_known_host(host, allowed_hosts) {
        Ok(())
    } else {
        Err(Code::HostRefused.into())
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
            // Not a part of the head: it may wait with an answer for its app.
            let own = HeaderValue::from_bytes(origin.as_bytes());
            Ok(own.ok().map(AllowedOrigin))
        } else {
            Err(Code::OriginRefused.into())
        };
    }
    if is_made_by_a_page(headers) {
        return Err(Code::SiteRefused.into());
    }
    Ok(None)
}

/// The listed origin whose page may read why its request is refused, whatever for. No page reads the refusal of a
/// preflight, or of a request under another Host.
pub fn refusal_reader(header: &AppHead, listen: &Listen) -> Option<AllowedOrigin> {
    if header.method == Method::OPTIONS {
        return None;
    }
    check_host(header, &listen.allowed_hosts).ok()?;
    check_origin(&header.headers, &listen.allowed_origins).ok()?
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
