//! A chunked body, read as RFC 9112 (7.1) has it. pingora's reader takes a missing size for 0, any bytes for an
//! extension of a request, blanks where none may be, and lines of any kind for trailers; another reader may take such
//! a body for a different one, and what follows it for a request.
//!
//! Promise: what is not of the grammar is refused, and what came before it is handed out; extensions and trailers are
//! read, bounded and dropped; between two reads nothing is kept but the beginning of a line.

use std::borrow::Cow;
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::ready;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderName, HeaderValue};
use tokio::io::{AsyncRead, ReadBuf};

use crate::places::PLACE_BYTES;

/// A body that is being read.
#[derive(Debug, Default)]
pub struct Chunked {
    of: ChunkedIn,
    place: ParsePosition,
    /// The beginning of a line that has not come whole.
    line: Vec<u8>,
    /// Of extensions and trailers so far; of an answer's trailers only.
    extra_bytes: usize,
}

/// Whose body it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ChunkedIn {
    #[default]
    Request,
    Answer,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParsePosition {
    #[default]
    Size,
    Payload {
        left: u64,
    },
    PayloadCr,
    PayloadLf,
    Trailers,
    Ended,
    Malformed,
}

/// What came is not as the grammar has it, or ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Of extensions and trailers in one request's body, all together.
const REQUEST_EXTRA_BYTES_MAX: usize = PLACE_BYTES;

/// Of one line of an answer's, and of its trailers: the service is one, and its answer may be paid for.
const ANSWER_EXTRA_BYTES_MAX: usize = 64 * 1024;

/// Digits of a chunk's size: more could overflow.
const SIZE_DIGITS_MAX: usize = 16;

/// Nothing counts what is read before a chunk's size is known.
const READ_BYTES: usize = PLACE_BYTES;

// === impl Chunked ===

impl Chunked {
    pub fn of_answer() -> Self {
        Self {
            of: ChunkedIn::Answer,
            ..Self::default()
        }
    }

    pub fn has_ended(&self) -> Result<bool, Malformed> {
        match self.place {
            ParsePosition::Ended => Ok(true),
            ParsePosition::Malformed => Err(Malformed),
            _ => Ok(false),
        }
    }

    /// The next bytes of the body; `None` at its end. Nothing is lost when it is given up meanwhile.
    pub async fn next(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<Bytes>, Malformed> {
        poll_fn(|cx| {
            while !self.has_ended()? {
                let mut room = [const { MaybeUninit::uninit() }; READ_BYTES];
                let mut room = ReadBuf::uninit(&mut room);
                ready!(Pin::new(&mut *source).poll_read(cx, &mut room)).map_err(|_| Malformed)?;
                if room.filled().is_empty() {
                    return Err(Malformed).into();
                }
                // Nothing behind its end is read as a request.
                let (payload, _behind) = self.decode(room.filled())?;
                if !payload.is_empty() {
                    return Ok(Some(payload)).into();
                }
            }
            Ok(None).into()
        })
        .await
    }

    /// The payload in what came, and what is left behind the end of the body.
    pub fn decode<'a>(&mut self, mut came: &'a [u8]) -> Result<(Bytes, &'a [u8]), Malformed> {
        let Some(first) = self.piece(&mut came)? else {
            return Ok((Bytes::new(), came));
        };
        let mut several = None;
        // What is malformed behind it is refused when this was handed out.
        while let Ok(Some(more)) = self.piece(&mut came) {
            several
                .get_or_insert_with(|| {
                    let most = first.len().saturating_add(more.len());
                    let mut payload = BytesMut::with_capacity(most.saturating_add(came.len()));
                    payload.put_slice(first);
                    payload
                })
                .put_slice(more);
        }
        let payload = match several {
            None => Bytes::copy_from_slice(first),
            // Where most was framing, its room goes back: what is kept of an answer is counted by its bytes.
            Some(payload) if payload.capacity() / 2 > payload.len() => {
                Bytes::copy_from_slice(&payload)
            }
            Some(payload) => payload.freeze(),
        };
        Ok((payload, came))
    }

