//! Documents by table and id: put, found, removed; and several of them in one transaction.
//!
//! A run has thousands of answers and a set thousands of documents; their ids begin with their owner's id, and
//! are found by that prefix.
//! Promise: when [`Store::put`] returns, its document survives a kill -9 (with a directory); a document is
//! whole or absent; [`Store::put_all`] writes every document or none.

use super::{
    directory,
    error::{Result, StoreError},
    place::StateFile,
};
use redb::{
    Database, ReadableTable, TableDefinition, TableError, TableHandle, backends::InMemoryBackend,
};
use serde::{Serialize, de::DeserializeOwned};
use std::{path::Path, sync::Arc};

/// Several writes that are on disk together or not at all; see [`Store::write`].
pub struct Batch<'a> {
    transaction: &'a redb::WriteTransaction,
}

/// A kind of document; its name is in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table(pub &'static str);

#[derive(Clone)]
pub struct Store {
    place: Arc<StateFile>,
}

/// A document on its way into the store.
#[derive(Clone, Debug)]
pub struct Written {
    table: Table,
    id: String,
    bytes: Vec<u8>,
}

// === impl Table ===

impl Table {
    fn definition(self) -> TableDefinition<'static, &'static str, &'static [u8]> {
        TableDefinition::new(self.0)
    }

    fn broken(self, source: serde_json::Error) -> StoreError {
        StoreError::Document {
            table: self.0,
            source,
        }
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
            place: Arc::new(StateFile::new(database, file)),
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

    /// Writes all of them in one transaction.
    pub fn put_all(&self, documents: &[Written]) -> Result<()> {
        self.write(|batch| {
            let mut all = documents.iter();
            all.try_for_each(|one| batch.put_bytes(one.table, &one.id, &one.bytes))
        })
    }

    /// The documents whose ids begin with `prefix`, by id.
    pub fn with_prefix<T: DeserializeOwned>(
        &self,
        table: Table,
        prefix: &str,
    ) -> Result<Vec<(String, T)>> {
        self.read(table, |rows| {
            let mut found = Vec::new();
            for row in rows.range(prefix..)? {
                let (id, bytes) = row?;
                if !id.value().starts_with(prefix) {
                    break;
                }
                let document =
                    serde_json::from_slice(bytes.value()).map_err(|source| table.broken(source))?;
                found.push((id.value().to_owned(), document));
            }
            Ok(found)
        })
    }

    /// Removes the documents whose ids begin with `prefix`.
    pub fn remove_prefix(&self, table: Table, prefix: &str) -> Result<()> {
        self.change(table, |rows| rows.retain(|id, _| !id.starts_with(prefix)))
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

    /// What `look` finds; nothing if the table was never written to.
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

// === impl Written ===

impl Written {
    pub fn new(table: Table, id: &str, document: &impl Serialize) -> Result<Self> {
        let bytes = serde_json::to_vec(document).map_err(|source| table.broken(source))?;
        Ok(Self {
            table,
            id: id.to_owned(),
            bytes,
        })
    }
}

// === impl Batch ===

impl Batch<'_> {
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
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("tables", &self.tables())
            .finish()
    }
}

#[cfg(test)]
mod tests;
