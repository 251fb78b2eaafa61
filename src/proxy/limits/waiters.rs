//! The requests that wait inside: for memory for a body, for room below a cap or a run's limit, for a place at the service, or
//! between two attempts. Each holds a connection meanwhile, so they are fewer than there are connections, and one app
//! among several has its share of them.
//!
//! Promise: however many requests of one app wait, another app's connection is accepted; a request that is turned
//! away is refused at once, and gives its connection back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::proxy::refuse::{Code, Refusal};

/// Places among the waiting requests come free with each that goes.
const CROWD_RETRY_AFTER: Duration = Duration::from_secs(1);

/// All waiting requests, counted by app.
#[derive(Debug)]
pub struct Waiters {
    counts: Arc<Mutex<Counts>>,
    /// In all. The other connections are for requests that go, and for those that come.
    most: usize,
    /// Of one app, where there are several.
    of_one_app: usize,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    by_app: HashMap<Arc<str>, usize>,
}

/// A request that may wait, until it is dropped.
#[derive(Debug)]
pub struct WaiterGuard {
    counts: Arc<Mutex<Counts>>,
    app: Arc<str>,
}

/// Too many wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Of the app, beside others.
    OfApp(usize),
    OfAll(usize),
}

// === impl Waiters ===

impl Waiters {
    /// Two thirds of the connections may wait, and half of them of one app.
    pub fn beside(connections_max: usize) -> Self {
        Self {
            counts: Arc::default(),
            most: (connections_max - connections_max / 3).max(1),
            of_one_app: (connections_max / 2).max(1),
        }
    }

    /// Counts a request of `app`. `is_alone`: there is no other app.
    pub fn enter(&self, app: &Arc<str>, is_alone: bool) -> Result<WaiterGuard, Crowd> {
        let mut counts = self.counts.lock();
        let of_app = counts.by_app.get(app).copied().unwrap_or(0);
        if !is_alone && of_app >= self.of_one_app {
            return Err(Crowd::OfApp(of_app));
        }
        if counts.all >= self.most {
            return Err(Crowd::OfAll(counts.all));
        }
        Ok(self.counted(&mut counts, app))
    }

    /// Counts a request that has to wait whatever the bounds say: what its repeat brings is not known
    /// otherwise.
    pub fn enter_again(&self, app: &Arc<str>) -> WaiterGuard {
        self.counted(&mut self.counts.lock(), app)
    }

    fn counted(&self, counts: &mut Counts, app: &Arc<str>) -> WaiterGuard {
        counts.all += 1;
        *counts.by_app.entry(Arc::clone(app)).or_default() += 1;
        WaiterGuard {
            counts: Arc::clone(&self.counts),
            app: Arc::clone(app),
        }
    }
}

// === impl Crowd ===

impl Crowd {
    /// The refusal that a request of `app` is given.
    pub fn refusal(self, app: &str) -> Refusal {
        let too_many = match self {
            Self::OfApp(count) => format!(
                "{count} requests of the app {app} wait already, the most that one app may have \
                 beside others."
            ),
            Self::OfAll(count) => {
                format!("{count} requests wait already, the most that may.")
            }
        };
        let words = format!("{too_many} This one was not sent; try again.");
        Refusal::saying(Code::QueueFull, words).after(CROWD_RETRY_AFTER)
    }
}

// === impl WaiterGuard ===

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.all = counts.all.saturating_sub(1);
        if let Some(count) = counts.by_app.get_mut(&self.app) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                counts.by_app.remove(&self.app);
            }
        }
    }
}

#[cfg(test)]
mod tests;
