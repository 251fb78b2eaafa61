//! Where the body of an answer ends.
//!
//! Promise: the rules of RFC 9112, 6.3, in their order, but for a transfer coding that was not asked for: its body is
//! for nobody, and only the close ends it. A length is a number, and one.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use pingora::http::ResponseHeader;

use crate::protocol::names::members;
use crate::proxy::downstream::chunked::{Chunked, Malformed};

/// What is still to come of a body.
#[derive(Debug)]
pub enum AnswerBody {
    Sized { left: u64 },
    Chunked(Chunked),
    UntilClose,
    Ended,
}

/// The transfer coding that a head names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferCoding {
    Absent,
    Chunked,
    /// Every request says that it takes none, and `chunked` needs no saying.
    Foreign,
}

// === impl AnswerBody ===

impl AnswerBody {
    /// A head that has no body and says that it has one: its service may send it all the same. One of a 304 is that
    /// of the document.
    pub fn is_denied(head: &ResponseHeader) -> bool {
        let has_length = !matches!(length(&head.headers), Ok(None | Some(0)));
        let has_coding = TransferCoding::of(&head.headers) != TransferCoding::Absent;
        head.status == StatusCode::NO_CONTENT && (has_length || has_coding)
    }

    /// The body behind a head that is no interim one.
    pub fn of(head: &ResponseHeader, is_for_head: bool) -> Result<Self, Malformed> {
        let coding = TransferCoding::of(&head.headers);
        let length = match coding {
            TransferCoding::Absent => length(&head.headers)?,
            TransferCoding::Chunked | TransferCoding::Foreign => None,
        };
        let is_bodyless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&head.status);
        Ok(match (coding, length) {
            _ if is_for_head || is_bodyless => Self::Ended,
            (TransferCoding::Chunked, _) => Self::Chunked(Chunked::of_answer()),
            (TransferCoding::Absent, Some(0)) => Self::Ended,
            (TransferCoding::Absent, Some(left)) => Self::Sized { left },
            (TransferCoding::Absent, None) | (TransferCoding::Foreign, _) => Self::UntilClose,
        })
    }

    pub fn has_ended(&self) -> Result<bool, Malformed> {
        match self {
            Self::Chunked(chunked) => chunked.has_ended(),
            Self::Ended => Ok(true),
            Self::Sized { .. } | Self::UntilClose => Ok(false),
        }
    }

    /// Takes what is the body's of what came. Where something is left, nothing may follow on this connection.
    pub fn take(
        &mut self,
        came: &[u8],
        own: impl FnOnce(&[u8]) -> Bytes,
        may_continue: &mut bool,
    ) -> Result<Bytes, Malformed> {
        let (chunk, behind) = match self {
            Self::Sized { left } => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let (piece, behind) = came.split_at(most.min(came.len()));
                let count = u64::try_from(piece.len()).map_err(|_| Malformed)?;
                *left = left.saturating_sub(count);
                if *left == 0 {
                    *self = Self::Ended;
                }
                (own(piece), behind)
            }
            Self::Chunked(chunked) => chunked.decode(came)?,
            Self::UntilClose => (own(came), &[][..]),
            Self::Ended => (Bytes::new(), came),
        };
        *may_continue &= behind.is_empty();
        Ok(chunk)
    }

    /// The service has closed; whether that ends the body.
    pub fn ends_by_close(&mut self) -> bool {
        if matches!(self, Self::UntilClose) {
            *self = Self::Ended;
        }
        matches!(self, Self::Ended)
    }
}

// === impl TransferCoding ===

impl TransferCoding {
    pub fn of(headers: &HeaderMap) -> Self {
        let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
        match (codings.next(), codings.next()) {
            (None, _) => Self::Absent,
            (Some(only), None) if only.as_bytes().eq_ignore_ascii_case(b"chunked") => Self::Chunked,
            (Some(_), _) => Self::Foreign,
        }
    }
}

/// The one length that a head names, however often (RFC 9110, 8.6).
fn length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    let mut length = None;
    for member in members(headers, &CONTENT_LENGTH) {
        let member = number(member)?;
        if *length.get_or_insert(member) != member {
            return Err(Malformed);
        }
    }
    Ok(length)
}

/// `1*DIGIT`
fn number(digits: &[u8]) -> Result<u64, Malformed> {
    let is_digits = digits.iter().all(u8::is_ascii_digit);
    let digits = std::str::from_utf8(digits).map_err(|_| Malformed)?;
    // Empty is no number.
    let number = digits.parse().map_err(|_| Malformed)?;
    match is_digits {
        true => Ok(number),
        false => Err(Malformed),
    }
}
