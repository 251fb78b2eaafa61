//! Who may read. The same rules as at the proxy's door, for the same reason: a web page can send
//! requests to localhost, and what is spent here is nobody's business but this machine's.
//!
//! Promise: judged by Host, Origin and Sec-Fetch-Site alone; a page that a browser opens by hand
//! (`Sec-Fetch-Site: none`) is let in.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Method, StatusCode};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names of this machine itself, any port: tunnels and port maps are ordinary.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// A request that is turned away: what it gets to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub status: StatusCode,
    pub text: &'static str,
}

/// Judges a request head. `may_change`: the path is a change, and the caller may make it.
pub fn admit(
    method: &Method,
    headers: &HeaderMap,
    allowed_hosts: &[String],
    may_change: bool,
) -> Result<(), Refused> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_known = host.is_some_and(|host| is_allowed(without_port(host), allowed_hosts));
    if !is_known || hosts.next().is_some() {
        return Err(Refused {
            status: StatusCode::FORBIDDEN,
            text: "This Host name is not allowed here. Use localhost or 127.0.0.1, or list the \
                   name in [listen] allowed_hosts.",
        });
    }
    let crosses = headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site.as_bytes() != b"none");
    if headers.contains_key(ORIGIN) || crosses {
        return Err(Refused {
            status: StatusCode::FORBIDDEN,
            text: "Web pages may not read this. Open the address itself, or use the command line.",
        });
    }
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        Method::POST if may_change => Ok(()),
        _ => Err(Refused {
            status: StatusCode::METHOD_NOT_ALLOWED,
            text: "Everything here is read with GET or HEAD. Changes take the socket in the state \
                   directory: use the command line.",
        }),
    }
}

fn is_allowed(name: &str, allowed_hosts: &[String]) -> bool {
    LOOPBACK_NAMES
        .iter()
        .copied()
        .chain(allowed_hosts.iter().map(String::as_str))
        .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// `name:port`, `[v6]:port`, or either without a port. Anything odd is returned whole and matches
/// nothing.
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
