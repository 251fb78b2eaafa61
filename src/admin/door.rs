//! Which requests may read. The same rules as at the proxy's door, for the same reason: a web page can send
//! requests to localhost, and what is spent here is no business of a web page.
//!
//! Promise: judged by Host, Origin and Sec-Fetch-Site alone; a page that a browser opens by hand
//! (`Sec-Fetch-Site: none`) is let in.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, Method, StatusCode, Uri};

use crate::protocol::browser::{is_known_host, is_made_by_a_page};

/// A request that is turned away: what it gets to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdminRefusal {
    pub status: StatusCode,
    pub text: &'static str,
}

/// Judges a request head. `may_change`: the path is a change, and the caller may make it.
pub fn admit(
    method: &Method,
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
    if headers.contains_key(ORIGIN) || is_made_by_a_page(headers) {
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

#[cfg(test)]
mod tests;
