//! Requests that come back to the bursar that sent them: by a tunnel, a proxy or another bursar. They would wait
//! for one another without end. Each bursar makes an id at its start and adds it to `X-Bursar-Via`; one that
//! finds its own there refuses (508). A chain over other bursars passes.
//!
//! Promise: the header goes to loopback, private and link-local addresses, and to this machine's own, however
//! public: every way back that bursar can see begins there. A service beyond sees what the interface names and
//! nothing else, so a circle over another machine's public address is not found. What an app writes into the
//! header is passed on where it is ids, and nowhere else.

use std::net::{IpAddr, UdpSocket};
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

use super::refuse::{Code, Refusal};
use crate::ledger::entry::EntryId;
use crate::protocol::names::X_BURSAR_VIA;

/// This process among the bursars that a request passes.
#[derive(Clone, Debug)]
pub struct Hops {
    own: Arc<str>,
}

/// Bursars in a row. More are a circle of others.
const HOPS_MAX: usize = 16;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 32;

// === impl Hops ===

impl Hops {
    /// `id` is no other process's.
    pub fn new(id: EntryId) -> Self {
        Self {
            own: Arc::from(id.0.simple().to_string()),
        }
    }

    /// The ids that a request goes on with, or why it does not.
    pub fn of(&self, headers: &HeaderMap) -> Result<Vec<String>, Refusal> {
        let mut ids: Vec<String> = headers
            .get_all(X_BURSAR_VIA)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .map(str::trim)
            .filter(|id| id.len() == ID_DIGITS && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .map(str::to_owned)
            .collect();
        if ids.len() >= HOPS_MAX || ids.iter().any(|id| **id == *self.own) {
            return Err(Code::UpstreamLoop.into());
        }
        ids.push(self.own.to_string());
        Ok(ids)
    }
}

/// The header's value.
pub fn value(ids: &[String]) -> Option<HeaderValue> {
    HeaderValue::from_str(&ids.join(", ")).ok()
}

/// Whether an address is one of this machine's interfaces; every one is where the kernel lets a program bind
/// what it has not (`ip_nonlocal_bind`). Asks the kernel.
pub fn is_of_this_machine(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Whether a way back may begin at this address, whosever it is.
pub fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [first, second, ..] = address.octets();
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
                // 100.64.0.0/10, shared by carriers and by VPNs.
                || first == 100 && (64..128).contains(&second)
        }
        IpAddr::V6(address) => {
            address.is_loopback()
                || address.is_unique_local()
                || address.is_unicast_link_local()
                || address.is_unspecified()
        }
    }
}

#[cfg(test)]
mod tests;
