//! The signed way in: a URL that one document may be put to, for a while.
//!
//! Interface, Document upload to a row: "`blob-upload-url`, then a PUT of the bytes directly to storage at
//! the returned signed URL, then `blob-upload-complete`".
//!
//! Assumed (eval-documents): the URL holds for 15 minutes; HMAC-SHA256 over method, path, expiry, size and
//! type; its host is the sandbox's own listen address, for a Host header is the client's word.
//! Promise: no byte is kept before the signature holds; what is stored is no larger than what was signed.

use super::{
    Created, SECRETS, UPLOADS,
    documents::{self, DOCUMENT_BYTES_MAX, Document, Place},
    sets,
};
use crate::{error::ServiceError, state::State};
use bytes::Bytes;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const HOLDS_S: i64 = 15 * 60;
/// Uploads that are not complete, per organization. Assumed (eval-limits).
const OPEN_MAX: usize = 1_000;
const STORAGE: &str = "/storage/";

/// An upload that was announced.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ticket {
    pub org: String,
    pub eval_set_id: String,
    pub place: Place,
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
    state: &State,
    org: &str,
    set: &sets::EvalSet,
    place: Place,
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
    let _gate = state.evals.gate.lock();
    documents::check_room(state, org, size.unwrap_or(0))?;
    forget_expired(state)?;
    let open = state
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
    let id = format!("up_{}", state.clock.new_id());
    let ticket = Ticket {
        org: org.to_owned(),
        eval_set_id: set.id.clone(),
        expires_at: state.clock.unix_s().saturating_add(HOLDS_S),
        created: Created::now(state),
        put: None,
        complete: false,
        place,
        size,
    };
    let url = url(state, &id, &ticket)?;
    state.store.put(UPLOADS, &id, &ticket)?;
    Ok(json!({
        "url": url,
        "method": "PUT",
        "headers": {"Content-Type": ticket.place.mime},
        "expires_at": ticket.expires_at,
        "upload_id": id,
    }))
}

/// Checks a signed URL before its body is read; the ticket it stands for.
pub fn admit(
    state: &State,
    id: &str,
    signed: &SignedUrl,
    content_type: Option<&str>,
) -> Result<Ticket, ServiceError> {
    let message = message(id, signed.expires, signed.size, &signed.mime);
    let given = unhex(&signed.signature).ok_or(ServiceError::BadSignature)?;
    mac(state, &message)?
        .verify_slice(&given)
        .map_err(|_| ServiceError::BadSignature)?;
    if state.clock.unix_s() >= signed.expires {
        return Err(ServiceError::SignatureExpired);
    }
    if content_type != Some(signed.mime.as_str()) {
        return Err(ServiceError::BadSignature);
    }
    let ticket = find(state, id)?;
    if ticket.complete {
        return Err(ServiceError::UploadState("the upload is complete already"));
    }
    Ok(ticket)
}

/// Stores the bytes that were put to a signed URL; a second PUT goes over the first.
pub async fn put(state: &State, id: &str, bytes: Bytes) -> Result<(), ServiceError> {
    if bytes.is_empty() {
        return Err(ServiceError::invalid("the file must not be empty"));
    }
    let put = Put {
        blob: state.clock.new_id(),
        size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
        sha256: crate::idempotency::hex(&Sha256::digest(&bytes)),
    };
    let blobs = &state.evals.blobs;
    blobs.put(&put.blob, bytes).await.map_err(super::failed)?;
    let old = {
        let _gate = state.evals.gate.lock();
        let mut ticket = find(state, id)?;
        if ticket.complete {
            Err(ServiceError::UploadState("the upload is complete already"))
        } else {
            let before = ticket.put.replace(put.clone());
            state.store.put(UPLOADS, id, &ticket)?;
            Ok(before)
        }
    };
    match old {
        Ok(Some(before)) => blobs.remove(&before.blob).map_err(super::failed),
        Ok(None) => Ok(()),
        Err(error) => {
            blobs.remove(&put.blob).map_err(super::failed)?;
            Err(error)
        }
    }
}

