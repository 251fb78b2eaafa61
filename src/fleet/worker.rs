//! Visits the fleet every so often, as long as the daemon runs.
//!
//! Promise: in no request's path, but for one whose part of a shared cap is used up, which wakes it; a database that is
//! away, slow or of another version changes nothing but what is reported, is named once in the log for each reason, and
//! is caught up with. What was ordered holds until it is thawed, also over a restart.

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use uuid::Uuid;

use super::address::{Address, UrlFile};
use super::answer::FleetError;
use super::carry::Carrier;
use super::database::Fleet;
use super::identity::FleetIdentity;
use super::lease_file::{KeptLeases, Machine};
use super::listen::{Hints, share};
use super::orders::{FleetOrders, HeardOrders};
use super::pace::Pacer;
use super::ship::{Hearing, Shipping, Trouble, journal_seq};
use crate::caps::{Caps, Round};
use crate::ceilings::Shared;
use crate::clock::{SharedClock, millis};
use crate::config::FleetTable;
use crate::ledger::state_dir::Directory;
use crate::ledger::{Copied, LedgerError};
use crate::telemetry::metrics::{FleetFigures, Metrics};

mod visited;

use visited::{ShipOutcome, Visited, note};

/// What is ordered is heard at least this often, whatever `ship_interval_s` is.
const HELLO_PAUSE: Duration = Duration::from_secs(30);

/// Before the database is asked again for a request, after it was not reached.
const RETRY_PAUSE: Duration = Duration::from_secs(2);

/// Longest visit for a request that waits.
const LEASE_VISIT_MAX: Duration = Duration::from_secs(5);

/// The shortest of what [`spread`] makes of a pause, over the pause.
const SHORTEST: f64 = 0.9;

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
    machine: Machine,
    /// As they are in force.
    orders: Mutex<FleetOrders>,
    /// The name by which shared caps are leased.
    holder: Mutex<Option<Uuid>>,
    /// The fleet's mark of this ledger, as its database stated it last; one that was restored states less than was
    /// acknowledged. `None`: it was not heard since the start.
    stated_seq: Mutex<Option<u64>>,
    /// One visit at a time.
    visiting: tokio::sync::Mutex<()>,
    /// That orders changed.
    hints: Hints,
    pacer: Pacer,
}

