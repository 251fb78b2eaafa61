//! The queue in front of the service's ceilings ("8 requests in flight per serving instance",
//! "120 requests per minute"): a burst above them waits here instead of failing there, and apps take
//! turns.
//!
//! [`scheduler`] decides which request may go; here are the lock, the clock, and the requests that wait. No task of its
//! own keeps the time: one of the waiting requests does it for all.
//!
//! Promise: a [`UpstreamSlot`] is held from before a request's first byte until its answer has ended at the
//! service, and given back however its holder ends; a request that stops waiting leaves at once; waiting is
//! bounded in number and time.

pub mod adaptive_limits;
mod line;
mod rate_window;
mod scheduler;

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};

use self::adaptive_limits::Busy;
pub use self::line::Priority;
use self::line::TicketNo;
use self::scheduler::{Entered, Scheduler, SlotNo};
use crate::ceilings::{Ceilings, Demand};
use crate::clock::SharedClock;
use crate::config::Shaping;
use crate::telemetry::metrics::Metrics;

/// Why a request did not get a place, and when another try is worth it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unserved {
    /// The line is full, and the app has its share of it.
    Full { retry_after: Duration },
    /// No place can come in time: the minute is full for longer.
    TooLate { retry_after: Duration },
    /// It waited as long as it may.
    TooLong {
        waited: Duration,
        retry_after: Duration,
    },
    /// bursar is stopping.
    Closed,
}

/// A place in flight at the service. Dropping it gives it back.
#[derive(Debug)]
pub struct UpstreamSlot {
    queue: Arc<Queue>,
    no: SlotNo,
}

/// A stream that is read without a reader: as long as this lives, its place may be asked for.
#[derive(Debug)]
pub struct Drained {
    queue: Arc<Queue>,
    slot: SlotNo,
    asked: watch::Receiver<bool>,
}

pub struct Queue {
    clock: SharedClock,
    metrics: Arc<Metrics>,
    inner: Mutex<QueueState>,
    /// The request that holds it keeps the time for all that wait.
    timekeeper: tokio::sync::Mutex<()>,
}

type Decided = Result<UpstreamSlot, NotNow>;

struct QueueState {
    desk: Scheduler,
    queue_wait: Duration,
    waiting: HashMap<TicketNo, oneshot::Sender<Decided>>,
    drains: HashMap<SlotNo, watch::Sender<bool>>,
    /// What was decided, to be reported when the lock is free: a place that no request takes comes back here.
    decided: Vec<(oneshot::Sender<Decided>, Decided)>,
}

/// The end of a wait without a place.
#[derive(Clone, Copy, Debug)]
enum NotNow {
    MadeRoom,
    TooLong,
    Closed,
}

/// Takes a request that stops waiting out of the line.
struct TicketGuard<'a> {
    queue: &'a Arc<Queue>,
    ticket: TicketNo,
}

/// Naps of the timekeeper. Not longer, because the machine may sleep meanwhile.
const NAP_MAX: Duration = Duration::from_millis(250);
const NAP_MIN: Duration = Duration::from_millis(1);

/// Least time that an app is asked to wait.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(1);

// === impl Queue ===

impl Queue {
    pub fn new(config: &Shaping, clock: SharedClock, metrics: Arc<Metrics>) -> Arc<Self> {
        let queue = Arc::new(Self {
            clock,
            metrics,
            inner: Mutex::new(QueueState {
                desk: Scheduler::new(config),
                queue_wait: config.queue_wait,
                waiting: HashMap::new(),
                drains: HashMap::new(),
                decided: Vec::new(),
            }),
            timekeeper: tokio::sync::Mutex::new(()),
        });
        queue.change(|_, _| ());
        queue
    }

    /// New limits hold at once; a waiting request keeps the wait that it was given.
    pub fn reconfigure(self: &Arc<Self>, config: &Shaping) {
        self.change(|inner, _| {
            inner.desk.reconfigure(config);
            inner.queue_wait = config.queue_wait;
        });
    }

    /// What is used of the ceilings.
    pub fn demand(self: &Arc<Self>) -> Demand {
        self.change(|inner, now| inner.desk.demand(now))
    }

