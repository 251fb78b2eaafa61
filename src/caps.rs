//! Caps and freezes: how much each app may spend by hour, day and month, and which apps may not spend at all.
//!
//! A request asks before its intent is written, and keeps its [`Permit`] until its end is. What counts
//! against a cap is folded from the ledger ([`crate::ledger::usage`]), so that editing a cap loses nothing
//! and kill -9 forgets nothing; what is under way is reserved beside it. The rule, and the bound that
//! follows from it, stand in [`engine`].
//!
//! Promise: one lock, nothing awaited under it, no float. What is refused here was not sent. `bursar caps`
//! prints by how much a cap can be exceeded.
//!
//! Lowest first: `window` < `leases` `orders` < `rules` < `refused` `view` < `engine` < this file, which holds the lock.

mod engine;
pub mod leases;
mod orders;
mod refused;
mod rules;
mod view;
mod window;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::Instant;
use uuid::Uuid;

use self::engine::{Answers, Engine};
pub use self::engine::{Ask, Call, Errand, FlightEnd, Heard, Repeats, Round, Slice};
pub use self::orders::{Frozen, OrderError, Orders, Raise, no_cap};
use self::orders::{OrdersVersion, Turn};
pub use self::refused::{Reached, Refused, SharedRefusal, SharedWhy};
pub use self::rules::{Rules, Scope};
pub use self::view::{CapView, CapsView, FrozenView, SessionCapsView, SharedCapView, TodayView};
pub use self::window::{Period, Window};
use crate::clock::{SharedClock, millis};
use crate::config::ALL_APPS;
use crate::ledger::entry::{EntryId, Leases, State};
use crate::ledger::marks::{Session, SessionHash};
use crate::ledger::totals::MicroUsdSum;
use crate::ledger::usage::{self, RunSoFar, UsageUpdate};
use crate::ledger::{Ledger, LedgerError};
use crate::money::MicroUsd;

/// How often a waiting request checks whether a window has ended: clocks jump, and machines sleep.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Longest wait of a request for the fleet's database.
const LEASE_WAIT: Duration = Duration::from_secs(2);

/// All caps of a process.
pub struct Caps {
    engine: Mutex<Engine>,
    /// One order at a time is written; the version of their file that is known here.
    ordering: Mutex<Option<OrdersVersion>>,
    /// Marked with each order, and with other rules.
    ordered: watch::Sender<()>,
    /// Told of whatever may have brought a cap nearer to its limit.
    moved: Notify,
    /// Something of a shared cap is to be leased.
    lease_wanted: Notify,
    state_dir: PathBuf,
    clock: SharedClock,
}

/// A request may be sent. Dropped when its end is in the ledger.
#[derive(Debug)]
pub struct Permit {
    caps: Arc<Caps>,
    entry: EntryId,
    reserved: MicroUsd,
    leases: Leases,
    end: FlightEnd,
}

/// A run's limit holds until this is dropped.
#[derive(Debug)]
pub struct RunLimit {
    caps: Arc<Caps>,
    run: Arc<str>,
}

/// A waiting request; dropping it leaves the line.
struct InLine<'a> {
    caps: &'a Arc<Caps>,
    entry: EntryId,
    /// It has its permit, which lets go of it.
    is_admitted: bool,
}

// === impl Caps ===

impl Caps {
    /// Caps that stand on this ledger, with what was ordered before.
    pub fn new(
        ledger: &Ledger,
        rules: Rules,
        state_dir: impl Into<PathBuf>,
        clock: SharedClock,
    ) -> Arc<Self> {
        let state_dir = state_dir.into();
        let version = OrdersVersion::of(&state_dir);
        let orders = Orders::read(&state_dir, clock.wall_ms());
        let caps = Arc::new(Self {
            engine: Mutex::new(Engine::new(rules, orders)),
            ordering: Mutex::new(version),
            ordered: watch::Sender::new(()),
            moved: Notify::new(),
            lease_wanted: Notify::new(),
            state_dir,
            clock,
        });
        let weak = Arc::downgrade(&caps);
        ledger.watch_usage(Box::new(move |update| {
            if let Some(caps) = weak.upgrade() {
                caps.change(|engine| engine.update(update));
                caps.moved.notify_one();
            }
        }));
        caps
    }

    /// Replaces the rules, also for waiting requests: those of an app that was removed are refused.
    pub fn reload(&self, rules: Rules) {
        self.change(|engine| engine.reload(rules));
        self.ordered.send_replace(());
        self.moved.notify_one();
    }

