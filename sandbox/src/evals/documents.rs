//! The document or image of a row: where it goes, and what is kept of it.
//!
//! Interface, Document upload to a row: "a binary blob is attached to one row's input field. A file under 5
//! MiB goes inline through `attach-blob`".
//! Promise: a row's field has one document; its bytes are stored before it is said to be there.

use super::{DOCUMENTS, runs, sets, tasks};
use crate::{catalog::Task, error::ServiceError, state::State};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Largest document of the signed flow. Assumed (eval-limits).
pub const DOCUMENT_BYTES_MAX: u64 = 50 * 1024 * 1024;
const FIELD_CHARS_MAX: usize = 64;

/// A row's input field, and the kind of document that goes there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// 0-based row index.
    pub idx: usize,
    pub field_name: String,
    pub mime: String,
}

/// A document that is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    pub org: String,
    pub eval_set_id: String,
    pub place: Place,
    pub size: u64,
    pub sha256: String,
    /// Its name in the blob store.
    pub blob: String,
}

/// What a client is told of a document. Assumed (eval-documents): the shape is not shown.
#[derive(Clone, Debug, Serialize)]
pub struct DocumentView {
    pub eval_set_id: String,
    pub idx: usize,
    pub field_name: String,
    pub mime: String,
    pub size: u64,
    pub sha256: String,
}

// === impl Document ===

impl Document {
    pub fn view(&self) -> DocumentView {
        DocumentView {
            eval_set_id: self.eval_set_id.clone(),
            idx: self.place.idx,
            field_name: self.place.field_name.clone(),
            mime: self.place.mime.clone(),
            size: self.size,
            sha256: self.sha256.clone(),
        }
    }
}

// === impl Place ===

impl Place {
    /// 422 when the set has no such row, its task no such field, or no model reads such a kind.
    pub fn check(&self, set: &sets::EvalSet) -> Result<(), ServiceError> {
        if self.idx >= set.item_count {
            return Err(ServiceError::invalid(format!(
                "idx must be from 0 to {}",
                set.item_count.saturating_sub(1)
            )));
        }
        let task = tasks::by_id(&set.task_id).filter(|task| task.has_blob_input);
        let Some(task) = task else {
            return Err(ServiceError::invalid(
                "field_name: the set's task takes no documents",
            ));
        };
        if self.field_name.chars().count() > FIELD_CHARS_MAX {
            return Err(ServiceError::invalid(format!(
                "field_name must have at most {FIELD_CHARS_MAX} characters"
            )));
        }
        match &task.blob_field {
            Some(field) if *field != self.field_name => Err(ServiceError::invalid(format!(
                "field_name: the blob input field of {} is {field}",
                task.id
            ))),
            _ => check_mime(&self.mime),
        }
    }

    fn id(&self, set: &str) -> String {
        format!("{set}/{:06}/{}", self.idx, self.field_name)
    }
}

/// Assumed (eval-documents): pictures, sound, text and PDF, without parameters.
fn check_mime(mime: &str) -> Result<(), ServiceError> {
    let kind = mime.split_once('/').filter(|(_, subtype)| {
        !subtype.is_empty()
            && subtype.len() <= 64
            && subtype
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+.-".contains(&b))
    });
    match kind {
        Some(("image" | "audio" | "text", _)) | Some(("application", "pdf")) => Ok(()),
        _ => Err(ServiceError::invalid(
            "mime must be application/pdf or a type of image, audio or text",
        )),
    }
}

/// Puts a document into its place, over the one that is there.
pub async fn attach(
    state: &State,
    org: &str,
    set: &sets::EvalSet,
    place: Place,
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
        sha256: crate::idempotency::hex(&Sha256::digest(&bytes)),
        blob: state.clock.new_id(),
        place,
    };
    state
        .evals
        .blobs
        .put(&document.blob, bytes)
        .await
        .map_err(super::failed)?;
    let written = write(state, &document);
    if written.is_err() {
        state
            .evals
            .blobs
            .remove(&document.blob)
            .map_err(super::failed)?;
    }
    written?;
    Ok(document)
}

