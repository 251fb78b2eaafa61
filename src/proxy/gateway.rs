//! What all requests share: settings, ledger, table of undelivered requests, limits.
//!
//! Promise: a reload replaces the settings for requests that come; those that run keep theirs.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};

use super::door::buffer::{BUDGET_BYTES, BodyBudget};
use super::hops::Hops;
use super::key_record::KeyEvidence;
use super::life::Life;
use super::limits::breaker::Breaker;
use super::limits::connections::{LargeHeads, TURN_AWAYS_MAX, places};
use super::limits::queue::Queue;
use super::limits::waiters::{WaiterGuard, Waiters};
use super::purchase::claim::ClaimTable;
use super::purchase::shared::Purchase;
use super::refuse::Refusal;
use super::settings::Settings;
use super::upstream::connections::Connections;
use super::upstream::trust::Authorities;
use crate::apps::Apps;
use crate::caps::Caps;
use crate::ceilings::Shared;
use crate::clock::SharedClock;
use crate::config::{App, Config, TokenHash};
use crate::ledger::undelivered::Delivery;
use crate::ledger::{Ledger, LedgerError};
use crate::places::Places;
use crate::protocol::translate::responses::memory::{Bounds, Given, Item, Memory};
use crate::telemetry::metrics::Metrics;

/// What a gateway is made of.
pub struct GatewayParts {
    pub config: Arc<Config>,
    /// What the service's certificate is verified against.
    pub authorities: Authorities,
    pub ledger: Ledger,
    pub metrics: Arc<Metrics>,
    pub clock: SharedClock,
    pub apps: Arc<Apps>,
    /// Of apps, at once.
    pub connections_max: usize,
}

/// The proxy: everything that requests share.
pub struct Gateway {
    pub(super) settings: ArcSwap<Settings>,
    pub(super) ledger: Ledger,
    pub(super) metrics: Arc<Metrics>,
    pub(super) clock: SharedClock,
    pub(super) caps: Arc<Caps>,
    pub(super) apps: Arc<Apps>,
    pub(super) claims: ClaimTable,
    /// What may be referred to of Responses that were given out. Lost with the process.
    given_out: Mutex<GivenOut>,
    pub(super) budget: BodyBudget,
    pub(super) places: Places,
    pub(super) large_heads: LargeHeads,
    pub(super) turn_aways: Arc<Semaphore>,
    pub(super) waiters: Waiters,
    pub(super) drains: Arc<Semaphore>,
    /// Memory for answers that are read whole and are large, in MiB.
    large_answers: Arc<Semaphore>,
    pub(super) queue: Arc<Queue>,
    pub(super) breaker: Arc<Breaker>,
    pub(super) life: Arc<Life>,
}

/// "bounded: 120 s, 16 MiB, 64 at once".
const DRAINS_MAX: usize = 64;

/// Of answers above 1 MiB that are read whole to be made into something else, with what is made of them.
const LARGE_ANSWERS_MIB: usize = 256;

/// What was given out, and whether a task frees what is too old of it.
struct GivenOut {
    memory: Memory,
    is_swept: bool,
}

/// How often what is too old is freed while no app asks.
const SWEEP_EVERY: Duration = Duration::from_mins(1);

/// An answer that is written for longer than this is noted: a start assumes of a killed process that
/// the answers of its last two seconds were not delivered, and of none before, nor of those that half a
/// second without work followed.
const SLOW_WRITE: Duration = Duration::from_millis(250);

/// Whose answers may be referred to: an app that was added anew under an old name, or whose token was replaced, finds
/// nothing of what was given before.
fn owner(app: &App) -> String {
    let token = app.token.map(TokenHash::to_hex).unwrap_or_default();
    format!("{} {token}", app.name)
}

// === impl Gateway ===