    /// Waits for room below every cap of the request, at most `patience`.
    pub async fn reserve(
        self: &Arc<Self>,
        ask: Ask,
        patience: Duration,
    ) -> Result<Permit, Refused> {
        let entry = ask.entry;
        let (way, mut decision) = oneshot::channel();
        let until = Instant::now() + patience;
        let mut in_line = InLine {
            caps: self,
            entry,
            is_admitted: false,
        };
        self.serve(|engine, now_ms| engine.ask(ask, way, now_ms));
        let mut waits_since = Some(Instant::now());
        let answer = loop {
            let look = Instant::now() + LOOK_PAUSE;
            tokio::select! {
                biased;
                answer = &mut decision => break answer,
                () = tokio::time::sleep_until(until) => {
                    let now_ms = self.clock.wall_ms();
                    let late = self.engine().late(entry, patience.as_secs(), now_ms);
                    break Ok(Err(late));
                }
                () = tokio::time::sleep_until(look) => {
                    self.serve(|engine, now_ms| engine.serve(now_ms));
                    let waits = self.engine().waits_for_lease(entry, self.clock.wall_ms());
                    waits_since = waits_since.or(look.checked_sub(LOOK_PAUSE)).filter(|_| waits.is_some());
                    let is_late = |since: Instant| since.elapsed() >= LEASE_WAIT;
                    if let Some(refused) = waits.filter(|_| waits_since.is_some_and(is_late)) {
                        self.engine().count_refusal(&refused);
                        break Ok(Err(refused));
                    }
                }
            }
        };
        match answer {
            Ok(Ok(going)) => {
                in_line.is_admitted = true;
                Ok(Permit {
                    caps: Arc::clone(self),
                    entry,
                    reserved: going.reserved,
                    leases: going.leases,
                    end: FlightEnd::Unknown,
                })
            }
            Ok(Err(refused)) => Err(refused),
            // The engine keeps the sender of each waiting request.
            Err(_) => Err(Refused::late(patience.as_secs())),
        }
    }

    /// Limits a run until the returned value is dropped. `so_far` reads from the journal what the run has
    /// spent; it is called for a run that this process does not know, and may block.
    pub fn open_run(
        self: &Arc<Self>,
        run: &Arc<str>,
        limit: MicroUsd,
        so_far: impl FnOnce() -> Result<RunSoFar, LedgerError>,
    ) -> Result<RunLimit, LedgerError> {
        if !self.engine.lock().runs_mut().hold(run, limit) {
            // It has no requests under way before this is answered, so no end is missed meanwhile.
            let so_far = so_far()?;
            self.engine.lock().runs_mut().open(run, limit, so_far);
        }
        Ok(RunLimit {
            caps: Arc::clone(self),
            run: Arc::clone(run),
        })
    }

    /// Whether there is any cap, also of sessions.
    pub fn are_set(&self) -> bool {
        let engine = self.engine.lock();
        !engine.rules().are_none() || engine.shared().is_on()
    }

    /// Why this app may send nothing now. Asked before each attempt.
    pub fn stops(&self, app: &str) -> Option<Refused> {
        self.engine.lock().frozen(app)
    }

    /// A limit is reached, for a request that is billed for nothing but lets something cost from then on.
    pub fn reached(
        &self,
        app: &Arc<str>,
        run: Option<&Arc<str>>,
        session: Option<Session>,
    ) -> Option<Refused> {
        let now_ms = self.clock.wall_ms();
        self.engine().reached_for(app, run, session, now_ms)
    }

    /// A cap was reached while a request that has its permit waited somewhere else.
    pub fn over(&self, entry: EntryId) -> Option<Refused> {
        let now_ms = self.clock.wall_ms();
        self.engine().over(entry, now_ms)
    }

    /// Resolves when this app may send nothing, for requests that wait in another queue.
    pub async fn stopped(&self, app: &str) -> Refused {
        let mut ordered = self.ordered.subscribe();
        loop {
            if let Some(frozen) = self.stops(app) {
                return frozen;
            }
            // The sender lives as long as `self`.
            ordered.changed().await.ok();
        }
    }

    /// Resolves when something was charged, ordered or configured since the last time. For one that waits.
    pub async fn moved(&self) {
        self.moved.notified().await;
    }

    /// Freezes an app, or all: on the disk first, then at once.
    pub fn freeze(&self, app: Option<&str>, by: &str) -> Result<(), OrderError> {
        let frozen = Frozen {
            since_ms: self.clock.wall_ms(),
            by: by.to_owned(),
        };
        self.order(|orders| orders.freeze(app, frozen))?;
        tracing::warn!(
            app = app.unwrap_or(ALL_APPS),
            by,
            "frozen: nothing that costs money is sent"
        );
        Ok(())
    }

    pub fn thaw(&self, app: Option<&str>, by: &str) -> Result<(), OrderError> {
        self.order(|orders| orders.thaw(app))?;
        tracing::warn!(app = app.unwrap_or(ALL_APPS), by, "thawed");
        Ok(())
    }

