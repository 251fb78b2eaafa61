//! What outlives the process: documents by table and id, in one file of the state directory.
//!
//! The interface's sets, runs and endpoints are resources that a client comes back for; a service that
//! forgets them at a restart is none. Without a directory the same store lives in memory.
//! Promise: what [`Store::put`] returned from is there after a kill -9 (with a directory); a document is
//! whole or absent; the file is this user's alone.

mod directory;
mod place;
mod prefix;

pub use prefix::Written;

use place::Place;
use redb::{
    Database, ReadableTable, TableDefinition, TableError, TableHandle, backends::InMemoryBackend,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// Several writes that are on disk together or not at all; see [`Store::write`].
pub struct Batch<'a> {
    transaction: &'a redb::WriteTransaction,
}

/// A kind of document; its name stands in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(pub &'static str);

#[derive(Clone)]
pub struct Store {
    place: Arc<Place>,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the sandbox's state cannot be read or written: {0}")]
    Database(Box<redb::Error>),
    #[error("the sandbox's state directory: {0}")]
    Directory(std::io::Error),
    #[error("the sandbox's state directory {}: {why}", path.display())]
    UnsafeDirectory { path: PathBuf, why: String },
    /// A document that this release cannot read.
    #[error("the sandbox's state holds a document of {table} that cannot be read: {source}")]
    Document {
        table: &'static str,
        source: serde_json::Error,
    },
    /// Amounts on disk that do not go together with what is to be written; nothing was.
    #[error("the sandbox's books on disk: {0}")]
    Books(&'static str),
}

type Result<T> = std::result::Result<T, StoreError>;

// === impl StoreError ===

impl<E: Into<redb::Error>> From<E> for StoreError {
    fn from(error: E) -> Self {
        Self::Database(Box::new(error.into()))
    }
}

// === impl Table ===

impl Table {
    fn definition(self) -> TableDefinition<'static, &'static str, &'static [u8]> {
        TableDefinition::new(self.0)
    }
}

// === impl Store ===

impl Store {
    pub fn open(directory: Option<&Path>) -> Result<Self> {
        let (database, file) = match directory {
            None => {
                let memory = InMemoryBackend::new();
                (Database::builder().create_with_backend(memory)?, None)
            }
            Some(directory) => {
                let file = directory::ready(directory)?;
                (Database::create(&file)?, Some(file))
            }
        };
        Ok(Self {
            place: Arc::new(Place::new(database, file)),
        })
    }

    /// Writes a document, in the place of the one with this id.
    pub fn put(&self, table: Table, id: &str, document: &impl Serialize) -> Result<()> {
        let bytes = serde_json::to_vec(document).map_err(|source| table.broken(source))?;
        self.change(table, |rows| rows.insert(id, bytes.as_slice()).map(drop))
    }

    /// Removes a document; one that is not there is no error.
    pub fn remove(&self, table: Table, id: &str) -> Result<()> {
        self.change(table, |rows| rows.remove(id).map(drop))
    }

    /// Removes every document of a table.
    pub fn clear(&self, table: Table) -> Result<()> {
        self.change(table, |rows| rows.retain(|_, _| false))
    }

    /// Removes the documents whose id begins so, in one step.
    pub fn remove_beginning(&self, table: Table, beginning: &str) -> Result<()> {
        self.change(table, |rows| {
            rows.retain(|id, _| !id.starts_with(beginning))
        })
    }

    pub fn get<T: DeserializeOwned>(&self, table: Table, id: &str) -> Result<Option<T>> {
        self.read(table, |rows| {
            let found = rows.get(id)?;
            found
                .map(|bytes| {
                    serde_json::from_slice(bytes.value()).map_err(|source| table.broken(source))
                })
                .transpose()
        })
    }

    /// All documents of a table, by id.
    pub fn all<T: DeserializeOwned>(&self, table: Table) -> Result<Vec<(String, T)>> {
        self.read(table, |rows| {
            rows.iter()?
                .map(|row| {
                    let (id, bytes) = row?;
                    let document = serde_json::from_slice(bytes.value())
                        .map_err(|source| table.broken(source))?;
                    Ok((id.value().to_owned(), document))
                })
                .collect()
        })
    }

    /// Writes all that `work` does, or nothing of it.
    pub fn write(&self, work: impl FnOnce(&mut Batch<'_>) -> Result<()>) -> Result<()> {
        self.place.watched(|| {
            let transaction = self.place.begin_write()?;
            work(&mut Batch {
                transaction: &transaction,
            })?;
            transaction.commit()?;
            Ok(())
        })
    }

    fn change(
        &self,
        table: Table,
        change: impl FnOnce(
            &mut redb::Table<'_, &'static str, &'static [u8]>,
        ) -> std::result::Result<(), redb::StorageError>,
    ) -> Result<()> {
        self.write(|batch| {
            let mut rows = batch.transaction.open_table(table.definition())?;
            Ok(change(&mut rows)?)
        })
    }

    /// What `look` finds; nothing when nothing was ever written to the table.
    fn read<T: Default>(
        &self,
        table: Table,
        look: impl FnOnce(&redb::ReadOnlyTable<&'static str, &'static [u8]>) -> Result<T>,
    ) -> Result<T> {
        self.place.watched(|| {
            let transaction = self.place.begin_read()?;
            match transaction.open_table(table.definition()) {
                Ok(rows) => look(&rows),
                Err(TableError::TableDoesNotExist(_)) => Ok(T::default()),
                Err(error) => Err(error.into()),
            }
        })
    }

    /// The tables that hold or held something.
    fn tables(&self) -> Vec<String> {
        let names = || -> Result<Vec<String>> {
            let transaction = self.place.begin_read()?;
            let tables = transaction.list_tables()?;
            Ok(tables.map(|table| table.name().to_owned()).collect())
        };
        names().unwrap_or_default()
    }
}

// === impl Batch ===

impl Batch<'_> {
    pub fn put(&mut self, table: Table, id: &str, document: &impl Serialize) -> Result<()> {
        let bytes = serde_json::to_vec(document).map_err(|source| table.broken(source))?;
        self.put_bytes(table, id, &bytes)
    }

