//! Connections of apps: accept, wait for a request, read its head under one total deadline, hand it
//! to [`super::serve`], and keep the connection for the next one. The parser is given a whole head, and what
//! it made of it is compared with what came.
//!
//! Why our own accept loop and not pingora's listening service: that one panics when a bind fails,
//! hides the bound port, and has no safe way to reset a connection, which a break towards a
//! close-delimited app needs (docs/pingora.md). HTTP/1.1 itself is pingora's server session.
//!
//! Promise: idle connections live at least 75 s, unless all places are taken, and end at shutdown; a head
//! that drips is answered 408, and one without end 431; connections are bounded, and so are those that are
//! turned away. No connection is turned away while a connection holds a place that has sent no whole request and rests.

mod head;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Version;
use pingora::protocols::Stream;
use pingora::protocols::http::v1::server::HttpSession;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::timeout;

use self::head::read_head;
use super::downstream::Downstream;
use super::refuse::{Code, Refusal};
use crate::places::{Place, Rest};
use crate::proxy::door::buffer::{self, ASKING_PATIENCE};
use crate::proxy::downstream::connection::{AppConnection, Peer, Reset, Socket};
use crate::proxy::gateway::Gateway;
use crate::proxy::life::Arriving;
use crate::proxy::relay::own;
use crate::proxy::report::report_refusal;

/// A bound socket that apps connect to.
#[derive(Debug)]
pub enum AppListener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

/// How long an idle connection is kept. Pooled clients drop theirs after 4 to 5 s; a shorter time
/// here than theirs would make them race the close.
const KEEP_ALIVE: Duration = Duration::from_secs(90);

/// So long a head that began gives way to no other: most come in one piece.
const BEGUN_PATIENCE: Duration = Duration::from_millis(250);

/// From the first byte of a head to its last.
const HEAD_DEADLINE: Duration = Duration::from_secs(10);

/// Longest silence of what a session reads and throws away. Heads and bodies have deadlines of their own.
const READ_IDLE: Duration = Duration::from_secs(30);

/// How long a connection that came just before a stop may take to say something. Where the sockets
/// were given, its app was promised not to be refused.
const ARRIVAL_MAX: Duration = Duration::from_secs(1);

/// Pause after a failed accept (descriptors used up), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

// === impl AppListener ===

impl AppListener {
    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // Fails for a peer that has left already, which is no fault of the listener.
                stream.set_nodelay(true).ok();
                Ok(Socket::Tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Socket::Unix(stream))
            }
        }
    }
}

