//! The signed way in: a URL that one document may be put to, for a while.
//!
//! Interface, Document upload to a row: "`blob-upload-url`, then a PUT of the bytes directly to storage at
//! the returned signed URL, then `blob-upload-complete`".
//!
//! Assumed (eval-documents): the URL holds for 15 minutes; HMAC-SHA256 over method, path, expiry, size and
//! type; its host is the sandbox's own listen address, for a Host header is the client's word.
//! Promise: no byte is kept before the signature holds; what is stored is no larger than what was signed.

use super::{
    documents::{self, DOCUMENT_BYTES_MAX},
    records::{Created, Document, DocumentPlace, EvalSet},
    stored::{DOCUMENTS, Evals, SECRETS, UPLOADS, failed},
};
use crate::{
    error::ServiceError,
    fingerprint::{hex, sha256},
};
use bytes::Bytes;
use ring::hmac::{self, HMAC_SHA256};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const HOLDS_S: i64 = 15 * 60;
/// Uploads that are not complete, per organization. Assumed (eval-limits).
const OPEN_MAX: usize = 1_000;
const STORAGE: &str = "/storage/";

/// An upload that was announced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    pub org: String,
    pub eval_set_id: String,
    pub place: DocumentPlace,
    /// As the client announced it.
    pub size: Option<u64>,
    pub expires_at: i64,
    created: Created,
    put: Option<Put>,
    complete: bool,
}

/// Bytes that arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Put {
    blob: String,
    size: u64,
    sha256: String,
}

/// The query of a signed URL.
#[derive(Clone, Debug, Deserialize)]
pub struct SignedUrl {
    pub expires: i64,
    pub size: u64,
    #[serde(rename = "type")]
    pub mime: String,
    pub signature: String,
}

/// Announces an upload; the answer of `blob-upload-url`.
pub fn announce(
    evals: &Evals,
    org: &str,
    set: &EvalSet,
    place: DocumentPlace,
    size: Option<u64>,
) -> Result<Value, ServiceError> {
    place.check(set)?;
    match size {
        Some(0) => return Err(ServiceError::invalid("size must be positive")),
        Some(size) if size > DOCUMENT_BYTES_MAX => {
            return Err(ServiceError::BlobTooLarge(format!(
                "size: a document has at most {} MiB",
                DOCUMENT_BYTES_MAX / 1024 / 1024
            )));
        }
        _ => {}
    }
    let _gate = evals.gate.lock();
    evals.check_room(org, size.unwrap_or(0))?;
    forget_expired(evals)?;
    let open = evals
        .parts
        .store
        .all::<Ticket>(UPLOADS)?
        .into_iter()
        .filter(|(_, ticket)| ticket.org == org && !ticket.complete)
        .count();
    if open >= OPEN_MAX {
        return Err(ServiceError::TooManyOpen(format!(
            "an organization has at most {OPEN_MAX} open uploads; complete one first"
        )));
    }
    let id = format!("up_{}", evals.parts.clock.new_id());
    let ticket = Ticket {
        org: org.to_owned(),
        eval_set_id: set.id.clone(),
        expires_at: evals.parts.clock.unix_s().saturating_add(HOLDS_S),
        created: Created::now(&evals.parts.clock),
        put: None,
        complete: false,
        place,
        size,
    };
    let url = url(evals, &id, &ticket)?;
    evals.parts.store.put(UPLOADS, &id, &ticket)?;
    Ok(json!({
        "url": url,
        "method": "PUT",
        "headers": {"Content-Type": ticket.place.mime},
        "expires_at": ticket.expires_at,
        "upload_id": id,
    }))
}

/// Checks a signed URL before its body is read; returns its ticket.
pub fn admit(
    evals: &Evals,
    id: &str,
    signed: &SignedUrl,
    content_type: Option<&str>,
) -> Result<Ticket, ServiceError> {
    let message = message(id, signed.expires, signed.size, &signed.mime);
    let given = unhex(&signed.signature).ok_or(ServiceError::BadSignature)?;
    hmac::verify(&signing_key(evals)?, message.as_bytes(), &given)
        .map_err(|_| ServiceError::BadSignature)?;
    if evals.parts.clock.unix_s() >= signed.expires {
        return Err(ServiceError::SignatureExpired);
    }
    if content_type != Some(signed.mime.as_str()) {
        return Err(ServiceError::BadSignature);
    }
    let ticket = ticket(evals, id)?;
    if ticket.complete {
        return Err(ServiceError::UploadState("the upload is complete already"));
    }
    Ok(ticket)
}

/// Stores the bytes that were put to a signed URL; a second PUT goes over the first.
pub async fn put(evals: &Evals, id: &str, bytes: Bytes) -> Result<(), ServiceError> {
    if bytes.is_empty() {
        return Err(ServiceError::invalid("the file must not be empty"));
    }
    let put = Put {
        blob: evals.parts.clock.new_id(),
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: hex(&sha256(&bytes)),
    };
    let blobs = &evals.blobs;
    blobs.put(&put.blob, bytes).await.map_err(failed)?;
    let old = {
        let _gate = evals.gate.lock();
        let mut ticket = ticket(evals, id)?;
        if ticket.complete {
            Err(ServiceError::UploadState("the upload is complete already"))
        } else {
            let before = ticket.put.replace(put.clone());
            evals.parts.store.put(UPLOADS, id, &ticket)?;
            Ok(before)
        }
    };
    match old {
        Ok(Some(before)) => blobs.remove(&before.blob).map_err(failed),
        Ok(None) => Ok(()),
        Err(error) => {
            blobs.remove(&put.blob).map_err(failed)?;
            Err(error)
        }
    }
}

