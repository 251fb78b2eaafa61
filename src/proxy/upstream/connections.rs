//! Connections to the service, and those that wait for a next request: of HTTP/1.1 alone, of HTTP/2 shared.
//! `stream` opens them, `tls` secures them, and pingora speaks HTTP/2.
//!
//! Why they are not kept by pingora: it starts a task for each connection that is put back, and wakes that task each
//! time one is taken out. Here a look when one is taken out, and one task for all, do the same.
//!
//! Promise: a connection of HTTP/1.1 is given to one request at a time, the one used last first; none that the
//! service has closed or has written to unasked, as far as the runtime has heard; none longer than [`IDLE_MAX`]
//! after its last request; at most [`IDLE_CONNECTIONS_MAX`] are kept. A fresh one is used by its one request.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use parking_lot::Mutex;
use pingora::connectors::http::v2::{ConnectionRef, H2HandshakeSettings, handshake};
use pingora::protocols::http::client::HttpSession;
use pingora::{Error as PingoraError, ErrorType};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep, timeout};

use super::peers::{Candidate, Pooled};
use super::stream::{ServiceStream, dial};
use super::tls::{Insecure, Tls};
use super::trust::Authorities;
use crate::proxy::purchase::lost::Cause;

/// Opens connections to the service and keeps those that wait for a next request.
pub struct Connections {
    tls: Tls,
    authorities: Authorities,
    idle: Arc<Mutex<Idle>>,
    pooled: Pooled,
}

/// A connection for one request.
pub enum ServiceConnection {
    Http1(ServiceStream),
    /// One of the streams of a connection that other requests use meanwhile.
    Http2(Box<HttpSession>),
}

/// No connection to this address.
#[derive(Debug)]
pub struct Unconnected {
    pub cause: Cause,
    pub words: String,
}

/// The connections that a next request may use.
#[derive(Default)]
struct Idle {
    /// Of HTTP/1.1, the one that waits longest first.
    waiting: VecDeque<IdleConnection>,
    /// Of HTTP/2, in use or not.
    shared: VecDeque<SharedConnection>,
    /// A task looks after them.
    has_sweeper: bool,
}

struct IdleConnection {
    /// Of whom it may serve ([`Candidate::pool_key`]).
    pool_key: u64,
    stream: ServiceStream,
    since: Instant,
}

struct SharedConnection {
    pool_key: u64,
    connection: ConnectionRef,
    /// When it was last given to a request or seen in use.
    since: Instant,
}

/// Idle time of kept connections, below what servers commonly allow.
const IDLE_MAX: Duration = Duration::from_secs(55);

/// Idle connections of HTTP/1.1 kept. `server/descriptors` counts them, and those of HTTP/2, beside those of requests.
const IDLE_CONNECTIONS_MAX: usize = 192;

/// Connections of HTTP/2 kept; each has room for many requests.
const SHARED_CONNECTIONS_MAX: usize = 64;

const HTTP2_STREAMS_MAX: usize = 100;
const HTTP2_PING: Duration = Duration::from_secs(30);

/// How long the end of a connection that is not kept may take: TLS first sends what is left of a request, and a
/// service that reads nothing would be waited for without end.
pub const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How often those are looked for that the service has closed or that have waited too long.
const SWEEP: Duration = Duration::from_secs(5);

// === impl Connections ===

impl Connections {
    pub fn trusting(authorities: Authorities) -> Self {
        Self {
            tls: Tls::trusting(&authorities),
            authorities,
            idle: Arc::default(),
            pooled: Pooled::default(),
        }
    }

    /// Which of them are used. A reload that keeps them keeps this.
    pub fn pooled(&self) -> Pooled {
        self.pooled.clone()
    }

    /// What there is was made, and what will be is made, with this trust.
    pub fn are_trusting(&self, authorities: &Authorities) -> bool {
        self.authorities == *authorities
    }

