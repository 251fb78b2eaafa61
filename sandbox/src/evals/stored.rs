//! Sets, documents and runs as they are stored, and the rules that hold for all of them together.
//!
//! Promise: what one organization has does not exist for another; what a running run reads does not change under
//! it; an organization's rows and documents have a bound.

use super::{
    blobs::Blobs,
    records::{Document, DocumentPlace, EvalRun, EvalSet, StoredSet},
    rows::EvalRow,
};
use crate::{
    billing::Billing,
    books::Books,
    checkpoint::Checkpoint,
    clock::Clock,
    error::ServiceError,
    fault::Holds,
    fleet::Fleet,
    speech::Speech,
    store::{Store, Table},
};
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub const SETS: Table = Table("eval_sets");
/// All rows of a set in one document, by the set's id.
pub const ROWS: Table = Table("eval_rows");
/// By `{set}/{row}/{field}`.
pub const DOCUMENTS: Table = Table("eval_documents");
pub const UPLOADS: Table = Table("eval_uploads");
pub const RUNS: Table = Table("eval_runs");
/// The answers of a run that is not terminal, by `{run}/{row}/{candidate}`.
pub const ANSWERS: Table = Table("eval_answers");
pub const SECRETS: Table = Table("eval_secrets");

const TABLES: &[Table] = &[SETS, ROWS, DOCUMENTS, UPLOADS, RUNS, ANSWERS];

/// Runs that work at the same time; the others are queued. Assumed (eval-limits).
const RUNS_AT_WORK_MAX: usize = 4;
/// Uploads to the storage that are read at the same time.
const UPLOADS_AT_WORK_MAX: usize = 4;

/// Rows and documents of one organization. Assumed (eval-limits).
pub const STORED_BYTES_MAX: u64 = 512 * 1024 * 1024;

/// What of the service evals work with.
#[derive(Debug)]
pub struct EvalParts {
    pub store: Store,
    pub clock: Clock,
    pub fleet: Arc<Fleet>,
    pub speech: Arc<Speech>,
    pub holds: Arc<Holds>,
    pub books: Arc<Books>,
    pub billing: Billing,
    pub checkpoint: Checkpoint,
    pub tasks: TaskTracker,
}

/// Evals of all organizations.
#[derive(Debug)]
pub struct Evals {
    pub(super) parts: EvalParts,
    pub(super) blobs: Blobs,
    /// Held while something is looked up and then written, so that two requests do not both find room.
    pub(super) gate: Mutex<()>,
    pub(super) at_work: Arc<Semaphore>,
    uploading: Semaphore,
    /// Ends every run between two rows: at shutdown, and at a reset.
    stop: Mutex<CancellationToken>,
    /// Where this sandbox listens; the host of signed URLs.
    pub(super) address: OnceLock<SocketAddr>,
}

// === impl Evals ===

impl Evals {
    pub fn open(state_dir: Option<&Path>, parts: EvalParts) -> io::Result<Self> {
        Ok(Self {
            parts,
            blobs: Blobs::open(state_dir)?,
            gate: Mutex::default(),
            at_work: Arc::new(Semaphore::new(RUNS_AT_WORK_MAX)),
            uploading: Semaphore::new(UPLOADS_AT_WORK_MAX),
            stop: Mutex::default(),
            address: OnceLock::new(),
        })
    }

    /// Sets where this sandbox can be reached. An unspecified address becomes loopback.
    pub fn listens_on(&self, mut address: SocketAddr) {
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A second listener changes nothing: the first is as good.
        let _ = self.address.set(address);
    }

    /// Ends the work of every run between two rows; a later start goes on from there.
    pub fn stop(&self) {
        self.stop.lock().cancel();
    }

