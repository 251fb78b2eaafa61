//! What tells a program of this machine from a page in its browser: a page on any site can make the
//! browser send requests to localhost, to either listener.
//!
//! Promise: one list of names and one reading of the browser's mark, for both doors.

use http::{HeaderMap, HeaderName};

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Names of this machine itself. Any port: tunnels and port maps are ordinary.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Whether a Host names this machine, or is listed. Exact but for case: a page that points its own
/// name at this machine (DNS rebinding) still sends that name.
pub fn is_known_host(host: &str, allowed_hosts: &[String]) -> bool {
    let name = without_port(host);
    LOOPBACK_NAMES
        .iter()
        .copied()
        .chain(allowed_hosts.iter().map(String::as_str))
        .any(|allowed| allowed.eq_ignore_ascii_case(name))
}

/// Whether the browser says that a page made this request. A person who typed the address in is
/// `none`. Sec-Fetch-Mode and -Dest are never judged: plain Node programs send them (measured).
pub fn is_made_by_a_page(headers: &HeaderMap) -> bool {
    headers
        .get_all(SEC_FETCH_SITE)
        .iter()
        .any(|site| site.as_bytes() != b"none")
}

/// `name:port`, `[v6]:port` or either without a port. Anything odd is returned whole, and matches
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