    /// Holds the limits below what other machines leave of the ceilings, for so long.
    pub fn share(self: &Arc<Self>, share: Ceilings, time: Duration) {
        self.change(|inner, now| inner.desk.share(share, now.saturating_add(time)));
    }

    /// bursar is stopping: waiting requests are refused, and no other waits from now on.
    pub fn close(self: &Arc<Self>) {
        self.change(|inner, _| {
            inner.desk.close();
            let waiting: Vec<TicketNo> = inner.waiting.keys().copied().collect();
            for ticket in waiting {
                inner.ends(ticket, NotNow::Closed);
            }
        });
    }

    /// Waits for a place until `deadline` on the monotonic clock, but not longer than
    /// `[shaping] queue_wait_s`; also returns how long that took. Dropping the future leaves the line.
    pub async fn enter(
        self: &Arc<Self>,
        app: &Arc<str>,
        turn: Priority,
        deadline: Duration,
    ) -> Result<(UpstreamSlot, Duration), Unserved> {
        let mut answer = None;
        let (entered, since) = self.change(|inner, now| {
            let deadline = deadline.min(now.saturating_add(inner.queue_wait));
            let (entered, gone) = inner.desk.enter(now, app, turn, deadline);
            if let Entered::Waits(ticket) = entered {
                let (wake, wakes) = oneshot::channel();
                inner.waiting.insert(ticket, wake);
                answer = Some((ticket, wakes));
            }
            if let Some(gone) = gone {
                inner.ends(gone, NotNow::MadeRoom);
            }
            (entered, now)
        });
        let (ticket, wakes) = match (entered, answer) {
            (Entered::Goes(no), _) => {
                self.metrics.waited(app, Duration::ZERO);
                return Ok((self.slot(no), Duration::ZERO));
            }
            (Entered::Waits(_), Some(answer)) => answer,
            (Entered::TooLate(at), _) => {
                let retry_after = at.saturating_sub(since).max(RETRY_AFTER_MIN);
                return Err(Unserved::TooLate { retry_after });
            }
            (Entered::Full, _) => return Err(self.full()),
            (Entered::Closed | Entered::Waits(_), _) => return Err(Unserved::Closed),
        };
        let waiting = TicketGuard {
            queue: self,
            ticket,
        };
        let decided = tokio::select! {
            biased;
            decided = wakes => decided.unwrap_or(Err(NotNow::Closed)),
            never = self.keep_time() => match never {},
        };
        drop(waiting);
        let waited = self.clock.monotonic().saturating_sub(since);
        match decided {
            Ok(slot) => {
                self.metrics.waited(app, waited);
                Ok((slot, waited))
            }
            Err(NotNow::Closed) => Err(Unserved::Closed),
            Err(NotNow::MadeRoom) => Err(self.full()),
            Err(NotNow::TooLong) => Err(Unserved::TooLong {
                waited,
                retry_after: self.retry_after(),
            }),
        }
    }

    /// Does what time alone brings, for all waiting requests, for as long as this one waits.
    async fn keep_time(self: &Arc<Self>) -> Infallible {
        let _turn = self.timekeeper.lock().await;
        loop {
            let nap = self.change(|inner, now| {
                for ticket in inner.desk.expired(now) {
                    inner.ends(ticket, NotNow::TooLong);
                }
                let next = inner.desk.next_at(now);
                next.map_or(NAP_MAX, |at| at.saturating_sub(now))
            });
            tokio::time::sleep(nap.clamp(NAP_MIN, NAP_MAX)).await;
        }
    }

    fn full(&self) -> Unserved {
        Unserved::Full {
            retry_after: self.retry_after(),
        }
    }

    /// When another try is worth it, as far as that is known.
    fn retry_after(&self) -> Duration {
        let now = self.clock.monotonic();
        let opens_at = self.inner.lock().desk.opens_at(now);
        let left = opens_at.map_or(Duration::ZERO, |at| at.saturating_sub(now));
        left.max(RETRY_AFTER_MIN)
    }