    /// A connection to the candidate, and whether it was used before.
    pub async fn open(
        &self,
        candidate: &Candidate,
    ) -> Result<(ServiceConnection, bool), Unconnected> {
        if let Some(pool_key) = candidate.pool_key {
            if let Some(stream) = self.take(pool_key) {
                return Ok((ServiceConnection::Http1(stream), true));
            }
            let session = self.idle.lock().take_stream(pool_key);
            if let Some(session) = session {
                return Ok((ServiceConnection::Http2(Box::new(session)), true));
            }
        }
        match timeout(candidate.connect_timeout, self.connect(candidate)).await {
            Ok(connected) => Ok((connected?, false)),
            Err(_) => Err(Unconnected {
                cause: Cause::ConnectTimeout,
                words: format!("{} was not connected in time", candidate.name()),
            }),
        }
    }

    async fn connect(&self, candidate: &Candidate) -> Result<ServiceConnection, Unconnected> {
        let stream = dial(candidate.address).await.map_err(|error| Unconnected {
            cause: match error.kind() {
                ErrorKind::TimedOut => Cause::ConnectTimeout,
                _ => Cause::Connect,
            },
            words: format!("{} was not connected: {error}", candidate.name()),
        })?;
        let Some(host) = &candidate.tls_host else {
            return Ok(ServiceConnection::Http1(Box::new(stream)));
        };
        let stream = self.tls.connect(stream, host).await?;
        if !stream.speaks_http2() {
            return Ok(ServiceConnection::Http1(Box::new(stream)));
        }
        let mut settings = H2HandshakeSettings::new();
        settings.max_streams = HTTP2_STREAMS_MAX;
        settings.ping_interval = Some(HTTP2_PING);
        let connection = handshake(Box::new(stream), settings).await;
        let connection = connection.map_err(|error| Unconnected::because(&error, candidate))?;
        let session = connection.spawn_stream().await;
        let session = session.map_err(|error| Unconnected::because(&error, candidate))?;
        let session = session.ok_or_else(|| Unconnected {
            cause: Cause::Connect,
            words: format!("{} takes no request", candidate.name()),
        })?;
        if let Some(pool_key) = candidate.pool_key {
            self.share(connection, pool_key);
        }
        Ok(ServiceConnection::Http2(Box::new(HttpSession::H2(session))))
    }

    /// Keeps a connection of HTTP/1.1 whose answer came whole, and lets a next one follow.
    pub fn keep(&self, stream: ServiceStream, pool_key: u64) {
        let waiting = IdleConnection {
            pool_key,
            stream,
            since: Instant::now(),
        };
        self.swept(|idle| idle.keep(waiting));
    }

    fn share(&self, connection: ConnectionRef, pool_key: u64) {
        let shared = SharedConnection {
            pool_key,
            connection,
            since: Instant::now(),
        };
        self.swept(|idle| idle.share(shared));
    }

    /// Adds a connection, and has all of them looked after from then on.
    fn swept<Surplus>(&self, add: impl FnOnce(&mut Idle) -> Surplus) {
        let mut idle = self.idle.lock();
        let surplus = add(&mut idle);
        let has_sweeper = std::mem::replace(&mut idle.has_sweeper, true);
        drop(idle);
        // Closing is a system call, with TLS several: not under the lock.
        drop(surplus);
        if !has_sweeper {
            tokio::spawn(sweep(Arc::downgrade(&self.idle)));
        }
    }

    fn take(&self, pool_key: u64) -> Option<ServiceStream> {
        loop {
            let mut waiting = self.idle.lock().take(pool_key)?;
            if waiting.since.elapsed() < IDLE_MAX && waiting.is_silent() {
                return Some(waiting.stream);
            }
        }
    }
}

// === impl Idle ===

impl Idle {
    /// Keeps one more; what there is no room for comes back.
    fn keep(&mut self, waiting: IdleConnection) -> Option<IdleConnection> {
        self.waiting.push_back(waiting);
        match self.waiting.len() > IDLE_CONNECTIONS_MAX {
            true => self.waiting.pop_front(),
            false => None,
        }
    }

    fn share(&mut self, shared: SharedConnection) -> Option<SharedConnection> {
        self.shared.push_back(shared);
        match self.shared.len() > SHARED_CONNECTIONS_MAX {
            true => self.shared.pop_front(),
            false => None,
        }
    }