    /// The next payload in what came, which is taken as far as it goes.
    fn piece<'a>(&mut self, came: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        let piece = self.parse(came);
        if piece.is_err() {
            self.place = ParsePosition::Malformed;
        }
        piece
    }

    fn parse<'a>(&mut self, came: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
        loop {
            match self.place {
                ParsePosition::Size => {
                    let Some(line) = self.line(came)? else {
                        // What can be no size is not waited for.
                        if !self.line.is_empty() {
                            read_size(&self.line)?;
                        }
                        return Ok(None);
                    };
                    let (size, extensions) = read_size(&line)?;
                    match self.of {
                        ChunkedIn::Request => {
                            self.count(extensions.len())?;
                            check_extensions(extensions)?;
                        }
                        // A long stream may fill up each of its sizes; a line has its own bound.
                        ChunkedIn::Answer => check_ignored(extensions)?,
                    }
                    self.place = match size {
                        0 => ParsePosition::Trailers,
                        left => ParsePosition::Payload { left },
                    };
                }
                ParsePosition::Payload { left: 0 } => self.place = ParsePosition::PayloadCr,
                ParsePosition::Payload { left } => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX);
                    let (piece, rest) = came.split_at(most.min(came.len()));
                    if piece.is_empty() {
                        return Ok(None);
                    }
                    let count = u64::try_from(piece.len()).map_err(|_| Malformed)?;
                    let left = left.saturating_sub(count);
                    self.place = ParsePosition::Payload { left };
                    *came = rest;
                    return Ok(Some(piece));
                }
                ParsePosition::PayloadCr | ParsePosition::PayloadLf => {
                    let Some((byte, rest)) = came.split_first() else {
                        return Ok(None);
                    };
                    self.place = match (self.place, byte) {
                        (ParsePosition::PayloadCr, b'\r') => ParsePosition::PayloadLf,
                        (ParsePosition::PayloadLf, b'\n') => ParsePosition::Size,
                        _ => return Err(Malformed),
                    };
                    *came = rest;
                }
                ParsePosition::Trailers => {
                    let Some(line) = self.line(came)? else {
                        return Ok(None);
                    };
                    if line.is_empty() {
                        self.place = ParsePosition::Ended;
                    } else {
                        self.count(line.len())?;
                        // An answer came whole by then, and what stands here is for nobody.
                        if self.of == ChunkedIn::Request {
                            check_trailer(&line)?;
                        }
                    }
                }
                ParsePosition::Ended => return Ok(None),
                ParsePosition::Malformed => return Err(Malformed),
            }
        }
    }

    /// The next line without its CRLF. `None`: it has not come whole.
    fn line<'a>(&mut self, came: &mut &'a [u8]) -> Result<Option<Cow<'a, [u8]>>, Malformed> {
        let Some(end) = memchr::memchr(b'\n', came) else {
            self.line.extend_from_slice(came);
            *came = &[];
            let most = self.extra_bytes_max().saturating_add(SIZE_DIGITS_MAX);
            return match self.line.len() > most {
                true => Err(Malformed),
                false => Ok(None),
            };
        };
        let (end_of_line, rest) = came.split_at(end.saturating_add(1));
        *came = rest;
        if self.line.is_empty() {
            let line = end_of_line.strip_suffix(b"\r\n").ok_or(Malformed)?;
            return Ok(Some(Cow::Borrowed(line)));
        }
        let mut line = std::mem::take(&mut self.line);
        line.extend_from_slice(end_of_line);
        let length = line.strip_suffix(b"\r\n").ok_or(Malformed)?.len();
        line.truncate(length);
        Ok(Some(Cow::Owned(line)))
    }

    fn count(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.extra_bytes = self.extra_bytes.saturating_add(bytes);
        match self.extra_bytes > self.extra_bytes_max() {
            true => Err(Malformed),
            false => Ok(()),
        }
    }

    fn extra_bytes_max(&self) -> usize {
        match self.of {
            ChunkedIn::Request => REQUEST_EXTRA_BYTES_MAX,
            ChunkedIn::Answer => ANSWER_EXTRA_BYTES_MAX,
        }
    }
}

/// `1*HEXDIG`, and what stands behind it.
fn read_size(line: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let (digits, rest) = split_while(line, |byte| byte.is_ascii_hexdigit());
    if digits.len() > SIZE_DIGITS_MAX {
        return Err(Malformed);
    }
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    // Empty is no number.
    let size = u64::from_str_radix(digits, 16).map_err(|_| Malformed)?;
    Ok((size, rest))
}

/// `*( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )`
fn check_extensions(mut rest: &[u8]) -> Result<(), Malformed> {
    while !rest.is_empty() {
        rest = skip_blanks(rest).strip_prefix(b";").ok_or(Malformed)?;
        rest = skip_token(skip_blanks(rest))?;
        if let Some(value) = skip_blanks(rest).strip_prefix(b"=") {
            let value = skip_blanks(value);
            rest = match value.strip_prefix(b"\"") {
                Some(quoted) => skip_quoted(quoted)?,
                None => skip_token(value)?,
            };
        }
    }
    Ok(())
}

/// What stands behind the size of a chunk of an answer. "A recipient MUST ignore unrecognized chunk extensions"
/// (7.1.1); some services fill up a size with blanks.
fn check_ignored(extensions: &[u8]) -> Result<(), Malformed> {
    let is_ignored = matches!(skip_blanks(extensions), [] | [b';', ..]);
    match is_ignored && extensions.iter().copied().all(is_text) {
        true => Ok(()),
        false => Err(Malformed),
    }
}

fn check_trailer(line: &[u8]) -> Result<(), Malformed> {
    let colon = memchr::memchr(b':', line).ok_or(Malformed)?;
    let (name, value) = line.split_at(colon);
    let value = value.get(1..).unwrap_or_default();
    let is_field = HeaderName::from_bytes(name).is_ok() && HeaderValue::from_bytes(value).is_ok();
    match is_field {
        true => Ok(()),
        false => Err(Malformed),
    }
}

fn skip_blanks(bytes: &[u8]) -> &[u8] {
    split_while(bytes, |byte| matches!(byte, b' ' | b'\t')).1
}

fn skip_token(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match split_while(bytes, is_token) {
        ([], _) => Err(Malformed),
        (_, rest) => Ok(rest),
    }
}

/// What follows the quote that ends a quoted string. A backslash stands before any character of it.
fn skip_quoted(bytes: &[u8]) -> Result<&[u8], Malformed> {
    let mut rest = bytes;
    loop {
        rest = match rest {
            [b'"', rest @ ..] => return Ok(rest),
            [b'\\', quoted, rest @ ..] if is_text(*quoted) => rest,
            [b'\\', ..] | [] => return Err(Malformed),
            [byte, rest @ ..] if is_text(*byte) => rest,
            [_, ..] => return Err(Malformed),
        };
    }
}

fn is_text(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

fn split_while(bytes: &[u8], is_in: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|byte| !is_in(*byte));
    bytes.split_at(end.unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests;
