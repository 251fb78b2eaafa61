use super::*;
use serde_json::{Value, json};
use std::{fs, os::unix::fs::PermissionsExt};

const SETS: Table = Table("sets");

// === impl Store ===

impl Store {
    /// From here on every use fails, until the file is put back.
    pub fn take_away(&self) -> Option<Database> {
        self.place.take_away()
    }

    pub fn put_back(&self, database: Option<Database>) {
        self.place.put_back(database);
    }
}

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
            batch.put_bytes(SETS, "a", b"1")?;
            batch.put_bytes(SETS, "b", b"2")
        })
        .unwrap();

    let failed = store.write(|batch| {
        batch.remove(SETS, "a")?;
        batch.put_bytes(SETS, "b", b"3")?;
        Err(StoreError::Directory(std::io::Error::other("no space")))
    });

    assert!(failed.is_err());
    let all: Vec<(String, u64)> = store.all(SETS).unwrap();
    assert_eq!(all, [("a".to_owned(), 1), ("b".to_owned(), 2)]);
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
