//! Visits the fleet every so often, as long as the daemon runs.
//!
//! Promise: in no request's path; a database that is away, slow or of another version changes nothing but what is
//! reported, is named once in the log for each reason, and is caught up with. What was ordered holds until the
//! database says otherwise, also over a restart.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::address::{Address, UrlFile};
use super::database::{Fleet, FleetError};
use super::orders::FleetOrders;
use super::ship::{Hearing, Shipped, Shipping, Trouble};
use crate::calendar;
use crate::caps::Caps;
use crate::clock::SharedClock;
use crate::config::FleetTable;
use crate::ledger::state_dir::Directory;
use crate::ledger::{Copied, LedgerError};
use crate::telemetry::metrics::{FleetFigures, Metrics};

/// What is ordered is heard at least this often, whatever `ship_interval_s` is.
const HELLO_PAUSE: Duration = Duration::from_secs(30);

/// Ships, and hears what is ordered.
pub struct Worker {
    state_dir: PathBuf,
    table: FleetTable,
    /// Holds the database's URL; read before each visit, so that a new password needs no restart.
    url_file: PathBuf,
    /// How far the ledger may compact.
    copied: Arc<Copied>,
    clock: SharedClock,
    metrics: Arc<Metrics>,
    reported: Mutex<FleetFigures>,
}

/// What a visit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    Hello,
    Ship,
}

// === impl Worker ===

impl Worker {
    /// `None`: this ledger is in no fleet.
    pub fn new(
        table: &FleetTable,
        state_dir: &Path,
        clock: &SharedClock,
        metrics: &Arc<Metrics>,
    ) -> Option<Arc<Self>> {
        let worker = Self {
            state_dir: state_dir.to_owned(),
            url_file: table.url_file.clone()?,
            copied: Copied::new(table.resend),
            table: table.clone(),
            clock: Arc::clone(clock),
            metrics: Arc::clone(metrics),
            reported: Mutex::new(FleetFigures {
                ship_interval_s: table.interval.as_secs(),
                ..FleetFigures::default()
            }),
        };
        metrics.fleet.show(&worker.reported.lock());
        Some(Arc::new(worker))
    }

    /// What the ledger goes by when it compacts.
    pub fn copied(&self) -> Arc<Copied> {
        Arc::clone(&self.copied)
    }

    /// Puts in force what was ordered when the database was heard last. Before the first request.
    pub fn restore(&self, caps: &Caps) -> Result<(), LedgerError> {
        let state = Directory::open(&self.state_dir)?;
        let orders = FleetOrders::read(&state, self.clock.wall_ms())?;
        caps.obey_fleet(orders.freezes());
        Ok(())
    }

