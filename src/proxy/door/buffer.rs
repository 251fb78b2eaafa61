//! The request body: read whole once, kept as one copy, so that every attempt repeats the same
//! bytes. Bodies above 8 KiB draw on one budget for the process, as their bytes arrive.
//!
//! Promise: more than 30 MB is refused at once where Content-Length says so, and what the app still
//! sends is drained for a while, so that it reads the answer instead of a reset; what is announced
//! and not sent takes nothing of the budget; a body that drips is refused, and where memory is short the
//! slowest goes first.

mod budget;
mod pace;
mod room;

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
use self::room::BodyRoom;
use super::admit::{Admitted, BODY_BYTES_MAX, form_type, slips};
use crate::clock::Clock;
use crate::ledger::{ArrivingHash, Ledger};
use crate::places::{PLACE_BYTES, Place, Rest};
use crate::protocol::Operation;
use crate::protocol::body::{RequestPeek, Skeleton};
use crate::proxy::downstream::{BodyLost, Downstream};
use crate::proxy::life::Life;
use crate::proxy::limits::waiters::Waiters;
use crate::proxy::refuse::{Code, Refusal};

/// A body and its share of the budget, given back when both are dropped.
pub struct RequestBody {
    bytes: Bytes,
    /// Of these bytes and the rest of their request.
    hash: Option<ArrivingHash>,
    skeleton: Option<Skeleton>,
    app_took: Duration,
    _share: Option<BudgetShare>,
    /// Of what the body became, where that is larger.
    _grown: Option<BudgetShare>,
}

/// What becomes of a body's size when it is made into what is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// It hardly grows.
    None,
    /// A recording becomes base64.
    Base64,
}

/// What bodies draw on.
#[derive(Clone, Copy)]
pub struct Intake<'a> {
    pub ledger: &'a Ledger,
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

/// Larger bodies are hashed while they arrive, a smaller one whole.
const HASHED_WHOLE_BYTES_MAX: usize = 64 * 1024;

/// So much is hashed at once, or the rest: small pieces cost more.
const HASHED_BYTES_MIN: usize = 128 * 1024;

/// Most that is read at once: what came is hashed before it leaves the processor's cache.
const READ_BYTES_MAX: usize = 256 * 1024;

/// A share grows by this; that of a chunked body by as much as came, at first.
const SHARE_STEP_BYTES: usize = 1024 * 1024;
const SHARE_STEP_BYTES_MIN: usize = 64 * 1024;

/// Bounds of draining a refused body.
const DRAIN_BYTES_MAX: usize = 64 * 1024 * 1024;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const DRAIN_RAW_TIME_MAX: Duration = Duration::from_millis(500);

/// The most that the bodies of one app may hold.
fn of_one_app(has_one_app: bool) -> usize {
    match has_one_app {
        true => BUDGET_BYTES,
        false => OF_ONE_APP_BYTES,
    }
}

// === impl Intake ===

