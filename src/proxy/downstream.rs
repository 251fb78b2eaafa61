//! One app's connection during one request: reading its body, writing the answer, and noticing that the app
//! left.
//!
//! An end of input is only suspicion: the app may have closed its sending half and still read. It
//! is gone for good when a write fails. A suspect counts as undelivered until it took a byte.
//!
//! Promise: a break is never dressed up as a clean end: chunked bodies stay unterminated, and
//! towards a close-delimited app the connection is reset with one chunk held back. No write outlives
//! bursar's shutdown by more than a moment.

mod chunked;
pub mod connection;
pub mod session_stream;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes};
use futures_util::FutureExt;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Version};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::protocols::Stream;
use pingora::protocols::http::ReusableHttpStream;
use pingora::protocols::http::v1::server::HttpSession;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

use self::chunked::{Chunked, Malformed};
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
    session: HttpSession,
    request: RequestForm,
    /// Since when its connection is free to carry it, on the monotonic clock.
    free_since: Duration,
    client: ClientState,
    peer: Peer,
    cut: CutSignal,
    framing: BodyEnd,
}

/// The request as it came in. Its body is read in place of the session, which would keep 64 KiB for that and copy it.
enum RequestForm {
    /// Its head could not be read: the session has no method or version to ask for.
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

/// What ends an answer's body.
enum BodyEnd {
    /// Its length, or its last chunk.
    OwnEnd,
    /// The end of the connection.
    Connection {
        /// The chunk that is given when it is known that another one or a clean end follows.
        held: Option<Bytes>,
    },
}

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
    pub(super) fn new(mut session: HttpSession, peer: Peer, cut: CutSignal) -> Self {
        let headers = &session.req_header().headers;
        let is_chunked = headers.contains_key(TRANSFER_ENCODING);
        let announced = announced(headers);
        if is_chunked || announced.is_none() {
            session.set_server_keepalive(None);
        }
        let request = if is_chunked {
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
            request,
            ..Self::over(session, peer, cut)
        }
    }

    fn over(session: HttpSession, peer: Peer, cut: CutSignal) -> Self {
        Self {
            session,
            request: RequestForm::Unreadable,
            free_since: Duration::ZERO,
            client: ClientState::default(),
            peer,
            cut,
            framing: BodyEnd::OwnEnd,
        }
    }

    /// The same, on a connection that was accepted, or had its last answer, at this time.
    pub(super) fn since(self, free_since: Duration) -> Self {
        Self { free_since, ..self }
    }

    /// A connection whose request head could not be read.
    pub(super) fn without_request(mut session: HttpSession, peer: Peer, cut: CutSignal) -> Self {
        session.set_server_keepalive(None);
        Self::over(session, peer, cut)
    }

    /// The parsed head. Only after it was read.
    pub fn head(&self) -> &RequestHeader {
        self.session.req_header()
    }

    /// The head's bytes as they came.
    pub fn raw_head(&self) -> Bytes {
        self.session.get_headers_raw_bytes()
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
                if *left == 0 {
                    // The session would wait for it, and end the connection with the answer.
                    self.session.req_header_mut().remove_header(&CONTENT_LENGTH);
                }
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

    pub fn session(&mut self) -> &mut HttpSession {
        &mut self.session
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

    /// Writes a response head. Framing is decided here: a known length stays, HTTP/1.1 without one
    /// becomes chunked, HTTP/1.0 without one ends with the connection.
    pub async fn write_head(&mut self, mut head: ResponseHeader) -> Result<(), AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        let bodyless = self.is_bodyless(&head);
        if !bodyless && !head.headers.contains_key(http::header::CONTENT_LENGTH) {
            if self.version() == Some(Version::HTTP_10) {
                self.framing = BodyEnd::Connection { held: None };
                self.session.set_server_keepalive(None);
            } else {
                // pingora's session frames the body by this header and never adds it.
                let inserted = head.insert_header(http::header::TRANSFER_ENCODING, "chunked");
                if inserted.is_err() {
                    return Err(self.lost());
                }
            }
        }
        let write = self.session.write_response_header(Box::new(head));
        match bounded(&mut self.cut, timeout(WRITE_TIMEOUT, write)).await {
            // Nothing is confirmed yet: a head goes out with the body's first bytes.
            Some(Ok(Ok(()))) => Ok(()),
            Some(_) => Err(self.lost()),
            None => Err(self.cut_off()),
        }
    }

    /// Writes body bytes as they are.
    pub async fn write_chunk(&mut self, chunk: Bytes) -> Result<Written, AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        if chunk.is_empty() {
            // An empty chunk would end a chunked body.
            return Ok(Written::Held);
        }
        let chunk = match &mut self.framing {
            BodyEnd::OwnEnd => chunk,
            BodyEnd::Connection { held } => match held.replace(chunk) {
                Some(earlier) => earlier,
                None => return Ok(Written::Held),
            },
        };
        let write = timeout(WRITE_TIMEOUT, self.session.write_body(&chunk));
        match bounded(&mut self.cut, write).await {
            Some(Ok(Ok(_))) => self.confirm().await.map(|()| Written::Out),
            Some(_) => Err(self.lost()),
            None => Err(self.cut_off()),
        }
    }

    /// What was taken for writing and waits for its successor.
    pub fn held(&self) -> Option<Bytes> {
        match &self.framing {
            BodyEnd::OwnEnd => None,
            BodyEnd::Connection { held } => held.clone(),
        }
    }

    /// Ends the body cleanly. `Ok` means that the whole answer was handed to the app's connection.
    pub async fn finish(&mut self) -> Result<(), AppGone> {
        if self.presence() == Presence::Gone {
            return Err(AppGone);
        }
        let last = match &mut self.framing {
            BodyEnd::OwnEnd => None,
            BodyEnd::Connection { held } => held.take(),
        };
        let write = async {
            if let Some(last) = last {
                let written = timeout(WRITE_TIMEOUT, self.session.write_body(&last)).await;
                written.ok()?.ok()?;
            }
            let ended = timeout(WRITE_TIMEOUT, self.session.finish_body()).await;
            ended.ok()?.ok()?;
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
        if let BodyEnd::Connection { .. } = self.framing {
            self.peer.resets();
        }
    }

    /// The connection for the app's next request, when it can be kept.
    pub async fn into_reusable(self) -> Option<ReusableHttpStream> {
        if self.presence() == Presence::Gone {
            return None;
        }
        self.session.reuse().await.ok().flatten()
    }

    /// The bare connection, for what comes after an answer that ends it.
    pub fn into_stream(self) -> Stream {
        self.session.into_inner()
    }

    /// HEAD, 204 and 304 have no body whatever their headers say.
    pub fn is_bodyless(&self, head: &ResponseHeader) -> bool {
        let status = head.status.as_u16();
        status == 204 || status == 304 || self.method() == Some(&Method::HEAD)
    }

    fn version(&self) -> Option<Version> {
        self.has_head().then(|| self.session.req_header().version)
    }

    fn method(&self) -> Option<&Method> {
        self.has_head().then(|| &self.session.req_header().method)
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
    tokio::pin!(write);
    tokio::select! {
        biased;
        written = &mut write => return Some(written),
        () = cut.wait() => {}
    }
    timeout(CUT_GRACE, write).await.ok()
}
