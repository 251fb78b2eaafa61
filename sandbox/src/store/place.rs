//! The open file of the store, and its opening again after an I/O error.
//!
//! redb refuses everything after one failed read or write, until its file is closed and opened again; without
//! that, a disk that was full for a second would cost a restart.
//! Promise: after an I/O error the next use opens the file again and finds what was committed; until that
//! works every use is an error.

use super::error::{Result, StoreError};
use parking_lot::RwLock;
use redb::{Database, ReadTransaction, WriteTransaction};
use std::{
    path::PathBuf,
    sync::atomic::{AtomicBool, Ordering},
};

pub struct StateFile {
    /// `None` in memory, where nothing fails.
    file: Option<PathBuf>,
    /// `None` while the file cannot be opened again.
    database: RwLock<Option<Database>>,
    has_failed: AtomicBool,
}

// === impl StateFile ===

impl StateFile {
    pub fn new(database: Database, file: Option<PathBuf>) -> Self {
        Self {
            file,
            database: RwLock::new(Some(database)),
            has_failed: AtomicBool::new(false),
        }
    }

    /// One whole use of the database; after an I/O error in it, the next use opens the file again.
    pub fn watched<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let done = work();
        if let Err(StoreError::Database(error)) = &done
            && matches!(**error, redb::Error::Io(_) | redb::Error::PreviousIo)
        {
            self.has_failed.store(true, Ordering::SeqCst);
        }
        done
    }

    pub fn begin_write(&self) -> Result<WriteTransaction> {
        self.opened(|database| Ok(database.begin_write()?))
    }

    pub fn begin_read(&self) -> Result<ReadTransaction> {
        self.opened(|database| Ok(database.begin_read()?))
    }

    fn opened<T>(&self, begin: impl FnOnce(&Database) -> Result<T>) -> Result<T> {
        if self.has_failed.load(Ordering::SeqCst) {
            self.open_again()?;
        }
        let database = self.database.read();
        begin(database.as_ref().ok_or(redb::Error::PreviousIo)?)
    }

    fn open_again(&self) -> Result<()> {
        let mut database = self.database.write();
        let Some(file) = &self.file else {
            return Ok(());
        };
        if !self.has_failed.load(Ordering::SeqCst) {
            // Another was quicker.
            return Ok(());
        }
        // Closed first: the file is locked against a second opening.
        drop(database.take());
        *database = Some(Database::open(file)?);
        self.has_failed.store(false, Ordering::SeqCst);
        tracing::info!("the file of the state was opened again after an I/O error");
        Ok(())
    }
}

#[cfg(test)]
mod tests;
