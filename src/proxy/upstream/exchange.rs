//! One attempt on the wire: connect, send the whole request, read a response head. It says exactly
//! how far a failed attempt got, because that decides whether it may have cost money.
//!
//! Promise: *not sent* means that fewer than all bytes were handed to the kernel (or that the
//! service refused the HTTP/2 stream); everything else that ends without a head is ambiguous.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pingora::connectors::http::Connector;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::http::client::HttpSession;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error as PingoraError, ErrorType};
use tokio::time::timeout;

use super::{heads, unfit};
use crate::protocol::names::X_BURSAR_VIA;
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::upstream::peers::{Peers, Pooled, ResolveError};

/// A non-streamed answer up to this size is read whole before anything is given to the app.
pub const WHOLE_BYTES_MAX: usize = 1024 * 1024;

/// The request as every attempt repeats it.
#[derive(Debug)]
pub struct Outgoing {
    pub header: RequestHeader,
    pub body: Bytes,
    /// No pooled connection: a stale one could make an attempt ambiguous (rule I7).
    pub fresh_connection: bool,
    pub read_timeout: Duration,
    /// An answer that is not a stream is read whole up to this size.
    pub whole_bytes_max: usize,
}

/// An upstream connection whose response head was read.
pub struct Answering {
    pub head: ResponseHeader,
    /// Nothing of it goes to an app; the price in its head counts.
    pub is_unfit: bool,
    session: HttpSession,
    peer: HttpPeer,
    reusable: bool,
    /// The pool, of a connection that other requests use meanwhile.
    shared: Option<Pooled>,
    read_timeout: Duration,
}

/// A lost attempt, and what happened in words where it did not even connect.
#[derive(Debug)]
pub struct Failed {
    pub lost: Lost,
    /// For the log: it names addresses, and nothing of a request.
    pub words: Option<String>,
}

/// A response body that did not end as its framing says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyBroke(pub Cause);

/// Request bodies are handed over in pieces, so that a write timeout measures progress.
const PIECE_BYTES: usize = 256 * 1024;

const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// After a failed write the service may have answered early (413, 401): how long to look for it.
const EARLY_ANSWER_WAIT: Duration = Duration::from_millis(500);

/// "interim-response floods": more 1xx heads than this are a broken service.
const INTERIM_HEADS_MAX: usize = 10;

/// Idle time of pooled connections, below what servers commonly allow.
const POOL_IDLE: Duration = Duration::from_secs(55);

/// Longest text of a failure to connect.
const WORDS_BYTES_MAX: usize = 500;

/// Bounds of draining a refused answer so that the next attempt reuses the connection.
const REFUSED_BODY_MAX: usize = 64 * 1024;
const REFUSED_BODY_WAIT: Duration = Duration::from_millis(500);

/// How long the end of an exchange may take: TLS first sends what is left of a request, and a service that
/// reads nothing would be waited for without end.
const SHUTDOWN_WAIT: Duration = Duration::from_millis(500);

/// Makes one attempt.
pub async fn attempt(
    connector: &Connector,
    peers: &Peers,
    outgoing: &Outgoing,
    fresh_connection: bool,
) -> Result<Answering, Failed> {
    let (mut session, peer, reused) = connect(connector, peers, fresh_connection).await?;
    session.set_read_timeout(Some(outgoing.read_timeout));
    session.set_write_timeout(Some(WRITE_TIMEOUT));
    let written = write_request(&mut session, peers, &peer, outgoing).await;
    let mut reusable = written.is_ok();
    let read = match written {
        Ok(()) => head_in_time(&mut session, outgoing.read_timeout).await,
        Err(cause) => match timeout(EARLY_ANSWER_WAIT, read_head(&mut session)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => return Err(Lost::NotSent(cause).into()),
        },
    };
    // A connection of HTTP/1.1 ends with its request; one of HTTP/2 would be given the next one, too.
    let shared = matches!(session, HttpSession::H2(_)).then(|| peers.pooled());
    if let (Err(HeadLost::Other(_)), Some(shared)) = (&read, &shared) {
        shared.turn();
    }
    match read {
        Ok(()) => {}
        Err(HeadLost::NotRun) => return Err(Lost::NotSent(Cause::Refused).into()),
        Err(HeadLost::Closed) if reused => return Err(Lost::StaleConnection.into()),
        Err(HeadLost::Closed) => return Err(Lost::NoHead(Cause::Closed).into()),
        Err(HeadLost::Other(cause)) => return Err(Lost::NoHead(cause).into()),
    }
    let Some(head) = session.response_header().cloned() else {
        return Err(Lost::NoHead(Cause::Protocol).into());
    };
    if fresh_connection || unfit::is_framed_twice(&session) {
        reusable = false;
    }
    Ok(Answering {
        is_unfit: unfit::is_unfit(&head, &session),
        head,
        session,
        peer,
        reusable,
        shared,
        read_timeout: outgoing.read_timeout,
    })
}

