//! What keeps the process from ending, and how it ends: requests in flight, doors that are open, the
//! two signals of a stop.
//!
//! Promise: a stop waits for what was accepted; a task that waits for a signal receives it also when it was
//! given before.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::telemetry::metrics::{InFlightGuard, Metrics};

/// Counts what is under way, and holds the signals.
pub struct Life {
    tasks: TaskTracker,
    in_flight: watch::Sender<usize>,
    arriving: watch::Sender<usize>,
    stopping: watch::Sender<bool>,
    cut: watch::Sender<bool>,
}

/// Resolves when bursar stops, or when its shutdown has run out of patience.
pub struct CutSignal(watch::Receiver<bool>);

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
            in_flight: watch::Sender::new(0),
            arriving: watch::Sender::new(0),
            stopping: watch::Sender::new(false),
            cut: watch::Sender::new(false),
        })
    }

    /// Runs a task that is kept count of.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Requests in flight, drains included.
    pub fn in_flight(&self) -> usize {
        *self.in_flight.borrow()
    }

    /// Resolves when nothing is in flight.
    pub async fn idle(&self) {
        let mut count = self.in_flight.subscribe();
        // The sender lives as long as `self`.
        count.wait_for(|count| *count == 0).await.ok();
    }

    /// Resolves when no door is open, and what came in by them has been answered.
    pub async fn arrived(&self) {
        let mut arriving = self.arriving.subscribe();
        arriving.wait_for(|count| *count == 0).await.ok();
    }

    pub fn stop(&self) {
        self.stopping.send_replace(true);
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    pub fn stop_signal(&self) -> CutSignal {
        CutSignal(self.stopping.subscribe())
    }

    /// The shutdown's time is up.
    pub fn cut(&self) {
        self.cut.send_replace(true);
    }

    pub fn cut_signal(&self) -> CutSignal {
        CutSignal(self.cut.subscribe())
    }
}

// === impl CutSignal ===

impl CutSignal {
    pub async fn wait(&mut self) {
        if self.0.wait_for(|cut| *cut).await.is_err() {
            std::future::pending().await
        }
    }
}

// === impl InFlight ===

impl InFlight {
    pub fn enter(life: &Arc<Life>, metrics: &Metrics) -> Self {
        life.in_flight.send_modify(|count| *count += 1);
        Self {
            life: Arc::clone(life),
            _gauge: metrics.in_flight(),
        }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        let in_flight = &self.life.in_flight;
        in_flight.send_modify(|count| *count = count.saturating_sub(1));
    }
}

// === impl Arriving ===

impl Arriving {
    pub fn enter(life: &Arc<Life>) -> Self {
        life.arriving.send_modify(|count| *count += 1);
        Self(Arc::clone(life))
    }
}

impl Drop for Arriving {
    fn drop(&mut self) {
        let arriving = &self.0.arriving;
        arriving.send_modify(|count| *count = count.saturating_sub(1));
    }
}
