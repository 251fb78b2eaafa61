//! The request body: read whole once, kept as one copy, so that every attempt repeats the same
//! bytes. Bodies above 8 KiB draw on one budget for the process, as their bytes arrive.
//!
//! Promise: more than 30 MB is refused at once where Content-Length says so, and what the app still
//! sends is drained for a while, so that it reads the answer instead of a reset; what is announced
//! and not sent takes nothing of the budget; a body that drips is refused, and where memory is short the
//! slowest goes first.

mod budget;
mod pace;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout};

pub use self::budget::BodyBudget;
use self::budget::{BudgetShare, NoShare};
pub(in crate::proxy) use self::pace::ASKING_PATIENCE;
use self::pace::Pace;
use super::admit::{Admitted, BODY_BYTES_MAX};
use crate::clock::Clock;
use crate::places::{PLACE_BYTES, Place, Rest};
use crate::proxy::downstream::{BodyLost, Downstream};
use crate::proxy::life::Life;
use crate::proxy::limits::waiters::Waiters;
use crate::proxy::refuse::{Code, Refusal};

/// A body and its share of the budget, given back when both are dropped.
#[derive(Debug)]
pub struct RequestBody {
    bytes: Bytes,
    app_took: Duration,
    _share: Option<BudgetShare>,
}

/// What bodies draw on.
#[derive(Clone, Copy)]
pub struct Intake<'a> {
    pub budget: &'a BodyBudget,
    pub clock: &'a dyn Clock,
    pub life: &'a Life,
    pub waiters: &'a Waiters,
    /// There is no other app to leave anything to.
    pub has_one_app: bool,
}

/// Of bodies in memory, all together.
pub const BUDGET_BYTES: usize = 256 * 1024 * 1024;

/// Of those of one app, where there are several.
const OF_ONE_APP_BYTES: usize = BUDGET_BYTES / 4 * 3;

/// Bodies up to this size are covered by the limit on connections instead.
const FREE_BYTES: usize = PLACE_BYTES;

/// A share grows by this; that of a chunked body by as much as came, at first.
const SHARE_STEP_BYTES: usize = 1024 * 1024;
const SHARE_STEP_BYTES_MIN: usize = 64 * 1024;

/// Bounds of draining a refused body.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const DRAIN_RAW_TIME_MAX: Duration = Duration::from_millis(500);

// === impl Intake ===

impl Intake<'_> {
    /// The share of an app's body, nothing yet. One app among several leaves some of the budget to the others.
    fn share(self, admitted: &Admitted, announced: Option<usize>) -> BudgetShare {
        let chunked_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
        let most = announced.unwrap_or(chunked_max.saturating_add(SHARE_STEP_BYTES));
        let of_app = match self.has_one_app {
            true => BUDGET_BYTES,
            false => OF_ONE_APP_BYTES,
        };
        self.budget.share(&admitted.caller.app.name, of_app, most)
    }

    /// A body that has to wait for memory is one of those that wait inside: nothing reads on meanwhile, so what
    /// its app sends lies unread, and its connection does not give way.
    async fn grown(
        self,
        share: &mut BudgetShare,
        more: usize,
        app: &Arc<str>,
    ) -> Result<Result<(), NoShare>, Refusal> {
        let mut growing = pin!(share.grow(more));
        if let Some(grown) = growing.as_mut().now_or_never() {
            return Ok(grown);
        }
        let entered = self.waiters.enter(app, self.has_one_app);
        let _waiter = entered.map_err(|crowd| crowd.refusal(app))?;
        Ok(growing.await)
    }
}

// === impl RequestBody ===

impl RequestBody {
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How long the app took to send it, without waits for memory.
    pub fn app_took(&self) -> Duration {
        self.app_took
    }

    /// The body as it is sent from here on, in the place of the one that came: an edit shortens it, or
    /// adds no more than a model's name, so its share covers it still. Two copies are there only while
    /// the edit is made, one body a thread at a time.
    pub fn becomes(&mut self, edited: Bytes) {
        self.bytes = edited;
    }
}

/// Reads the body of an admitted request, whose place may be given away meanwhile. A stop that has run out of
/// patience waits for none: nothing was sent of it.
pub(in crate::proxy) async fn read_body(
    room: Intake<'_>,
    downstream: &mut Downstream,
    admitted: &Admitted,
    place: &Place,
) -> Result<RequestBody, Refusal> {
    let mut cut = room.life.cut_signal();
    tokio::select! {
        biased;
        read = read_whole(room, downstream, admitted, place) => read,
        () = cut.wait() => Err(Code::ShuttingDown.into()),
    }
}

