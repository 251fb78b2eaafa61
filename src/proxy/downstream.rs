//! One app's connection during one request: reading its body, writing the answer, and noticing that the app
//! left.
//!
//! An end of input is only suspicion: the app may have closed its sending half and still read. It
//! is gone for good when a write fails. A suspect counts as undelivered until it took a byte.
//!
//! Promise: a break is never dressed up as a clean end: chunked bodies stay unterminated, and
//! towards a close-delimited app the connection is reset with one chunk held back. No write outlives
//! bursar's shutdown by more than a moment.

mod answer_writer;
pub mod app_head;
pub mod chunked;
pub mod connection;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use futures_util::FutureExt;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Version};
use pingora::http::ResponseHeader;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, timeout};

use self::answer_writer::{AnswerWriter, BodyEnd};
use self::app_head::AppHead;
use self::chunked::{Chunked, Malformed};
use crate::protocol::Dialect;
use crate::proxy::downstream::connection::{Peer, PeerProbe};
use crate::proxy::life::CutSignal;
use crate::proxy::purchase::client::{ClientState, Presence, Written};

/// The app took nothing of what was written last, and will take nothing more.
#[derive(Debug)]
pub struct AppGone;

/// The request's body did not come as its framing says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyLost;

/// The app's side of one request.
pub struct Downstream {
    head: AppHead,
    request: RequestForm,
    /// Since when its connection is free to carry it, on the monotonic clock.
    free_since: Duration,
    client: ClientState,
    peer: Peer,
    cut: CutSignal,
    answer: AnswerWriter,
    /// What its answers are written in, refusals included.
    dialect: Dialect,
    /// The connection may carry another request behind this one.
    may_stay: bool,
}

/// The request as it came in.
enum RequestForm {
    /// Its head could not be read: it has no method or version to ask for.
    Unreadable,
    /// So many bytes of its body are not read.
    Sized { left: usize },
    /// Nothing that follows it is read as a request.
    Chunked {
        reader: Chunked,
        /// Decoded, and not yet read.
        payload: Bytes,
    },
}

/// What an app waits for that announced a body and does not send it yet.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// An app that takes nothing for this long is gone, of what is kept for it as well; what is left of its
/// stream is drained.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// Most that an app may take for what is kept for it, whatever it takes meanwhile.
const TAKE_UP_MAX: Duration = Duration::from_mins(10);

/// What a write may still take once bursar's shutdown has run out of patience.
const CUT_GRACE: Duration = Duration::from_millis(500);

/// How long, and how far apart, a suspect's refusal is looked for. On a busy machine the kernel
/// itself is late with it.
const REFUSAL_WAIT: Duration = Duration::from_millis(50);
const REFUSAL_PAUSE: Duration = Duration::from_millis(1);

// === impl Downstream ===

impl Downstream {
    /// `may_stay`: the connection may carry another request behind this one, if the app lets it.
    pub(super) fn new(head: AppHead, may_stay: bool, peer: Peer, cut: CutSignal) -> Self {
        let announced = announced(&head.headers);
        let request = if head.headers.contains_key(TRANSFER_ENCODING) {
            RequestForm::Chunked {
                reader: Chunked::default(),
                payload: Bytes::new(),
            }
        } else {
            RequestForm::Sized {
                left: announced.unwrap_or(0),
            }
        };
        Self {
            may_stay: may_stay && announced.is_some() && !head.closes(),
            head,
            request,
            ..Self::without_request(peer, cut)
        }
    }

    /// A connection whose request head could not be read.
    pub(super) fn without_request(peer: Peer, cut: CutSignal) -> Self {
        Self {
            head: AppHead::default(),
            request: RequestForm::Unreadable,
            free_since: Duration::ZERO,
            client: ClientState::default(),
            peer,
            cut,
            dialect: Dialect::Chat,
            answer: AnswerWriter::new(),
            may_stay: false,
        }
    }

    /// The same, on a connection that was accepted, or had its last answer, at this time.
    pub(super) fn since(self, free_since: Duration) -> Self {
        Self { free_since, ..self }
    }