/// What a visit is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Errand {
    /// What requests lack of shared caps, and nothing else.
    Lease,
    Hello,
    Ship,
    /// The last one before the end.
    Stop,
    /// The same of a ledger that does not come again.
    Leave,
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
            machine: Machine::this(),
            orders: Mutex::new(FleetOrders::Heard(Vec::new())),
            holder: Mutex::new(None),
            stated_seq: Mutex::new(None),
            visiting: tokio::sync::Mutex::new(()),
            hints: Hints::new(),
            pacer: Pacer::default(),
        };
        metrics.fleet.show(&worker.reported.lock());
        Some(Arc::new(worker))
    }

    /// What the ledger goes by when it compacts.
    pub fn copied(&self) -> Arc<Copied> {
        Arc::clone(&self.copied)
    }

    /// Puts in force what was ordered when the database was heard last, and what was leased. Before the first request.
    pub fn restore(&self, caps: &Caps) -> Result<(), LedgerError> {
        let state = Directory::open(&self.state_dir)?;
        let orders = FleetOrders::read(&state, self.clock.wall_ms())?;
        caps.obey_fleet(orders.freezes());
        *self.orders.lock() = orders;
        if !self.table.shared_caps.is_empty() {
            let kept = self.kept_leases(&state)?;
            let (names, is_ephemeral) = (&self.table.shared_caps, self.table.ephemeral);
            caps.obey_shared(names, is_ephemeral, kept.slices, kept.is_void);
        }
        Ok(())
    }

    /// Of the name that this ledger has in the fleet. One that is taking another name has nothing.
    fn kept_leases(&self, state: &Directory) -> Result<KeptLeases, LedgerError> {
        let up_ms = millis(self.clock.since_boot());
        match FleetIdentity::read(state) {
            Ok(Some(identity)) if identity.becomes.is_none() => {
                *self.holder.lock() = Some(identity.ledger);
                KeptLeases::read(state, identity.ledger, &self.machine, up_ms)
            }
            // One that cannot be read is reported by the first visit.
            Ok(_) | Err(_) => Ok(KeptLeases::default()),
        }
    }

    /// Until `stop`; then what is left is shipped within the time that there is. `queue` has the requests that the
    /// service's ceilings hold back.
    pub async fn run(self: Arc<Self>, caps: Arc<Caps>, queue: Shared, stop: watch::Receiver<bool>) {
        self.pacer.hold(queue);
        let address = || async { self.address().await.ok().map(|(address, _)| address) };
        tokio::select! {
            () = self.visits(&caps, stop) => {}
            () = self.hints.listen(address) => {}
        }
    }

    async fn visits(&self, caps: &Caps, mut stop: watch::Receiver<bool>) {
        let mut shipping = None;
        let mut next_ship = Instant::now();
        let pause = self.table.interval.min(HELLO_PAUSE);
        let mut next_hello = next_ship;
        while !*stop.borrow() {
            let now = Instant::now();
            let errand = match (next_ship <= now, next_hello <= now) {
                (true, _) => Errand::Ship,
                (false, true) => Errand::Hello,
                (false, false) => Errand::Lease,
            };
            if errand != Errand::Lease {
                self.pacer.begin();
            }
            let obey = |heard: &HeardOrders| self.obey(caps, heard);
            let is_heard = self.visit(&mut shipping, errand, caps, &obey).await;
            let now = Instant::now();
            if errand != Errand::Lease {
                next_hello = now + spread(self.pacer.pause(pause));
            }
            if errand == Errand::Ship {
                // With the hello that comes then.
                next_ship = now + due(self.table.interval);
            }
            let lease_wanted = async {
                if !is_heard {
                    sleep(RETRY_PAUSE).await;
                }
                caps.lease_wanted().await;
            };
            tokio::select! {
                () = sleep_until(next_hello) => {}
                () = lease_wanted => {}
                () = self.hints.next() => next_hello = Instant::now(),
                _ = stop.wait_for(|stop| *stop) => {}
            }
        }
    }

    /// After the last outcome was written. `leaves`: the next start is one without the fleet.
    pub async fn flush(&self, caps: &Caps, leaves: bool) {
        let mut shipping = None;
        // Nothing is sent any more: what is heard is for the next start.
        let keep = |heard: &HeardOrders| drop(self.keep(heard));
        let visit = async {
            let errand = if leaves { Errand::Leave } else { Errand::Stop };
            let is_heard = self.visit(&mut shipping, errand, caps, &keep).await;
            // Nobody is to wait for the leases of a machine that does not come again. One that leaves does so also with
            // lines that the fleet refuses.
            if leaves || (self.table.ephemeral && is_heard) {
                match self.say_goodbye().await {
                    Ok(()) => tracing::info!("this ledger has left its fleet"),
                    Err(trouble) => {
                        tracing::warn!(%trouble, "the fleet does not know that this ledger has left");
                    }
                }
            }
        };
        if timeout(self.table.stop_flush, visit).await.is_err() {
            let rest = match leaves {
                true => "is not shipped, and the fleet does not know that this ledger has left",
                false => "is shipped after the next start",
            };
            tracing::warn!("[fleet] stop_flush_s is over; the rest {rest}");
        }
        if leaves {
            self.forget_orders();
        }
    }

    /// Another fleet's database would not have them.
    fn forget_orders(&self) {
        let removed =
            Directory::open(&self.state_dir).and_then(|state| FleetOrders::remove(&state));
        if let Err(error) = removed {
            tracing::warn!(%error, "what the fleet ordered stays in the state directory");
        }
    }

    async fn say_goodbye(&self) -> Result<(), Trouble> {
        let Some(mut shipping) = self.known().await? else {
            return Ok(());
        };
        let (address, _) = self.address().await?;
        let fleet = Fleet::connect(&address).await?;
        let (wall_ms, up_ms) = (self.clock.wall_ms(), millis(self.clock.since_boot()));
        shipping.leave(&fleet, wall_ms, up_ms).await
    }

    fn keep(&self, heard: &HeardOrders) -> FleetOrders {
        let orders = self.orders.lock().after(heard);
        self.orders.lock().clone_from(&orders);
        let stored = Directory::open(&self.state_dir).and_then(|state| orders.store_new(&state));
        if let Err(error) = stored {
            tracing::error!(%error, "what the fleet ordered cannot be kept over a restart");
        }
        orders
    }

    /// On the disk first, then in force.
    fn obey(&self, caps: &Caps, heard: &HeardOrders) {
        let freezes = self.keep(heard).freezes();
        let count = freezes.frozen_by().count();
        if caps.obey_fleet(freezes) {
            tracing::warn!(freezes = count, "the fleet's orders are others now");
        }
    }

    /// Whether it came to its end.
    async fn visit(
        &self,
        shipping: &mut Option<Shipping>,
        errand: Errand,
        caps: &Caps,
        obey: &(dyn Fn(&HeardOrders) + Sync),
    ) -> bool {
        let _one = self.visiting.lock().await;
        let visited = self.try_visit(shipping, errand, caps, obey).await;
        if let Some(stated_seq) = shipping.as_mut().and_then(Shipping::take_stated) {
            *self.stated_seq.lock() = Some(stated_seq);
        }
        let is_done = match &visited {
            Ok(visited) => !matches!(visited.lines, ShipOutcome::Stuck(_)),
            Err(_) => false,
        };
        let lacking = match is_done {
            true => None,
            false => self.lines_behind(shipping.as_ref()).await,
        };
        self.forget_as_copy(shipping.as_ref(), caps);
        let now_ms = self.clock.wall_ms();
        let mut reported = self.reported.lock();
        reported.visits = reported.visits.saturating_add(1);
        if let Some(shipping) = shipping {
            let (shipped, refused) = (shipping.take_shipped(), shipping.take_refused());
            reported.lines_shipped = reported.lines_shipped.saturating_add(shipped);
            reported.lines_refused = reported.lines_refused.saturating_add(refused);
        }
        if let Ok(visited) = &visited
            && let ShipOutcome::Shipped(shipped) = &visited.lines
        {
            self.copied.up_to(shipped.mark_seq);
            reported.lines_behind = Some(shipped.journal_seq.saturating_sub(shipped.mark_seq));
            reported.caught_up_ms = Some(now_ms);
        }
        reported.lines_behind = lacking.or(reported.lines_behind);
        match is_done {
            true => reported.heard_ms = Some(now_ms),
            false => reported.failed_visits = reported.failed_visits.saturating_add(1),
        }
        // Its files may have changed.
        if !is_done || shipping.as_ref().is_some_and(Shipping::is_worn) {
            *shipping = None;
        }
        let is_heard = note(&mut reported, visited);
        self.metrics.fleet.show(&reported);
        is_heard
    }

    /// Trouble with leases keeps no line from being shipped. Orders are handed over as soon as they are heard, and what a request
    /// lacks of a shared cap is asked for, also while a long journal is shipped.
    async fn try_visit(
        &self,
        shipping: &mut Option<Shipping>,
        errand: Errand,
        caps: &Caps,
        obey: &(dyn Fn(&HeardOrders) + Sync),
    ) -> Result<Visited, Trouble> {
        // Its files are not left half way by a visit that is cut short.
        if shipping.is_none() {
            let known = self.known().await;
            *shipping = known.inspect_err(|_| caps.fleet_is_away())?;
        }
        let arriving = self.arrive(shipping, errand, caps, obey);
        let arrived = match errand {
            // A request waits for it.
            Errand::Lease => match timeout(LEASE_VISIT_MAX, arriving).await {
                Ok(arrived) => arrived,
                Err(_) => Err(FleetError::Slow.into()),
            },
            Errand::Hello | Errand::Ship | Errand::Stop | Errand::Leave => arriving.await,
        };
        let (fleet, mut lease_trouble) = arrived.inspect_err(|_| caps.fleet_is_away())?;
        if lease_trouble.is_some() {
            caps.fleet_is_away();
        }
        let (Errand::Ship | Errand::Stop | Errand::Leave, Some(shipping)) =
            (errand, shipping.as_mut())
        else {
            return Ok(Visited {
                lines: ShipOutcome::NotAsked,
                lease_trouble,
            });
        };
        let hearing = shipping.hearing();
        let caller = shipping.identity().clone();
        let carrier = self.carrier(shipping);
        let shipped = {
            let mut visit = pin!(shipping.visit(&fleet, self.clock.wall_ms()));
            // However often leases are wanted meanwhile.
            let mut hello = pin!(sleep(self.pacer.pause(HELLO_PAUSE)));
            loop {
                tokio::select! {
                    shipped = &mut visit => break shipped,
                    () = &mut hello => {
                        self.hear(&hearing, &fleet, obey).await?;
                        if errand == Errand::Ship {
                            self.pacer.visit(&fleet, &caller, false).await;
                        }
                        hello.set(sleep(self.pacer.pause(HELLO_PAUSE)));
                    }
                    () = self.hints.next() => self.hear(&hearing, &fleet, obey).await?,
                    () = caps.lease_wanted(), if errand == Errand::Ship && lease_trouble.is_none() => {
                        if let Some(carrier) = &carrier {
                            lease_trouble = carrier.carry(&fleet, caps, Round::Ask).await.err();
                        }
                    }
                }
            }
        };
        let shipped = match shipped {
            Ok(shipped) => shipped,
            Err(trouble) => {
                return Ok(Visited {
                    lines: ShipOutcome::Stuck(trouble),
                    lease_trouble,
                });
            }
        };
        // It may have taken another name meanwhile.
        self.is_holder(shipping.identity().ledger, caps)?;
        if let Some(carrier) = self.carrier(shipping)
            && lease_trouble.is_none()
        {
            let round = match errand {
                Errand::Stop => Round::Last,
                Errand::Leave => Round::Leave,
                Errand::Hello | Errand::Ship | Errand::Lease => Round::Whole,
            };
            lease_trouble = carrier.carry(&fleet, caps, round).await.err();
        }
        Ok(Visited {
            lines: ShipOutcome::Shipped(shipped),
            lease_trouble,
        })
    }

    /// Connects, hears what is ordered, and brings the leases of shared caps up to date; also answers why these are not,
    /// where lines can be shipped all the same.
    async fn arrive(
        &self,
        shipping: &mut Option<Shipping>,
        errand: Errand,
        caps: &Caps,
        obey: &(dyn Fn(&HeardOrders) + Sync),
    ) -> Result<(Fleet, Option<Trouble>), Trouble> {
        let (address, code) = self.address().await?;
        let fleet = Fleet::connect(&address).await?;
        let shipping = match shipping {
            Some(shipping) => shipping,
            none if code.is_some() => none.insert(self.created()?),
            _ => return Err(Trouble::NotJoined),
        };
        if errand != Errand::Lease {
            let heard = self.hear(&shipping.hearing(), &fleet, obey).await;
            match (heard, code) {
                (Err(Trouble::Fleet(FleetError::Unknown)), Some(code)) => {
                    shipping.enrol(&fleet, &code).await?;
                    tracing::info!(ledger = %shipping.identity().ledger, "this ledger is in the fleet");
                    self.hear(&shipping.hearing(), &fleet, obey).await?;
                }
                (heard, _) => heard?,
            }
            caps.present_leases();
        }
        let mut lease_trouble = None;
        if !self.table.shared_caps.is_empty() {
            // What is leased is the ledger's, and a copy of it has to know that it is one.
            let mark_seq = shipping.agree(&fleet, self.clock.wall_ms()).await?;
            self.is_holder(shipping.identity().ledger, caps)?;
            if let Some(carrier) = self.carrier(shipping) {
                let round = match errand {
                    Errand::Stop | Errand::Leave => Round::Present,
                    Errand::Lease | Errand::Hello | Errand::Ship => Round::Ask,
                };
                lease_trouble = carrier.carry(&fleet, caps, round).await.err();
            }
            // A database that was restored has to see the leases before it has the lines that it forgot.
            if mark_seq < shipping.acknowledged_seq()
                && let Some(trouble) = lease_trouble
            {
                return Err(trouble);
            }
        }
        // Behind the leases, which requests wait for.
        if errand != Errand::Lease {
            let leaves = matches!(errand, Errand::Stop | Errand::Leave);
            let caller = shipping.identity();
            self.pacer.visit(&fleet, caller, leaves).await;
        }
        Ok((fleet, lease_trouble))
    }

    /// Where the database is, and the code that lets this ledger in.
    async fn address(&self) -> Result<(Address, Option<String>), Trouble> {
        let table = &self.table;
        let refuse = |why: String| Trouble::UrlFile {
            path: self.url_file.clone(),
            why,
        };
        let (path, insecure, ca_file) =
            (self.url_file.clone(), table.insecure, table.ca_file.clone());
        let read = spawn_blocking(move || {
            let file = UrlFile::read(&path).map_err(|error| error.to_string())?;
            let address = Address::parse(&file.url, insecure, ca_file);
            Ok((address.map_err(|error| error.to_string())?, file))
        });
        let read = read.await.unwrap_or_else(|error| Err(error.to_string()));
        let (address, file) = read.map_err(refuse)?;
        Ok((address, file.code))
    }

    fn carrier(&self, shipping: &Shipping) -> Option<Carrier> {
        let (state_dir, machine) = (self.state_dir.clone(), self.machine.clone());
        let has_shared = !self.table.shared_caps.is_empty();
        has_shared.then(|| Carrier::of(shipping, state_dir, machine, Arc::clone(&self.clock)))
    }

    /// What was leased under another name is not this ledger's any more.
    fn is_holder(&self, ledger: Uuid, caps: &Caps) -> Result<(), LedgerError> {
        let mut holder = self.holder.lock();
        if holder
            .replace(ledger)
            .is_some_and(|before| before != ledger)
        {
            caps.forget_leases();
            KeptLeases::remove(&Directory::open(&self.state_dir)?)?;
        }
        Ok(())
    }

    /// A copy that has not got another name yet spends nothing of what the ledger that it was has leased.
    fn forget_as_copy(&self, shipping: Option<&Shipping>, caps: &Caps) {
        let is_copy = shipping.is_some_and(|shipping| shipping.identity().becomes.is_some());
        if is_copy && self.holder.lock().take().is_some() {
            caps.forget_leases();
        }
    }

    async fn hear(
        &self,
        hearing: &Hearing,
        fleet: &Fleet,
        obey: &(dyn Fn(&HeardOrders) + Sync),
    ) -> Result<(), Trouble> {
        let standing = hearing.hello(fleet, self.clock.wall_ms()).await?;
        self.reported.lock().clock_ahead_ms = Some(standing.clock_ahead_ms);
        *self.stated_seq.lock() = Some(standing.mark_seq);
        obey(&standing.orders);
        standing.admits()?;
        // It obeyed shared caps once. Where that fails, the next hello says so again.
        if standing.is_awaited && self.table.shared_caps.is_empty() {
            hearing
                .hold_nothing(fleet, self.machine.as_str())
                .await
                .ok();
        }
        Ok(())
    }

    /// Lines that the fleet is not known to have. `None`: this ledger is not in it, or cannot be read.
    async fn lines_behind(&self, shipping: Option<&Shipping>) -> Option<u64> {
        let acknowledged_seq = shipping?.acknowledged_seq();
        let stated_seq = self.stated_seq.lock().unwrap_or(acknowledged_seq);
        let last_seq = journal_seq(&self.state_dir).await.ok()?;
        Some(last_seq.saturating_sub(stated_seq.min(acknowledged_seq)))
    }

    /// By the name that it has.
    async fn known(&self) -> Result<Option<Shipping>, Trouble> {
        let ship_people = self.table.ship_people;
        let (state_dir, label) = (self.state_dir.clone(), self.table.label());
        let opening = spawn_blocking(move || Shipping::open(state_dir, label, ship_people));
        opening.await.map_err(|_| Trouble::Panicked)?
    }

    /// By a new one.
    fn created(&self) -> Result<Shipping, Trouble> {
        let (state_dir, label) = (self.state_dir.clone(), self.table.label());
        Shipping::create(state_dir, label, self.table.ship_people)
    }
}

/// When lines are due again: by the next hello, however early that is.
fn due(interval: Duration) -> Duration {
    interval.mul_f64(SHORTEST)
}

/// A tenth more or less, so that many that started together do not come together.
fn spread(pause: Duration) -> Duration {
    pause.mul_f64(SHORTEST + share() * 0.2)
}

#[cfg(test)]
mod tests;