    /// One change under the lock, all that follows from it, and the word to those it concerns.
    fn change<T>(self: &Arc<Self>, act: impl FnOnce(&mut QueueState, Duration) -> T) -> T {
        let now = self.clock.monotonic();
        let mut inner = self.inner.lock();
        let done = act(&mut inner, now);
        let due = inner.desk.due(now);
        for granted in due.granted {
            match inner.waiting.remove(&granted.ticket) {
                Some(wake) => inner.decided.push((wake, Ok(self.slot(granted.slot)))),
                None => inner.desk.end(granted.slot, now),
            }
        }
        for slot in due.displaced {
            if let Some(asked) = inner.drains.get(&slot) {
                asked.send_replace(true);
            }
        }
        let decided = std::mem::take(&mut inner.decided);
        self.metrics.traffic.show(
            inner.desk.waiting(),
            inner.desk.in_flight(),
            inner.desk.ceilings().in_flight(),
            inner.desk.ceilings().per_minute(),
        );
        drop(inner);
        for (wake, decided) in decided {
            // A request that has left since gives its place back by not taking it.
            drop(wake.send(decided));
        }
        done
    }

    fn slot(self: &Arc<Self>, no: SlotNo) -> UpstreamSlot {
        UpstreamSlot {
            queue: Arc::clone(self),
            no,
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").finish_non_exhaustive()
    }
}

// === impl QueueState ===

impl QueueState {
    fn ends(&mut self, ticket: TicketNo, why: NotNow) {
        if let Some(wake) = self.waiting.remove(&ticket) {
            self.decided.push((wake, Err(why)));
        }
    }
}

// === impl TicketGuard ===

impl Drop for TicketGuard<'_> {
    fn drop(&mut self) {
        self.queue.change(|inner, _| {
            if inner.waiting.remove(&self.ticket).is_some() {
                inner.desk.leave(self.ticket);
            }
        });
    }
}

// === impl UpstreamSlot ===

impl UpstreamSlot {
    /// The request's bytes are about to leave.
    pub fn sends(&self) {
        self.change(|desk, now| desk.sends(self.no, now));
    }

    /// An answer came, or the attempt ended otherwise: the service has had the request, if ever.
    pub fn arrived(&self) {
        self.change(|desk, now| desk.arrived(self.no, now));
    }

    /// The service never had the request.
    pub fn not_sent(&self) {
        self.change(|desk, _| desk.not_sent(self.no));
    }

    /// The service answered 429.
    pub fn busy(&self, busy: Busy) {
        self.change(|desk, now| desk.busy(self.no, now, busy));
    }

    /// The service began to answer as it should.
    pub fn served(&self) {
        self.change(|desk, now| desk.served(now));
    }

    /// The stream is read without a reader from now on.
    pub fn drains(&self) -> Drained {
        let (ask, asked) = watch::channel(false);
        self.queue.change(|inner, _| {
            inner.drains.insert(self.no, ask);
            inner.desk.drains(self.no);
        });
        Drained {
            queue: Arc::clone(&self.queue),
            slot: self.no,
            asked,
        }
    }

    fn change(&self, act: impl FnOnce(&mut Scheduler, Duration)) {
        self.queue.change(|inner, now| act(&mut inner.desk, now));
    }
}

impl Drop for UpstreamSlot {
    fn drop(&mut self) {
        self.change(|desk, now| desk.end(self.no, now));
    }
}

// === impl Drained ===

impl Drained {
    /// The drain is to end: a request waits for its place.
    pub fn is_displaced(&self) -> bool {
        *self.asked.borrow()
    }

    /// Resolves when the drain is to end.
    pub fn displaced(&self) -> impl Future<Output = ()> + use<> {
        let mut asked = self.asked.clone();
        async move {
            if asked.wait_for(|asked| *asked).await.is_err() {
                std::future::pending().await
            }
        }
    }
}

impl Drop for Drained {
    fn drop(&mut self) {
        self.queue.change(|inner, _| {
            // One that came later for the same place has its row.
            let asks = inner.drains.get(&self.slot);
            if asks.is_some_and(|asks| asks.subscribe().same_channel(&self.asked)) {
                inner.drains.remove(&self.slot);
                inner.desk.drains_no_more(self.slot);
            }
        });
    }
}

#[cfg(test)]
mod tests;
