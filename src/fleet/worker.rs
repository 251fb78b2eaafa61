//! Visits the fleet every so often, as long as the daemon runs.
//!
//! Promise: in no request's path; a database that is away, slow or of another version changes nothing but what is
//! reported, is named once in the log for each reason, and is caught up with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::address::{Address, UrlFile};
use super::database::{Fleet, FleetError};
use super::ship::{Shipped, Shipping, Trouble};
use crate::calendar;
use crate::clock::SharedClock;
use crate::ledger::Copied;

/// How the shipping stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FleetStatus {
    /// `None`: no visit has come to its end yet.
    pub last: Option<Shipped>,
    /// When that was, Unix milliseconds.
    pub last_ms: Option<u64>,
    /// Lines that were shipped since the start.
    pub lines: u64,
    pub visits: u64,
    pub failed_visits: u64,
    pub forks: u64,
    /// Why the last visit failed; `None`: it did not.
    pub trouble: Option<String>,
}

/// What it goes by.
pub struct Settings {
    pub state_dir: PathBuf,
    /// Holds the database's URL; read before each visit, so that a new password needs no restart.
    pub url_file: PathBuf,
    pub ca_file: Option<PathBuf>,
    pub insecure: bool,
    pub host_label: String,
    pub ship_people: bool,
    pub interval: Duration,
    /// Longest time for what is left at a stop.
    pub stop_flush: Duration,
}

/// Ships.
pub struct Worker {
    settings: Settings,
    /// How far the ledger may compact.
    copied: Arc<Copied>,
    clock: SharedClock,
    status: Mutex<FleetStatus>,
}

// === impl Worker ===

impl Worker {
    pub fn new(settings: Settings, copied: Arc<Copied>, clock: SharedClock) -> Arc<Self> {
        Arc::new(Self {
            settings,
            copied,
            clock,
            status: Mutex::default(),
        })
    }

    /// What the ledger goes by when it compacts.
    pub fn copied(&self) -> Arc<Copied> {
        Arc::clone(&self.copied)
    }

    pub fn status(&self) -> FleetStatus {
        self.status.lock().clone()
    }

    /// Until `stop`; then what is left is shipped within the time that there is.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut shipping = None;
        while !*stop.borrow() {
            self.visit(&mut shipping).await;
            tokio::select! {
                () = sleep(self.pause()) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
    }

    /// After the last outcome was written.
    pub async fn flush(&self) {
        let mut shipping = None;
        if timeout(self.settings.stop_flush, self.visit(&mut shipping))
            .await
            .is_err()
        {
            tracing::warn!(
                "[fleet] stop_flush_s is over; the rest is shipped after the next start"
            );
        }
    }

    async fn visit(&self, shipping: &mut Option<Shipping>) {
        let visited = self.try_visit(shipping).await;
        let now_ms = self.clock.wall_ms();
        if let Ok(shipped) = &visited {
            self.copied.up_to(shipped.mark_seq);
        }
        let mut status = self.status.lock();
        status.visits += 1;
        match visited {
            Ok(shipped) => {
                if status.trouble.take().is_some() {
                    tracing::info!(lines = shipped.lines, "the fleet is reached again");
                }
                status.lines = status.lines.saturating_add(shipped.lines);
                status.forks += u64::from(shipped.forked);
                status.last = Some(shipped);
                status.last_ms = Some(now_ms);
            }
            Err(trouble) => {
                status.failed_visits += 1;
                let trouble = trouble.to_string();
                if status.trouble.as_ref() != Some(&trouble) {
                    let since = status.last_ms.and_then(calendar::rfc3339);
                    tracing::warn!(trouble, since, "the fleet gets no lines; requests go on");
                }
                status.trouble = Some(trouble);
                // Its files may have changed.
                *shipping = None;
            }
        }
    }

    async fn try_visit(&self, shipping: &mut Option<Shipping>) -> Result<Shipped, Trouble> {
        let settings = &self.settings;
        let refuse = |why: String| Trouble::UrlFile {
            path: settings.url_file.clone(),
            why,
        };
        let text = tokio::fs::read_to_string(&settings.url_file).await;
        let file = UrlFile::parse(&text.map_err(|error| refuse(error.to_string()))?);
        let address = Address::parse(&file.url, settings.insecure, settings.ca_file.clone())
            .map_err(|error| refuse(error.to_string()))?;
        let fleet = Fleet::connect(&address).await?;
        let shipping = match shipping {
            Some(shipping) => shipping,
            none => none.insert(self.opened(file.code.is_some())?),
        };
        match (
            shipping.visit(&fleet, self.clock.wall_ms()).await,
            file.code,
        ) {
            (Err(Trouble::Fleet(FleetError::Unknown)), Some(code)) => {
                shipping.enrol(&fleet, &code).await?;
                tracing::info!(ledger = %shipping.identity().ledger, "this ledger is in the fleet");
                shipping.visit(&fleet, self.clock.wall_ms()).await
            }
            (visited, _) => visited,
        }
    }

    /// By the name that it has, or by a new one.
    fn opened(&self, has_code: bool) -> Result<Shipping, Trouble> {
        let settings = &self.settings;
        let (state_dir, label) = (settings.state_dir.clone(), settings.host_label.clone());
        match Shipping::open(state_dir.clone(), label.clone(), settings.ship_people)? {
            Some(known) => Ok(known),
            None if has_code => Shipping::create(state_dir, label, settings.ship_people),
            None => Err(Trouble::NotJoined),
        }
    }

    /// The interval, a tenth more or less, so that many that started together do not come together.
    fn pause(&self) -> Duration {
        let mut bits = [0; 1];
        // Without randomness they come together.
        getrandom::fill(&mut bits).ok();
        let share = 0.9 + f64::from(bits[0]) / 255.0 * 0.2;
        self.settings.interval.mul_f64(share)
    }
}
