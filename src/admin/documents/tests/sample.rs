//! An entry of which everything is known, as a document, and others like it.
//!
//! Why: no field of an entry can be forgotten in a document, a line or a column without a test that fails.

use serde_json::{Map, Value};

use crate::admin::documents::EntryDocument;
use crate::ledger::query::EntryView;

/// The text of its document.
pub fn text() -> String {
    include_str!("entry.json").lines().collect()
}

pub fn members() -> Map<String, Value> {
    serde_json::from_str(&text()).expect("JSON")
}

/// The same entry with other members; `null` takes one away.
pub fn entry(others: &Value) -> EntryView {
    let mut members = members();
    for (name, value) in others.as_object().into_iter().flatten() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    EntryDocument::try_from(members).expect("an entry").0
}
