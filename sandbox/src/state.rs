//! Everything the service knows while it runs.
//!
//! Promise: each part guards itself; while a lock of one part is held, another is taken only in this
//! order: the books, the keys, the queue of [`Keep`].

mod resume;

use crate::{
    auth::Auth,
    billing::Billing,
    books::Books,
    checkpoint::Checkpoint,
    clock::{ADVANCE_MAX, Clock},
    endpoints::Endpoints,
    evals::{EvalParts, Evals},
    fault::{Fault, Faults, Holds},
    fleet::Fleet,
    idempotency::Keys,
    keep::{self, Keep, Mutation, ROLLUP_HOURS},
    limits::Limits,
    money::MicroUsd,
    options::{FIRST_ORG, Options, OptionsError},
    pins::Pins,
    remote::settings::ModelServerError,
    rollup::Rollup,
    settings::{LiveSettings, Settings},
    speech::Speech,
    sse::{FrameSender, writer::EventWriter},
    steps::{Act, Steps},
    store::{Store, StoreError},
};
use resume::Kept;
use std::{sync::Arc, time::Duration};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

#[derive(Debug)]
pub struct State {
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) evals: Arc<Evals>,
    pub(crate) store: Store,
    /// What of the following is written to the state directory.
    pub(crate) keep: Keep,
    pub(crate) clock: Clock,
    pub(crate) auth: Auth,
    /// What an organization has that is added with no balance named.
    pub(crate) opening_balance: MicroUsd,
    pub(crate) books: Arc<Books>,
    pub(crate) billing: Billing,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) keys: Arc<Keys>,
    pub(crate) pins: Pins,
    pub(crate) limits: Arc<Limits>,
    pub(crate) faults: Faults,
    pub(crate) holds: Arc<Holds>,
    pub(crate) endpoints: Arc<Endpoints>,
    /// Cancelled when the service begins to shut down.
    pub(crate) closing: CancellationToken,
    pub(crate) speech: Arc<Speech>,
    pub(crate) steps: Arc<Steps>,
    /// Work that continues when its client has left; `serve` waits for it.
    pub(crate) tasks: TaskTracker,
    pub(crate) settings: LiveSettings,
}

/// Why there is no state to start with.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Model(#[from] ModelServerError),
    #[error("balance_micro_usd: more than the books can hold")]
    Balance,
    #[error(transparent)]
    Options(#[from] OptionsError),
}

// === impl State ===

impl State {
    pub fn new(options: &Options) -> Result<Arc<Self>, StartError> {
        Self::with_speech(options, Speech::new())
    }