    /// The head; an empty one where none could be read.
    pub fn head(&self) -> &AppHead {
        &self.head
    }

    /// The head, where one could be read.
    pub fn request(&self) -> Option<&AppHead> {
        self.has_head().then_some(&self.head)
    }

    /// The app's address; `None` on a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.peer.address()
    }

    /// What its answers are to be written in, from here on.
    pub fn speaks(&mut self, dialect: Dialect) {
        self.dialect = dialect;
    }

    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// A base URL without its path, as apps reach this listener. On a Unix socket the host is any.
    pub fn base(&self) -> String {
        match self.peer.local_address() {
            Some(address) => format!("http://{address}"),
            None => "http://localhost".to_owned(),
        }
    }

    /// The user at the other end of a Unix socket.
    pub fn user(&self) -> Option<u32> {
        self.peer.user()
    }

    /// Reads up to `most` bytes of the request's body behind those that `into` has; 0 at its end. Nothing
    /// is lost when it is given up meanwhile.
    pub async fn read_body(
        &mut self,
        into: &mut impl BufMut,
        most: usize,
    ) -> Result<usize, BodyLost> {
        match &mut self.request {
            RequestForm::Unreadable | RequestForm::Sized { left: 0 } => Ok(0),
            RequestForm::Sized { left } => {
                let read = self.peer.read_buf(&mut into.limit(most.min(*left))).await;
                let Ok(came @ 1..) = read else {
                    return Err(BodyLost);
                };
                *left = left.saturating_sub(came);
                Ok(came)
            }
            RequestForm::Chunked { reader, payload } => {
                if payload.is_empty() {
                    let next = reader.next(&mut self.peer).await;
                    *payload = next.map_err(|Malformed| BodyLost)?.unwrap_or_default();
                }
                let most = most.min(into.remaining_mut());
                let piece = payload.split_to(most.min(payload.len()));
                into.put_slice(&piece);
                Ok(piece.len())
            }
        }
    }

    /// Since when its connection is free to carry this request: it was sent after that.
    pub fn free_since(&self) -> Duration {
        self.free_since
    }

    /// The connection carries no other request behind this one.
    pub fn ends_connection(&mut self) {
        self.may_stay = false;
    }

    /// Asks the app for the body that it announced. Its connection ends with the answer: this is said before the
    /// body was checked.
    pub async fn asks_for_body(&mut self) -> Result<(), AppGone> {
        self.may_stay = false;
        match timeout(WRITE_TIMEOUT, self.peer.write_all(CONTINUE)).await {
            Ok(Ok(())) => Ok(()),
            // Half of it may have gone out: nothing is written behind it.
            Ok(Err(_)) | Err(_) => Err(self.lost()),
        }
    }

    pub fn presence(&self) -> Presence {
        self.client.presence()
    }

    /// Resolves once the app's input ends or its connection breaks; pends for ever after that.
    pub async fn left(&mut self) {
        if self.client != ClientState::Here {
            return std::future::pending().await;
        }
        match self.peer.left().await {
            Ok(()) => self.suspect(),
            Err(_) => drop(self.lost()),
        }
    }

    /// The app took bytes after its input had ended: it only closed its sending half.
    pub fn is_proven(&self) -> bool {
        self.client == ClientState::Proven
    }

    /// A look at the app's connection for equal requests that come.
    pub fn probe(&self) -> PeerProbe {
        self.peer.probe()
    }

    /// Whether the app's input has ended, as the kernel says: what is merely not read on has not.
    pub fn has_hung_up(&self) -> bool {
        self.peer.has_hung_up()
    }

    /// Looks once whether the app has left, without waiting, as far as the runtime has heard: its events are late by
    /// what other tasks take meanwhile.
    pub fn look(&mut self) -> Presence {
        self.look_by(Peer::is_known_to_have_ended)
    }

    /// The same where it decides whether money is spent, or whether an answer counts as delivered: the kernel is asked.
    pub fn look_closely(&mut self) -> Presence {
        self.look_by(Peer::has_hung_up)
    }

    fn look_by(&mut self, has_ended: fn(&Peer) -> bool) -> Presence {
        if self.client == ClientState::Here {
            // `Some` means that `left` resolved and set the presence.
            self.left().now_or_never();
        }
        if self.client == ClientState::Here {
            // Behind bytes of a next request it is not read on.
            if !has_ended(&self.peer) {
                return Presence::Here;
            }
            self.suspect();
        }
        // Of one that may have left the kernel is asked in any case: it is late with a refusal itself. The end of its
        // input is not waited for any more, which hands out what is kept.
        let refused = matches!(self.peer.taken().now_or_never(), Some(Err(_)));
        if self.presence() != Presence::Gone && (refused || self.peer.is_broken()) {
            self.lost();
        }
        // It takes what is kept for it.
        self.client.has_taken(self.peer.went());
        self.presence()
    }

    /// An answer flows: what the app does not take is kept for it, within bounds, and the service need not
    /// wait. [`Self::finish`] does.
    pub fn keeps(&self, app: &Arc<str>) {
        self.peer.keeps(app);
    }

    /// Bytes that are kept for the app.
    pub fn kept_bytes(&self) -> usize {
        self.peer.kept_bytes()
    }

    /// Waits until the app has taken what is kept for it, for as long as it takes any.
    pub async fn take_up(&mut self) -> Result<(), AppGone> {
        match bounded(&mut self.cut, taken_up(&self.peer)).await {
            Some(Some(())) => Ok(()),
            Some(None) => Err(self.lost()),
            None => Err(self.cut_off()),
        }
    }

    /// Takes the answer's head, which goes out with the body's first bytes. Framing is decided here: a known
    /// length stays, HTTP/1.1 without one becomes chunked, HTTP/1.0 without one ends with the connection.
    pub fn write_head(&mut self, head: &ResponseHeader) -> Result<(), AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        let length = head.headers.get(CONTENT_LENGTH);
        let end = match length.map(|length| length.to_str().ok()?.parse().ok()) {
            _ if self.is_bodyless(head) => BodyEnd::Length { left: 0 },
            Some(Some(left)) => BodyEnd::Length { left },
            Some(None) => return Err(self.lost()),
            None if self.version() == Some(Version::HTTP_10) => BodyEnd::Connection { held: None },
            None => BodyEnd::LastChunk,
        };
        // What follows a body that was not read whole is not read as a request.
        self.may_stay &= matches!(self.request, RequestForm::Sized { left: 0 })
            && !matches!(end, BodyEnd::Connection { .. });
        match self.answer.head(head, end, self.may_stay) {
            Some(()) => Ok(()),
            None => Err(self.lost()),
        }
    }

    /// Writes body bytes as they are.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<Written, AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        // An empty chunk would end a chunked body.
        let chunk = (!chunk.is_empty())
            .then(|| self.answer.follow(chunk))
            .flatten();
        let write = async {
            match &chunk {
                Some(chunk) => self.answer.piece(&mut self.peer, chunk).await,
                // The app has the head, whatever it waits for.
                None => self.answer.flush(&mut self.peer).await,
            }
        };
        match bounded(&mut self.cut, timeout(WRITE_TIMEOUT, write)).await {
            Some(Ok(Ok(()))) if chunk.is_none() => Ok(Written::Held),
            Some(Ok(Ok(()))) => self.confirm().await.map(|()| Written::Out),
            Some(_) => Err(self.lost()),
            None => Err(self.cut_off()),
        }
    }

    /// What was taken for writing and waits for its successor.
    pub fn held(&self) -> Option<Bytes> {
        self.answer.held().cloned()
    }

    /// Ends the body cleanly. `Ok` means that the whole answer was handed to the app's connection.
    pub async fn finish(&mut self) -> Result<(), AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        let write = async {
            let ended = timeout(WRITE_TIMEOUT, self.answer.finish(&mut self.peer));
            ended.await.ok()?.ok()?;
            taken_up(&self.peer).await?;
            self.peer.keeps_no_more();
            Some(())
        };
        match bounded(&mut self.cut, write).await {
            Some(Some(())) => self.confirm().await,
            Some(None) => Err(self.lost()),
            None => Err(self.cut_off()),
        }
    }

    /// bursar's shutdown ended a write: what went out is not whole.
    pub fn is_cut(&self) -> bool {
        self.client == ClientState::Cut
    }

    /// Breaks the answer off so that no parser takes it for complete.
    pub fn mark_broken(&mut self) {
        self.client.is_lost();
        if self.answer.ends_with_connection() {
            self.peer.resets();
        }
    }

    /// Whether the connection can carry the app's next request. If not, its end is said.
    pub async fn into_reusable(mut self) -> bool {
        if self.presence() == Presence::Gone {
            return false;
        }
        if !self.may_stay {
            // A peer that has gone already is what shutting down wants.
            self.peer.shutdown().await.ok();
        }
        self.may_stay
    }

    /// The bare connection, for what comes after an answer that ends it.
    pub fn into_stream(self) -> Peer {
        self.peer
    }

    /// HEAD, 204 and 304 have no body whatever their headers say.
    pub fn is_bodyless(&self, head: &ResponseHeader) -> bool {
        let status = head.status.as_u16();
        status == 204 || status == 304 || self.method() == Some(&Method::HEAD)
    }

    fn version(&self) -> Option<Version> {
        self.has_head().then_some(self.head.version)
    }

    fn method(&self) -> Option<&Method> {
        self.has_head().then_some(&self.head.method)
    }

    fn has_head(&self) -> bool {
        !matches!(self.request, RequestForm::Unreadable)
    }

    /// After a write to a suspect: a peer that closed its socket whole refuses the bytes, which
    /// shows on the next read; one that only closed its sending half shows the same end again. The
    /// first time the refusal is given a moment to arrive.
    async fn confirm(&mut self) -> Result<(), AppGone> {
        // What is kept is nothing that a suspect took.
        if self.presence() != Presence::Suspect || self.peer.kept_bytes() > 0 {
            return Ok(());
        }
        let until = Instant::now() + REFUSAL_WAIT;
        loop {
            let refused = matches!(self.peer.left().now_or_never(), Some(Err(_)));
            if refused || self.peer.is_broken() {
                return Err(self.lost());
            }
            if self.is_proven() || Instant::now() >= until {
                self.client.accepts_bytes();
                return Ok(());
            }
            tokio::time::sleep(REFUSAL_PAUSE).await;
        }
    }

    fn suspect(&mut self) {
        self.client.input_ended(self.peer.went());
    }

    /// Nothing is kept for an app that takes nothing any more: others have the room.
    fn lost(&mut self) -> AppGone {
        self.client.is_lost();
        self.peer.keeps_no_more();
        AppGone
    }

    fn cut_off(&mut self) -> AppGone {
        self.client.is_cut_off();
        self.mark_broken();
        AppGone
    }
}

