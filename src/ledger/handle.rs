//! An open ledger: what is asked of it, from any thread.
//!
//! Promise: what `intend` and `settle` returned `Ok` for survives the process, and with
//! [`Durability::Power`](crate::ledger::Durability::Power) the machine. Sums come from the journal
//! alone and never go back.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::tz::TimeZone;
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Builder;

use crate::clock::SharedClock;
use crate::ledger::delivery::{Handover, Remembered, Undelivered};
use crate::ledger::entry::{Intent, Outcome, Settlement};
use crate::ledger::error::LedgerError;
use crate::ledger::fingerprint::{ArrivingHash, Fingerprint, FingerprintParts, GivenAs};
use crate::ledger::fold::books::WaitingRun;
use crate::ledger::fold::keys::KeyStanding;
use crate::ledger::fold::totals::Totals;
use crate::ledger::fold::usage::OnUsage;
use crate::ledger::id::{EntryId, EntryIds};
#[cfg(test)]
use crate::ledger::index::tree::Index;
use crate::ledger::journal::segments::segments;
use crate::ledger::journal::state_dir::{Directory, Identity};
use crate::ledger::kept_key::{EntryKey, KeptKey, Organization};
use crate::ledger::marks::SessionHasher;
use crate::ledger::options::{LedgerOptions, OnFailure, OnProgress};
use crate::ledger::read::group_by::GroupBy;
use crate::ledger::read::indexed::ask;
use crate::ledger::read::lookup::{Refresh, refresh};
use crate::ledger::read::spend::{ROWS_MAX, Spend, Sums};
use crate::ledger::upkeep::compact::CompactReport;
use crate::ledger::write::hub::{Hub, LedgerHealth};
use crate::ledger::write::queue::{Acknowledged, Job};
use crate::ledger::write::shared::SharedWriter;
use crate::ledger::write::writer::Writer;
use crate::money::MicroUsd;

/// An open ledger. Clones share it; the last one dropped closes it.
#[derive(Clone)]
pub struct Ledger {
    open: Arc<OpenLedger>,
}

struct OpenLedger {
    hub: Arc<Hub>,
    clock: SharedClock,
    identity: Identity,
    ids: EntryIds,
    state_dir: PathBuf,
    writer: Arc<SharedWriter>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

// === impl Ledger ===

impl Ledger {
    /// Locks and reads the ledger, ends what a dead process left open (`in_doubt(crash)`), and
    /// starts the writer. Blocks for the time that takes.
    pub fn open(options: LedgerOptions) -> Result<Self, LedgerError> {
        let id_secret = random(&options)?;
        let clock = Arc::clone(&options.clock);
        let path = options.state_dir.clone();
        let hub = Arc::new(Hub::default());
        if options.on_failure == OnFailure::Serve {
            hub.serve_unwritten();
        }
        let (writer, identity) = open_writer(&hub, options)?;
        let writer = Arc::new(SharedWriter::new(Arc::clone(&hub), writer));
        let thread = std::thread::Builder::new()
            .name("ledger".to_owned())
            .spawn({
                let writer = Arc::clone(&writer);
                move || writer.run()
            })
            .map_err(|error| LedgerError::io(&path, error))?;
        Ok(Self {
            open: Arc::new(OpenLedger {
                hub,
                clock,
                identity,
                ids: EntryIds::new(id_secret),
                state_dir: path,
                writer,
                thread: Mutex::new(Some(thread)),
            }),
        })
    }

    /// A new id, later than all before it.
    pub fn new_entry_id(&self) -> EntryId {
        self.open.ids.next(self.open.clock.wall_ms())
    }

    /// The fingerprint of a request under this ledger's secret. Hashes the body: about a
    /// millisecond a megabyte.
    /// What names an entry's answer to its app: 32 hex digits that do not lead from the entry's id, which everybody
    /// who reads the ledger knows, to the answer.
    pub fn answer_id(&self, entry: EntryId) -> String {
        let parts = FingerprintParts {
            // No request has an empty method.
            method: "",
            path_and_query: "",
            body: entry.0.as_bytes(),
            session: None,
            rte_query: None,
            given_as: GivenAs::Served,
        };
        let mut id = self.fingerprint(&parts).to_string();
        id.truncate(32);
        id
    }

    pub fn fingerprint(&self, parts: &FingerprintParts<'_>) -> Fingerprint {
        parts.hash(&self.open.identity.fingerprint_secret)
    }

    /// The same of a body that is to arrive: hashed piece by piece, while each is in the processor's cache.
    pub fn begin_fingerprint(
        &self,
        parts: &FingerprintParts<'_>,
        body_bytes: usize,
    ) -> ArrivingHash {
        parts.begin(&self.open.identity.fingerprint_secret, body_bytes)
    }

    /// A key as it is kept: the organization's, and the app's own for this one request.
    pub fn kept_key(
        &self,
        key: &EntryKey,
        organization: Organization,
        parts: &FingerprintParts<'_>,
    ) -> KeptKey {
        let secret = &self.open.identity.fingerprint_secret;
        KeptKey::new(secret, key, organization, || parts.hash_as_compared(secret))
    }