    /// A document that is JSON already.
    pub fn put_bytes(&mut self, table: Table, id: &str, bytes: &[u8]) -> Result<()> {
        let mut rows = self.transaction.open_table(table.definition())?;
        rows.insert(id, bytes)?;
        Ok(())
    }

    pub fn remove(&mut self, table: Table, id: &str) -> Result<()> {
        let mut rows = self.transaction.open_table(table.definition())?;
        rows.remove(id)?;
        Ok(())
    }

    pub fn clear(&mut self, table: Table) -> Result<()> {
        let mut rows = self.transaction.open_table(table.definition())?;
        rows.retain(|_, _| false)?;
        Ok(())
    }

    /// What is there now, the writes of this batch included.
    pub fn get<T: DeserializeOwned>(&self, table: Table, id: &str) -> Result<Option<T>> {
        let rows = self.transaction.open_table(table.definition())?;
        let found = rows.get(id)?;
        found
            .map(|bytes| {
                serde_json::from_slice(bytes.value()).map_err(|source| table.broken(source))
            })
            .transpose()
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("tables", &self.tables())
            .finish()
    }
}

impl Table {
    fn broken(self, source: serde_json::Error) -> StoreError {
        StoreError::Document {
            table: self.0,
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::{fs, os::unix::fs::PermissionsExt};

    const SETS: Table = Table("sets");

    #[test]
    fn documents_are_found_by_id_and_survive_a_restart() {
        let directory = std::env::temp_dir().join(format!("sandbox-store-{}", std::process::id()));
        let store = Store::open(Some(&directory)).unwrap();
        store.put(SETS, "b", &json!({"n": 2})).unwrap();
        store.put(SETS, "a", &json!({"n": 1})).unwrap();
        store.put(SETS, "a", &json!({"n": 3})).unwrap();
        store.put(SETS, "c", &json!({})).unwrap();
        store.remove(SETS, "c").unwrap();
        drop(store);

        let store = Store::open(Some(&directory)).unwrap();

        let all: Vec<(String, Value)> = store.all(SETS).unwrap();
        assert_eq!(
            all,
            [
                ("a".to_owned(), json!({"n": 3})),
                ("b".to_owned(), json!({"n": 2}))
            ]
        );
        let mode = fs::metadata(&directory).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0);
        drop(store);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn a_batch_is_written_whole_or_not_at_all() {
        let store = Store::open(None).unwrap();
        store
            .write(|batch| {
                batch.put(SETS, "a", &json!(1))?;
                batch.put(SETS, "b", &json!(2))
            })
            .unwrap();

        let failed = store.write(|batch| {
            batch.remove(SETS, "a")?;
            batch.put(SETS, "b", &json!("text"))?;
            batch.get::<u64>(SETS, "b").map(drop)
        });

        assert!(failed.is_err());
        assert_eq!(store.all::<u64>(SETS).unwrap().len(), 2);
        store.write(|batch| batch.clear(SETS)).unwrap();
        assert!(store.all::<u64>(SETS).unwrap().is_empty());
    }

    #[test]
    fn a_file_that_a_kill_left_half_made_is_made_again() {
        let directory = std::env::temp_dir().join(format!("sandbox-half-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("sandbox.redb.new"), [0; 4096]).unwrap();

        let store = Store::open(Some(&directory)).unwrap();

        store.put(SETS, "a", &json!(1)).unwrap();
        assert!(!directory.join("sandbox.redb.new").exists());
        drop(store);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_unknown_id_and_an_unknown_table_are_nothing() {
        let store = Store::open(None).unwrap();

        assert_eq!(store.get::<Value>(SETS, "a").unwrap(), None);
        assert!(store.all::<Value>(Table("other")).unwrap().is_empty());
        store.put(SETS, "a", &json!(1)).unwrap();
        store.clear(SETS).unwrap();
        assert_eq!(store.get::<Value>(SETS, "a").unwrap(), None);
    }

    #[test]
    fn a_document_of_another_shape_is_an_error_that_names_its_table() {
        let store = Store::open(None).unwrap();
        store.put(SETS, "a", &json!("text")).unwrap();

        let error = store.get::<u64>(SETS, "a").unwrap_err();

        assert!(error.to_string().contains("document of sets"), "{error}");
    }
}
