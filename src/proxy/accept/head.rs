//! Reading a request head off a connection, before a parser sees it.
//!
//! Promise: a head is bounded while it is read, each of them and all together, and a first line that can be none is
//! not waited for.

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::OwnedSemaphorePermit;

use crate::places::PLACE_BYTES;
use crate::proxy::limits::connections::LargeHeads;
use crate::proxy::refuse::Code;

/// Largest head.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// A buffer that grew may have room for more: what it holds is bounded by what is read.
const READ_BYTES: usize = 4096;
const READ_BYTES_MAX: u64 = 4096;

/// A whole head.
#[derive(Debug)]
pub struct WholeHead {
    pub length: usize,
    /// To be kept as long as the head is.
    pub room: Option<OwnedSemaphorePermit>,
}

/// Reads until `unread` begins with a whole head. Where a line ends is judged as leniently as by any
/// parser may (a bare LF ends one): what the lines hold is judged later, and on the same bytes.
pub async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    unread: &mut BytesMut,
    large_heads: &LargeHeads,
) -> Result<WholeHead, Code> {
    let mut skips_blank = true;
    let mut room = None;
    let (mut looked_at, mut line_start) = (0usize, 0usize);
    loop {
        while let Some(byte) = unread.get(looked_at).copied() {
            let line = unread.get(line_start..looked_at).unwrap_or_default();
            let is_first = line_start == 0;
            looked_at = looked_at.saturating_add(1);
            match (byte, line) {
                // "SHOULD ignore at least one empty line received prior to the request-line" (RFC 9112, 2.2).
                (b'\n', [b'\r']) if is_first && skips_blank => {
                    unread.advance(looked_at);
                    (looked_at, skips_blank) = (0, false);
                }
                (b'\n', [] | [b'\r']) if is_first => return Err(Code::HeadMalformed),
                (b'\n', [] | [b'\r']) if looked_at <= HEAD_BYTES_MAX => {
                    let length = looked_at;
                    return Ok(WholeHead { length, room });
                }
                (b'\n', [] | [b'\r']) => return Err(Code::HeadTooLarge),
                (b'\n', _) => line_start = looked_at,
                (_, [.., b'\r']) if is_first => return Err(Code::HeadMalformed),
                (b'\r' | b' '..=b'~', _) => {}
                _ if is_first => return Err(Code::HeadMalformed),
                _ => {}
            }
        }
        if looked_at >= HEAD_BYTES_MAX {
            return Err(Code::HeadTooLarge);
        }
        if looked_at >= PLACE_BYTES && room.is_none() {
            room = Some(large_heads.admit().ok_or(Code::MemoryFull)?);
        }
        unread.reserve(READ_BYTES);
        match (&mut *stream).take(READ_BYTES_MAX).read_buf(unread).await {
            Ok(count) if count > 0 => {}
            Ok(_) | Err(_) => return Err(Code::HeadMalformed),
        }
    }
}

#[cfg(test)]
mod tests;