/// Makes the uploaded bytes the row's document. Asked again, it tells the same as long as the document is there.
pub fn complete(state: &State, org: &str, set: &str, id: &str) -> Result<Document, ServiceError> {
    let ticket = find(state, id)?;
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
        let now = documents::at(state, set, &document.place)?;
        if now.is_none_or(|now| now.blob != document.blob) {
            return Err(ServiceError::UploadState(
                "the upload was completed, and another document has taken its place since",
            ));
        }
    } else {
        documents::write(state, &document)?;
        let done = Ticket {
            complete: true,
            ..ticket
        };
        state.store.put(UPLOADS, id, &done)?;
    }
    Ok(document)
}

/// How many bytes a PUT to this URL may have.
pub fn bytes_max(signed: &SignedUrl) -> usize {
    usize::try_from(signed.size.min(DOCUMENT_BYTES_MAX)).unwrap_or(usize::MAX)
}

/// The blobs of uploads that are not documents yet.
pub fn blobs(state: &State) -> Result<Vec<String>, ServiceError> {
    let tickets = state.store.all::<Ticket>(UPLOADS)?;
    Ok(tickets
        .into_iter()
        .filter(|(_, ticket)| !ticket.complete)
        .filter_map(|(_, ticket)| ticket.put.map(|put| put.blob))
        .collect())
}

fn find(state: &State, id: &str) -> Result<Ticket, ServiceError> {
    state.store.get(UPLOADS, id)?.ok_or_else(unknown)
}

fn unknown() -> ServiceError {
    ServiceError::NotFound("upload not found".to_owned())
}

/// A day after its URL ended an upload is forgotten, with the bytes nobody made a document of.
fn forget_expired(state: &State) -> Result<(), ServiceError> {
    let now = state.clock.unix_s();
    for (id, ticket) in state.store.all::<Ticket>(UPLOADS)? {
        if now.saturating_sub(ticket.expires_at) > 24 * 60 * 60 {
            state.store.remove(UPLOADS, &id)?;
            if let Some(put) = ticket.put.filter(|_| !ticket.complete) {
                state.evals.blobs.remove(&put.blob).map_err(super::failed)?;
            }
        }
    }
    Ok(())
}

fn url(state: &State, id: &str, ticket: &Ticket) -> Result<String, ServiceError> {
    let address = state.evals.address.get().ok_or_else(|| {
        tracing::error!("the sandbox does not know where it listens");
        ServiceError::Internal
    })?;
    let size = ticket.size.unwrap_or(DOCUMENT_BYTES_MAX);
    let mime = &ticket.place.mime;
    let signature = mac(state, &message(id, ticket.expires_at, size, mime))?
        .finalize()
        .into_bytes();
    Ok(format!(
        "http://{address}{STORAGE}{id}?expires={}&size={size}&type={}&signature={}",
        ticket.expires_at,
        mime.replace('+', "%2B"),
        crate::idempotency::hex(&signature)
    ))
}

fn message(id: &str, expires: i64, size: u64, mime: &str) -> String {
    format!("PUT\n{STORAGE}{id}\n{expires}\n{size}\n{mime}")
}

fn mac(state: &State, message: &str) -> Result<Hmac<Sha256>, ServiceError> {
    let mut mac = Hmac::new_from_slice(&secret(state)?).map_err(|_| ServiceError::Internal)?;
    mac.update(message.as_bytes());
    Ok(mac)
}

/// Made once and kept, so that a URL outlives a restart.
fn secret(state: &State) -> Result<[u8; 32], ServiceError> {
    const ID: &str = "signing";
    if let Some(secret) = state.store.get(SECRETS, ID)? {
        return Ok(secret);
    }
    // An id has 74 bits from the system's random source; four of them are plenty for one key.
    let parts: Vec<String> = (0..4).map(|_| state.clock.new_id()).collect();
    let secret: [u8; 32] = Sha256::digest(parts.concat()).into();
    state.store.put(SECRETS, ID, &secret)?;
    Ok(secret)
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .chars()
        .map(|c| c.to_digit(16).and_then(|d| u8::try_from(d).ok()))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs.remainder().is_empty().then(|| {
        pairs
            .map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | d))
            .collect()
    })
}