/// Tries the addresses in turn; the first that connects is used and remembered.
async fn connect(
    connector: &Connector,
    peers: &Peers,
    fresh_connection: bool,
) -> Result<(HttpSession, HttpPeer, bool), Failed> {
    let candidates = peers
        .candidates(fresh_connection)
        .await
        .map_err(|ResolveError| Failed {
            lost: Lost::NotSent(Cause::Name),
            words: Some(format!("{} does not resolve", peers.authority())),
        })?;
    let mut last = Cause::Connect;
    let mut words = None;
    for peer in candidates {
        match connector.get_http_session(&peer).await {
            Ok((session, reused)) => {
                peers.connected(&peer);
                return Ok((session, peer, reused));
            }
            Err(error) => {
                last = connect_cause(&error);
                let error_words = on_one_line(&error.to_string());
                words = Some(match last {
                    Cause::NoTls => format!("{} speaks no TLS: {error_words}", peers.authority()),
                    _ => error_words,
                });
            }
        }
    }
    Err(Failed {
        lost: Lost::NotSent(last),
        words,
    })
}

/// Words that hold what the other side wrote (names in its certificate), fit for a line of the log.
fn on_one_line(words: &str) -> String {
    let mut line = String::new();
    for character in words.chars() {
        if line.len() > WORDS_BYTES_MAX {
            line.push('…');
            break;
        }
        if character.is_control() {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line
}

fn connect_cause(error: &PingoraError) -> Cause {
    match error.etype {
        ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => Cause::ConnectTimeout,
        ErrorType::InvalidCert => Cause::Certificate,
        ErrorType::TLSHandshakeFailure | ErrorType::HandshakeError => {
            // rustls reports all of these like any handshake problem; only the text tells them apart.
            let words = error.to_string();
            if words.contains("invalid peer certificate") {
                Cause::Certificate
            } else if words.contains("InvalidContentType") {
                Cause::NoTls
            } else {
                Cause::Tls
            }
        }
        _ => Cause::Connect,
    }
}

async fn write_request(
    session: &mut HttpSession,
    peers: &Peers,
    peer: &HttpPeer,
    outgoing: &Outgoing,
) -> Result<(), Cause> {
    let mut header = outgoing.header.clone();
    if !peers.may_lead_back(peer) {
        header.remove_header(&X_BURSAR_VIA);
    }
    if matches!(session, HttpSession::H2(_)) {
        heads::to_http2(&mut header, peers).map_err(|_| Cause::Protocol)?;
    }
    session
        .write_request_header(Box::new(header))
        .await
        .map_err(|_| Cause::Write)?;
    let mut rest = outgoing.body.clone();
    while !rest.is_empty() {
        let piece = rest.split_to(PIECE_BYTES.min(rest.len()));
        session
            .write_request_body(piece, false)
            .await
            .map_err(|_| Cause::Write)?;
    }
    session
        .finish_request_body()
        .await
        .map_err(|_| Cause::Write)
}

/// How a head was missed.
enum HeadLost {
    /// The service says that it did not run the request.
    NotRun,
    Closed,
    Other(Cause),
}

/// One silence may last as long as the whole head, interim ones included: a head that comes byte by
/// byte would be waited for without end.
async fn head_in_time(session: &mut HttpSession, limit: Duration) -> Result<(), HeadLost> {
    match timeout(limit, read_head(session)).await {
        Ok(read) => read,
        Err(_) => Err(HeadLost::Other(Cause::Timeout)),
    }
}

async fn read_head(session: &mut HttpSession) -> Result<(), HeadLost> {
    for _ in 0..=INTERIM_HEADS_MAX {
        if let Err(error) = session.read_response_header().await {
            return Err(head_lost(&error));
        }
        match session.response_header() {
            // No request of ours asks for another protocol: what follows is in none that we know.
            Some(head) if head.status == StatusCode::SWITCHING_PROTOCOLS => {
                return Err(HeadLost::Other(Cause::Protocol));
            }
            Some(head) if head.status.is_informational() => {}
            Some(_) => return Ok(()),
            None => return Err(HeadLost::Other(Cause::Protocol)),
        }
    }
    Err(HeadLost::Other(Cause::Protocol))
}

fn head_lost(error: &PingoraError) -> HeadLost {
    if let Some(h2) = error.root_cause().downcast_ref::<h2::Error>() {
        // REFUSED_STREAM, and a graceful GOAWAY below our stream: "not sent".
        let refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM);
        let left_out = h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
        if h2.is_remote() && (refused || left_out) {
            return HeadLost::NotRun;
        }
    }
    match error.etype {
        ErrorType::ConnectionClosed => HeadLost::Closed,
        ErrorType::ReadTimedout => HeadLost::Other(Cause::Timeout),
        ErrorType::ReadError => HeadLost::Other(Cause::Reset),
        _ => HeadLost::Other(Cause::Protocol),
    }
}

// === impl Answering ===

impl Answering {
    /// The next body bytes; `None` at a clean end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, BodyBroke> {
        self.session.read_response_body().await.map_err(|error| {
            if let Some(shared) = &self.shared {
                shared.turn();
            }
            match error.etype {
                ErrorType::ReadTimedout => BodyBroke(Cause::Timeout),
                ErrorType::ConnectionClosed => BodyBroke(Cause::Closed),
                _ => BodyBroke(Cause::Reset),
            }
        })
    }

    /// Gives the connection back to the pool; after a clean end only.
    pub async fn release(self, connector: &Connector) {
        if self.reusable {
            connector
                .release_http_session(self.session, &self.peer, Some(POOL_IDLE))
                .await;
        }
    }

    /// Ends the exchange before its answer has ended.
    pub async fn abandon(mut self) {
        timeout(SHUTDOWN_WAIT, self.session.shutdown()).await.ok();
    }

    /// Reads the small body of an attempt that is repeated, so that the retry reuses the
    /// connection. `None` when it is too large, too slow or broken.
    pub async fn read_small_body(&mut self) -> Option<Bytes> {
        timeout(REFUSED_BODY_WAIT, self.read_body(REFUSED_BODY_MAX))
            .await
            .ok()
            .flatten()
    }

    /// Reads a body of at most `bytes_max`. `None` when it is larger, broken, or takes longer in all
    /// than one silence may.
    pub async fn read_body(&mut self, bytes_max: usize) -> Option<Bytes> {
        let limit = self.read_timeout;
        let read = async {
            let mut body = Vec::new();
            loop {
                match self.next_chunk().await {
                    Ok(Some(chunk)) if body.len() + chunk.len() <= bytes_max => {
                        body.extend_from_slice(&chunk);
                    }
                    Ok(None) => return Some(Bytes::from(body)),
                    Ok(Some(_)) | Err(_) => return None,
                }
            }
        };
        timeout(limit, read).await.ok().flatten()
    }
}

// === impl Failed ===

impl From<Lost> for Failed {
    fn from(lost: Lost) -> Self {
        Self { lost, words: None }
    }
}

#[cfg(test)]
mod tests;