async fn read_whole(
    room: Intake<'_>,
    downstream: &mut Downstream,
    admitted: &Admitted,
    place: &Place,
) -> Result<RequestBody, Refusal> {
    let announced = admitted.content_length.map(usize::try_from);
    let announced = match announced {
        Some(Ok(0)) => {
            return Ok(RequestBody {
                bytes: Bytes::new(),
                app_took: Duration::ZERO,
                _share: None,
            });
        }
        Some(Ok(length)) => Some(length),
        Some(Err(_)) => return Err(Code::BodyTooLarge.into()),
        None => None,
    };
    let mut share = None;
    if admitted.expects_continue
        && downstream
            .session()
            .write_continue_response()
            .await
            .is_err()
    {
        return Err(Code::BodyBroken.into());
    }
    let mut body = BytesMut::with_capacity(announced.unwrap_or(0).min(FREE_BYTES));
    let mut pace = Pace::default();
    let mut app_took = Duration::ZERO;
    let bytes_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    loop {
        place.rests(Rest::Asking, pace.patience());
        let asked = room.clock.monotonic();
        let began = Instant::now();
        let read = timeout(pace.left(), downstream.read_body());
        let read = tokio::select! {
            biased;
            () = asked_to_go(share.as_ref()) => return Err(slowest()),
            read = read => read,
        };
        let took = began.elapsed();
        app_took = app_took.saturating_add(room.clock.monotonic().saturating_sub(asked));
        let piece = match read {
            Ok(Ok(Some(piece))) => piece,
            Ok(Ok(None)) => break,
            Ok(Err(BodyLost)) => return Err(Code::BodyBroken.into()),
            Err(_) => return Err(Code::BodyTooSlow.into()),
        };
        let total = body.len().saturating_add(piece.len());
        if total > bytes_max {
            return Err(Code::BodyTooLarge.into());
        }
        if !pace.keeps(took, piece.len()) {
            return Err(Code::BodyTooSlow.into());
        }
        if let more @ 1.. = share_step(
            share.as_ref().map_or(0, BudgetShare::bytes),
            total,
            announced,
        ) {
            let share = share.get_or_insert_with(|| room.share(admitted, announced));
            match room.grown(share, more, &admitted.caller.app.name).await? {
                Ok(()) => {}
                Err(NoShare::InTime) => return Err(Code::MemoryFull.into()),
                Err(NoShare::AskedToGo) => return Err(slowest()),
            }
        }
        body.extend_from_slice(&piece);
    }
    if announced.is_some_and(|length| length != body.len()) {
        return Err(Code::BodyBroken.into());
    }
    if let Some(share) = share.as_mut() {
        share.is_complete();
    }
    Ok(RequestBody {
        bytes: body.freeze(),
        app_took,
        _share: share,
    })
}

/// Resolves when others need the memory of this body more.
async fn asked_to_go(share: Option<&BudgetShare>) {
    match share {
        Some(share) => share.asked_to_go().await,
        None => std::future::pending().await,
    }
}

fn slowest() -> Refusal {
    let words = "Memory for request bodies is short, and this one came slowest. Nothing was sent or \
                 billed; try again.";
    Refusal::saying(Code::MemoryFull, words)
}

/// By how much a share grows that covers `covered` bytes, when `total` have come.
fn share_step(covered: usize, total: usize, announced: Option<usize>) -> usize {
    if total <= FREE_BYTES || total <= covered {
        return 0;
    }
    let step = match announced {
        Some(length) => length.saturating_sub(covered),
        // A chunked body does not say how large it will be.
        None => total.max(SHARE_STEP_BYTES_MIN),
    };
    let missing = total.saturating_sub(covered);
    SHARE_STEP_BYTES.min(step).max(missing)
}

/// Reads and discards what the app still sends after its answer was written. With an immediate
/// close openai-node never sees the 413 and uploads three times (measured).
pub async fn drain(downstream: &mut Downstream) {
    let discard = async {
        let mut discarded = 0usize;
        while let Ok(Some(piece)) = downstream.read_body().await {
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

#[cfg(test)]
mod tests;
