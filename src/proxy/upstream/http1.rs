//! An answer over HTTP/1.1, read from its connection.
//!
//! Why not by pingora's session: it takes 64 KiB for each body and keeps them while it waits, parses a head again
//! with each byte that comes, and copies it.
//!
//! Promise: while an answer is waited for, nothing is held but what came of a head or of a line; a body ends where
//! RFC 9112 (6.3) has its end, and what came of it is handed out before its end or its break; the same bytes are the
//! same answer in whatever pieces they come. What is awaited may be dropped at any time: nothing that was read is lost.

mod body;
mod head;

use std::future::poll_fn;
use std::mem::{MaybeUninit, take};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http::Method;
use http::header::CONTENT_LENGTH;
use pingora::http::ResponseHeader;
use tokio::io::{AsyncRead, ReadBuf};

use self::body::AnswerBody;
pub use self::body::TransferCoding;
use super::stream::ServiceStream;
use crate::proxy::downstream::chunked::Malformed;

/// The connection of a request that was sent, and its answer.
#[derive(Debug)]
pub struct AnswerReader {
    stream: ServiceStream,
    is_for_head: bool,
    /// Came, and is not yet taken.
    unread: Bytes,
    /// Bytes of the last head.
    head_bytes: usize,
    body: AnswerBody,
    /// As far as is known, a next request may follow.
    may_continue: bool,
    /// The connection broke behind what came.
    is_reset: bool,
}

/// Why an answer did not come whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerLost {
    /// The service closed before the first byte.
    Unanswered,
    Closed,
    Reset,
    Malformed,
}

/// Room for what is read at once; no connection holds it while it waits. A record of TLS has half of it.
const READ_BYTES: usize = 32 * 1024;

/// A larger head is not read to its end. What is above 64 KiB reaches no app, but its price counts.
const HEAD_BYTES_MAX: usize = 1024 * 1024;

// === impl AnswerReader ===

impl AnswerReader {
    pub fn new(stream: ServiceStream, method: &Method) -> Self {
        Self {
            stream,
            is_for_head: method == Method::HEAD,
            unread: Bytes::new(),
            head_bytes: 0,
            body: AnswerBody::Ended,
            may_continue: false,
            is_reset: false,
        }
    }

    /// Reads the next head: interim ones, then the one that a body follows.
    pub async fn read_head(&mut self) -> Result<ResponseHeader, AnswerLost> {
        // It is parsed when it seems whole or is twice as long: one that comes byte by byte costs little more.
        let (mut parsed_at, mut searched) = (1, 0usize);
        loop {
            let length = self.unread.len();
            let new = self.unread.get(searched.saturating_sub(2)..);
            if length >= parsed_at || new.is_some_and(head::has_blank_line) {
                if let Some(head) = self.take_head()? {
                    return Ok(head);
                }
                parsed_at = length.saturating_mul(2);
            }
            if length > HEAD_BYTES_MAX {
                return Err(AnswerLost::Malformed);
            }
            searched = length;
            poll_fn(|cx| self.poll_head_bytes(cx)).await?;
        }
    }