    /// Until `stop`; then what is left is shipped within the time that there is.
    pub async fn run(self: Arc<Self>, caps: Arc<Caps>, mut stop: watch::Receiver<bool>) {
        let mut shipping = None;
        let mut since_shipped = self.table.interval;
        while !*stop.borrow() {
            let errand = match since_shipped >= self.table.interval {
                true => Errand::Ship,
                false => Errand::Hello,
            };
            let obey = |orders: &FleetOrders| self.obey(&caps, orders);
            self.visit(&mut shipping, errand, &obey).await;
            if errand == Errand::Ship {
                since_shipped = Duration::ZERO;
            }
            let pause = self.table.interval.min(HELLO_PAUSE);
            since_shipped += pause;
            tokio::select! {
                () = sleep(spread(pause)) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
    }

    /// After the last outcome was written.
    pub async fn flush(&self) {
        let mut shipping = None;
        // Nothing is sent any more: what is heard is for the next start.
        let keep = |orders: &FleetOrders| self.keep(orders);
        let visit = self.visit(&mut shipping, Errand::Ship, &keep);
        if timeout(self.table.stop_flush, visit).await.is_err() {
            tracing::warn!(
                "[fleet] stop_flush_s is over; the rest is shipped after the next start"
            );
        }
    }

    fn keep(&self, orders: &FleetOrders) {
        let stored = Directory::open(&self.state_dir).and_then(|state| orders.store_new(&state));
        if let Err(error) = stored {
            tracing::error!(%error, "what the fleet ordered cannot be kept over a restart");
        }
    }

    /// On the disk first, then in force.
    fn obey(&self, caps: &Caps, orders: &FleetOrders) {
        self.keep(orders);
        let freezes = orders.freezes();
        let count = freezes.frozen_by().count();
        if caps.obey_fleet(freezes) {
            tracing::warn!(freezes = count, "the fleet's orders are others now");
        }
    }

    async fn visit(
        &self,
        shipping: &mut Option<Shipping>,
        errand: Errand,
        obey: &(dyn Fn(&FleetOrders) + Sync),
    ) {
        let visited = self.try_visit(shipping, errand, obey).await;
        let now_ms = self.clock.wall_ms();
        let mut reported = self.reported.lock();
        reported.visits = reported.visits.saturating_add(1);
        match visited {
            Ok(shipped) => {
                if reported.trouble.take().is_some() {
                    tracing::info!("the fleet is reached again");
                }
                reported.heard_ms = Some(now_ms);
                if let Some(shipped) = shipped {
                    self.copied.up_to(shipped.mark_seq);
                    reported.lines_shipped = reported.lines_shipped.saturating_add(shipped.lines);
                    reported.lines_behind = shipped.journal_seq.saturating_sub(shipped.mark_seq);
                    reported.caught_up_ms = Some(now_ms);
                }
            }
            Err(trouble) => {
                let trouble = trouble.to_string();
                if reported.trouble.as_ref() != Some(&trouble) {
                    let since = reported.heard_ms.and_then(calendar::rfc3339);
                    tracing::warn!(trouble, since, "the fleet gets no lines; requests go on");
                }
                reported.trouble = Some(trouble);
                reported.failed_visits = reported.failed_visits.saturating_add(1);
                // Its files may have changed.
                *shipping = None;
            }
        }
        self.metrics.fleet.show(&reported);
    }

    /// What was shipped, where that was the errand. Orders are handed over as soon as they are heard, also while a long
    /// journal is shipped.
    async fn try_visit(
        &self,
        shipping: &mut Option<Shipping>,
        errand: Errand,
        obey: &(dyn Fn(&FleetOrders) + Sync),
    ) -> Result<Option<Shipped>, Trouble> {
        let table = &self.table;
        let refuse = |why: String| Trouble::UrlFile {
            path: self.url_file.clone(),
            why,
        };
        let path = self.url_file.clone();
        let read = spawn_blocking(move || UrlFile::read(&path)).await;
        let read = read.map_err(|error| refuse(error.to_string()))?;
        let file = read.map_err(|error| refuse(error.to_string()))?;
        let address = Address::parse(&file.url, table.insecure, table.ca_file.clone())
            .map_err(|error| refuse(error.to_string()))?;
        let fleet = Fleet::connect(&address).await?;
        let shipping = match shipping {
            Some(shipping) => shipping,
            none => none.insert(self.opened(file.code.is_some())?),
        };
        let heard = self.hear(&shipping.hearing(), &fleet, obey).await;
        match (heard, file.code) {
            (Err(Trouble::Fleet(FleetError::Unknown)), Some(code)) => {
                shipping.enrol(&fleet, &code).await?;
                tracing::info!(ledger = %shipping.identity().ledger, "this ledger is in the fleet");
                self.hear(&shipping.hearing(), &fleet, obey).await?;
            }
            (heard, _) => heard?,
        }
        if errand == Errand::Hello {
            return Ok(None);
        }
        let hearing = shipping.hearing();
        let mut visit = pin!(shipping.visit(&fleet, self.clock.wall_ms()));
        loop {
            tokio::select! {
                shipped = &mut visit => return shipped.map(Some),
                () = sleep(HELLO_PAUSE) => self.hear(&hearing, &fleet, obey).await?,
            }
        }
    }

    async fn hear(
        &self,
        hearing: &Hearing,
        fleet: &Fleet,
        obey: &(dyn Fn(&FleetOrders) + Sync),
    ) -> Result<(), Trouble> {
        let standing = hearing.hello(fleet, self.clock.wall_ms()).await?;
        obey(&standing.orders);
        match standing.is_revoked {
            true => Err(FleetError::Revoked.into()),
            false => Ok(()),
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
}

/// A tenth more or less, so that many that started together do not come together.
fn spread(pause: Duration) -> Duration {
    let mut bits = [0; 1];
    // Without randomness they come together.
    getrandom::fill(&mut bits).ok();
    let share = 0.9 + f64::from(bits[0]) / 255.0 * 0.2;
    pause.mul_f64(share)
}
