//! A chunked request body, read as RFC 9112 (7.1) has it. pingora's reader takes a missing size for 0, any bytes
//! for an extension, blanks where none may be, and lines of any kind for trailers; another reader may take such a
//! body for a different one, and what follows it for a request.
//!
//! Promise: what is not of the grammar is refused; extensions and trailers are read, bounded and dropped.

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::places::PLACE_BYTES;

/// A body that is being read.
#[derive(Debug, Default)]
pub struct Chunked {
    place: ParsePosition,
    /// Came, and is not yet understood.
    raw: BytesMut,
    /// Of extensions and trailers so far.
    extra_bytes: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParsePosition {
    #[default]
    Size,
    Payload {
        left: u64,
    },
    PayloadEnd,
    Trailers,
    Ended,
}

/// The body ended early, or is not chunked as the grammar has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Of extensions and trailers in one body, all together.
const EXTRA_BYTES_MAX: usize = PLACE_BYTES;

/// Digits of a chunk's size: more could overflow.
const SIZE_DIGITS_MAX: usize = 16;

/// Nothing counts what is read before a chunk's size is known.
const READ_BYTES: usize = PLACE_BYTES;

// === impl Chunked ===

impl Chunked {
    /// The next bytes of the body; `None` at its end. Nothing is lost when it is given up meanwhile.
    pub async fn next(
        &mut self,
        source: &mut (impl AsyncRead + Unpin),
    ) -> Result<Option<Bytes>, Malformed> {
        loop {
            let payload = self.decode()?;
            if !payload.is_empty() {
                return Ok(Some(payload));
            }
            if self.place == ParsePosition::Ended {
                return Ok(None);
            }
            self.raw.reserve(READ_BYTES);
            match source.read_buf(&mut self.raw).await {
                Ok(count) if count > 0 => {}
                Ok(_) | Err(_) => return Err(Malformed),
            }
        }
    }

    /// Takes what has come as far as it goes.
    fn decode(&mut self) -> Result<Bytes, Malformed> {
        let mut payload = BytesMut::new();
        loop {
            match self.place {
                ParsePosition::Size => {
                    let Some(line) = self.line()? else { break };
                    let (size, extensions) = read_size(&line)?;
                    self.count(extensions.len())?;
                    check_extensions(extensions)?;
                    self.place = match size {
                        0 => ParsePosition::Trailers,
                        left => ParsePosition::Payload { left },
                    };
                }
                ParsePosition::Payload { left: 0 } => self.place = ParsePosition::PayloadEnd,
                ParsePosition::Payload { .. } if self.raw.is_empty() => break,
                ParsePosition::Payload { left } => {
                    let taken = usize::try_from(left).unwrap_or(usize::MAX);
                    let piece = self.raw.split_to(taken.min(self.raw.len()));
                    let count = u64::try_from(piece.len()).map_err(|_| Malformed)?;
                    let left = left.saturating_sub(count);
                    self.place = ParsePosition::Payload { left };
                    match payload.is_empty() {
                        true => payload = piece,
                        false => payload.extend_from_slice(&piece),
                    }
                }
                ParsePosition::PayloadEnd => match *self.raw {
                    [] | [b'\r'] => break,
                    [b'\r', b'\n', ..] => {
                        let _ = self.raw.split_to(2);
                        self.place = ParsePosition::Size;
                    }
                    _ => return Err(Malformed),
                },
                ParsePosition::Trailers => {
                    let Some(line) = self.line()? else { break };
                    if line.is_empty() {
                        self.place = ParsePosition::Ended;
                    } else {
                        self.count(line.len())?;
                        check_trailer(&line)?;
                    }
                }
                // Nothing behind it is read as a request.
                ParsePosition::Ended => {
                    self.raw.clear();
                    break;
                }
            }
        }
        Ok(payload.freeze())
    }

    /// The next line without its CRLF. `None`: it has not come whole.
    fn line(&mut self) -> Result<Option<BytesMut>, Malformed> {
        let Some(end) = memchr::memchr(b'\n', &self.raw) else {
            let most = EXTRA_BYTES_MAX.saturating_add(SIZE_DIGITS_MAX);
            return match self.raw.len() > most {
                true => Err(Malformed),
                false => Ok(None),
            };
        };
        let mut line = self.raw.split_to(end.saturating_add(1));
        let Some(text) = line.strip_suffix(b"\r\n").map(<[u8]>::len) else {
            return Err(Malformed);
        };
        line.truncate(text);
        Ok(Some(line))
    }

    fn count(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.extra_bytes = self.extra_bytes.saturating_add(bytes);
        match self.extra_bytes > EXTRA_BYTES_MAX {
            true => Err(Malformed),
            false => Ok(()),
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