    /// The same, with a voice of the caller's choice.
    pub(crate) fn with_speech(options: &Options, speech: Speech) -> Result<Arc<Self>, StartError> {
        options.check()?;
        let clock = options.clock.clone();
        // The clock begins to run here, not at the first request.
        clock.elapsed();
        let organizations = std::iter::once(FIRST_ORG.to_owned()).chain(
            options
                .more_organizations
                .iter()
                .map(|org| org.name.clone()),
        );
        let balance = MicroUsd::new(options.balance_micro_usd).ok_or(StartError::Balance)?;
        let store = Store::open(options.state_dir.as_deref())?;
        let keep = Keep::new(&store, options.state_dir.is_some());
        let kept = Kept::read(&store)?;
        if let Some(was) = kept.clock {
            was.resume(&clock);
        }
        let auth = Auth::new(options);
        let books = Books::new(organizations, balance);
        for organization in kept.organizations {
            books.add_organization(&organization.name, balance);
            auth.resume(organization);
        }
        let totals = kept.totals.unwrap_or_default();
        let counters = kept.counters.unwrap_or_default();
        let books = books.kept(keep.clone(), totals, kept.debits, counters);
        let (in_flight_max, per_minute_max) = kept
            .limits
            .unwrap_or((options.in_flight_max, options.per_minute_max));
        let books = Arc::new(books);
        let fleet = Arc::new(Fleet::new(options.seed, &options.models, &clock)?);
        let speech = Arc::new(speech);
        let holds = Arc::new(Holds::default());
        let steps = Arc::new(Steps::new(options.steps.clone(), kept.progress));
        let keys = Keys::kept(clock.clone(), keep.clone(), kept.keys);
        let tasks = TaskTracker::new();
        let billing = Billing::new(Arc::clone(&books), clock.clone(), keep.clone());
        let endpoints = Arc::new(Endpoints::open(store.clone(), keep.clone())?);
        let checkpoint = Checkpoint::new(
            keep.clone(),
            clock.clone(),
            Arc::clone(&books),
            Arc::clone(&keys),
            Arc::clone(&steps),
            Arc::clone(&endpoints),
        );
        let evals = Evals::open(
            options.state_dir.as_deref(),
            EvalParts {
                store: store.clone(),
                clock: clock.clone(),
                fleet: Arc::clone(&fleet),
                speech: Arc::clone(&speech),
                holds: Arc::clone(&holds),
                books: Arc::clone(&books),
                billing: billing.clone(),
                checkpoint: checkpoint.clone(),
                tasks: tasks.clone(),
            },
        );
        let state = Arc::new(Self {
            fleet,
            endpoints,
            evals: Arc::new(evals.map_err(StoreError::Directory)?),
            billing,
            checkpoint,
            closing: CancellationToken::new(),
            store,
            auth,
            books,
            keys,
            pins: Pins::kept(clock.clone(), keep.clone(), kept.pins),
            limits: Limits::new(clock.clone(), in_flight_max, per_minute_max),
            keep,
            opening_balance: balance,
            faults: Faults::new(options.faults.clone()),
            holds,
            speech,
            steps,
            tasks,
            settings: LiveSettings::new(kept.settings.unwrap_or(options.settings)),
            clock,
        });
        let rollup = Rollup::of_rows(state.store.all(ROLLUP_HOURS)?);
        state.books.restore_rollup(rollup);
        Ok(state)
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.get()
    }

    /// Runs the steps of the story that are due before a request is handled. True if any ran.
    pub(crate) fn do_due_steps(&self) -> bool {
        let mut counted = true;
        let mut done = false;
        while let Some(act) = self.steps.next(counted, self.clock.elapsed()) {
            // A step that advances the clock can make the next one due.
            counted = false;
            done = true;
            self.perform(act);
        }
        done
    }

    fn perform(&self, act: Act) {
        if act.clear_faults {
            self.faults.clear();
        }
        if let Some(rule) = act.fault
            && !self.faults.push(rule)
        {
            tracing::warn!("a step's fault was left out: too many fault rules");
        }
        if let Some(balance) = act.balance_micro_usd.and_then(MicroUsd::new)
            && !self.books.set_balance(act.org.as_deref(), balance)
        {
            tracing::warn!("a step's balance was left out: no such organization");
        }
        if let Some(limits) = act.limits {
            self.limits.set(limits);
        }
        if let Some(wanted) = act.settings {
            self.settings.change(wanted);
        }
        if let Some(name) = act.release {
            self.holds.release(name);
        }
        if let Some(seconds) = act.advance_s {
            let by = Duration::from_secs(seconds);
            if !self.clock.try_advance(by, ADVANCE_MAX) {
                tracing::warn!("a step's advance_s was left out: over 10 years in all");
            }
        }
    }

    /// The writer of a stream's events.
    pub(crate) fn event_writer(&self, fault: Fault, frames: FrameSender) -> EventWriter {
        EventWriter::new(fault, frames, self.clock.clone(), Arc::clone(&self.holds))
    }

    /// Writes everything, at the end or after a control route changed something.
    pub(crate) async fn commit_all(&self) -> Result<(), StoreError> {
        if !self.keep.is_on() {
            return Ok(());
        }
        let (limits, settings) = (self.limits.view(), self.settings());
        let ceilings = (limits.in_flight_max, limits.per_minute_max);
        self.keep
            .push(Mutation::put(keep::SINGLES, keep::LIMITS, &ceilings));
        self.keep
            .push(Mutation::put(keep::SINGLES, keep::SETTINGS, &settings));
        self.checkpoint.commit().await
    }
}
