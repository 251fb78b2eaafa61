//! Documents of rows: inline, and by a signed URL; and the storage that the URL leads to.
//!
//! Promise: the bytes that a row gets are those that were sent; the shapes, which the interface does not
//! show, are marked.

use super::in_path::InPath;
use crate::{
    error::{RouteResult, ServiceError, assumed_json},
    evals::{DocumentPlace, SignedUrl, documents, uploads},
    fields::Fields,
    form::Form,
    inbound::Inbound,
    spec,
    state::State,
};
use axum::{
    Extension,
    body::Body,
    extract::{Query, State as Shared, rejection::QueryRejection},
    response::Response,
};
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;
use serde::Serialize;
use serde_json::json;
use std::{sync::Arc, time::Duration};

/// What is read of a file that is refused, and thrown away.
const DISCARD_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long a file may take to arrive.
const READ_MAX: Duration = Duration::from_secs(5 * 60);

/// Interface, Document upload to a row: "multipart: `file` part plus form fields `idx`, `field_name`, `mime`".
pub async fn attach(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
    headers: HeaderMap,
) -> RouteResult {
    let set = state.evals.set(&inbound.org, &id)?;
    let form = Form::read(&headers, inbound.body.clone(), "eval-form").await?;
    let idx = form.required_text("idx")?;
    let place = DocumentPlace {
        idx: idx
            .parse()
            .map_err(|_| ServiceError::invalid("idx must be an integer from 0"))?,
        field_name: form.required_text("field_name")?,
        mime: form.required_text("mime")?,
    };
    let file = form.file("file")?;
    // Interface, Limits: "under 5 MiB inline; larger via signed URL".
    if file.len() >= spec::INLINE_BLOB_BYTES {
        return Err(ServiceError::BlobTooLarge(
            "file: 5 MiB or more; use blob-upload-url and put the file to the URL it gives"
                .to_owned(),
        ));
    }
    inbound.fault.work(&state.clock, &state.holds).await;
    let document = documents::attach(&state.evals, &inbound.org, &set, place, file).await?;
    Ok(assumed(document.view()))
}

pub async fn upload_url(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
) -> RouteResult {
    let set = state.evals.set(&inbound.org, &id)?;
    let fields = Fields::parse(&inbound.body)?;
    let place = DocumentPlace {
        idx: usize::try_from(fields.required_count("idx")?).unwrap_or(usize::MAX),
        field_name: fields.name("field_name")?,
        mime: fields.name("mime")?,
    };
    let size = fields.count("size")?;
    inbound.fault.work(&state.clock, &state.holds).await;
    let announced = uploads::announce(&state.evals, &inbound.org, &set, place, size)?;
    Ok(assumed(announced))
}

pub async fn upload_complete(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
    InPath(id): InPath<String>,
) -> RouteResult {
    state.evals.set(&inbound.org, &id)?;
    let upload = Fields::parse(&inbound.body)?.name("upload_id")?;
    inbound.fault.work(&state.clock, &state.holds).await;
    let document = uploads::complete(&state.evals, &inbound.org, &id, &upload)?;
    Ok(assumed(document.view()))
}

/// The storage: no bearer key, the URL's signature is the right.
pub async fn store(
    Shared(state): Shared<Arc<State>>,
    InPath(id): InPath<String>,
    signed: Result<Query<SignedUrl>, QueryRejection>,
    headers: HeaderMap,
    mut body: Body,
) -> RouteResult {
    let arrived = arrive(&state, &id, signed.ok(), &headers, &mut body);
    let bytes = tokio::select! {
        bytes = arrived => bytes,
        () = state.clock.sleep(READ_MAX) => Err(broke_off()),
    };
    match bytes {
        Ok(bytes) => {
            uploads::put(&state.evals, &id, bytes).await?;
            Ok(assumed(json!({})))
        }
        Err(refused) => {
            // Only then does a client that is still sending get to read the answer.
            if !headers.contains_key(header::EXPECT) {
                tokio::select! {
                    () = discard(body) => {}
                    () = state.clock.sleep(READ_MAX) => {}
                }
            }
            Err(refused)
        }
    }
}

async fn arrive(
    state: &State,
    id: &str,
    signed: Option<Query<SignedUrl>>,
    headers: &HeaderMap,
    body: &mut Body,
) -> Result<Bytes, ServiceError> {
    let Query(signed) = signed.ok_or(ServiceError::BadSignature)?;
    let content_type = headers
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok());
    uploads::admit(&state.evals, id, &signed, content_type)?;
    let _turn = state.evals.upload_turn().await?;
    whole(body, headers, uploads::bytes_max(&signed)).await
}

async fn discard(mut body: Body) {
    let mut length = 0_usize;
    while let Some(Ok(frame)) = body.frame().await {
        length = length.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        if length > DISCARD_BYTES_MAX {
            return;
        }
    }
}

/// The whole body, or 413 over what was signed.
async fn whole(body: &mut Body, headers: &HeaderMap, most: usize) -> Result<Bytes, ServiceError> {
    let too_large = || ServiceError::BlobTooLarge(format!("the URL is signed for {most} bytes"));
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > most) {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| broke_off())?;
        if let Ok(more) = frame.into_data() {
            if bytes.len().saturating_add(more.len()) > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(&more);
        }
    }
    Ok(bytes.freeze())
}

fn broke_off() -> ServiceError {
    ServiceError::BadRequest("the request body broke off".to_owned())
}

fn assumed(answer: impl Serialize) -> Response {
    assumed_json(answer, &["eval-documents"])
}
