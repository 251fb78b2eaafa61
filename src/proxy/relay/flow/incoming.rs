//! What comes of an answer that flows: all that is there at one look as one piece, so that a burst of small
//! chunks costs one write to the app and no more.
//!
//! Promise: bytes and their order are the service's, and what came goes before the end or the break behind it;
//! a piece is never waited for longer than it takes to come. What is awaited here may be dropped at any time:
//! nothing that was read is lost.

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;

use crate::proxy::upstream::exchange::{Answering, BodyBroke};

/// The reading of one answer.
#[derive(Default)]
pub(super) struct Incoming {
    /// The end, where it was read behind a piece that went first.
    end: Option<Result<(), BodyBroke>>,
}

/// Beyond this the app is written to first. Small chunks that came together fit the buffer of its connection,
/// framing included, and go out in one packet.
const TOGETHER_BYTES_MAX: usize = 7 * 1024;

// === impl Incoming ===

impl Incoming {
    /// The next bytes; `None` at a clean end.
    pub async fn next(&mut self, answering: &mut Answering) -> Result<Option<Bytes>, BodyBroke> {
        if let Some(end) = self.end.take() {
            return end.map(|()| None);
        }
        let Some(first) = answering.next_chunk().await? else {
            return Ok(None);
        };
        let mut together = None;
        let mut length = first.len();
        while length < TOGETHER_BYTES_MAX {
            match answering.next_chunk().now_or_never() {
                Some(Ok(Some(more))) => {
                    length += more.len();
                    together
                        .get_or_insert_with(|| BytesMut::from(&*first))
                        .extend_from_slice(&more);
                }
                Some(Ok(None)) => {
                    self.end = Some(Ok(()));
                    break;
                }
                Some(Err(broke)) => {
                    self.end = Some(Err(broke));
                    break;
                }
                None => break,
            }
        }
        Ok(Some(together.map_or(first, BytesMut::freeze)))
    }
}