    /// A stream of the newest connection that takes one more. What a connection has room for is looked at and
    /// taken in one step: a stream above the service's limit would wait without anybody's knowledge. (Until the
    /// service has said its limit, pingora takes it for 100.)
    fn take_stream(&mut self, pool_key: u64) -> Option<HttpSession> {
        for shared in self.shared.iter_mut().rev() {
            let is_wanted = shared.pool_key == pool_key
                && shared.is_usable()
                && shared.connection.can_accept_streams(1);
            if !is_wanted {
                continue;
            }
            // Never waits: nothing of this handle is pending.
            match shared.connection.spawn_stream().now_or_never() {
                Some(Ok(Some(session))) => {
                    shared.since = Instant::now();
                    return Some(HttpSession::H2(session));
                }
                Some(Ok(None)) if !shared.connection.is_shutting_down() => {}
                _ => shared.connection.mark_shutdown(),
            }
        }
        None
    }

    fn take(&mut self, pool_key: u64) -> Option<IdleConnection> {
        let is_wanted = |waiting: &IdleConnection| waiting.pool_key == pool_key;
        let at = self.waiting.iter().rposition(is_wanted)?;
        self.waiting.remove(at)
    }

    /// Takes out what is not to be used again. `None`: nothing waits any more.
    fn sweep(&mut self) -> Option<(Vec<IdleConnection>, Vec<SharedConnection>)> {
        if self.waiting.is_empty() && self.shared.is_empty() {
            self.has_sweeper = false;
            return None;
        }
        let (mut over, mut over_shared) = (Vec::new(), Vec::new());
        for mut shared in std::mem::take(&mut self.shared) {
            if shared.is_usable() {
                if !shared.connection.is_idle() {
                    shared.since = Instant::now();
                }
                self.shared.push_back(shared);
            } else {
                over_shared.push(shared);
            }
        }
        for mut waiting in std::mem::take(&mut self.waiting) {
            if waiting.since.elapsed() < IDLE_MAX && waiting.is_silent() {
                self.waiting.push_back(waiting);
            } else {
                over.push(waiting);
            }
        }
        Some((over, over_shared))
    }
}

// === impl IdleConnection ===

impl IdleConnection {
    /// Neither an end nor bytes: nothing was asked for. Where the runtime has heard nothing, the kernel is
    /// not asked.
    fn is_silent(&mut self) -> bool {
        let mut byte = [0];
        let mut byte = ReadBuf::new(&mut byte);
        let look = poll_fn(|cx| Pin::new(&mut self.stream).poll_read(cx, &mut byte));
        // A task that has had its share of reads would be told to wait.
        let look = pin!(unconstrained(look));
        look.poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    }
}

// === impl SharedConnection ===

impl SharedConnection {
    fn is_usable(&self) -> bool {
        let connection = &self.connection;
        let is_over = connection.is_closed() || connection.is_shutting_down();
        !is_over && (self.since.elapsed() < IDLE_MAX || !connection.is_idle())
    }
}

// === impl Unconnected ===

impl Unconnected {
    fn because(error: &PingoraError, candidate: &Candidate) -> Self {
        Self {
            cause: match error.etype {
                ErrorType::HandshakeError => Cause::Tls,
                _ => Cause::Connect,
            },
            words: format!(
                "{} was not connected: {}",
                candidate.name(),
                error.root_cause()
            ),
        }
    }
}

impl From<Insecure> for Unconnected {
    fn from(Insecure { cause, words }: Insecure) -> Self {
        Self { cause, words }
    }
}

/// Ends a connection. Where it has TLS, TLS says so first.
pub async fn close(mut stream: ServiceStream) {
    timeout(CLOSE_WAIT, stream.shutdown()).await.ok();
}

/// Closes what is not to be used again, as long as something waits.
async fn sweep(idle: Weak<Mutex<Idle>>) {
    loop {
        sleep(SWEEP).await;
        let Some(idle) = idle.upgrade() else {
            return;
        };
        let over = idle.lock().sweep();
        if over.is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests;
