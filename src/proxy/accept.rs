//! Connections of apps: accept, wait for a request, read its head under one total deadline, hand it
//! to [`super::serve`], and keep the connection for the next one.
//!
//! Why our own accept loop and not pingora's listening service: that one panics when a bind fails,
//! hides the bound port, and has no safe way to reset a connection, which a break towards a
//! close-delimited app needs (docs/pingora.md).
//!
//! Promise: idle connections live at least 75 s, unless all places are taken, and end at shutdown; a head
//! that drips is answered 408, and one without end 431; connections are bounded, and so are those that are
//! turned away. No connection is turned away while a connection holds a place that has sent no whole request and rests.
//! An idle connection is its socket, its place and a small task: all else is made for a request and goes with it.

mod head;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use http::Version;
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep, timeout};

use self::head::{WholeHead, read_head};
use super::downstream::Downstream;
use super::refuse::{Code, Refusal};
use crate::config::OTHER_APP;
use crate::places::{Place, Rest};
use crate::proxy::door::buffer::{self, ASKING_PATIENCE};
use crate::proxy::downstream::app_head::AppHead;
use crate::proxy::downstream::connection::{Peer, Socket};
use crate::proxy::gateway::Gateway;
use crate::proxy::life::Arriving;
use crate::proxy::relay::own;
use crate::proxy::report::{Report, report};

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

/// What a handshake of TLS begins with: its kind of record, and the major version.
const TLS_HANDSHAKE: &[u8] = &[22, 3];

/// How much of a request is read at once, at first: most come whole.
const FIRST_READ_BYTES: usize = 4096;

/// How long a connection that came just before a stop may take to say something. Where the sockets
/// were given, its app was promised not to be refused.
const ARRIVAL_MAX: Duration = Duration::from_secs(1);

/// Pause after a failed accept (descriptors used up), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

// === impl AppListener ===

