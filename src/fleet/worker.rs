//! Visits the fleet every so often, as long as the daemon runs.
//!
//! Promise: in no request's path; a database that is away, slow or of another version changes nothing but what is
//! reported, is named once in the log for each reason, and is caught up with.

use std::path::{Path, PathBuf};
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
use crate::config::FleetTable;
use crate::ledger::Copied;

/// What was reported last.
#[derive(Debug, Default)]
struct Reported {
    /// When a visit came to its end, Unix milliseconds.
    last_ms: Option<u64>,
    /// Why the last visit failed; `None`: it did not.
    trouble: Option<String>,
}

/// Ships.
pub struct Worker {
    state_dir: PathBuf,
    table: FleetTable,
    /// Holds the database's URL; read before each visit, so that a new password needs no restart.
    url_file: PathBuf,
    /// How far the ledger may compact.
    copied: Arc<Copied>,
    clock: SharedClock,
    reported: Mutex<Reported>,
}

// === impl Worker ===

impl Worker {
    /// `None`: this ledger is in no fleet.
    pub fn new(table: &FleetTable, state_dir: &Path, clock: &SharedClock) -> Option<Arc<Self>> {
        Some(Arc::new(Self {
            state_dir: state_dir.to_owned(),
            url_file: table.url_file.clone()?,
            copied: Copied::new(table.resend),
            table: table.clone(),
            clock: Arc::clone(clock),
            reported: Mutex::default(),
        }))
    }

    /// What the ledger goes by when it compacts.
    pub fn copied(&self) -> Arc<Copied> {
        Arc::clone(&self.copied)
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
        if timeout(self.table.stop_flush, self.visit(&mut shipping))
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
        let mut reported = self.reported.lock();
        match visited {
            Ok(shipped) => {
                if reported.trouble.take().is_some() {
                    tracing::info!(lines = shipped.lines, "the fleet is reached again");
                }
                reported.last_ms = Some(now_ms);
            }
            Err(trouble) => {
                let trouble = trouble.to_string();
                if reported.trouble.as_ref() != Some(&trouble) {
                    let since = reported.last_ms.and_then(calendar::rfc3339);
                    tracing::warn!(trouble, since, "the fleet gets no lines; requests go on");
                }
                reported.trouble = Some(trouble);
                // Its files may have changed.
                *shipping = None;
            }
        }
    }

    async fn try_visit(&self, shipping: &mut Option<Shipping>) -> Result<Shipped, Trouble> {
        let table = &self.table;
        let refuse = |why: String| Trouble::UrlFile {
            path: self.url_file.clone(),
            why,
        };
        let text = tokio::fs::read_to_string(&self.url_file).await;
        let file = UrlFile::parse(&text.map_err(|error| refuse(error.to_string()))?);
        let address = Address::parse(&file.url, table.insecure, table.ca_file.clone())
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
        let ship_people = self.table.ship_people;
        let (state_dir, label) = (self.state_dir.clone(), self.table.label());
        match Shipping::open(state_dir.clone(), label.clone(), ship_people)? {
            Some(known) => Ok(known),
            None if has_code => Shipping::create(state_dir, label, ship_people),
            None => Err(Trouble::NotJoined),
        }
    }

    /// The interval, a tenth more or less, so that many that started together do not come together.
    fn pause(&self) -> Duration {
        let mut bits = [0; 1];
        // Without randomness they come together.
        getrandom::fill(&mut bits).ok();
        let share = 0.9 + f64::from(bits[0]) / 255.0 * 0.2;
        self.table.interval.mul_f64(share)
    }
}
