//! The admin listener: metrics, health, the reading API and a status page. It has its own sockets,
//! never the proxy's port, because nothing here may be reached by accident with an app's base URL.
//!
//! Promise: on a port it reads only (GET and HEAD; `/api/reconcile` makes a free GET of the service, once
//! a minute at most);
//! changes take the Unix socket. It refuses web pages as the proxy's door does, but a person may follow a link to the
//! status page and to an entry's. It is bounded: connections, heads, connection life, queries at once, rows in an answer.
//!
//! Lowest first: documents, bodies and the door < `explain` `query` < `failure` `page` < `shared` (what all
//! connections have) < `reading` < `line` `orders` `overview` `runs` < `change` < `routes` < `schedule` < this file, which
//! accepts connections.

mod body;
pub mod cells;
pub mod change;
pub mod documents;
mod door;
pub mod explain;
mod failure;
pub mod line;
mod once;
pub mod orders;
mod overview;
mod page;
mod query;
mod reading;
pub mod reconcile;
mod routes;
pub mod runs;
pub mod schedule;
mod shared;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::watch;

use self::change::Via;
pub use self::query::RECEIPTS_MAX;
pub use self::shared::{Admin, AdminParts, AskAutoMetrics, AutoMetrics, WRITER_SILENCE_MAX};
use crate::apps::namespace::Namespace;
use crate::places::{Door, Place, Rest};

/// Time for a request head, and for the wait between two requests.
const HEAD_DEADLINE: Duration = Duration::from_secs(5);

/// When all places are taken: so long one may be held without a request, and after one.
const SILENT_MAX: Duration = Duration::from_millis(250);
const IDLE_MAX: Duration = Duration::from_secs(2);

/// A connection is closed after this, so that a reader that stalls gives its place back.
const CONNECTION_LIFE: Duration = Duration::from_secs(600);

/// Largest request head, in bytes.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Pause after a failed accept (descriptors used up), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound socket of the admin listener.
#[derive(Debug)]
pub enum AdminListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// A connection's place, and whether it stays.
struct Holding {
    place: Place,
    /// A run of `bursar exec`, which ends with its connection, and not before.
    run: AtomicBool,
}

/// Accepts until `stop` turns true; connections that are open then finish their request.
pub async fn serve(admin: Arc<Admin>, listener: AdminListener, mut stop: watch::Receiver<bool>) {
    loop {
        let for_connection = stop.clone();
        let accepted = tokio::select! {
            accepted = accept(&admin, &listener, for_connection) => accepted,
            () = stopped(&mut stop) => return,
        };
        if let Err(error) = accepted {
            tracing::warn!(%error, "an admin connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A sender that is gone has stopped, too.
    let _ = stop.wait_for(|stopped| *stopped).await;
}

async fn accept(
    admin: &Arc<Admin>,
    listener: &AdminListener,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    match listener {
        AdminListener::Tcp(listener) => {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let place = admin.places.wait(Door::Port, SILENT_MAX).await;
            spawn_connection(Arc::clone(admin), stream, Via::Reader, place, stop);
        }
        AdminListener::Unix(listener) => {
            let (stream, _) = listener.accept().await?;
            let via = via(&stream);
            let place = admin.places.wait(Door::Socket, SILENT_MAX).await;
            spawn_connection(Arc::clone(admin), stream, via, place, stop);
        }
    }
    Ok(())
}

/// The socket's mode keeps other users out; the peer is identified all the same.
fn via(stream: &UnixStream) -> Via {
    let own = rustix::process::geteuid().as_raw();
    let shown = stream.peer_cred().ok().map(|peer| peer.uid());
    match shown.and_then(|uid| Namespace::own().user(uid)) {
        Some(uid) if uid == own || uid == 0 => Via::Owner,
        Some(_) | None => Via::Reader,
    }
}

fn spawn_connection<S>(
    admin: Arc<Admin>,
    stream: S,
    via: Via,
    place: Place,
    stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    // Nothing waits for this task at shutdown: what it reads is durable, and a change is whole or not
    // there.
    tokio::spawn(async move {
        let run = AtomicBool::new(false);
        let holding = Arc::new(Holding { place, run });
        tokio::select! {
            () = run_connection(admin, stream, via, Arc::clone(&holding), stop) => {}
            () = holding.end() => tracing::debug!("an admin connection was closed: its time is over, or others wait"),
        }
    });
}

async fn run_connection<S>(
    admin: Arc<Admin>,
    stream: S,
    via: Via,
    holding: Arc<Holding>,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let service = service_fn(move |request| {
        let (admin, holding) = (Arc::clone(&admin), Arc::clone(&holding));
        async move {
            if !holding.place.serves() {
                // The connection is about to end: nothing is begun that would not be answered.
                return std::future::pending().await;
            }
            let answer = routes::answer(&admin, via, &holding.run, request).await;
            if !holding.run.load(Ordering::Relaxed) {
                holding.place.rests(Rest::Idle, IDLE_MAX);
            }
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_DEADLINE)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an admin connection broke");
    }
}

// === impl Holding ===

impl Holding {
    /// Resolves when the connection has had its time, or its place is another's.
    async fn end(&self) {
        tokio::select! {
            () = self.place.given_away() => {}
            () = tokio::time::sleep(CONNECTION_LIFE) => {
                if self.run.load(Ordering::Relaxed) {
                    std::future::pending().await
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
