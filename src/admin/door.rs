//! Which requests may read. The same rules as at the proxy's door, for the same reason: a web page can send
//! requests to localhost, and what is spent here is no business of a web page.
//!
//! Promise: what a browser marks as made by a page is refused, whatever it asks for, but for three kinds, all a GET
//! without an Origin: a person follows a link to one of the pages, from any site; the status page's own script asks
//! for it anew; a page of this listener gets its icon. An answer to a link is shown in place of the page that had
//! the link, which cannot read it ([`PROTECTION`]).

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::protocol::browser::{is_known_host, is_made_by_a_page};

/// Headers of every answer: no page frames it, embeds it, holds a handle on its window, or learns of it by a link
/// from it; and no cache keeps it.
pub const PROTECTION: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; frame-ancestors 'none'",
    ),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("cache-control", "no-store"),
];

/// What a person opens in a browser. The rest is for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browsed<'a> {
    StatusPage,
    /// The page of an entry: its id as it was asked for.
    EntryPage(&'a str),
    Icon,
}

/// A request that is turned away: what it gets to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminRefusal {
    pub status: StatusCode,
    pub text: &'static str,
}

/// Judges a request head. `may_change`: the path is a change, and the caller may make it.
pub fn admit(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    allowed_hosts: &[String],
    may_change: bool,
) -> Result<(), AdminRefusal> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let is_known = host.is_some_and(|host| is_known_host(host, allowed_hosts));
    if !is_known || hosts.next().is_some() {
        return Err(AdminRefusal {
            status: StatusCode::FORBIDDEN,
            text: "This Host name is not allowed here. Use localhost or 127.0.0.1, or list the \
                   name in [listen] allowed_hosts.",
        });
    }
    let is_let_in =
        || *method == Method::GET && Browsed::of(path).is_some_and(|it| it.admits(headers));
    if headers.contains_key(ORIGIN) || (is_made_by_a_page(headers) && !is_let_in()) {
        return Err(AdminRefusal {
            status: StatusCode::FORBIDDEN,
            text: "Web pages may not read this. Open the address itself, or use the command line.",
        });
    }
    match *method {
        Method::GET | Method::HEAD => Ok(()),
        Method::POST if may_change => Ok(()),
        _ => Err(AdminRefusal {
            status: StatusCode::METHOD_NOT_ALLOWED,
            text: "Everything here is read with GET or HEAD. Changes take a Unix socket and root or the \
                   daemon's own user: use the command line, with sudo for the system service.",
        }),
    }
}

/// A target that names another receiver is none of this listener's, whatever its Host says.
pub fn check_target(uri: &Uri) -> Result<(), AdminRefusal> {
    match uri.authority() {
        None => Ok(()),
        Some(_) => Err(AdminRefusal {
            status: StatusCode::BAD_REQUEST,
            text: "The request target has to start with a slash.",
        }),
    }
}

// === impl Browsed ===

impl<'a> Browsed<'a> {
    pub fn of(path: &'a str) -> Option<Self> {
        match path {
            "/" => Some(Self::StatusPage),
            "/favicon.ico" => Some(Self::Icon),
            _ => {
                let id = path.strip_prefix("/explain/")?;
                (!id.contains('/')).then_some(Self::EntryPage(id))
            }
        }
    }

    /// Whether the browser's marks say that a page may cause this: where the request comes from, how, and what the
    /// answer becomes. A mark that is there twice says nothing.
    fn admits(self, headers: &HeaderMap) -> bool {
        let mark = |name| {
            let mut values = headers.get_all(name).iter();
            let first = values.next()?.as_bytes();
            values.next().is_none().then_some(first)
        };
        let site = mark("sec-fetch-site");
        let how = (mark("sec-fetch-mode"), mark("sec-fetch-dest"));
        let is_own = site == Some(b"same-origin");
        match (self, how) {
            (Self::StatusPage | Self::EntryPage(_), (Some(b"navigate"), Some(b"document"))) => {
                site.is_some()
            }
            (Self::StatusPage, (Some(b"same-origin"), Some(b"empty")))
            | (Self::Icon, (Some(b"no-cors"), Some(b"image"))) => is_own,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