    /// Another limit, for the window of now.
    pub fn raise(&self, app: Option<&str>, period: Period, to: MicroUsd) -> Result<(), OrderError> {
        let now_ms = self.clock.wall_ms();
        let raise = self.engine.lock().rules().raise(app, period, to, now_ms)?;
        let is_back = raise.configured_micro_usd == Some(to);
        self.order(|orders| orders.raise(raise, now_ms))?;
        let cap = app.unwrap_or(ALL_APPS);
        if is_back {
            tracing::warn!(cap, %period, %to, "a cap is as it is configured again");
        } else {
            tracing::warn!(cap, %period, %to, "a cap was raised for its window");
        }
        Ok(())
    }

    fn order(&self, change: impl FnOnce(&Orders) -> Orders) -> Result<(), OrderError> {
        let mut version = self.ordering.lock();
        let _turn = Turn::take(&self.state_dir)?;
        self.catch_up(&mut version);
        let orders = change(self.engine.lock().orders());
        orders.write(&self.state_dir)?;
        *version = OrdersVersion::of(&self.state_dir);
        self.put_in_force(orders);
        Ok(())
    }

    fn put_in_force(&self, orders: Orders) {
        self.change(|engine| engine.obey(orders));
        self.ordered.send_replace(());
        self.moved.notify_one();
    }

    /// Freezes of the whole fleet, in place of those before; true where they are others.
    pub fn obey_fleet(&self, freezes: Orders) -> bool {
        if freezes == *self.engine.lock().fleet() {
            return false;
        }
        self.change(|engine| engine.obey_fleet(freezes));
        self.ordered.send_replace(());
        true
    }

    /// Until `stop` turns true: puts orders in force that another process wrote into the file, within a
    /// second of being able to.
    pub async fn follow(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_PAUSE) => {}
                _ = stop.wait_for(|stopped| *stopped) => return,
            }
            let caps = Arc::clone(&self);
            let looked = spawn_blocking(move || caps.catch_up(&mut caps.ordering.lock()));
            if looked.await.is_err() {
                tracing::error!("looking at the file of orders failed; it is looked at again");
            }
        }
    }

    /// A file that has gone, or that cannot be read, changes nothing in a running process.
    fn catch_up(&self, known: &mut Option<OrdersVersion>) {
        let there = OrdersVersion::of(&self.state_dir);
        if there.is_none() || there == *known {
            return;
        }
        *known = there;
        match Orders::read_sound(&self.state_dir) {
            Some(orders) if orders == *self.engine.lock().orders() => {}
            Some(orders) => {
                let frozen = orders.frozen_by().count();
                tracing::warn!(
                    frozen,
                    "an order that was written beside this process is in force now"
                );
                self.put_in_force(orders);
            }
            None => tracing::error!(
                "the file `orders` in the state directory was changed and cannot be read; what was \
                 ordered before stays in force until the next start"
            ),
        }
    }

    /// Changes something, then admits the requests that have room after that.
    fn change(&self, change: impl FnOnce(&mut Engine)) {
        self.serve(|engine, now_ms| {
            change(engine);
            engine.serve(now_ms)
        });
    }

    /// Sends what the engine answers, without its lock. What was admitted for a request that has left the
    /// line is released, which may make room for others.
    fn serve(&self, serve: impl FnOnce(&mut Engine, u64) -> Answers) {
        let now_ms = self.clock.wall_ms();
        let mut answers = {
            let mut engine = self.engine();
            let answers = serve(&mut engine, now_ms);
            if engine.shared_mut().take_wanted() {
                self.lease_wanted.notify_one();
            }
            answers
        };
        loop {
            let gone = answers.send();
            if gone.is_empty() {
                return;
            }
            answers = self.engine().let_go(gone, now_ms);
        }
    }

    /// With the time by which leases end, where there may be any.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        let mut engine = self.engine.lock();
        if engine.shared().is_on() {
            engine.shared_mut().at(self.up_ms());
        }
        engine
    }

    fn up_ms(&self) -> u64 {
        millis(self.clock.since_boot())
    }

    /// From now on the shared caps of these names are obeyed, with what was held of them. `is_void`: by another machine,
    /// or before this one started anew.
    pub fn obey_shared(
        &self,
        names: &[String],
        is_ephemeral: bool,
        slices: Vec<Slice>,
        is_void: bool,
    ) {
        let mut engine = self.engine.lock();
        let shared = engine.shared_mut();
        shared.obey(names, is_ephemeral, slices, is_void);
    }

    /// Resolves when something of a shared cap is to be leased. For one that waits.
    pub async fn lease_wanted(&self) {
        loop {
            self.lease_wanted.notified().await;
            // It may have been leased since.
            if self.engine.lock().shared().is_lacking() {
                return;
            }
        }
    }

    /// With the next errand all that is leased is presented.
    pub fn present_leases(&self) {
        self.engine.lock().shared_mut().present();
    }

    /// What is to be carried to the fleet's database now. `request`: a name that no other wish has.
    pub fn errand(&self, request: Uuid, round: Round) -> Option<Errand> {
        self.engine().errand(request, round)
    }

    /// All that is leased, as it is kept on the disk.
    pub fn slices(&self) -> Vec<Slice> {
        self.engine.lock().shared().slices()
    }

    /// What may still be spent of the leases whose windows have begun.
    pub fn left_open(&self) -> MicroUsdSum {
        MicroUsdSum::from_micro_usd(self.engine().left_open())
    }

    /// The same after something was heard. It is on the disk before [`Self::hear`] puts it in force.
    pub fn slices_after(&self, heard: &Heard, call: Call) -> Vec<Slice> {
        self.engine.lock().shared().slices_after(heard, call)
    }

    /// Puts in force what the fleet's database said of leases.
    pub fn hear(&self, heard: &Heard, call: Call) {
        self.change(|engine| engine.shared_mut().hear(heard, call));
    }

    /// The fleet's database cannot be asked: a request that finds its slice used up is refused at once.
    pub fn fleet_is_away(&self) {
        self.change(|engine| engine.shared_mut().away());
    }

    /// This ledger has another name in the fleet: what was leased is another's.
    pub fn forget_leases(&self) {
        self.change(|engine| engine.shared_mut().forget());
    }

    /// As it is now, but for the sessions: to count those takes as long as there are many, and requests wait for it.
    pub fn view(&self) -> CapsView {
        let now_ms = self.clock.wall_ms();
        self.engine().view(now_ms)
    }

    /// All of it, for a person who asks.
    pub fn document(&self) -> CapsView {
        document(&mut self.engine(), self.clock.wall_ms())
    }

    /// What a session was billed, of one app or of whichever has it. `None`: nothing is known of it.
    pub fn session_billed(
        &self,
        app: Option<&str>,
        of: impl Fn(&str) -> SessionHash,
    ) -> Option<MicroUsdSum> {
        self.engine.lock().sessions().billed(app, of)
    }

    /// The day so far, of one app or of all: for a prompt that asks each second.
    pub fn today(&self, app: Option<&str>) -> TodayView {
        let now_ms = self.clock.wall_ms();
        self.engine.lock().today(app, now_ms)
    }
}

