//! The request body: read whole once, kept as one copy, so that every attempt repeats the same
//! bytes. Bodies above 64 KiB draw on one budget for the process.
//!
//! Promise: more than 30 MB is refused at once where Content-Length tells, and what the app still
//! sends is drained for a while, so that it reads the answer instead of a reset.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use pingora::ErrorType;
use tokio::io::AsyncReadExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::admit::{Admitted, BODY_BYTES_MAX};
use super::downstream::Downstream;
use super::refuse::{Code, Refusal};

/// One budget for buffered bodies, in KiB.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    kib: Arc<Semaphore>,
}

/// A body and its share of the budget, given back when both are dropped.
#[derive(Debug)]
pub struct RequestBody {
    pub bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// 256 MiB.
const BUDGET_KIB: usize = 256 * 1024;

/// Bodies up to this size are covered by the limit on connections instead.
const FREE_BYTES: usize = 64 * 1024;

/// How long a request waits for its share.
const SHARE_WAIT: Duration = Duration::from_secs(10);

/// Bounds of draining a refused body.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const DRAIN_RAW_TIME_MAX: Duration = Duration::from_millis(500);

// === impl BodyBudget ===

impl BodyBudget {
    pub fn new() -> Self {
        Self {
            kib: Arc::new(Semaphore::new(BUDGET_KIB)),
        }
    }

    async fn share(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Refusal> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        let wanted = Arc::clone(&self.kib).acquire_many_owned(kib);
        match timeout(SHARE_WAIT, wanted).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(Code::MemoryFull.into()),
        }
    }
}

/// Reads the body of an admitted request.
pub async fn read_body(
    budget: &BodyBudget,
    downstream: &mut Downstream,
    admitted: &Admitted,
) -> Result<RequestBody, Refusal> {
    let announced = admitted.content_length.map(usize::try_from);
    let announced = match announced {
        Some(Ok(0)) => {
            return Ok(RequestBody {
                bytes: Bytes::new(),
                _share: None,
            });
        }
        Some(Ok(length)) => Some(length),
        Some(Err(_)) => return Err(Code::BodyTooLarge.into()),
        None => None,
    };
    let mut share = match announced {
        Some(length) if length > FREE_BYTES => Some(budget.share(length).await?),
        _ => None,
    };
    if admitted.expects_continue
        && downstream
            .session()
            .write_continue_response()
            .await
            .is_err()
    {
        return Err(Code::BodyBroken.into());
    }
    let mut body = BytesMut::with_capacity(announced.unwrap_or(0));
    let bytes_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    loop {
        let piece = match downstream.session().read_body_bytes().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            Err(error) if error.etype == ErrorType::ReadTimedout => {
                return Err(Code::BodyTooSlow.into());
            }
            Err(_) => return Err(Code::BodyBroken.into()),
        };
        let total = body.len().saturating_add(piece.len());
        if total > bytes_max {
            return Err(Code::BodyTooLarge.into());
        }
        if announced.is_none() && total > FREE_BYTES {
            // A chunked body does not say how large it will be; its share grows with it.
            let more = budget.share(piece.len()).await?;
            match share.as_mut() {
                Some(share) => share.merge(more),
                None => share = Some(more),
            }
        }
        body.extend_from_slice(&piece);
    }
    if announced.is_some_and(|length| length != body.len()) {
        return Err(Code::BodyBroken.into());
    }
    Ok(RequestBody {
        bytes: body.freeze(),
        _share: share,
    })
}

/// Reads and discards what the app still sends after its answer was written. With an immediate
/// close openai-node never sees the 413 and uploads three times (measured).
pub async fn drain(downstream: &mut Downstream) {
    let discard = async {
        let mut discarded = 0usize;
        while let Ok(Some(piece)) = downstream.session().read_body_bytes().await {
            discarded = discarded.saturating_add(piece.len());
            if discarded > DRAIN_BYTES_MAX {
                return;
            }
        }
    };
    if timeout(DRAIN_TIME_MAX, discard).await.is_err() {
        tracing::debug!("an app went on sending a body that was refused");
    }
}

/// The same for a request whose framing is not clear: raw bytes, for a moment, so that the answer
/// is not lost to a reset.
pub async fn drain_raw(downstream: Downstream) {
    let mut stream = downstream.into_stream();
    let mut piece = BytesMut::with_capacity(FREE_BYTES);
    let discard = async {
        let mut discarded = 0usize;
        while let Ok(read) = stream.read_buf(&mut piece).await {
            discarded = discarded.saturating_add(read);
            if read == 0 || discarded > DRAIN_BYTES_MAX {
                return;
            }
            piece.clear();
        }
    };
    if timeout(DRAIN_RAW_TIME_MAX, discard).await.is_err() {
        tracing::debug!("an app went on sending after its request was refused");
    }
}
