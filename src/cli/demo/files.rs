//! The demo's files: a directory that goes with it, and the journal in it, read as `bursar receipts`
//! and `bursar spend` read it.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::tz::TimeZone;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::cli::error::CliError;
use crate::ledger::LedgerError;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::{self, EntryView, Filter, GroupBy, Spend};

/// Longest time between an answer's last byte and its receipt in the journal. By rule I2 there is
/// none; a late one is reported, not waited for.
const RECEIPT_MAX: Duration = Duration::from_secs(5);

const LOOK_PAUSE: Duration = Duration::from_millis(5);

/// A new directory, entered by its owner only, removed with all that is in it.
#[derive(Debug)]
pub struct Folder(PathBuf);

/// The journal of a ledger that another process writes.
#[derive(Clone, Debug)]
pub struct LedgerFiles {
    state_dir: PathBuf,
}

// === impl Folder ===

impl Folder {
    pub fn new() -> io::Result<Self> {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("bursar-demo-{:016x}", u64::from_be_bytes(bits));
        let path = std::env::temp_dir().join(name);
        // Fails where something has that name already, a link included.
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What stays lies in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

// === impl LedgerFiles ===

impl LedgerFiles {
    pub fn new(state_dir: &Path) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
        }
    }

    /// An entry once it has ended.
    pub async fn ended(&self, id: EntryId) -> Result<EntryView, CliError> {
        let until = Instant::now() + RECEIPT_MAX;
        loop {
            let filter = Filter {
                id: Some(id),
                ..Filter::default()
            };
            let found = self.entries(filter).await?.pop();
            match found {
                Some(entry) if entry.state != State::Open => return Ok(entry),
                _ if Instant::now() < until => sleep(LOOK_PAUSE).await,
                Some(_) => {
                    return Err(CliError::Failed(format!("entry {id} is still open")));
                }
                None => {
                    return Err(CliError::Failed(format!("the ledger has no entry {id}")));
                }
            }
        }
    }

    pub async fn all(&self) -> Result<Vec<EntryView>, CliError> {
        self.entries(Filter::default()).await
    }

    /// The newest line that changed an entry.
    pub async fn last_seq(&self) -> Result<u64, CliError> {
        let entries = self.all().await?;
        Ok(entries.iter().map(|entry| entry.seq).max().unwrap_or(0))
    }

    pub async fn changed_since(&self, seq: u64) -> Result<Vec<EntryView>, CliError> {
        let filter = Filter {
            after_seq: Some(seq),
            ..Filter::default()
        };
        self.entries(filter).await
    }

    pub async fn spend(&self, by: GroupBy) -> Result<Spend, CliError> {
        self.read(move |state_dir| query::spend(state_dir, None, None, &[by], &TimeZone::UTC))
            .await
    }

    async fn entries(&self, filter: Filter) -> Result<Vec<EntryView>, CliError> {
        self.read(move |state_dir| query::entries(state_dir, &filter))
            .await
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Path) -> Result<T, LedgerError> + Send + 'static,
    ) -> Result<T, CliError> {
        let state_dir = self.state_dir.clone();
        match spawn_blocking(move || read(&state_dir)).await {
            Ok(found) => Ok(found?),
            Err(_) => Err(CliError::Failed("reading the journal failed".to_owned())),
        }
    }
}