impl Intake<'_> {
    /// The share of an app's body, nothing yet. One app among several leaves some of the budget to the others.
    fn share(self, admitted: &Admitted, announced: Option<usize>, growth: Growth) -> BudgetShare {
        let chunked_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
        let most = announced.unwrap_or(chunked_max.saturating_add(SHARE_STEP_BYTES));
        let most = most.saturating_add(growth.of(most));
        self.budget.share(
            &admitted.caller.app.name,
            of_one_app(self.has_one_app),
            most,
        )
    }

    /// The hash of a metered request whose body is worth to be hashed while it arrives.
    fn begin_hash(self, admitted: &Admitted, announced: Option<usize>) -> Option<ArrivingHash> {
        let length = announced.filter(|length| *length > HASHED_WHOLE_BYTES_MAX)?;
        let begins = || {
            self.ledger
                .begin_fingerprint(&admitted.without_body(), length)
        };
        admitted.route.is_metered().then(begins)
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

// === impl Growth ===

impl Growth {
    fn for_request(admitted: &Admitted, downstream: &Downstream) -> Self {
        let is_form = || form_type(&downstream.head().headers).is_some();
        match admitted.route.operation {
            Operation::Transcription if is_form() => Self::Base64,
            _ => Self::None,
        }
    }

    /// How much more so many bytes become.
    fn of(self, bytes: usize) -> usize {
        match self {
            Self::None => 0,
            Self::Base64 => bytes / 3,
        }
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

    /// The body becomes so many bytes, together with what is kept of it beside what is sent: more than its share
    /// covers, where a request refers to what was said before.
    pub fn grows(
        &mut self,
        to_bytes: usize,
        budget: &BodyBudget,
        has_one_app: bool,
        app: &Arc<str>,
    ) -> Result<(), Refusal> {
        let more = to_bytes.saturating_sub(self.bytes.len());
        if more <= FREE_BYTES {
            return Ok(());
        }
        let grown = budget.share_of(app, of_one_app(has_one_app), more);
        self._grown = Some(grown.ok_or(Code::MemoryFull)?);
        Ok(())
    }

    /// The body as it is sent from here on, in the place of the one that came: an edit shortens it, or
    /// adds no more than a model's name, for a recording its share has grown, and a translated one [`Self::grows`],
    /// so it is covered still. Two copies are there only while
    /// the edit is made, one body a thread at a time.
    pub fn becomes(&mut self, edited: Bytes) {
        let is_the_same =
            edited.as_ptr() == self.bytes.as_ptr() && edited.len() == self.bytes.len();
        self.hash = self.hash.take().filter(|_| is_the_same);
        self.skeleton = None;
        self.bytes = edited;
    }

    /// What it says as JSON, as it came.
    pub fn peek(&self) -> RequestPeek {
        let peek = self.skeleton.as_ref().and_then(Skeleton::peek);
        peek.unwrap_or_else(|| RequestPeek::read(&self.bytes))
    }

    /// The request's hash, where it was made while this body came.
    pub fn take_hash(&mut self) -> Option<ArrivingHash> {
        self.hash.take()
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
                hash: None,
                skeleton: None,
                app_took: Duration::ZERO,
                _share: None,
                _grown: None,
            });
        }
        Some(Ok(length)) => Some(length),
        Some(Err(_)) => return Err(Code::BodyTooLarge.into()),
        None => None,
    };
    let mut share = None;
    let growth = Growth::for_request(admitted, downstream);
    if admitted.expects_continue && downstream.asks_for_body().await.is_err() {
        return Err(Code::BodyBroken.into());
    }
    let bytes_max = usize::try_from(BODY_BYTES_MAX).unwrap_or(usize::MAX);
    // One byte more shows that a chunked body is too large.
    let most = announced.unwrap_or(bytes_max.saturating_add(1));
    let mut body = BodyRoom::new(most, FREE_BYTES);
    let mut hash = room.begin_hash(admitted, announced);
    let mut skeleton = hash.is_some().then(Skeleton::default);
    let mut looked_at = 0;
    let mut pace = Pace::default();
    let mut app_took = Duration::ZERO;
    loop {
        let covered = share.as_ref().map_or(0, BudgetShare::bytes);
        // Nothing is read that has no share.
        let free = covered.max(FREE_BYTES).saturating_sub(body.bytes().len());
        let piece_max = free.min(READ_BYTES_MAX);
        place.rests(Rest::Asking, pace.patience());
        let asked = room.clock.monotonic();
        let began = Instant::now();
        let read = timeout(pace.left(), body.read_from(downstream, piece_max));
        let read = tokio::select! {
            biased;
            () = asked_to_go(share.as_ref()) => return Err(slowest()),
            read = read => read,
        };
        let took = began.elapsed();
        app_took = app_took.saturating_add(room.clock.monotonic().saturating_sub(asked));
        let came = match read {
            Ok(Ok(0)) => break,
            Ok(Ok(came)) => came,
            Ok(Err(BodyLost)) => return Err(Code::BodyBroken.into()),
            Err(_) => return Err(Code::BodyTooSlow.into()),
        };
        let total = body.bytes().len();
        if total > bytes_max {
            return Err(slips::too_large(
                &admitted.route,
                &downstream.head().headers,
            ));
        }
        if !pace.keeps(took, came) {
            return Err(Code::BodyTooSlow.into());
        }
        let is_whole = announced == Some(total);
        if (is_whole || total.saturating_sub(looked_at) >= HASHED_BYTES_MIN)
            && let (Some(hash), Some(skeleton)) = (&mut hash, &mut skeleton)
        {
            let piece = body.bytes().get(looked_at..).unwrap_or_default();
            hash.update(piece);
            skeleton.feed(piece);
            looked_at = total;
        }
        if let more @ 1.. = share_step(covered, total, announced) {
            let share = share.get_or_insert_with(|| room.share(admitted, announced, growth));
            match room.grown(share, more, &admitted.caller.app.name).await? {
                Ok(()) => {}
                Err(NoShare::InTime) => return Err(Code::MemoryFull.into()),
                Err(NoShare::AskedToGo) => return Err(slowest()),
            }
            if let Err(error) = body.grow(share.bytes(), room.budget.spare_pages()) {
                tracing::warn!(%error, "the system gives no memory for a request's body");
                return Err(Code::MemoryFull.into());
            }
        }
    }
    if announced.is_some_and(|length| length != body.bytes().len()) {
        return Err(Code::BodyBroken.into());
    }
    if let Some(share) = share.as_mut() {
        let more = growth.of(body.bytes().len());
        if more > 0 {
            match room.grown(share, more, &admitted.caller.app.name).await? {
                Ok(()) => {}
                Err(NoShare::InTime) => return Err(Code::MemoryFull.into()),
                Err(NoShare::AskedToGo) => return Err(slowest()),
            }
        }
        share.is_complete();
    }
    Ok(RequestBody {
        bytes: body.freeze(),
        hash,
        skeleton,
        app_took,
        _share: share,
        _grown: None,
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

/// By how much a share grows that covers `covered` bytes, when `total` have come: it grows before what it covers is
/// exceeded.
fn share_step(covered: usize, total: usize, announced: Option<usize>) -> usize {
    if total < covered.max(FREE_BYTES) || announced == Some(total) {
        return 0;
    }
    let step = match announced {
        Some(length) => length.saturating_sub(covered),
        // A chunked body does not say how large it will be.
        None => total.max(SHARE_STEP_BYTES_MIN),
    };
    SHARE_STEP_BYTES.min(step)
}

/// Reads and discards what the app still sends after its answer was written. With an immediate
/// close openai-node never sees the 413 and uploads three times (measured).
pub async fn drain(downstream: &mut Downstream) {
    let mut piece = BytesMut::with_capacity(FREE_BYTES);
    let discard = async {
        let mut discarded = 0usize;
        while let Ok(came @ 1..) = downstream.read_body(&mut piece, FREE_BYTES).await {
            discarded = discarded.saturating_add(came);
            if discarded > DRAIN_BYTES_MAX {
                return;
            }
            piece.clear();
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
