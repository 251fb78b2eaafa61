//! The document that explains an entry: what is kept of it, what the ledger made of that and why,
//! and what else happened under its key. `/api/explain` answers it and `bursar explain` prints it.
//!
//! Promise: every figure is what a line of the journal said; the sentences say which line that was,
//! and nothing that no line said.

mod words;

use serde_json::{Value, json};

use super::documents;
use crate::ledger::MicroUsdSum;
use crate::ledger::entry::{EntryId, KeyOrigin, State};
use crate::ledger::query::{EntryView, Found};

/// `found_by` (`id`, `key`, `request_id`, `tail`, `prefix`, or `null` for nothing), `entries`, `purchase`
/// (the key and all entries of it), `candidates` (of an end or a beginning that several ids have), `more`.
pub fn explanation(found: &Found) -> serde_json::Result<Value> {
    let entries: Vec<Value> = found
        .entries
        .iter()
        .map(|view| explained(view, &found.family))
        .collect::<Result<_, _>>()?;
    let brief = |views: &[EntryView]| -> serde_json::Result<Vec<Value>> {
        views.iter().map(documents::receipt).map(line).collect()
    };
    Ok(json!({
        "found_by": found.by,
        "entries": entries,
        "purchase": purchase(found)?,
        "candidates": brief(&found.candidates)?,
        "more": found.more,
    }))
}

/// An entry, and in sentences: why it stands as it does, what would settle it, what is odd.
fn explained(view: &EntryView, family: &[EntryView]) -> serde_json::Result<Value> {
    let mut document = documents::receipt(view)?;
    if let Value::Object(fields) = &mut document {
        fields.insert("why".to_owned(), json!(words::why(view, family)));
        let next = words::what_would_settle(view);
        fields.insert("what_would_settle".to_owned(), json!(next));
        let odd: Vec<&str> = view
            .anomalies
            .iter()
            .map(|kind| words::odd(*kind))
            .collect();
        fields.insert("odd".to_owned(), json!(odd));
        let was = view.was.map(State::word);
        if was.is_some() {
            fields.insert("was".to_owned(), json!(was));
        }
        let reason = match view.was {
            Some(State::InDoubt { reason }) => Some(reason),
            _ => None,
        };
        if reason.is_some() {
            fields.insert("was_reason".to_owned(), json!(reason));
        }
        let adopted_by: Vec<EntryId> = family
            .iter()
            .filter(|other| other.key_origin == Some(KeyOrigin::Adopted { from: view.id }))
            .map(|other| other.id)
            .collect();
        if !adopted_by.is_empty() {
            fields.insert("adopted_by".to_owned(), json!(adopted_by));
        }
    }
    Ok(document)
}

/// What one key bought. `null` without a key.
fn purchase(found: &Found) -> serde_json::Result<Value> {
    let keyed = found.entries.iter().find(|view| view.kept_key.is_some());
    let Some(keyed) = keyed else {
        return Ok(Value::Null);
    };
    let mut billed = MicroUsdSum::default();
    for view in &found.family {
        billed.add(view.state.adds());
    }
    let is_unknown = |view: &&EntryView| view.state.billed().is_none();
    let entries: Vec<Value> = found
        .family
        .iter()
        .map(documents::receipt)
        .map(line)
        .collect::<Result<_, _>>()?;
    let (name, key) = match &keyed.key_hash {
        Some(hash) => ("key_hash", json!(hash)),
        None => ("key", json!(keyed.key)),
    };
    Ok(json!({
        name: key,
        "entries": entries,
        "billed_micro_usd": serde_json::to_value(billed)?,
        "not_known": found.family.iter().filter(is_unknown).count(),
    }))
}

/// What a list shows of an entry.
fn line(document: serde_json::Result<Value>) -> serde_json::Result<Value> {
    let document = document?;
    let field = |name: &str| document.get(name).cloned().unwrap_or_default();
    Ok(json!({
        "id": field("id"),
        "at": field("at"),
        "at_ms": field("at_ms"),
        "app": field("app"),
        "operation": field("operation"),
        "state": field("state"),
        "reason": field("reason"),
        "billed_micro_usd": field("billed_micro_usd"),
    }))
}