/// Makes the uploaded bytes the row's document. A repeat has the same answer as long as the document is there.
pub fn complete(evals: &Evals, org: &str, set: &str, id: &str) -> Result<Document, ServiceError> {
    let ticket = ticket(evals, id)?;
    if ticket.org != org || ticket.eval_set_id != set {
        return Err(unknown());
    }
    let Some(put) = ticket.put.clone() else {
        return Err(ServiceError::UploadState("nothing was uploaded yet"));
    };
    if ticket.size.is_some_and(|announced| announced != put.size) {
        return Err(ServiceError::UploadState(
            "the uploaded file has not the announced size; upload it again",
        ));
    }
    let document = Document {
        org: ticket.org.clone(),
        eval_set_id: ticket.eval_set_id.clone(),
        place: ticket.place.clone(),
        size: put.size,
        sha256: put.sha256,
        blob: put.blob,
    };
    if ticket.complete {
        let now = evals.document_at(set, &document.place)?;
        if now.is_none_or(|now| now.blob != document.blob) {
            return Err(ServiceError::UploadState(
                "the upload was completed, and another document has taken its place since",
            ));
        }
    } else {
        documents::write(evals, &document)?;
        let done = Ticket {
            complete: true,
            ..ticket
        };
        evals.parts.store.put(UPLOADS, id, &done)?;
    }
    Ok(document)
}

/// How many bytes a PUT to this URL may have.
pub fn bytes_max(signed: &SignedUrl) -> usize {
    usize::try_from(signed.size.min(DOCUMENT_BYTES_MAX)).unwrap_or(usize::MAX)
}

/// The blobs of uploads that are not documents yet.
fn blobs(evals: &Evals) -> Result<Vec<String>, ServiceError> {
    let tickets = evals.parts.store.all::<Ticket>(UPLOADS)?;
    Ok(tickets
        .into_iter()
        .filter(|(_, ticket)| !ticket.complete)
        .filter_map(|(_, ticket)| ticket.put.map(|put| put.blob))
        .collect())
}

fn ticket(evals: &Evals, id: &str) -> Result<Ticket, ServiceError> {
    evals.parts.store.get(UPLOADS, id)?.ok_or_else(unknown)
}

fn unknown() -> ServiceError {
    ServiceError::NotFound("upload not found".to_owned())
}

/// A day after its URL ended an upload is forgotten, with its bytes if they became no document.
fn forget_expired(evals: &Evals) -> Result<(), ServiceError> {
    let now = evals.parts.clock.unix_s();
    for (id, ticket) in evals.parts.store.all::<Ticket>(UPLOADS)? {
        if now.saturating_sub(ticket.expires_at) > 24 * 60 * 60 {
            evals.parts.store.remove(UPLOADS, &id)?;
            if let Some(put) = ticket.put.filter(|_| !ticket.complete) {
                evals.blobs.remove(&put.blob).map_err(failed)?;
            }
        }
    }
    Ok(())
}

fn url(evals: &Evals, id: &str, ticket: &Ticket) -> Result<String, ServiceError> {
    let address = evals.address.get().ok_or_else(|| {
        tracing::error!("the sandbox does not know where it listens");
        ServiceError::Internal
    })?;
    let size = ticket.size.unwrap_or(DOCUMENT_BYTES_MAX);
    let mime = &ticket.place.mime;
    let message = message(id, ticket.expires_at, size, mime);
    let signature = hmac::sign(&signing_key(evals)?, message.as_bytes());
    Ok(format!(
        "http://{address}{STORAGE}{id}?expires={}&size={size}&type={}&signature={}",
        ticket.expires_at,
        mime.replace('+', "%2B"),
        hex(signature.as_ref())
    ))
}

fn message(id: &str, expires: i64, size: u64, mime: &str) -> String {
    format!("PUT\n{STORAGE}{id}\n{expires}\n{size}\n{mime}")
}

fn signing_key(evals: &Evals) -> Result<hmac::Key, ServiceError> {
    Ok(hmac::Key::new(HMAC_SHA256, &secret(evals)?))
}

/// Made once and kept, so that a URL outlives a restart.
fn secret(evals: &Evals) -> Result<[u8; 32], ServiceError> {
    const ID: &str = "signing";
    if let Some(secret) = evals.parts.store.get(SECRETS, ID)? {
        return Ok(secret);
    }
    // An id has 74 bits that nobody foresees; four of them are plenty for one key.
    let parts: Vec<String> = (0..4).map(|_| evals.parts.clock.new_id()).collect();
    let secret = sha256(parts.concat().as_bytes());
    evals.parts.store.put(SECRETS, ID, &secret)?;
    Ok(secret)
}

/// Removes the bytes that no document and no upload names: what a kill left behind.
pub fn sweep(evals: &Evals) -> Result<(), ServiceError> {
    let documents = evals.parts.store.all::<Document>(DOCUMENTS)?;
    let kept = documents
        .into_iter()
        .map(|(_, document)| document.blob)
        .chain(blobs(evals)?)
        .collect();
    evals.blobs.sweep(&kept).map_err(failed)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2).map(std::str::from_utf8);
    pairs
        .map(|pair| u8::from_str_radix(pair.ok()?, 16).ok())
        .collect()
}
