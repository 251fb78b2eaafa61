//! The document or image of a row: where it goes, and what is kept of it.
//!
//! Interface, Document upload to a row: "a binary blob is attached to one row's input field. A file under 5
//! MiB goes inline through `attach-blob`".
//! Promise: a row's field has one document; its bytes are stored before it is said to be there.

use super::{
    media::is_document,
    records::{Document, DocumentPlace, EvalSet},
    rows::EvalRow,
    stored::{DOCUMENTS, Evals, failed},
};
use crate::{
    catalog::Task,
    error::ServiceError,
    fingerprint::{hex, sha256},
};
use bytes::Bytes;

/// Largest document of the signed flow. Assumed (eval-limits).
pub const DOCUMENT_BYTES_MAX: u64 = 50 * 1024 * 1024;

/// Puts a document into its place, over the one that is there.
pub async fn attach(
    evals: &Evals,
    org: &str,
    set: &EvalSet,
    place: DocumentPlace,
    bytes: Bytes,
) -> Result<Document, ServiceError> {
    place.check(set)?;
    if bytes.is_empty() {
        return Err(ServiceError::invalid("file must not be empty"));
    }
    let document = Document {
        org: org.to_owned(),
        eval_set_id: set.id.clone(),
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: hex(&sha256(&bytes)),
        blob: evals.parts.clock.new_id(),
        place,
    };
    evals
        .blobs
        .put(&document.blob, bytes)
        .await
        .map_err(failed)?;
    let written = write(evals, &document);
    if written.is_err() {
        evals.blobs.remove(&document.blob).map_err(failed)?;
    }
    written?;
    Ok(document)
}

/// Records a document whose bytes are in the blob store.
pub fn write(evals: &Evals, document: &Document) -> Result<(), ServiceError> {
    let _gate = evals.gate.lock();
    let set = &document.eval_set_id;
    // The set may have gone while the bytes came.
    evals.set(&document.org, set)?;
    evals.check_idle(set)?;
    evals.check_room(&document.org, document.size)?;
    let id = document.place.id(set);
    let before: Option<Document> = evals.parts.store.get(DOCUMENTS, &id)?;
    evals.parts.store.put(DOCUMENTS, &id, document)?;
    if let Some(before) = before.filter(|before| before.blob != document.blob) {
        evals.blobs.remove(&before.blob).map_err(failed)?;
    }
    Ok(())
}

/// The rows of a document task that have no document, by index.
pub fn missing(
    evals: &Evals,
    set: &EvalSet,
    task: &Task,
    rows: &[EvalRow],
) -> Result<Vec<usize>, ServiceError> {
    if !task.has_blob_input {
        return Ok(Vec::new());
    }
    let attached: std::collections::BTreeSet<usize> = evals
        .documents_of(&set.id)?
        .iter()
        .map(|document| document.place.idx)
        .collect();
    let carries = |row: &EvalRow| match (&task.blob_field, &row.input) {
        (Some(field), Some(input)) => input.get(field).is_some_and(is_document),
        _ => false,
    };
    Ok(rows
        .iter()
        .enumerate()
        .filter(|(at, row)| !attached.contains(at) && !carries(row))
        .map(|(at, _)| at)
        .collect())
}