/// Records a document whose bytes are in the blob store.
pub fn write(state: &State, document: &Document) -> Result<(), ServiceError> {
    let _gate = state.evals.gate.lock();
    let set = &document.eval_set_id;
    // The set may have gone while the bytes came.
    sets::find(state, &document.org, set)?;
    runs::check_idle(state, set)?;
    check_room(state, &document.org, document.size)?;
    let id = document.place.id(set);
    let before: Option<Document> = state.store.get(DOCUMENTS, &id)?;
    state.store.put(DOCUMENTS, &id, document)?;
    if let Some(before) = before.filter(|before| before.blob != document.blob) {
        state
            .evals
            .blobs
            .remove(&before.blob)
            .map_err(super::failed)?;
    }
    Ok(())
}

/// The document of a place, if there is one.
pub fn at(state: &State, set: &str, place: &Place) -> Result<Option<Document>, ServiceError> {
    Ok(state.store.get(DOCUMENTS, &place.id(set))?)
}

pub fn of_set(state: &State, set: &str) -> Result<Vec<Document>, ServiceError> {
    let found = state
        .store
        .with_prefix::<Document>(DOCUMENTS, &format!("{set}/"))?;
    Ok(found.into_iter().map(|(_, document)| document).collect())
}

/// Removes the bytes that no document and no upload names: what a kill left behind.
pub fn sweep(state: &State) -> Result<(), ServiceError> {
    let documents = state.store.all::<Document>(DOCUMENTS)?;
    let kept = documents
        .into_iter()
        .map(|(_, document)| document.blob)
        .chain(super::uploads::blobs(state)?)
        .collect();
    state.evals.blobs.sweep(&kept).map_err(super::failed)
}

/// 422 when the organization's rows and documents would be more than is kept for one.
pub fn check_room(state: &State, org: &str, more: u64) -> Result<(), ServiceError> {
    let rows: u64 = sets::stored(state, org)?
        .iter()
        .map(|stored| stored.row_bytes)
        .sum();
    let documents: u64 = state
        .store
        .all::<Document>(DOCUMENTS)?
        .iter()
        .filter(|(_, document)| document.org == org)
        .map(|(_, document)| document.size)
        .sum();
    match rows.saturating_add(documents).saturating_add(more) {
        total if total <= sets::STORED_BYTES_MAX => Ok(()),
        _ => Err(ServiceError::invalid(format!(
            "an organization's eval sets hold at most {} MiB; delete one first",
            sets::STORED_BYTES_MAX / 1024 / 1024
        ))
        .assumed("eval-limits")),
    }
}

/// Whether a row's field holds a document itself: a data URL of a kind that a model reads, with bytes in it.
///
/// Assumed (task-catalog): "a blob in an example row is a data URL".
pub fn is_document(value: &Value) -> bool {
    let url = value.as_str().and_then(|text| text.strip_prefix("data:"));
    let Some((head, encoded)) = url.and_then(|url| url.split_once(";base64,")) else {
        return false;
    };
    let mime = head.split(';').next().unwrap_or("");
    check_mime(mime).is_ok()
        && STANDARD
            .decode(encoded)
            .is_ok_and(|bytes| !bytes.is_empty())
}

/// The rows of a document task that have no document, by index.
pub fn missing(
    state: &State,
    set: &sets::EvalSet,
    task: &Task,
    rows: &[super::rows::Row],
) -> Result<Vec<usize>, ServiceError> {
    if !task.has_blob_input {
        return Ok(Vec::new());
    }
    let attached: std::collections::BTreeSet<usize> = of_set(state, &set.id)?
        .iter()
        .map(|document| document.place.idx)
        .collect();
    let carries = |row: &super::rows::Row| match (&task.blob_field, &row.input) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_has_its_document_when_there_are_bytes_of_a_kind_that_is_read() {
        for there in [
            "data:application/pdf;base64,JVBERg==",
            "data:image/png;base64,AA==",
            "data:audio/webm;codecs=opus;base64,AA==",
        ] {
            assert!(is_document(&json!(there)), "{there}");
        }
        for absent in [
            json!(null),
            json!(5),
            json!(""),
            json!({}),
            json!(["data:image/png;base64,AA=="]),
            json!("not a data url"),
            json!("https://example.org/scan.pdf"),
            json!("data:application/pdf;base64,"),
            json!("data:application/pdf;base64,?"),
            json!("data:application/zip;base64,AA=="),
            json!("data:image/png,AA=="),
        ] {
            assert!(!is_document(&absent), "{absent}");
        }
    }
}
