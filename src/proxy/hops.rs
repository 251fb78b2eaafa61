//! Requests that come back to the bursar that sent them: by a tunnel, a proxy or another bursar. They would wait
//! for one another without end. Each bursar makes an id at its start and adds it to `X-Bursar-Via`; one that
//! finds its own there refuses (508). A chain over other bursars passes.
//!
//! Promise: the header goes to loopback, private and link-local addresses, and to this machine's own, however
//! public: every way back that bursar can see begins there. A service beyond sees what the interface names and
//! nothing else, so a circle over another machine's public address is not found. What an app writes into the
//! header is passed on where it is ids, and nowhere else.

use std::net::{IpAddr, UdpSocket};

use http::{HeaderMap, HeaderValue};

use super::refuse::{Code, Refusal};
use crate::ledger::entry::EntryId;
use crate::protocol::names::{X_BURSAR_VIA, members};

/// This process among the bursars that a request passes.
#[derive(Clone, Debug)]
pub struct Hops {
    own: HeaderValue,
}

/// Bursars in a row. More are a circle of others.
const HOPS_MAX: usize = 16;

/// Hexadecimal digits of an id.
const ID_DIGITS: usize = 32;

// === impl Hops ===

impl Hops {
    /// `id` is no other process's.
    pub fn new(id: EntryId) -> Self {
        let own = HeaderValue::from_str(&id.0.simple().to_string());
        debug_assert!(own.is_ok(), "an id is hexadecimal");
        Self {
            own: own.unwrap_or_else(|_| HeaderValue::from_static("")),
        }
    }

    /// The header that a request goes on with, or why it does not.
    pub fn of(&self, headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
        let is_id = |id: &&[u8]| id.len() == ID_DIGITS && id.iter().all(u8::is_ascii_hexdigit);
        let mut ids: Vec<&[u8]> = members(headers, &X_BURSAR_VIA).filter(is_id).collect();
        let own = self.own.as_bytes();
        if ids.len() >= HOPS_MAX || ids.contains(&own) {
            return Err(Code::UpstreamLoop.into());
        }
        if ids.is_empty() {
            return Ok(self.own.clone());
        }
        ids.push(own);
        HeaderValue::from_bytes(&ids.join(&b", "[..])).map_err(|_| Code::Internal.into())
    }
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
