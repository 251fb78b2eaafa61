//! Connections to the service: pingora's connector opens them, speaks TLS and keeps those of HTTP/2; those
//! of HTTP/1.1 are kept here between two requests.
//!
//! Why not by pingora: it starts a task for each connection that is put back, and wakes that task each time
//! one is taken out. Here a look when one is taken out, and one task for all, do the same.
//!
//! Promise: a connection is given to one request at a time, the one used last first; none that the service
//! has closed or has written to unasked, as far as the runtime has heard; none longer than [`IDLE_MAX`]
//! after its last request; at most [`IDLE_CONNECTIONS_MAX`] are kept.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use pingora::Error as PingoraError;
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::Connector;
use pingora::protocols::Stream;
use pingora::protocols::http::client::HttpSession;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, sleep, timeout};

use super::peers::Candidate;

/// Opens connections to the service and keeps those that wait for a next request.
pub struct Connections {
    connector: Connector,
    idle: Arc<Mutex<Idle>>,
}

/// A connection for one request.
pub enum ServiceConnection {
    Http1(Stream),
    /// One of the streams of a connection that other requests use meanwhile.
    Http2(Box<HttpSession>),
}

/// The connections of HTTP/1.1 that wait, the one that waits longest first.
#[derive(Default)]
struct Idle {
    waiting: VecDeque<IdleConnection>,
    /// A task looks after them.
    has_sweeper: bool,
}

struct IdleConnection {
    /// Of whom it may serve ([`Candidate::pool_key`]).
    pool_key: u64,
    stream: Stream,
    since: Instant,
}

/// Idle time of kept connections, below what servers commonly allow.
const IDLE_MAX: Duration = Duration::from_secs(55);

/// Idle connections of HTTP/1.1 kept. `server/descriptors` counts them beside those of requests.
const IDLE_CONNECTIONS_MAX: usize = 256;

/// How long the end of a connection that is not kept may take: TLS first sends what is left of a request, and a
/// service that reads nothing would be waited for without end.
pub const CLOSE_WAIT: Duration = Duration::from_millis(500);

/// How often those are looked for that the service has closed or that have waited too long.
const SWEEP: Duration = Duration::from_secs(5);

// === impl Connections ===

impl Connections {
    pub fn new(options: ConnectorOptions) -> Self {
        Self {
            connector: Connector::new(Some(options)),
            idle: Arc::default(),
        }
    }

    /// A connection to the candidate, and whether it was used before.
    pub async fn open(
        &self,
        candidate: &Candidate,
    ) -> Result<(ServiceConnection, bool), Box<PingoraError>> {
        if let Some(stream) = self.take(candidate.pool_key) {
            return Ok((ServiceConnection::Http1(stream), true));
        }
        let (session, reused) = self.connector.get_http_session(&*candidate.peer).await?;
        Ok(match session {
            HttpSession::H1(session) => (ServiceConnection::Http1(session.into_inner()), reused),
            session => (ServiceConnection::Http2(Box::new(session)), reused),
        })
    }

    /// Keeps a connection of HTTP/1.1 whose answer came whole, and lets a next one follow.
    pub fn keep(&self, stream: Stream, pool_key: u64) {
        let mut idle = self.idle.lock();
        let surplus = idle.keep(IdleConnection {
            pool_key,
            stream,
            since: Instant::now(),
        });
        let wants_sweeper = !std::mem::replace(&mut idle.has_sweeper, true);
        drop(idle);
        // Closing is a system call, with TLS several: not under the lock.
        drop(surplus);
        if wants_sweeper {
            tokio::spawn(sweep(Arc::downgrade(&self.idle)));
        }
    }

    /// Takes a stream of HTTP/2 back after a clean end of its exchange.
    pub async fn release_http2(&self, session: HttpSession, candidate: &Candidate) {
        self.connector
            .release_http_session(session, &*candidate.peer, Some(IDLE_MAX))
            .await;
    }

    fn take(&self, pool_key: u64) -> Option<Stream> {
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

    fn take(&mut self, pool_key: u64) -> Option<IdleConnection> {
        let is_wanted = |waiting: &IdleConnection| waiting.pool_key == pool_key;
        let at = self.waiting.iter().rposition(is_wanted)?;
        self.waiting.remove(at)
    }

    /// Takes out what is not to be used again. `None`: nothing waits any more.
    fn sweep(&mut self) -> Option<Vec<IdleConnection>> {
        if self.waiting.is_empty() {
            self.has_sweeper = false;
            return None;
        }
        let mut over = Vec::new();
        for mut waiting in std::mem::take(&mut self.waiting) {
            if waiting.since.elapsed() < IDLE_MAX && waiting.is_silent() {
                self.waiting.push_back(waiting);
            } else {
                over.push(waiting);
            }
        }
        Some(over)
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

/// Ends a connection. Where it has TLS, TLS says so first.
pub async fn close(mut stream: Stream) {
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
