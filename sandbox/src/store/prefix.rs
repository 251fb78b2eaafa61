//! Documents that belong together: found by the beginning of their ids, written in one transaction.
//!
//! A run has thousands of answers and a set thousands of documents; their ids begin with their owner's id.
//! Promise: [`Store::put_all`] writes every document or none.

use super::{Result, Store, Table};
use serde::{Serialize, de::DeserializeOwned};

/// A document on its way into the store.
#[derive(Clone, Debug)]
pub struct Written {
    table: Table,
    id: String,
    bytes: Vec<u8>,
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

// === impl Store ===

impl Store {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEMS: Table = Table("items");

    #[test]
    fn documents_are_found_and_removed_by_the_beginning_of_their_ids() {
        let store = Store::open(None).unwrap();
        let documents: Vec<Written> = ["a/1", "a/2", "ab/1", "b/1"]
            .iter()
            .map(|id| Written::new(ITEMS, id, id).unwrap())
            .collect();
        store.put_all(&documents).unwrap();

        let of_a: Vec<(String, String)> = store.with_prefix(ITEMS, "a/").unwrap();
        store.remove_prefix(ITEMS, "a/").unwrap();

        assert_eq!(
            of_a,
            [
                ("a/1".to_owned(), "a/1".to_owned()),
                ("a/2".to_owned(), "a/2".to_owned())
            ]
        );
        assert_eq!(store.all::<String>(ITEMS).unwrap().len(), 2);
        assert!(
            store
                .with_prefix::<String>(Table("never written"), "a/")
                .unwrap()
                .is_empty()
        );
    }
}
