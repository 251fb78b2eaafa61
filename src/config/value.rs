//! Checked values of the configuration: what a string in the file means, and why one is refused.
//!
//! Promise: a value of these types needs no further check where it is used. No message repeats a
//! URL that holds a password.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use http::Method;

use crate::protocol::routes::ExtraRoute;

const ADMIN_PORT: u16 = 8328;
/// Longest model name in an alias, in characters.
const MODEL_CHARS_MAX: usize = 128;
/// Longest path of a Unix socket that Linux takes, in bytes.
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Where the service is: `https://host[:port][/prefix]`. The paths of routes (`/v1/…`) are appended; a `/v1` at its
/// end is theirs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUrl {
    /// `https`. Without it the host is a loopback one.
    pub tls: bool,
    /// Lower-case DNS name or IP address, without brackets. Never empty: it is also the name that
    /// the certificate is checked against, and an empty one turns the check off.
    pub host: String,
    pub port: u16,
    /// Empty, or `/…` without a slash at its end.
    pub path_prefix: String,
}

/// An address to listen on, or to ask.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddr {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// Which model goes upstream in another's stead. Empty: bodies stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aliases {
    exact: Vec<(String, String)>,
    /// The value of `"*"`: every model without a line of its own.
    rest: Option<String>,
}

// === impl BaseUrl ===

impl BaseUrl {
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            return Err("holds a user name or password; the key goes into api_key_file".to_owned());
        }
        let (scheme, rest) = text
            .split_once("://")
            // Not repeated: it may be the key, given in the wrong place.
            .ok_or_else(|| "is not a URL; write https://HOST".to_owned())?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return Err(format!("{text:?} is neither https nor http")),
        };
        if rest.contains(['?', '#']) {
            // Not repeated, for a key may stand there.
            return Err("holds a query or fragment; leave it out".to_owned());
        }
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at(slash),
            None => (rest, ""),
        };
        let (host, port) = split_port(authority).map_err(|why| format!("{text:?} {why}"))?;
        let host = parse_host(host).map_err(|why| format!("{text:?} {why}"))?;
        if !tls && !is_loopback_name(&host) {
            return Err(format!(
                "{text:?} would send the key unencrypted; plain http is for loopback hosts only, write https"
            ));
        }
        let path_prefix = path.trim_end_matches('/').to_owned();
        if !path_prefix.is_empty() && !is_plain_path(&path_prefix) {
            return Err(format!(
                "{text:?} has a path with empty, dotted or encoded parts"
            ));
        }
        if path_prefix.ends_with("/agent/v1") {
            return Err(format!(
                "{text:?} ends in /agent/v1; leave that out, each route brings its own"
            ));
        }
        // As clients have it.
        let path_prefix = match path_prefix.strip_suffix("/v1") {
            Some(shorter) => shorter.to_owned(),
            None => path_prefix,
        };
        Ok(Self {
            tls,
            host,
            port: port.unwrap_or(if tls { 443 } else { 80 }),
            path_prefix,
        })
    }

    /// The value of the `Host` header: the port is left out where it is the scheme's own.
    pub fn authority(&self) -> String {
        let default_port = if self.tls { 443 } else { 80 };
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        if self.port == default_port {
            host
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.path_prefix)
    }
}

// === impl ListenAddr ===

impl ListenAddr {
    /// Where the admin listener is by default.
    pub const DEFAULT_ADMIN: Self =
        Self::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ADMIN_PORT));

    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            if !path.starts_with('/') {
                return Err(format!("{text:?} needs a path from the root: unix:/path"));
            }
            if !fits_a_socket(path) {
                return Err(format!(
                    "{text:?} is longer than the {SOCKET_PATH_BYTES_MAX} bytes that a socket's path may have"
                ));
            }
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let address: SocketAddr = text.parse().map_err(|_| {
            format!(
                "{text:?} is neither \"IP:PORT\" (127.0.0.1:8327, [::1]:8327) nor \"unix:/path\""
            )
        })?;
        Ok(Self::Tcp(address))
    }

    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// Whether it is a socket in this directory, or deeper.
    pub fn is_below(&self, directory: &Path) -> bool {
        matches!(self, Self::Unix(path) if path.starts_with(directory))
    }

    /// Whether both cannot be listened on. Port 0 is another port each time.
    pub(super) fn collides_with(&self, other: &Self) -> bool {
        match self {
            Self::Tcp(address) => address.port() != 0 && self == other,
            Self::Unix(_) => self == other,
        }
    }
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

// === impl Aliases ===

impl Aliases {
    /// Takes one line, `asked = sent`.
    pub(super) fn add(&mut self, asked: String, sent: String) -> Result<(), String> {
        if !is_model_name(&asked) || !is_model_name(&sent) {
            return Err(format!(
                "{asked:?} = {sent:?}: a model name has 1 to {MODEL_CHARS_MAX} printable ASCII characters"
            ));
        }
        if sent == "*" {
            return Err(format!(
                "{asked:?} = \"*\": \"*\" is for the model that is asked for, not for the one that is sent"
            ));
        }
        match asked.as_str() {
            "*" => self.rest = Some(sent),
            _ => self.exact.push((asked, sent)),
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.rest.is_none()
    }

    /// Asked-for and sent models; `"*"` last.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let rest = self.rest.as_deref().map(|sent| ("*", sent));
        self.exact
            .iter()
            .map(|(asked, sent)| (asked.as_str(), sent.as_str()))
            .chain(rest)
    }