impl Gateway {
    pub fn new(parts: GatewayParts) -> Arc<Self> {
        let caps = Caps::new(
            &parts.ledger,
            parts.apps.cap_rules(&parts.config.caps),
            &parts.config.ledger.state_dir,
            Arc::clone(&parts.clock),
        );
        parts.metrics.watch_caps(&caps);
        parts.metrics.list_tags(&parts.config.apps);
        parts.apps.govern(&caps, parts.clock.monotonic());
        let hops = Hops::new(parts.ledger.new_entry_id());
        let connections = Arc::new(Connections::trusting(parts.authorities));
        let settings =
            Settings::new(parts.config, &parts.clock, connections, hops).paid_in(&parts.ledger);
        let (clock, metrics) = (&parts.clock, &parts.metrics);
        let shaping = &settings.config.shaping;
        let queue = Queue::new(shaping, Arc::clone(clock), Arc::clone(metrics));
        let breaker = Breaker::new(Arc::clone(clock), Arc::clone(metrics));
        let budget = BodyBudget::new(BUDGET_BYTES);
        let watched = budget.clone();
        metrics
            .traffic
            .watch_bodies(move || BUDGET_BYTES.saturating_sub(watched.free()));
        Arc::new(Self {
            queue,
            breaker,
            settings: ArcSwap::from_pointee(settings),
            ledger: parts.ledger,
            metrics: parts.metrics,
            claims: ClaimTable::new(Arc::clone(&parts.clock)),
            given_out: Mutex::new(GivenOut {
                memory: Memory::new(Bounds::default()),
                is_swept: false,
            }),
            clock: parts.clock,
            caps,
            apps: parts.apps,
            budget,
            places: places(parts.connections_max),
            large_heads: LargeHeads::default(),
            turn_aways: Arc::new(Semaphore::new(TURN_AWAYS_MAX)),
            waiters: Waiters::beside(parts.connections_max),
            drains: Arc::new(Semaphore::new(DRAINS_MAX)),
            large_answers: Arc::new(Semaphore::new(LARGE_ANSWERS_MIB)),
            life: Life::new(),
        })
    }

    /// Swaps the settings; requests that run keep theirs. Pooled connections go on as long as the
    /// authorities they were made with are the same. Apps and caps are declared anew by [`Apps::redeclare`].
    pub fn reload(&self, config: Arc<Config>, authorities: Authorities) {
        let before = self.settings.load();
        let connections = match before.connections.are_trusting(&authorities) {
            true => Arc::clone(&before.connections),
            false => Arc::new(Connections::trusting(authorities)),
        };
        let hops = before.hops.clone();
        let settings = Settings::new(config, &self.clock, connections, hops);
        let settings = settings.paid_in(&self.ledger).after(&before);
        self.queue.reconfigure(&settings.config.shaping);
        self.metrics.list_tags(&settings.config.apps);
        self.settings.store(Arc::new(settings));
        self.breaker.reset();
    }

    /// What is used of the service's ceilings, and the way to be held below a share of them.
    pub fn ceilings(&self) -> Shared {
        let (asked, held) = (Arc::clone(&self.queue), Arc::clone(&self.queue));
        Shared::new(
            move || asked.demand(),
            move |share, time| held.share(share, time),
        )
    }

    /// bursar is stopping: what waits for its turn, or for room below a limit, is refused, and what is
    /// at the service goes on.
    pub fn close_queue(&self) {
        self.life.stop();
        self.queue.close();
    }

