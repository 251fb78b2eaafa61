//! One attempt on the wire: connect, send the whole request, read a response head. It says exactly
//! how far a failed attempt got, because that decides whether it may have cost money.
//!
//! Promise: *not sent* means that fewer than all bytes were handed to the kernel (or that the
//! service refused the HTTP/2 stream); everything else that ends without a head is ambiguous.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use pingora::http::ResponseHeader;
use pingora::protocols::http::client::HttpSession;
use pingora::{Error as PingoraError, ErrorType};
use tokio::time::timeout;

use super::connections::{self, CLOSE_WAIT, Connections, ServiceConnection};
use super::http1::{AnswerLost, AnswerReader};
use super::outgoing::Outgoing;
use super::silence::{Silence, TooLong};
use super::unfit;
use crate::proxy::purchase::lost::{Cause, Lost};
use crate::proxy::upstream::peers::{Candidate, Peers, Pooled, ResolveError};

/// A non-streamed answer up to this size is read whole before anything is given to the app.
pub const WHOLE_BYTES_MAX: usize = 1024 * 1024;

/// An upstream connection whose response head was read.
pub struct Answering {
    head: ResponseHeader,
    is_unfit: bool,
    on_kept_connection: bool,
    reader: AnswerOver,
    candidate: Candidate,
    reusable: bool,
    /// The pool, of a connection that other requests use meanwhile.
    shared: Option<Pooled>,
    silence: Silence,
}

