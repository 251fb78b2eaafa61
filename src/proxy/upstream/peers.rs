//! Where the service is: its addresses, its TLS name, and the timeouts of a connection.
//!
//! Promise: names are resolved without blocking the runtime; the last good answer serves for five
//! minutes when the resolver fails; connections to one address are kept apart by what was verified; an https service
//! always has a name to verify (none means: without TLS). Which addresses are this machine's own is looked up as
//! often as the name is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::lookup_host;
use tokio::time::timeout;

use crate::clock::SharedClock;
use crate::config::Upstream;
use crate::proxy::hops::{is_near, is_of_this_machine};

/// The configured service.
pub struct Peers {
    host: Arc<str>,
    port: u16,
    tls: bool,
    /// `Host` header and `:authority`.
    authority: String,
    connect_timeout: Duration,
    clock: SharedClock,
    answer: Mutex<Option<Resolved>>,
    pooled: Pooled,
    is_of_this_machine: fn(IpAddr) -> bool,
}

/// Which pooled connections are used: those made since it was last turned.
#[derive(Clone, Default)]
pub struct Pooled(Arc<AtomicU64>);

/// One address of the service, and how it is spoken to.
#[derive(Clone)]
pub struct Candidate {
    pub address: SocketAddr,
    /// Whose certificate is verified. `None`: no TLS.
    pub tls_host: Option<Arc<str>>,
    /// For all of a connection, TLS included.
    pub connect_timeout: Duration,
    /// What connections to it are found by: where they lead, and what was verified. `None`: a connection of its own
    /// for one request.
    pub pool_key: Option<u64>,
    /// Whether a request that goes there may come back ([`crate::proxy::hops`]).
    pub may_lead_back: bool,
}

struct Resolved {
    /// Best first; shared by the requests of their time.
    candidates: Arc<[Candidate]>,
    /// How often [`Pooled`] had been turned when they were made.
    turned: u64,
    at: Duration,
}

/// The service's name does not resolve, and no answer of the last five minutes is left.
#[derive(Clone, Copy, Debug)]
pub struct ResolveError;

/// A resolver's answer is used this long before it is asked again.
const ANSWER_FRESH: Duration = Duration::from_secs(30);

/// And this long when the resolver fails.
const ANSWER_KEPT: Duration = Duration::from_secs(5 * 60);

const RESOLVE_TIMEOUT: Duration = Duration::from_secs(5);

// === impl Candidate ===

impl Candidate {
    /// For people.
    pub fn name(&self) -> String {
        match &self.tls_host {
            Some(host) => format!("{host} at {}", self.address),
            None => self.address.to_string(),
        }
    }

    /// A service without TLS at this address.
    #[cfg(test)]
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            pool_key: Some(0),
            tls_host: None,
            connect_timeout: Duration::from_secs(1),
            may_lead_back: true,
        }
    }
}

// === impl Pooled ===

impl Pooled {
    /// The connections there are get no further requests. One over HTTP/2 that hangs, or is kept busy
    /// by its other side, would be given all of them.
    pub fn turn(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

// === impl Peers ===

impl Peers {
    pub fn new(upstream: &Upstream, clock: SharedClock, pooled: Pooled) -> Self {
        Self {
            host: upstream.base_url.host.as_str().into(),
            port: upstream.base_url.port,
            tls: upstream.base_url.tls,
            authority: upstream.base_url.authority(),
            connect_timeout: upstream.connect_timeout,
            clock,
            answer: Mutex::new(None),
            pooled,
            is_of_this_machine,
        }
    }

    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }

    /// Addresses to try, best first.
    pub async fn candidates(
        &self,
        fresh_connection: bool,
    ) -> Result<Arc<[Candidate]>, ResolveError> {
        let pooled = self.pooled_candidates().await?;
        if !fresh_connection {
            return Ok(pooled);
        }
        let alone = |candidate: &Candidate| Candidate {
            pool_key: None,
            ..candidate.clone()
        };
        Ok(pooled.iter().map(alone).collect())
    }

    pub fn pooled(&self) -> Pooled {
        self.pooled.clone()
    }

    /// The address that worked goes first next time.
    pub fn connected(&self, candidate: &Candidate) {
        let mut answer = self.answer.lock();
        let Some(resolved) = answer.as_mut() else {
            return;
        };
        let is_used = |known: &Candidate| known.address == candidate.address;
        if let Some(at) = resolved.candidates.iter().position(is_used)
            && at > 0
        {
            let mut candidates = resolved.candidates.to_vec();
            candidates.swap(0, at);
            resolved.candidates = candidates.into();
        }
    }

    fn candidate(&self, address: SocketAddr, may_lead_back: bool, turned: u64) -> Candidate {
        // A connection without TLS is never one with it.
        let mut pool_key = DefaultHasher::new();
        (address, self.tls, &self.host, turned).hash(&mut pool_key);
        Candidate {
            address,
            pool_key: Some(pool_key.finish()),
            tls_host: self.tls.then(|| Arc::clone(&self.host)),
            connect_timeout: self.connect_timeout,
            may_lead_back,
        }
    }

    async fn pooled_candidates(&self) -> Result<Arc<[Candidate]>, ResolveError> {
        let now = self.clock.monotonic();
        let turned = self.pooled.0.load(Ordering::Relaxed);
        if let Some(resolved) = self.answer.lock().as_mut()
            && now.saturating_sub(resolved.at) < ANSWER_FRESH
        {
            return Ok(self.as_turned(resolved, turned));
        }
        let addresses = match self.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, self.port)],
            Err(_) => self.look_up().await,
        };
        let candidate = |address: SocketAddr| {
            let may_lead_back = is_near(address.ip()) || (self.is_of_this_machine)(address.ip());
            self.candidate(address, may_lead_back, turned)
        };
        let candidates: Arc<[Candidate]> = addresses.into_iter().map(candidate).collect();
        let mut answer = self.answer.lock();
        if !candidates.is_empty() {
            *answer = Some(Resolved {
                candidates: Arc::clone(&candidates),
                turned,
                at: now,
            });
            return Ok(candidates);
        }
        match answer.as_mut() {
            Some(kept) if now.saturating_sub(kept.at) < ANSWER_KEPT => {
                Ok(self.as_turned(kept, turned))
            }
            _ => Err(ResolveError),
        }
    }

    /// The candidates of a resolver's answer, for connections made since the last turn.
    fn as_turned(&self, resolved: &mut Resolved, turned: u64) -> Arc<[Candidate]> {
        if resolved.turned != turned {
            let anew =
                |known: &Candidate| self.candidate(known.address, known.may_lead_back, turned);
            resolved.candidates = resolved.candidates.iter().map(anew).collect();
            resolved.turned = turned;
        }
        Arc::clone(&resolved.candidates)
    }

    async fn look_up(&self) -> Vec<SocketAddr> {
        let looked_up = timeout(RESOLVE_TIMEOUT, lookup_host((&*self.host, self.port)));
        match looked_up.await {
            // Without TLS the key stays on this machine, whatever a resolver says of `localhost`.
            Ok(Ok(found)) => found
                .filter(|address| self.tls || address.ip().is_loopback())
                .collect(),
            Ok(Err(_)) | Err(_) => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests;