    /// Memory for so much of a large answer: all of it at once, for half of it would wait for the other. At most all
    /// that there is.
    pub(super) fn room_for(
        &self,
        mib: usize,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + use<> {
        let mib = u32::try_from(mib.min(LARGE_ANSWERS_MIB)).unwrap_or(u32::MAX);
        Arc::clone(&self.large_answers).acquire_many_owned(mib)
    }

    /// The limits of what apps may spend.
    pub fn caps(&self) -> &Arc<Caps> {
        &self.caps
    }

    /// What the service's answers showed of the key in force.
    pub fn key_evidence(&self) -> KeyEvidence {
        self.settings.load().key_record.evidence()
    }

    /// Requests in flight, drains included.
    pub fn in_flight(&self) -> usize {
        self.life.in_flight()
    }

    /// Resolves when nothing is in flight.
    pub async fn idle(&self) {
        self.life.idle().await;
    }

    /// Resolves after a stop: the doors are shut, all that had come in has been answered, nothing is in
    /// flight.
    pub async fn at_rest(&self) {
        self.life.arrived().await;
        self.life.idle().await;
    }

    /// The shutdown's time is up: what is left ends now, as `in_doubt(shutdown)`.
    pub fn cut(&self) {
        self.life.cut();
    }

    /// There is no other app to leave anything to.
    pub(super) fn has_one_app(&self) -> bool {
        let table = self.apps.table();
        table.known().len() + usize::from(table.is_anonymous_allowed()) < 2
    }

    /// A place among the requests that may wait, for whatever it is.
    pub(super) fn among_waiters(&self, app: &Arc<str>) -> Result<WaiterGuard, Refusal> {
        let entered = self.waiters.enter(app, self.has_one_app());
        entered.map_err(|crowd| crowd.refusal(app))
    }

    /// Reports to the ledger what became of an answer, if it does not know. Before the table of this
    /// process hears of it: an adopting intent comes behind this.
    pub(super) fn note_delivery(&self, purchase: &Purchase, delivery: Delivery) {
        purchase.note_delivery(delivery, self.clock.wall_ms(), |row, delivered| {
            self.ledger.note_delivery(row, delivered);
        });
    }

    /// Awaits the writing of an answer, or of a stream's end, whose receipt is settled. Of a slow one the
    /// ledger notes that it is under way still.
    pub(super) async fn handed_over<F: Future + Unpin>(
        &self,
        purchase: Option<&Purchase>,
        mut written: F,
    ) -> F::Output {
        if let Some(purchase) = purchase {
            if let Ok(written) = timeout(SLOW_WRITE, &mut written).await {
                return written;
            }
            self.note_delivery(purchase, Delivery::Pending);
        }
        written.await
    }

    /// What an app was given under this id, of a response or of an item. It is kept for longer then.
    pub(super) fn given_earlier(&self, app: &App, id: &str) -> Option<Arc<[Item]>> {
        let now = self.clock.monotonic();
        self.given_out.lock().memory.find(&owner(app), id, now)
    }

    /// Keeps what an app's next request may refer to.
    pub(super) fn remembers(self: &Arc<Self>, app: &App, given: Given) {
        let now = self.clock.monotonic();
        let mut given_out = self.given_out.lock();
        given_out.memory.keep(&owner(app), given, now);
        if !std::mem::replace(&mut given_out.is_swept, true) {
            tokio::spawn(Self::sweep(Arc::downgrade(self)));
        }
    }

    /// Frees what is too old, until nothing is left.
    async fn sweep(gateway: Weak<Self>) {
        loop {
            sleep(SWEEP_EVERY).await;
            let Some(gateway) = gateway.upgrade() else {
                return;
            };
            let now = gateway.clock.monotonic();
            let mut given_out = gateway.given_out.lock();
            given_out.memory.expire(now);
            if given_out.memory.is_empty() {
                given_out.is_swept = false;
                return;
            }
        }
    }

    /// An answer that was kept, or is being read, went to a follower: nothing may join it again.
    pub(super) fn delivered(&self, purchase: &Purchase) {
        self.note_delivery(purchase, Delivery::Given);
        self.claims.delivered(purchase);
    }

    /// Takes over what earlier processes left undelivered. Before the first connection.
    pub async fn restore_undelivered(&self) -> Result<(), LedgerError> {
        let remembered = self.ledger.undelivered().await?;
        self.claims.restore(remembered);
        Ok(())
    }
}
