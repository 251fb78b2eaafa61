//! Everything the service knows while it runs.
//!
//! Promise: each part guards itself; no lock of one is held while another is taken.

use crate::{
    auth::{Auth, FIRST_ORG},
    books::Books,
    clock::Clock,
    fault::{Faults, Holds},
    idempotency::Keys,
    limits::Limits,
    money::MicroUsd,
    options::{Options, RepeatBilled},
    pins::Pins,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};
use tokio_util::task::TaskTracker;

#[derive(Debug)]
pub struct State {
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) auth: Auth,
    pub(crate) books: Books,
    pub(crate) keys: Arc<Keys>,
    pub(crate) pins: Pins,
    pub(crate) limits: Arc<Limits>,
    pub(crate) faults: Faults,
    pub(crate) holds: Holds,
    /// Work that goes on when its client has left; `serve` waits for it.
    pub(crate) tasks: TaskTracker,
    settings: Mutex<Settings>,
    runs: AtomicU64,
}

/// What can be switched while it runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    pub repeat_billed: RepeatBilled,
    pub bill_aborted_stream: bool,
    pub agent_enabled: bool,
}

// === impl State ===

impl State {
    pub fn new(options: &Options) -> Arc<Self> {
        let clock = options.clock.clone();
        // The clock begins to run here, not at the first request.
        clock.elapsed();
        let organizations = std::iter::once(FIRST_ORG.to_owned()).chain(
            options
                .more_organizations
                .iter()
                .map(|org| org.name.clone()),
        );
        let balance = MicroUsd::new(options.balance_micro_usd).unwrap_or(MicroUsd::ZERO);
        Arc::new(Self {
            seed: options.seed,
            auth: Auth::new(options),
            books: Books::new(organizations, balance),
            keys: Keys::new(clock.clone()),
            pins: Pins::new(clock.clone()),
            limits: Limits::new(clock.clone(), options.in_flight_max, options.per_minute_max),
            faults: Faults::new(options.faults.clone()),
            holds: Holds::default(),
            tasks: TaskTracker::new(),
            settings: Mutex::new(Settings {
                repeat_billed: options.repeat_billed,
                bill_aborted_stream: options.bill_aborted_stream,
                agent_enabled: options.agent_enabled,
            }),
            runs: AtomicU64::new(0),
            clock,
        })
    }

    pub(crate) fn settings(&self) -> Settings {
        *self.settings.lock()
    }

    pub(crate) fn change_settings(&self, change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = self.settings.lock();
        change(&mut settings);
        *settings
    }

    /// The number of this run: it makes samples differ.
    pub(crate) fn next_run(&self) -> u64 {
        self.runs.fetch_add(1, Ordering::Relaxed)
    }
}
