//! An answer on its way to an app, in HTTP/1.1.
//!
//! Why not by pingora's session: it wants a head of its own, changes it, and takes three buffers for each answer.
//!
//! Promise: a head leaves in one write with what follows it, where the kernel takes both; a body is as long as was
//! announced, or its end is no clean one.

use std::io::{self, IoSlice, Write};

use bytes::Bytes;
use http::header::{CONNECTION, DATE, TRANSFER_ENCODING};
use pingora::http::{HeaderNameVariant, ResponseHeader};
use pingora::protocols::http::date::get_cached_date;
use tokio::io::AsyncWriteExt;

use super::connection::Peer;

/// Writes one answer.
pub(super) struct AnswerWriter {
    /// What goes out with what follows it: a head, or a chunk's beginning.
    gathered: Vec<u8>,
    end: BodyEnd,
}

/// What ends an answer's body.
pub(super) enum BodyEnd {
    /// No head was written.
    NotBegun,
    /// Its length, of which so much is left.
    Length { left: usize },
    /// Its last chunk.
    LastChunk,
    /// The end of the connection.
    Connection {
        /// The chunk that is given when it is known that another one or a clean end follows.
        held: Option<Bytes>,
    },
}

/// Room for a head.
const HEAD_BYTES: usize = 1024;

const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

// === impl AnswerWriter ===

impl AnswerWriter {
    pub(super) fn new() -> Self {
        Self {
            gathered: Vec::new(),
            end: BodyEnd::NotBegun,
        }
    }

    pub(super) fn ends_with_connection(&self) -> bool {
        matches!(self.end, BodyEnd::Connection { .. })
    }

    /// See [`BodyEnd::Connection`].
    pub(super) fn held(&self) -> Option<&Bytes> {
        match &self.end {
            BodyEnd::NotBegun | BodyEnd::Length { .. } | BodyEnd::LastChunk => None,
            BodyEnd::Connection { held } => held.as_ref(),
        }
    }

    /// The piece that may go out now that this one has come. `None`: this one waits for its successor.
    pub(super) fn follow(&mut self, piece: Bytes) -> Option<Bytes> {
        match &mut self.end {
            BodyEnd::NotBegun | BodyEnd::Length { .. } | BodyEnd::LastChunk => Some(piece),
            BodyEnd::Connection { held } => held.replace(piece),
        }
    }

    /// Gathers a head. `None`: it cannot be written, or one was.
    pub(super) fn head(&mut self, head: &ResponseHeader, end: BodyEnd, keeps: bool) -> Option<()> {
        let BodyEnd::NotBegun = self.end else {
            return None;
        };
        let out = &mut self.gathered;
        out.reserve(HEAD_BYTES);
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(head.status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(head.get_reason_phrase().unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\n");
        let mut field = |name: &[u8], value: &[u8]| {
            out.extend_from_slice(name);
            out.extend_from_slice(b": ");
            out.extend_from_slice(value);
            out.extend_from_slice(b"\r\n");
        };
        let written = head.map(|name, value| {
            let name = match &name {
                HeaderNameVariant::Case(name) => name.as_slice(),
                HeaderNameVariant::Titled(name) => name.as_bytes(),
            };
            let is_set_below = [DATE, CONNECTION, TRANSFER_ENCODING]
                .iter()
                .any(|set| name.eq_ignore_ascii_case(set.as_str().as_bytes()));
            if !is_set_below {
                field(name, value.as_bytes());
            }
            Ok(())
        });
        written.ok()?;
        if let BodyEnd::LastChunk = end {
            field(b"Transfer-Encoding", b"chunked");
        }
        field(b"Date", get_cached_date().as_bytes());
        field(b"Connection", if keeps { b"keep-alive" } else { b"close" });
        out.extend_from_slice(b"\r\n");
        self.end = end;
        Some(())
    }

    /// Writes a piece of the body, behind what is gathered.
    pub(super) async fn piece(&mut self, peer: &mut Peer, piece: &[u8]) -> io::Result<()> {
        let (piece, behind) = match &mut self.end {
            BodyEnd::NotBegun => return Err(io::ErrorKind::InvalidInput.into()),
            BodyEnd::Length { left } => {
                // What is beyond would be taken for the next answer.
                *left = left
                    .checked_sub(piece.len())
                    .ok_or(io::ErrorKind::InvalidData)?;
                (piece, &b""[..])
            }
            BodyEnd::LastChunk => {
                write!(self.gathered, "{:x}\r\n", piece.len())?;
                (piece, &b"\r\n"[..])
            }
            BodyEnd::Connection { .. } => (piece, &b""[..]),
        };
        self.send(peer, piece, behind).await
    }

    /// Writes what is gathered, if anything is.
    pub(super) async fn flush(&mut self, peer: &mut Peer) -> io::Result<()> {
        self.send(peer, b"", b"").await
    }

    /// Ends the body. An error where it is shorter than was announced.
    pub(super) async fn finish(&mut self, peer: &mut Peer) -> io::Result<()> {
        match &mut self.end {
            BodyEnd::NotBegun => Err(io::ErrorKind::InvalidInput.into()),
            BodyEnd::Length { left: 0 } => self.flush(peer).await,
            BodyEnd::Length { .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            BodyEnd::LastChunk => self.send(peer, b"", LAST_CHUNK).await,
            BodyEnd::Connection { held } => {
                let last = held.take().unwrap_or_default();
                self.send(peer, &last, b"").await
            }
        }
    }

    /// Writes what is gathered, a piece, and what stands behind it. Where this is given up meanwhile, the connection
    /// can carry nothing more.
    async fn send(&mut self, peer: &mut Peer, piece: &[u8], behind: &[u8]) -> io::Result<()> {
        let mut parts = [&self.gathered[..], piece, behind].map(IoSlice::new);
        let mut rest = parts.as_mut_slice();
        // Empty ones at the front go away.
        IoSlice::advance_slices(&mut rest, 0);
        while !rest.is_empty() {
            match peer.write_vectored(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                went => IoSlice::advance_slices(&mut rest, went),
            }
        }
        self.gathered.clear();
        // What follows a head are sizes of chunks.
        self.gathered.shrink_to(4 * HEAD_BYTES);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