impl AppListener {
    /// A connection, and its app's address where it came in by a port.
    async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // Fails for a peer that has left already, which is no fault of the listener.
                stream.set_nodelay(true).ok();
                Ok((Socket::Tcp(stream), Some(from)))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
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
            Ok((socket, from)) => {
                let accepted_at = gateway.clock.monotonic();
                let door = socket.door();
                let peer = Peer::new(socket, from);
                let probe = peer.probe();
                let place = gateway.places.take(door, move || probe.has_spoken());
                let (serving, stop) = (Arc::clone(&gateway), stop.clone());
                if let Some(place) = place {
                    let arriving = Arriving::enter(&gateway.life);
                    gateway.life.spawn(async move {
                        tokio::select! {
                            () = run_connection(&serving, peer, stop, arriving, accepted_at, &place) => {}
                            () = place.given_away() => {
                                serving.metrics.refusal(OTHER_APP, Code::ConnectionsFull.as_str());
                            }
                        }
                    });
                } else if let Ok(turn) = Arc::clone(&gateway.turn_aways).try_acquire_owned() {
                    gateway.life.spawn(async move {
                        let _turn = turn;
                        turn_away(&serving, peer).await;
                    });
                } else {
                    gateway
                        .metrics
                        .refusal(OTHER_APP, Code::ConnectionsFull.as_str());
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
    mut peer: Peer,
    mut stop: watch::Receiver<bool>,
    arriving: Arriving,
    accepted_at: Duration,
    place: &Place,
) {
    let mut arriving = Some(arriving);
    let mut free_since = accepted_at;
    let mut idle = std::pin::pin!(sleep(KEEP_ALIVE));
    loop {
        let rest = match arriving {
            Some(_) => Rest::Silent,
            None => Rest::Idle,
        };
        // The wait between requests is not part of the head's deadline.
        let read = {
            let begins = first_bytes(&mut peer, place, rest);
            tokio::pin!(begins);
            let read = tokio::select! {
                biased;
                read = begins.as_mut() => Some(read),
                () = idle_too_long(idle.as_mut()) => return,
                _ = stop.wait_for(|stopped| *stopped) => None,
            };
            match (read, &arriving) {
                (Some(read), _) => read,
                (None, Some(_)) => match timeout(ARRIVAL_MAX, begins).await {
                    Ok(read) => read,
                    Err(_) => return,
                },
                (None, None) => return,
            }
        };
        let Ok(mut unread) = read else { return };
        let reading = read_head(&mut peer, &mut unread, &gateway.large_heads);
        let head = match timeout(HEAD_DEADLINE, reading).await {
            Ok(head) => head,
            Err(_) => Err(Code::HeadTooSlow),
        };
        let begun = BegunRequest {
            head,
            unread,
            free_since,
            may_stay: !*stop.borrow(),
        };
        // What a request needs is large, and a connection has none most of the time.
        if !Box::pin(run_request(gateway, &peer, place, begun)).await {
            return;
        }
        free_since = gateway.clock.monotonic();
        arriving = None;
    }
}

/// A request whose head has come, or never will.
struct BegunRequest {
    head: Result<WholeHead, Code>,
    /// The head, and what came behind it.
    unread: BytesMut,
    /// Since when its connection is free to carry it.
    free_since: Duration,
    may_stay: bool,
}

/// Resolves with the first bytes of a request, or with an error where there are none any more. The place knows of
/// them before they are read.
async fn first_bytes(peer: &mut Peer, place: &Place, rest: Rest) -> io::Result<BytesMut> {
    if rest != Rest::Silent {
        place.rests(rest, Duration::ZERO);
    }
    let mut bytes = BytesMut::new();
    loop {
        peer.speaks().await?;
        place.rests(Rest::Begun, BEGUN_PATIENCE);
        bytes.reserve(FIRST_READ_BYTES);
        match peer.try_read(&mut bytes, FIRST_READ_BYTES) {
            Some(Ok(0)) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(Ok(_)) => return Ok(bytes),
            Some(Err(error)) => return Err(error),
            // The runtime was mistaken: it has heard since that there is nothing.
            None => place.rests(rest, Duration::ZERO),
        }
    }
}

/// Resolves when the connection has rested for [`KEEP_ALIVE`]. The timer is set anew only when it has run out.
async fn idle_too_long(mut idle: Pin<&mut Sleep>) {
    let until = Instant::now() + KEEP_ALIVE;
    loop {
        idle.as_mut().await;
        if Instant::now() >= until {
            return;
        }
        idle.as_mut().reset(until);
    }
}

/// Serves one request, or refuses what is none. Returns whether its connection can be kept.
async fn run_request(
    gateway: &Arc<Gateway>,
    peer: &Peer,
    place: &Place,
    begun: BegunRequest,
) -> bool {
    let mut unread = begun.unread;
    let mut _room = None;
    let parsed = match begun.head {
        Ok(WholeHead { length, room }) => {
            _room = room;
            let head = unread.split_to(length);
            peer.unread(unread);
            AppHead::parse(head.freeze())
        }
        Err(Code::HeadMalformed) if unread.starts_with(TLS_HANDSHAKE) => Err(Refusal::because(
            Code::HeadMalformed,
            "What came is TLS, and this port speaks plain HTTP: the base URL begins with http://.",
        )),
        Err(code) => Err(code.into()),
    };
    let cut = gateway.life.cut_signal();
    let head = match parsed {
        Ok(head) => head,
        Err(refusal) => {
            let downstream = Downstream::without_request(peer.clone(), cut);
            refuse_unread(gateway, downstream, refusal).await;
            return false;
        }
    };
    place.rests(Rest::Asking, ASKING_PATIENCE);
    // An HTTP/1.0 app may wait for the end of the connection.
    let keeps = begun.may_stay && head.version != Version::HTTP_10;
    let downstream = Downstream::new(head, keeps, peer.clone(), cut).since(begun.free_since);
    super::serve::serve_request(gateway, downstream, place).await
}

/// Too many connections: says so, takes in for a moment what is sent anyway (or the answer would be
/// lost to a reset), and closes.
async fn turn_away(gateway: &Gateway, peer: Peer) {
    let downstream = Downstream::without_request(peer, gateway.life.cut_signal());
    let refused = refuse_unread(gateway, downstream, Code::ConnectionsFull.into());
    if timeout(HEAD_DEADLINE, refused).await.is_err() {
        tracing::debug!("a connection above the limit did not take its answer");
    }
}

/// Answers a connection whose head could not be read, and closes it.
async fn refuse_unread(gateway: &Gateway, downstream: Downstream, refusal: Refusal) {
    let entry = gateway.ledger.new_entry_id();
    report(gateway, &downstream, &Report::of_refusal(&refusal, entry));
    let (downstream, _) = own::send_refusal(downstream, &refusal, entry, None).await;
    buffer::drain_raw(downstream).await;
}