/// What reads an answer.
enum AnswerOver {
    Http1(AnswerReader),
    Http2(Box<HttpSession>),
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

/// After a failed write the service may have answered early (413, 401): how long to look for it.
const EARLY_ANSWER_WAIT: Duration = Duration::from_millis(500);

/// "interim-response floods": more 1xx heads than this are a broken service.
const INTERIM_HEADS_MAX: usize = 10;

/// Longest text of a failure to connect.
const WORDS_BYTES_MAX: usize = 500;

/// Bounds of draining a refused answer so that the next attempt reuses the connection.
const REFUSED_BODY_MAX: usize = 64 * 1024;
const REFUSED_BODY_WAIT: Duration = Duration::from_millis(500);

/// Makes one attempt.
pub async fn attempt(
    connections: &Connections,
    peers: &Peers,
    outgoing: &Outgoing,
    fresh_connection: bool,
) -> Result<Answering, Failed> {
    let (opened, candidate, reused) = connect(connections, peers, fresh_connection).await?;
    // A connection of HTTP/1.1 ends with its request; one of HTTP/2 would be given the next one, too.
    let shared = matches!(opened, ServiceConnection::Http2(_)).then(|| peers.pooled());
    let may_lead_back = candidate.may_lead_back;
    let (mut reader, written) = match opened {
        ServiceConnection::Http1(mut stream) => {
            let written = outgoing.send_http1(&mut stream, may_lead_back).await;
            let reader = AnswerReader::new(stream, &outgoing.header.method);
            (AnswerOver::Http1(reader), written)
        }
        ServiceConnection::Http2(mut session) => {
            let written = outgoing
                .send_http2(&mut session, peers, may_lead_back)
                .await;
            (AnswerOver::Http2(session), written)
        }
    };
    let reusable = written.is_ok() && !fresh_connection;
    let mut silence = Silence::of(outgoing.read_timeout);
    let read = match written {
        // One silence may last as long as the whole head, interim ones included: a head that comes byte by
        // byte would be waited for without end.
        Ok(()) => match silence.bounds(read_head(&mut reader)).await {
            Ok(read) => read,
            Err(TooLong) => Err(HeadLost::Other(Cause::Timeout)),
        },
        Err(cause) => match timeout(EARLY_ANSWER_WAIT, read_head(&mut reader)).await {
            Ok(Ok(head)) => Ok(head),
            Ok(Err(_)) | Err(_) => return Err(Lost::NotSent(cause).into()),
        },
    };
    if let (Err(HeadLost::Other(_)), Some(shared)) = (&read, &shared) {
        shared.turn();
    }
    let head = match read {
        Ok(head) => head,
        Err(HeadLost::NotRun) => return Err(Lost::NotSent(Cause::Refused).into()),
        Err(HeadLost::Closed) if reused => return Err(Lost::StaleConnection.into()),
        Err(HeadLost::Closed) => return Err(Lost::NoHead(Cause::Closed).into()),
        Err(HeadLost::Other(cause)) => return Err(Lost::NoHead(cause).into()),
    };
    Ok(Answering {
        is_unfit: unfit::is_unfit(&head, reader.head_bytes()),
        on_kept_connection: reused,
        head,
        reader,
        candidate,
        reusable,
        shared,
        silence,
    })
}

/// Tries the addresses in turn; the first that connects is used and remembered.
async fn connect(
    connections: &Connections,
    peers: &Peers,
    fresh_connection: bool,
) -> Result<(ServiceConnection, Candidate, bool), Failed> {
    let candidates = peers
        .candidates(fresh_connection)
        .await
        .map_err(|ResolveError| Failed {
            lost: Lost::NotSent(Cause::Name),
            words: Some(format!("{} does not resolve", peers.authority())),
        })?;
    let mut last = Cause::Connect;
    let mut words = None;
    for (at, candidate) in candidates.iter().enumerate() {
        match connections.open(candidate).await {
            Ok((opened, reused)) => {
                if at > 0 {
                    peers.connected(candidate);
                }
                return Ok((opened, candidate.clone(), reused));
            }
            Err(unconnected) => {
                last = unconnected.cause;
                let error_words = on_one_line(&unconnected.words);
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

/// How a head was missed.
enum HeadLost {
    /// The service says that it did not run the request.
    NotRun,
    /// Before its first byte.
    Closed,
    Other(Cause),
}

async fn read_head(reader: &mut AnswerOver) -> Result<ResponseHeader, HeadLost> {
    for _ in 0..=INTERIM_HEADS_MAX {
        let head = reader.read_head().await?;
        // No request of ours asks for another protocol: what follows is in none that we know.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            break;
        }
        if !head.status.is_informational() {
            return Ok(head);
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

// === impl AnswerOver ===

impl AnswerOver {
    async fn read_head(&mut self) -> Result<ResponseHeader, HeadLost> {
        match self {
            Self::Http1(reader) => reader.read_head().await.map_err(HeadLost::from),
            Self::Http2(session) => {
                let read = session.read_response_header().await;
                read.map_err(|error| head_lost(&error))?;
                let head = session.response_header().cloned();
                head.ok_or(HeadLost::Other(Cause::Protocol))
            }
        }
    }

    /// Bytes of the head as it came, where it came as bytes.
    fn head_bytes(&self) -> Option<usize> {
        match self {
            Self::Http1(reader) => Some(reader.head_bytes()),
            Self::Http2(_) => None,
        }
    }

    async fn next_chunk(&mut self) -> Result<Option<Bytes>, Cause> {
        match self {
            Self::Http1(reader) => reader.next_chunk().await.map_err(|lost| match lost {
                AnswerLost::Closed | AnswerLost::Unanswered => Cause::Closed,
                AnswerLost::Reset | AnswerLost::Malformed => Cause::Reset,
            }),
            Self::Http2(session) => {
                let read = session.read_response_body().await;
                read.map_err(|error| match error.etype {
                    ErrorType::ConnectionClosed => Cause::Closed,
                    _ => Cause::Reset,
                })
            }
        }
    }
}

// === impl HeadLost ===

impl From<AnswerLost> for HeadLost {
    fn from(lost: AnswerLost) -> Self {
        match lost {
            AnswerLost::Unanswered => Self::Closed,
            AnswerLost::Closed => Self::Other(Cause::Closed),
            AnswerLost::Reset => Self::Other(Cause::Reset),
            AnswerLost::Malformed => Self::Other(Cause::Protocol),
        }
    }
}

// === impl Answering ===

impl Answering {
    pub fn head(&self) -> &ResponseHeader {
        &self.head
    }

    /// Nothing of it goes to an app; the price in its head counts.
    pub fn is_unfit(&self) -> bool {
        self.is_unfit
    }

    /// Earlier requests had used its connection.
    pub fn on_kept_connection(&self) -> bool {
        self.on_kept_connection
    }

    /// The next body bytes; `None` at a clean end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, BodyBroke> {
        let cause = match self.silence.bounds(self.reader.next_chunk()).await {
            Ok(Ok(chunk)) => return Ok(chunk),
            Ok(Err(cause)) => cause,
            Err(TooLong) => Cause::Timeout,
        };
        if let Some(shared) = &self.shared {
            shared.turn();
        }
        Err(BodyBroke(cause))
    }

    /// Gives the connection back to be used again; after a clean end only. What is left is the head.
    pub async fn release(self, connections: &Connections) -> ResponseHeader {
        match self.reader {
            _ if !self.reusable => {}
            AnswerOver::Http1(reader) => {
                let may_be_kept = reader.may_be_kept();
                let stream = reader.into_stream();
                match self.candidate.pool_key {
                    Some(pool_key) if may_be_kept => connections.keep(stream, pool_key),
                    _ => connections::close(stream).await,
                }
            }
            // Its connection is kept as long as it was used for a request a while ago.
            AnswerOver::Http2(_) => {}
        }
        self.head
    }

    /// Ends the exchange before its answer has ended.
    pub async fn abandon(self) {
        match self.reader {
            AnswerOver::Http1(reader) => connections::close(reader.into_stream()).await,
            AnswerOver::Http2(mut session) => {
                timeout(CLOSE_WAIT, session.shutdown()).await.ok();
            }
        }
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
        let limit = self.silence.limit();
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