    /// The next bytes of the body; `None` at its end.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, AnswerLost> {
        poll_fn(|cx| self.poll_chunk(cx)).await
    }

    /// Of the last head, as it came.
    pub fn head_bytes(&self) -> usize {
        self.head_bytes
    }

    /// The answer came whole, nothing came behind it, and its head lets a next one follow.
    pub fn may_be_kept(&self) -> bool {
        let is_whole = self.body.has_ended() == Ok(true) && self.unread.is_empty();
        self.may_continue && is_whole && !self.is_reset
    }

    pub fn into_stream(self) -> ServiceStream {
        self.stream
    }

    fn take_head(&mut self) -> Result<Option<ResponseHeader>, AnswerLost> {
        let Some((mut head, length)) = head::parse(&self.unread)? else {
            return Ok(None);
        };
        drop(self.unread.split_to(length));
        self.head_bytes = length;
        // "A 1xx response is terminated by the end of the header section" (RFC 9110, 15.2).
        if !head.status.is_informational() {
            // A service that sends the body of a head alone sends it when it likes.
            let is_bare = !self.is_for_head && !AnswerBody::is_denied(&head);
            self.may_continue = head::lets_continue(&head) && is_bare;
            self.body = AnswerBody::of(&head, self.is_for_head)?;
            // "Transfer-Encoding overrides the Content-Length", which "ought to be" taken out (RFC 9112, 6.3).
            if TransferCoding::of(&head.headers) != TransferCoding::Absent {
                head.remove_header(&CONTENT_LENGTH);
            }
        }
        Ok(Some(head))
    }

    fn poll_head_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), AnswerLost>> {
        let unread = &mut self.unread;
        let came = ready!(poll_came(
            &mut self.stream,
            &mut self.is_reset,
            cx,
            |came| {
                *unread = appended(take(unread), came);
                !came.is_empty()
            }
        ))?;
        let lost = match came {
            true => return Ok(()).into(),
            // Nor came an interim head.
            false if self.unread.is_empty() && self.head_bytes == 0 => AnswerLost::Unanswered,
            false => match head::parse(&self.unread) {
                Ok(_) => AnswerLost::Closed,
                Err(Malformed) => AnswerLost::Malformed,
            },
        };
        Err(lost).into()
    }

    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, AnswerLost>> {
        while !self.body.has_ended()? {
            let (body, may_continue) = (&mut self.body, &mut self.may_continue);
            let unread = take(&mut self.unread);
            let taken = if unread.is_empty() {
                ready!(poll_came(
                    &mut self.stream,
                    &mut self.is_reset,
                    cx,
                    |came| {
                        if came.is_empty() {
                            *may_continue = false;
                            return match body.ends_by_close() {
                                true => Ok(Bytes::new()),
                                false => Err(AnswerLost::Closed),
                            };
                        }
                        let taken = body.take(came, Bytes::copy_from_slice, may_continue);
                        Ok(taken?)
                    }
                ))?
            } else {
                let taken = body.take(&unread, |piece| unread.slice_ref(piece), may_continue);
                taken.map_err(AnswerLost::from)
            };
            match taken {
                Ok(chunk) if chunk.is_empty() => {}
                Ok(chunk) => return Ok(Some(chunk)).into(),
                Err(lost) => {
                    self.may_continue = false;
                    return Err(lost).into();
                }
            }
        }
        Ok(None).into()
    }
}

/// Reads what is there; nothing of it: the service has closed. A connection that broke stays broken: the kernel
/// reports that once, and a clean end from then on.
fn poll_came<T>(
    stream: &mut (impl AsyncRead + Unpin),
    is_reset: &mut bool,
    cx: &mut Context<'_>,
    take: impl FnOnce(&[u8]) -> T,
) -> Poll<Result<T, AnswerLost>> {
    if *is_reset {
        return Err(AnswerLost::Reset).into();
    }
    let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
    let mut room = ReadBuf::uninit(&mut room);
    if ready!(Pin::new(&mut *stream).poll_read(cx, &mut room)).is_err() {
        *is_reset = true;
        // What TLS had understood before the break it hands out when it is asked again.
        let again = Pin::new(stream).poll_read(cx, &mut room);
        if !matches!(again, Poll::Ready(Ok(()))) || room.filled().is_empty() {
            return Err(AnswerLost::Reset).into();
        }
    }
    Ok(take(room.filled())).into()
}

fn appended(before: Bytes, came: &[u8]) -> Bytes {
    if before.is_empty() {
        return Bytes::copy_from_slice(came);
    }
    let mut both = BytesMut::from(before);
    both.extend_from_slice(came);
    both.freeze()
}

// === impl AnswerLost ===

impl From<Malformed> for AnswerLost {
    fn from(Malformed: Malformed) -> Self {
        Self::Malformed
    }
}

#[cfg(test)]
mod tests;