    /// The paying organization: by the service's address and the organization's key, neither of which is
    /// kept.
    pub fn organization(&self, address: &str, key: &[u8]) -> Organization {
        Organization::of(&self.open.identity.fingerprint_secret, address, key)
    }

    /// What sessions are hashed with.
    pub fn session_hasher(&self) -> SessionHasher {
        SessionHasher::new(self.open.identity.fingerprint_secret)
    }

    /// Writes an intent; returns when it is durable (rule I1). After an error nothing may be sent.
    pub async fn intend(&self, intent: Intent) -> Result<(), LedgerError> {
        let job = Job::Intend(Arc::new(intent));
        self.open.writer.ask(job).await.map(|_| ())
    }

    /// Folds, writes, makes durable, then answers: the one place an entry is settled. An outcome
    /// that is sent twice is answered with what the first became.
    pub async fn settle(
        &self,
        outcome: impl Into<Arc<Outcome>>,
    ) -> Result<Settlement, LedgerError> {
        let outcome = outcome.into();
        let id = outcome.id;
        let job = Job::Settle(outcome);
        match self.open.writer.ask(job).await? {
            Acknowledged::Settled(settlement) => Ok(settlement),
            _ => Err(LedgerError::UnknownEntry { id }),
        }
    }

    /// Hands over an outcome that could not be written while its request lasted. The writer writes
    /// it as soon as the journal is open again; sent twice, it counts once. An error means that it
    /// will not be written, and that its entry is in doubt after the next start.
    pub fn settle_later(&self, outcome: impl Into<Arc<Outcome>>) -> Result<(), LedgerError> {
        self.open.hub.backlog().push(outcome.into())
    }

    /// The terminal poll of an eval run reported the run's amount: gives it to the entry of the POST
    /// that carried the run id, once. `None` when no entry waits for it.
    pub async fn reconcile_run(
        &self,
        run_id: &str,
        billed: MicroUsd,
    ) -> Result<Option<EntryId>, LedgerError> {
        let job = Job::ReconcileRun {
            run_id: run_id.to_owned(),
            billed,
        };
        match self.open.writer.ask(job).await? {
            Acknowledged::Reconciled(id) => Ok(id),
            _ => Ok(None),
        }
    }

    /// Notes what became of an answer after its outcome was written. It is not waited for: when it
    /// cannot be written, only a restart forgets it.
    pub fn note_delivery(&self, row: Undelivered, delivered: bool) {
        let handover = Handover {
            delivered,
            assumed: false,
        };
        let id = row.id;
        let job = Job::Deliver(Box::new(row), handover);
        if !self.open.hub.queue().post(job) {
            tracing::warn!(entry = %id, delivered, "a delivery could not be noted");
        }
    }

    /// Requests of the last 24 hours whose answer their app never received: for the proxy that starts
    /// on this ledger.
    pub async fn undelivered(&self) -> Result<Remembered, LedgerError> {
        match self.open.writer.ask(Job::Remember).await? {
            Acknowledged::Remembered(remembered) => Ok(remembered),
            _ => Ok(Remembered::default()),
        }
    }

    /// What a key is to a request within its 24 h: without a charge, the request is a purchase of its own.
    /// `fingerprint`: its own.
    pub async fn key_standing(
        &self,
        key: &KeptKey,
        fingerprint: Fingerprint,
    ) -> Result<KeyStanding, LedgerError> {
        let job = Job::KeyStands(Box::new(key.clone()), fingerprint);
        match self.open.writer.ask(job).await? {
            Acknowledged::KeyStands(standing) => Ok(standing),
            _ => Ok(KeyStanding::Free),
        }
    }

    /// From now on `on_usage` is called with what counts against caps: all of it at once, then each commit,
    /// before requests that wait for the commit are answered. Only the `on_usage` given last is called.
    pub fn watch_usage(&self, on_usage: OnUsage) {
        self.open.hub.watch_usage(on_usage);
    }

    /// The eval runs whose price is not known yet, oldest first, as of the last commit. They survive
    /// a restart. The receiver is notified of each change.
    pub fn waiting_runs(&self) -> watch::Receiver<Arc<[WaitingRun]>> {
        self.open.hub.waiting_runs()
    }

    /// Rebuilds the index from the journal, as a start without one would, and closes the ledger.
    /// Blocks for the time that takes. Returns how many entries there are.
    pub fn rebuild(
        mut options: LedgerOptions,
        on_progress: OnProgress,
    ) -> Result<u64, LedgerError> {
        options.rebuild = Some(on_progress);
        let state_dir = options.state_dir.clone();
        let ledger = Self::open(options)?;
        if ledger.open.hub.index().is_none() {
            return Err(LedgerError::Unavailable {
                why: "its index could not be made; the log says why".to_owned(),
            });
        }
        let anew = Refresh {
            is_thorough: true,
            is_anew: true,
            ..Refresh::default()
        };
        refresh(&state_dir, &anew, &mut None, &AtomicBool::new(false))?;
        let totals = ledger.totals();
        Ok(totals.requests().saturating_add(totals.open))
    }

