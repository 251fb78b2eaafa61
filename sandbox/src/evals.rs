//! Evals: labelled rows, and runs that score `auto` and frontier models on them.
//!
//! Interface, What the service does: "the caller supplies labeled rows and a one-sentence prompt. The
//! service scores `auto` and optional frontier baselines on the same rows."
//!
//! | what | file |
//! |---|---|
//! | a JSONL file becomes rows | `rows` |
//! | the task, and whether the prompt speaks of the data | `tasks`, `agreement` |
//! | sets, per organization | `sets` |
//! | documents of rows: bytes, and the signed way in | `blobs`, `documents`, `uploads` |
//! | a run and its life | `runs`, `work` |
//! | a row becomes a request, an answer becomes a score | `ask`, `results` |
//!
//! Promise: a set, a run, a document is in the store before its answer is given; what one organization has
//! does not exist for another.

mod agreement;
mod ask;
mod blobs;
pub mod documents;
mod fields;
mod form;
mod hear;
mod results;
mod rows;
pub mod runs;
pub mod sets;
pub mod tasks;
pub mod uploads;
pub mod work;

pub use blobs::Blobs;
pub use documents::Place;
pub use fields::Fields;
pub use form::Form;
pub use runs::Wanted;
pub use sets::NewSet;
pub use uploads::SignedUrl;
pub use work::resume;

use crate::{error::ServiceError, state::State, store::Table};
use parking_lot::Mutex;
use serde::Serialize;
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    path::Path,
    sync::{Arc, OnceLock},
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

const SETS: Table = Table("eval_sets");
/// All rows of a set in one document, by the set's id.
const ROWS: Table = Table("eval_rows");
/// By `{set}/{row}/{field}`.
const DOCUMENTS: Table = Table("eval_documents");
const UPLOADS: Table = Table("eval_uploads");
const RUNS: Table = Table("eval_runs");
/// The answers of a run that is not terminal, by `{run}/{row}/{candidate}`.
const ANSWERS: Table = Table("eval_answers");
const SECRETS: Table = Table("eval_secrets");

const TABLES: &[Table] = &[SETS, ROWS, DOCUMENTS, UPLOADS, RUNS, ANSWERS];

/// Runs that work at the same time; the others are queued. Assumed (eval-limits).
const RUNS_AT_WORK_MAX: usize = 4;
/// Uploads to the storage that are read at the same time.
const UPLOADS_AT_WORK_MAX: usize = 4;

/// What evals keep beside the store.
#[derive(Debug)]
pub struct Evals {
    pub(crate) blobs: Blobs,
    /// Held while something is looked up and then written, so that two requests do not both find room.
    gate: Mutex<()>,
    at_work: Arc<Semaphore>,
    uploading: Semaphore,
    /// Ends every run between two rows: at shutdown, and at a reset.
    stop: Mutex<CancellationToken>,
    /// Where this sandbox listens; the host of signed URLs.
    address: OnceLock<SocketAddr>,
}

// === impl Evals ===

impl Evals {
    pub fn open(state_dir: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            blobs: Blobs::open(state_dir)?,
            gate: Mutex::default(),
            at_work: Arc::new(Semaphore::new(RUNS_AT_WORK_MAX)),
            uploading: Semaphore::new(UPLOADS_AT_WORK_MAX),
            stop: Mutex::default(),
            address: OnceLock::new(),
        })
    }

    /// Says where this sandbox can be reached. An unspecified address is told as loopback.
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

    fn stopping(&self) -> CancellationToken {
        self.stop.lock().clone()
    }
}

/// Forgets every set, document and run. What cannot be removed is told in the log.
pub fn reset(state: &State) {
    let evals = &state.evals;
    let _gate = evals.gate.lock();
    let mut stop = evals.stop.lock();
    stop.cancel();
    *stop = CancellationToken::new();
    if let Err(error) = forget_all(state) {
        tracing::error!(%error, "the evals could not be forgotten");
    }
}

fn forget_all(state: &State) -> Result<(), ServiceError> {
    for table in TABLES {
        state.store.clear(*table)?;
    }
    state
        .evals
        .blobs
        .sweep(&std::collections::BTreeSet::new())
        .map_err(failed)
}

/// A time as the order of creation; ids of the same millisecond do not sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Created(i64);

// === impl Created ===

impl Created {
    fn now(state: &State) -> Self {
        Self(i64::try_from(state.clock.now().as_nanosecond()).unwrap_or(i64::MAX))
    }
}

fn failed(error: io::Error) -> ServiceError {
    tracing::error!(%error, "the storage failed");
    ServiceError::Internal
}

#[cfg(test)]
mod tests;