    /// Waits until one of the few uploads that are read at the same time is done.
    pub async fn upload_turn(&self) -> Result<SemaphorePermit<'_>, ServiceError> {
        let turn = self.uploading.acquire().await;
        turn.map_err(|_| ServiceError::Internal)
    }

    pub fn stopping(&self) -> CancellationToken {
        self.stop.lock().clone()
    }

    /// Forgets every set, document and run. What cannot be removed is logged.
    pub fn reset(&self) {
        let _gate = self.gate.lock();
        let mut stop = self.stop.lock();
        stop.cancel();
        *stop = CancellationToken::new();
        if let Err(error) = self.forget_all() {
            tracing::error!(%error, "the evals could not be forgotten");
        }
    }

    fn forget_all(&self) -> Result<(), ServiceError> {
        for table in TABLES {
            self.parts.store.clear(*table)?;
        }
        self.blobs.sweep(&BTreeSet::new()).map_err(failed)
    }

    /// 404 for an unknown id, and for another organization's.
    pub fn set(&self, org: &str, id: &str) -> Result<EvalSet, ServiceError> {
        let found: Option<StoredSet> = self.parts.store.get(SETS, id)?;
        found
            .filter(|stored| stored.org == org)
            .map(|stored| stored.set)
            .ok_or_else(|| ServiceError::NotFound("eval set not found".to_owned()))
    }

    pub fn rows(&self, id: &str) -> Result<Vec<EvalRow>, ServiceError> {
        self.parts
            .store
            .get(ROWS, id)?
            .ok_or_else(|| ServiceError::NotFound("eval set not found".to_owned()))
    }

    /// The sets of an organization as they are stored, oldest first.
    pub fn stored_sets(&self, org: &str) -> Result<Vec<StoredSet>, ServiceError> {
        let mut sets: Vec<StoredSet> = self
            .parts
            .store
            .all::<StoredSet>(SETS)?
            .into_iter()
            .map(|(_, stored)| stored)
            .filter(|stored| stored.org == org)
            .collect();
        sets.sort_by(|a, b| (a.created, &a.set.id).cmp(&(b.created, &b.set.id)));
        Ok(sets)
    }

    pub fn documents_of(&self, set: &str) -> Result<Vec<Document>, ServiceError> {
        let found = self
            .parts
            .store
            .with_prefix::<Document>(DOCUMENTS, &format!("{set}/"))?;
        Ok(found.into_iter().map(|(_, document)| document).collect())
    }

    /// The document of a place, if there is one.
    pub fn document_at(
        &self,
        set: &str,
        place: &DocumentPlace,
    ) -> Result<Option<Document>, ServiceError> {
        Ok(self.parts.store.get(DOCUMENTS, &place.id(set))?)
    }

    /// 422 when the organization's rows and documents would be more than is kept for one.
    pub fn check_room(&self, org: &str, more: u64) -> Result<(), ServiceError> {
        let rows: u64 = self
            .stored_sets(org)?
            .iter()
            .map(|stored| stored.row_bytes)
            .sum();
        let documents: u64 = self
            .parts
            .store
            .all::<Document>(DOCUMENTS)?
            .iter()
            .filter(|(_, document)| document.org == org)
            .map(|(_, document)| document.size)
            .sum();
        match rows.saturating_add(documents).saturating_add(more) {
            total if total <= STORED_BYTES_MAX => Ok(()),
            _ => Err(ServiceError::invalid(format!(
                "an organization's eval sets hold at most {} MiB; delete one first",
                STORED_BYTES_MAX / 1024 / 1024
            ))
            .assumed("eval-limits")),
        }
    }

    /// 404 for an unknown id, and for another organization's.
    pub fn run(&self, org: &str, id: &str) -> Result<EvalRun, ServiceError> {
        let found: Option<EvalRun> = self.parts.store.get(RUNS, id)?;
        found
            .filter(|run| run.org == org)
            .ok_or_else(|| ServiceError::NotFound("eval run not found".to_owned()))
    }

    /// Runs that are not terminal, oldest first.
    pub fn unfinished(&self) -> Result<Vec<EvalRun>, ServiceError> {
        let mut runs = self.runs()?;
        runs.retain(|run| !run.status.is_terminal());
        Ok(runs)
    }

    /// 409 while a run of the set is not terminal: what it reads must not change under it.
    pub fn check_idle(&self, set: &str) -> Result<(), ServiceError> {
        match self.unfinished()?.iter().any(|run| run.eval_set_id == set) {
            false => Ok(()),
            true => Err(ServiceError::SetInUse),
        }
    }

    /// All runs, oldest first.
    pub fn runs(&self) -> Result<Vec<EvalRun>, ServiceError> {
        let stored = self.parts.store.all::<EvalRun>(RUNS)?;
        let mut runs: Vec<EvalRun> = stored.into_iter().map(|(_, run)| run).collect();
        runs.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(runs)
    }
}

/// What is wrong with the storage is for the log, not for the client.
pub fn failed(error: io::Error) -> ServiceError {
    tracing::error!(%error, "the storage failed");
    ServiceError::Internal
}
