//! Is the configured service bursar itself? Its requests would come in again, and wait for one another without
//! end.
//!
//! Promise: a base URL that leads to an address of ours is found before anything is served, however it is
//! spelled; a name is looked up only where the port is one of ours. What leads here by another way (a tunnel,
//! a second bursar) is found when a request comes back (`proxy/hops`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

use crate::config::{BaseUrl, ListenAddr};
use crate::proxy::hops::is_of_this_machine;

/// The service is bursar itself.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "[upstream] base_url is {base_url}, and that is bursar's own address {own}: its requests would come back to \
     it. Set it to the service's address"
)]
pub struct UpstreamIsItself {
    base_url: String,
    own: SocketAddr,
}

/// Looks whether a base URL leads to one of these addresses. Blocks while a name is looked up.
pub fn check(base_url: &BaseUrl, listening: &[ListenAddr]) -> Result<(), UpstreamIsItself> {
    let on_its_port = listening.iter().filter_map(|address| match address {
        ListenAddr::Tcp(own) if own.port() == base_url.port => Some(*own),
        ListenAddr::Tcp(_) | ListenAddr::Unix(_) => None,
    });
    let on_its_port: Vec<SocketAddr> = on_its_port.collect();
    if on_its_port.is_empty() {
        return Ok(());
    }
    let asked = addresses_of(base_url);
    let is_asked = |own: &SocketAddr| asked.iter().any(|asked| leads_to(*asked, own.ip()));
    match on_its_port.into_iter().find(is_asked) {
        Some(own) => Err(UpstreamIsItself {
            base_url: base_url.to_string(),
            own,
        }),
        None => Ok(()),
    }
}

/// What does not resolve leads nowhere.
fn addresses_of(base_url: &BaseUrl) -> Vec<IpAddr> {
    let named = (base_url.host.as_str(), base_url.port).to_socket_addrs();
    let mut addresses: Vec<IpAddr> = named
        .into_iter()
        .flatten()
        .map(|found| found.ip())
        .collect();
    if base_url.host == "localhost" {
        addresses.extend([
            IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(Ipv6Addr::LOCALHOST),
        ]);
    }
    addresses
}

/// Whether a connection to `asked` comes in at a socket that listens on `own`.
fn leads_to(asked: IpAddr, own: IpAddr) -> bool {
    let takes_both = own == IpAddr::V6(Ipv6Addr::UNSPECIFIED);
    let asked = match asked.to_canonical() {
        // The kernel connects to this machine.
        IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        address => address,
    };
    let own = own.to_canonical();
    if own.is_unspecified() {
        return (takes_both || asked.is_ipv4() == own.is_ipv4()) && is_of_this_machine(asked);
    }
    asked == own
}

#[cfg(test)]
mod tests;