    /// The model to send for the one asked for; `None` when the body stays as it is. An alias's
    /// target is never looked up again.
    pub fn target(&self, asked: &str) -> Option<&str> {
        self.exact
            .iter()
            .find(|(name, _)| name == asked)
            .map(|(_, sent)| sent)
            .or(self.rest.as_ref())
            .map(String::as_str)
            .filter(|sent| *sent != asked)
    }
}

/// A route of `extra_routes`: `METHOD /path`.
pub(super) fn extra_route(text: &str) -> Result<ExtraRoute, String> {
    let wrong = || format!("{text:?} is not \"METHOD /path\", such as \"POST /v1/x\"");
    let (method, path) = text.split_once(' ').ok_or_else(wrong)?;
    let method = [
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
    ]
    .into_iter()
    .find(|known| known.as_str() == method)
    .ok_or_else(|| format!("{text:?}: the method is GET, POST, PUT, PATCH or DELETE"))?;
    if !is_plain_path(path) {
        return Err(wrong());
    }
    Ok(ExtraRoute {
        method,
        path: path.to_owned(),
    })
}

/// A host name of `allowed_hosts`: a name or an IP address, any port.
pub(super) fn allowed_host(text: &str) -> Result<String, String> {
    if text.contains("://") || text.contains('/') {
        return Err(format!("{text:?} is a URL; write the host name alone"));
    }
    if text.contains('*') {
        return Err(format!(
            "{text:?}: host names are matched exactly; list each"
        ));
    }
    parse_host(text).map_err(|why| {
        if text.contains(':') {
            format!("{text:?} has a port; every port is allowed, leave it out")
        } else {
            format!("{text:?} {why}")
        }
    })
}

/// An origin of `allowed_origins`: `scheme://host[:port]`, as browsers send it.
pub(super) fn allowed_origin(text: &str) -> Result<String, String> {
    if matches!(text, "*" | "null") {
        return Err(format!(
            "{text:?} would let any web page spend; list each origin"
        ));
    }
    let is_origin = text.split_once("://").is_some_and(|(scheme, host)| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
            && !host.is_empty()
            && host
                .bytes()
                .all(|byte| byte.is_ascii_graphic() && !b"/?#@*,\\".contains(&byte))
    });
    if !is_origin {
        return Err(format!(
            "{text:?} is not an origin: scheme://host[:port], without a path"
        ));
    }
    Ok(text.to_ascii_lowercase())
}

pub(super) fn fits_a_socket(path: &str) -> bool {
    path.len() <= SOCKET_PATH_BYTES_MAX
}

/// Divides `host[:port]`; brackets around an IPv6 address are taken off.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, rest) = bracketed.split_once(']').ok_or("has no closing bracket")?;
            if host.parse::<Ipv6Addr>().is_err() {
                return Err("has no IPv6 address between its brackets");
            }
            match rest {
                "" => (host, None),
                rest => (
                    host,
                    Some(rest.strip_prefix(':').ok_or("has no valid port")?),
                ),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            let port = digits.parse::<u16>().ok().filter(|port| *port != 0);
            Some(port.ok_or("has no valid port")?)
        }
        Some(_) => return Err("has no valid port"),
    };
    Ok((host, port))
}

/// A DNS name or an IP address, in lower case, without a final dot.
pub(super) fn parse_host(text: &str) -> Result<String, &'static str> {
    let unbracketed = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text);
    if let Ok(address) = unbracketed.parse::<IpAddr>() {
        return Ok(address.to_string());
    }
    let name = text.strip_suffix('.').unwrap_or(text);
    if name.is_empty() {
        return Err("has no host");
    }
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    // A name that ends in a number is a misspelt IPv4 address (WHATWG URL, "ends in a number").
    let ends_in_number = name.rsplit('.').next().is_some_and(is_number);
    if name.len() > 253 || !name.split('.').all(is_label) || ends_in_number {
        return Err("has no valid host name (letters, digits, hyphens; punycode for others)");
    }
    Ok(name.to_ascii_lowercase())
}

pub(super) fn is_loopback_name(host: &str) -> bool {
    let is_loopback_address = host
        .parse::<IpAddr>()
        .is_ok_and(|address| address.to_canonical().is_loopback());
    is_loopback_address || host == "localhost"
}

/// `/a/b`: no empty, dotted or encoded part, no query.
fn is_plain_path(path: &str) -> bool {
    path.strip_prefix('/').is_some_and(|parts| {
        parts.split('/').all(|part| {
            !matches!(part, "" | "." | "..")
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte))
        })
    })
}

/// Two names of a line `asked = sent`, of voices as of models.
pub(super) fn model_name(asked: &str, sent: &str) -> Result<(), String> {
    if is_model_name(asked) && is_model_name(sent) {
        return Ok(());
    }
    Err(format!(
        "{asked:?} = {sent:?}: a name has 1 to {MODEL_CHARS_MAX} printable ASCII characters"
    ))
}

/// A format of `speech_formats`, as OpenAI's `response_format` has it.
pub(super) fn speech_format(text: &str) -> Result<String, String> {
    let is_word = (1..=16).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    match is_word {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is no format, such as \"wav\" or \"mp3\"")),
    }
}

fn is_model_name(name: &str) -> bool {
    (1..=MODEL_CHARS_MAX).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte == b' ' || byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests;
