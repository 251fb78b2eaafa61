//! Distinguishes a program of this machine from a page in its browser: a page on any site can make
//! the browser send requests to localhost, to either listener.
//!
//! Promise: one list of names and one reading of the browser's mark, for both doors.

use std::net::Ipv6Addr;

use http::{HeaderMap, HeaderName};

pub const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

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

/// `uri-host [ ":" port ]` (RFC 9112, 3.2; RFC 3986, 3.2.2): a name or an address, of any host.
pub fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.strip_prefix(b"[") {
        Some(literal) => {
            let end = memchr::memchr(b']', literal).unwrap_or(literal.len());
            let (literal, rest) = literal.split_at(end);
            match rest.strip_prefix(b"]") {
                Some(port) if is_ip_literal(literal) => (&b""[..], port),
                _ => return false,
            }
        }
        None => host.split_at(memchr::memchr(b':', host).unwrap_or(host.len())),
    };
    let is_port = port.is_empty()
        || port
            .strip_prefix(b":")
            .is_some_and(|digits| digits.iter().all(u8::is_ascii_digit));
    is_port && is_registered_name(name)
}

fn is_ip_literal(literal: &[u8]) -> bool {
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    if let [b'v' | b'V', rest @ ..] = literal {
        let dot = memchr::memchr(b'.', rest).unwrap_or(rest.len());
        let (version, rest) = rest.split_at(dot);
        let is_plain = |byte: &u8| is_name_byte(*byte) || *byte == b':';
        return !version.is_empty()
            && version.iter().all(u8::is_ascii_hexdigit)
            && rest.len() > 1
            && rest.iter().all(is_plain);
    }
    std::str::from_utf8(literal).is_ok_and(is_address)
}

/// Bytes of a name, and escapes.
fn is_registered_name(mut name: &[u8]) -> bool {
    loop {
        name = match name {
            [] => return true,
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest
            }
            [byte, rest @ ..] if is_name_byte(*byte) => rest,
            _ => return false,
        };
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

/// Whether the browser says that a page made this request. An address that a person typed in is
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