    /// Sums by group, over entries begun in `[since_ms, until_ms)`: from the index, or from the journal where
    /// the index has no answer. Days are those of `time_zone`. Blocks for the time that takes.
    pub fn spend(
        &self,
        since_ms: Option<u64>,
        until_ms: Option<u64>,
        group: &[GroupBy],
        time_zone: &TimeZone,
    ) -> Result<Spend, LedgerError> {
        let sums = Sums {
            since_ms,
            until_ms,
            group,
            time_zone,
            rows_max: ROWS_MAX,
        };
        ask(&sums, &self.open.state_dir, self.open.hub.index().as_ref())
    }

    /// The sums, as of the last commit. Cheap.
    pub fn totals(&self) -> Arc<Totals> {
        self.open.hub.totals()
    }

    /// Both as of one moment: whether the sums are those of the whole journal is part of the health.
    pub fn totals_and_health(&self) -> (Arc<Totals>, LedgerHealth) {
        let now = self.open.clock.monotonic();
        self.open.hub.totals_and_health(now)
    }

    pub fn health(&self) -> LedgerHealth {
        self.open.hub.health(self.open.clock.monotonic())
    }

    /// Serves what waits, commits it, flushes the index, and stops the writer. Later calls answer
    /// [`LedgerError::Closed`].
    pub async fn close(&self) {
        self.open.hub.end_in_order();
        self.open.hub.queue().close();
        let Some(thread) = self.open.thread.lock().take() else {
            return;
        };
        let joined = tokio::task::spawn_blocking(move || thread.join()).await;
        if !matches!(joined, Ok(Ok(()))) {
            tracing::error!("the ledger's writer ended by a panic; the journal decides");
        }
    }
}

/// For the ledger's own tests.
#[cfg(test)]
impl Ledger {
    pub(in crate::ledger) fn wall_ms(&self) -> u64 {
        self.open.clock.wall_ms()
    }

    pub(in crate::ledger) fn secret(&self) -> &[u8; 32] {
        &self.open.identity.fingerprint_secret
    }

    pub(in crate::ledger) fn index(&self) -> Option<Index> {
        self.open.hub.index()
    }

    /// The last record that is in the index.
    pub(in crate::ledger) fn indexed_seq(&self) -> u64 {
        let index = self.open.hub.index();
        index.map_or(0, |index| index.last_seq())
    }

    /// From now on the process dies, as by kill -9, right after its next answer.
    pub(in crate::ledger) fn kill_after_next(&self) {
        self.open.hub.kill();
    }
}

impl Drop for OpenLedger {
    fn drop(&mut self) {
        self.hub.queue().close();
        if let Some(thread) = self.thread.get_mut().take() {
            // Nothing waits any more, so this takes at most one commit.
            let _ = thread.join();
        }
    }
}

/// Compacts what is older than `older_than`, at least two days, where no daemon runs.
pub fn compact(
    mut options: LedgerOptions,
    older_than: Duration,
) -> Result<CompactReport, LedgerError> {
    // What is compacted has to be in the index.
    options.rebuild_beside_bytes = u64::MAX;
    let (mut writer, _) = open_writer(&Arc::default(), options)?;
    writer.compact_now(older_than)
}

fn open_writer(hub: &Arc<Hub>, options: LedgerOptions) -> Result<(Writer, Identity), LedgerError> {
    let directory = Directory::open_or_create(&options.state_dir)?;
    let lock = directory.lock()?;
    let (fingerprint_secret, ledger_bits) = (random(&options)?, random(&options)?);
    let known = known_ledger(&directory)?;
    let identity = directory.identity(|| Identity {
        ledger: known.unwrap_or_else(|| {
            let mut bits = [0; 10];
            bits.copy_from_slice(ledger_bits.first_chunk::<10>().unwrap_or(&[0; 10]));
            Builder::from_unix_timestamp_millis(options.clock.wall_ms(), &bits).into_uuid()
        }),
        fingerprint_secret,
    })?;
    let hub = Arc::clone(hub);
    let writer = Writer::open(hub, options, directory, identity.clone(), lock)?;
    Ok((writer, identity))
}

/// The ledger that the journal belongs to, for when its identity file is lost.
fn known_ledger(directory: &Directory) -> Result<Option<uuid::Uuid>, LedgerError> {
    let journal = directory.child("journal")?;
    let segments = segments(&journal, None)?;
    Ok(segments
        .iter()
        .filter_map(|segment| segment.header.as_ref())
        .find_map(|header| uuid::Uuid::try_parse(&header.ledger).ok()))
}

fn random(options: &LedgerOptions) -> Result<[u8; 32], LedgerError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        LedgerError::io(&options.state_dir, std::io::Error::other(error.to_string()))
    })?;
    Ok(bytes)
}