impl fmt::Debug for Caps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caps")
            .field("state_dir", &self.state_dir)
            .finish_non_exhaustive()
    }
}

/// What [`Caps::document`] shows, from the files of a ledger that no daemon has open. Reads five weeks of the journal.
pub fn read(state_dir: &Path, rules: Rules, now_ms: u64) -> Result<CapsView, LedgerError> {
    let orders = Orders::read(state_dir, now_ms);
    let mut engine = Engine::new(rules, orders);
    engine.update(&UsageUpdate::All {
        usage: usage::read(state_dir, now_ms)?,
        ended: Vec::new(),
    });
    Ok(document(&mut engine, now_ms))
}

fn document(engine: &mut Engine, now_ms: u64) -> CapsView {
    CapsView {
        sessions: engine.sessions().views(),
        ..engine.view(now_ms)
    }
}

// === impl InLine ===

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if self.is_admitted {
            return;
        }
        let entry = self.entry;
        self.caps.serve(|engine, now_ms| {
            // It may have been admitted at the very moment at which it left.
            engine.release(entry, FlightEnd::Unsent);
            engine.give_up(entry, now_ms)
        });
    }
}

// === impl Permit ===

impl Permit {
    /// What is held for it while its price is not known.
    pub fn reserved(&self) -> MicroUsd {
        self.reserved
    }

    /// The leases of shared caps that it spends: its intent names them.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Nothing was written of it, and nothing was sent.
    pub fn unsent(&mut self) {
        self.end = FlightEnd::Unsent;
    }

    /// What it came to is known, and is on its way to the ledger: others count with it from now on.
    pub fn foresees(&self, state: State) {
        self.caps.engine.lock().foresee(self.entry, state);
    }

    /// Its end is in the ledger, or waits for it in memory.
    pub fn settled(&mut self, state: State) {
        self.end = FlightEnd::Settled(state);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let (entry, end) = (self.entry, self.end);
        self.caps.change(|engine| engine.release(entry, end));
    }
}

// === impl RunLimit ===

impl Drop for RunLimit {
    fn drop(&mut self) {
        self.caps.engine.lock().runs_mut().close(&self.run);
    }
}