/// The length of the body that a head announces. `None`: it does not say so in one number.
fn announced(headers: &HeaderMap) -> Option<usize> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = match (lengths.next(), lengths.next()) {
        (None, _) => return Some(0),
        (Some(only), None) => only.to_str().ok()?,
        (Some(_), Some(_)) => return None,
    };
    let is_number = length.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| length.parse().ok()).flatten()
}

/// Resolves when the app has taken what is kept for it; `None` when it takes nothing any more, or too
/// long.
async fn taken_up(peer: &Peer) -> Option<()> {
    let taken = async {
        loop {
            let before = peer.kept_bytes();
            match timeout(WRITE_TIMEOUT, peer.taken()).await {
                Ok(taken) => return taken.ok(),
                Err(_) if peer.kept_bytes() < before => {}
                Err(_) => return None,
            }
        }
    };
    timeout(TAKE_UP_MAX, taken).await.ok().flatten()
}

/// Awaits a write; `None` when bursar's shutdown was out of patience first.
async fn bounded<F: Future>(cut: &mut CutSignal, write: F) -> Option<F::Output> {
    let mut write = pin!(write);
    tokio::select! {
        biased;
        written = &mut write => return Some(written),
        () = cut.wait() => {}
    }
    timeout(CUT_GRACE, write).await.ok()
}
