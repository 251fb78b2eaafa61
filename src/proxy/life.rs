//! What keeps the process from ending, and how it ends: requests in flight, doors that are open, the
//! two signals of a stop.
//!
//! Promise: a stop waits for what was accepted; a task that waits for a signal receives it also when it was
//! given before.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use slab::Slab;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;

use crate::telemetry::metrics::{InFlightGuard, Metrics};

/// Counts what is under way, and holds the signals.
pub struct Life {
    tasks: TaskTracker,
    in_flight: UnderWay,
    arriving: UnderWay,
    stopping: Arc<Signal>,
    cut: Arc<Signal>,
}

/// Given once. A request waits for it with each chunk of its answer, beside the chunk: so a task is entered here
/// when it first waits, and asks a flag from then on.
#[derive(Default)]
struct Signal {
    is_given: AtomicBool,
    waiting: Mutex<Slab<Waker>>,
}

/// A count that a stop waits for. With each request it changes twice, so only its end wakes a task.
#[derive(Default)]
struct UnderWay {
    count: AtomicUsize,
    none_left: Notify,
}

/// Resolves when bursar stops, or when its shutdown has run out of patience.
pub struct CutSignal {
    signal: Arc<Signal>,
    /// Where it waits, and which task that wakes.
    entered: Option<(usize, Waker)>,
}

/// Counts a request as in flight until it is dropped.
pub struct InFlight {
    life: Arc<Life>,
    _gauge: InFlightGuard,
}

/// Counts an open door, and a connection until its first request has had its answer: a stop waits for
/// them.
pub struct Arriving(Arc<Life>);

// === impl Life ===

impl Life {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            tasks: TaskTracker::new(),
            in_flight: UnderWay::default(),
            arriving: UnderWay::default(),
            stopping: Arc::default(),
            cut: Arc::default(),
        })
    }

    /// Runs a task that is kept count of.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Requests in flight, drains included.
    pub fn in_flight(&self) -> usize {
        self.in_flight.count.load(Ordering::Relaxed)
    }

    /// Resolves when nothing is in flight.
    pub async fn idle(&self) {
        self.in_flight.none_left().await;
    }

    /// Resolves when no door is open, and what came in by them has been answered.
    pub async fn arrived(&self) {
        self.arriving.none_left().await;
    }

    pub fn stop(&self) {
        self.stopping.give();
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.is_given()
    }

    pub fn stop_signal(&self) -> CutSignal {
        CutSignal::of(&self.stopping)
    }

    /// The shutdown's time is up.
    pub fn cut(&self) {
        self.cut.give();
    }

    pub fn cut_signal(&self) -> CutSignal {
        CutSignal::of(&self.cut)
    }
}

// === impl UnderWay ===

impl UnderWay {
    fn begin(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
    }

    /// Of what has begun, once.
    fn end(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none_left.notify_waiters();
        }
    }

    async fn none_left(&self) {
        loop {
            let mut ended = std::pin::pin!(self.none_left.notified());
            // Subscribe before the look, so that an end right after it is not missed.
            ended.as_mut().enable();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }
}

// === impl Signal ===

impl Signal {
    fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        let waiting = self.waiting.lock();
        waiting.iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }
}

// === impl CutSignal ===

impl CutSignal {
    fn of(signal: &Arc<Signal>) -> Self {
        Self {
            signal: Arc::clone(signal),
            entered: None,
        }
    }

    pub fn is_given(&self) -> bool {
        self.signal.is_given()
    }

    pub async fn wait(&mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &Context<'_>) -> Poll<()> {
        let waker = cx.waker();
        let is_entered = |(_, wakes): &(usize, Waker)| wakes.will_wake(waker);
        if !self.entered.as_ref().is_some_and(is_entered) {
            self.leave();
            let at = self.signal.waiting.lock().insert(waker.clone());
            self.entered = Some((at, waker.clone()));
        }
        // Behind the entry: a signal that is given between the two wakes this task.
        match self.is_given() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    fn leave(&mut self) {
        if let Some((at, _)) = self.entered.take() {
            self.signal.waiting.lock().remove(at);
        }
    }
}

impl Drop for CutSignal {
    fn drop(&mut self) {
        self.leave();
    }
}

// === impl InFlight ===

impl InFlight {
    pub fn enter(life: &Arc<Life>, metrics: &Metrics) -> Self {
        life.in_flight.begin();
        Self {
            life: Arc::clone(life),
            _gauge: metrics.in_flight(),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.life.in_flight.end();
    }
}

// === impl Arriving ===

impl Arriving {
    pub fn enter(life: &Arc<Life>) -> Self {
        life.arriving.begin();
        Self(Arc::clone(life))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        self.0.arriving.end();
    }
}

#[cfg(test)]
mod tests;