/// Accepts connections until `stop` turns true. Connections that are open then finish their request.
pub async fn serve(gateway: Arc<Gateway>, listener: AppListener, mut stop: watch::Receiver<bool>) {
    let _door = Arriving::enter(&gateway.life);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stopped| *stopped) => return,
        };
        match accepted {
            Ok(socket) => {
                let accepted_at = gateway.clock.monotonic();
                let door = socket.door();
                let peer = Peer::new(socket);
                let probe = peer.probe();
                let place = gateway.places.take(door, move || probe.has_spoken());
                let (serving, stop) = (Arc::clone(&gateway), stop.clone());
                if let Some(place) = place {
                    let arriving = Arriving::enter(&gateway.life);
                    gateway.life.spawn(async move {
                        tokio::select! {
                            () = run_connection(&serving, peer, stop, arriving, accepted_at, &place) => {}
                            () = place.given_away() => {
                                serving.metrics.refusal(Code::ConnectionsFull.as_str());
                            }
                        }
                    });
                } else if let Ok(turn) = Arc::clone(&gateway.turn_aways).try_acquire_owned() {
                    gateway.life.spawn(async move {
                        let _turn = turn;
                        turn_away(&serving, peer).await;
                    });
                } else {
                    gateway.metrics.refusal(Code::ConnectionsFull.as_str());
                }
            }
            // Its peer gave up before it was accepted.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Serves one connection, request after request. To be dropped where its place is given away.
async fn run_connection(
    gateway: &Arc<Gateway>,
    peer: Peer,
    mut stop: watch::Receiver<bool>,
    arriving: Arriving,
    accepted_at: Duration,
    place: &Place,
) {
    let mut arriving = Some(arriving);
    let mut free_since = accepted_at;
    let reset = Reset::default();
    let mut stream: Stream = Box::new(AppConnection::new(peer.clone(), reset.clone()));
    let mut first_bytes = BytesMut::new();
    loop {
        if first_bytes.is_empty() {
            if arriving.is_none() {
                place.rests(Rest::Idle, Duration::ZERO);
            }
            // The wait between requests is not part of the head's deadline. Its first bytes are not
            // read before the place knows of them.
            let begins = async {
                peer.speaks().await?;
                place.rests(Rest::Begun, BEGUN_PATIENCE);
                let mut bytes = BytesMut::with_capacity(4096);
                stream.read_buf(&mut bytes).await?;
                Ok::<_, io::Error>(bytes)
            };
            tokio::pin!(begins);
            let read = tokio::select! {
                read = timeout(KEEP_ALIVE, begins.as_mut()) => Some(read),
                _ = stop.wait_for(|stopped| *stopped) => None,
            };
            let read = match read {
                Some(read) => read,
                None if arriving.is_some() => timeout(ARRIVAL_MAX, begins).await,
                None => return,
            };
            match read {
                Ok(Ok(bytes)) if !bytes.is_empty() => first_bytes = bytes,
                _ => return,
            }
        } else {
            place.rests(Rest::Begun, BEGUN_PATIENCE);
        }
        let mut unread = std::mem::take(&mut first_bytes);
        let reading = read_head(&mut stream, &mut unread, &gateway.large_heads);
        let whole = timeout(HEAD_DEADLINE, reading).await;
        let mut session = HttpSession::new(stream);
        session.set_pipelining_enabled(true);
        session.set_read_timeout(Some(READ_IDLE));
        let mut _room = None;
        let parsed = match whole {
            Ok(Ok(whole)) => {
                _room = whole.room;
                let head = unread.split_to(whole.length);
                peer.unread(unread);
                parse_head(&mut session, head).await
            }
            Ok(Err(code)) => Err(code.into()),
            Err(_) => Err(Code::HeadTooSlow.into()),
        };
        if let Err(refusal) = parsed {
            let cut = gateway.life.cut_signal();
            let downstream = Downstream::without_request(session, peer, reset, cut);
            refuse_unread(gateway, downstream, refusal).await;
            return;
        }
        place.rests(Rest::Asking, ASKING_PATIENCE);
        // An HTTP/1.0 app may wait for the end of the connection.
        let is_old = session.req_header().version == Version::HTTP_10;
        let keep = !*stop.borrow() && !is_old;
        session.set_server_keepalive(keep.then_some(KEEP_ALIVE.as_secs()));
        let downstream = Downstream::new(
            session,
            peer.clone(),
            reset.clone(),
            gateway.life.cut_signal(),
        );
        let downstream = downstream.since(free_since);
        match super::serve::serve_request(gateway, downstream, place).await {
            Some(reusable) => {
                free_since = gateway.clock.monotonic();
                let (reused, pipelined) = reusable.into_parts();
                stream = reused;
                first_bytes = pipelined.unwrap_or_default();
            }
            None => return,
        }
        arriving = None;
    }
}

/// Has a whole head parsed. The parser has to have read what came, and nothing else: it escapes bytes that no
/// target may hold, and what it wrote itself would be judged in their place.
async fn parse_head(session: &mut HttpSession, head: BytesMut) -> Result<(), Refusal> {
    let came = Bytes::copy_from_slice(&head);
    session.set_pipelined_prefix(head);
    match session.read_request().await {
        Ok(Some(_)) if session.get_headers_raw_bytes() == came => Ok(()),
        Ok(Some(_)) => Err(Refusal::because(
            Code::HeadMalformed,
            "The request target holds a blank, or another byte that no target may: escape it (a space is %20).",
        )),
        Err(error) if has_too_many_fields(&error) => Err(Code::HeadTooLarge.into()),
        Ok(None) | Err(_) => Err(Code::HeadMalformed.into()),
    }
}

/// The parser's own bound, which is above ours: it gives up before the fields can be counted.
fn has_too_many_fields(error: &pingora::Error) -> bool {
    error.to_string().contains("too many headers")
}

/// Too many connections: says so, takes in for a moment what is sent anyway (or the answer would be
/// lost to a reset), and closes.
async fn turn_away(gateway: &Gateway, peer: Peer) {
    let reset = Reset::default();
    let connection = AppConnection::new(peer.clone(), reset.clone());
    let session = HttpSession::new(Box::new(connection));
    let downstream = Downstream::without_request(session, peer, reset, gateway.life.cut_signal());
    let refused = refuse_unread(gateway, downstream, Code::ConnectionsFull.into());
    if timeout(HEAD_DEADLINE, refused).await.is_err() {
        tracing::debug!("a connection above the limit did not take its answer");
    }
}

/// Answers a connection whose head could not be read, and closes it.
async fn refuse_unread(gateway: &Gateway, downstream: Downstream, refusal: Refusal) {
    let entry = gateway.ledger.new_entry_id();
    report_refusal(gateway, &refusal, None, entry, Duration::ZERO);
    let (downstream, _) = own::send_refusal(downstream, &refusal, entry).await;
    buffer::drain_raw(downstream).await;
}
