//! Answers that bursar makes itself: refusals, the greeting, preflights.

use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, ALLOW,
    CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
};
use http::{HeaderName, HeaderValue, StatusCode};
use pingora::http::ResponseHeader;

use crate::clock::millis;
use crate::ledger::entry::EntryId;
use crate::protocol::Dialect;
use crate::protocol::names::{
    X_BURSAR_ADOPTED, X_BURSAR_ENTRY, X_BURSAR_ERROR, X_BURSAR_QUEUE_MS, X_SHOULD_RETRY,
};
use crate::proxy::door::admit::{AllowedOrigin, LocalAnswer};
use crate::proxy::downstream::Downstream;
use crate::proxy::refuse::Refusal;
use crate::proxy::upstream::heads::HeadError;

/// What `GET /` says.
const GREETING: &str =
    "bursar: point your OpenAI base URL at this address plus /v1 or /agent/v1.\n";

/// How long a browser may remember a preflight's answer.
const PREFLIGHT_AGE_S: &str = "600";

/// Head and body of a refusal.
pub fn refusal_answer(
    refusal: &Refusal,
    dialect: Dialect,
) -> Result<(ResponseHeader, Bytes), HeadError> {
    let body = refusal.body(dialect);
    let mut head = own_head(refusal.status(), "application/json", body.len())?;
    set(
        &mut head,
        &X_BURSAR_ERROR,
        HeaderValue::from_static(refusal.code.as_str()),
    )?;
    if let Some(should_retry) = refusal.should_retry() {
        let word = if should_retry { "true" } else { "false" };
        set(&mut head, &X_SHOULD_RETRY, HeaderValue::from_static(word))?;
    }
    let of_code = refusal.code.retry_after_s().map(u64::from);
    if let Some(seconds) = refusal.retry_after_s.or(of_code) {
        set(&mut head, &RETRY_AFTER, HeaderValue::from(seconds))?;
    }
    if let Some(queued) = refusal.queued {
        set(
            &mut head,
            &X_BURSAR_QUEUE_MS,
            HeaderValue::from(millis(queued)),
        )?;
    }
    if refusal.status() == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        set(&mut head, &WWW_AUTHENTICATE, scheme)?;
    }
    if let Some(allow) = &refusal.allow {
        let allow = HeaderValue::from_str(allow).map_err(|_| HeadError)?;
        set(&mut head, &ALLOW, allow)?;
    }
    Ok((head, body))
}

/// Adds what bursar says about an answer.
pub fn mark(
    head: &mut ResponseHeader,
    entry: EntryId,
    adopted: Option<EntryId>,
    origin: Option<&AllowedOrigin>,
) -> Result<(), HeadError> {
    let id = |id: EntryId| HeaderValue::from_str(&id.0.to_string()).map_err(|_| HeadError);
    let mut set = |name: HeaderName, value: HeaderValue| {
        head.insert_header(name, value).map_err(|_| HeadError)
    };
    set(X_BURSAR_ENTRY, id(entry)?)?;
    if let Some(adopted) = adopted {
        set(X_BURSAR_ADOPTED, id(adopted)?)?;
    }
    if let Some(AllowedOrigin(origin)) = origin {
        set(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())?;
        set(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"))?;
        set(VARY, HeaderValue::from_static("Origin"))?;
    }
    Ok(())
}

/// Writes a refusal and says that the connection ends with it; true when the whole of it went out. `origin`: whose page
/// may read it.
pub async fn send_refusal(
    mut downstream: Downstream,
    refusal: &Refusal,
    entry: EntryId,
    origin: Option<&AllowedOrigin>,
) -> (Downstream, bool) {
    downstream.ends_connection();
    let written = give_refusal(&mut downstream, refusal, entry, None, origin).await;
    (downstream, written)
}

/// Writes a refusal to a request whose body was read; true when the connection can be kept. `adopted`: the
/// request that this one had joined.
pub async fn give_refusal(
    downstream: &mut Downstream,
    refusal: &Refusal,
    entry: EntryId,
    adopted: Option<EntryId>,
    origin: Option<&AllowedOrigin>,
) -> bool {
    if refusal.code.ends_connection() {
        downstream.ends_connection();
    }
    let answer = refusal_answer(refusal, downstream.dialect()).and_then(|(mut head, body)| {
        mark(&mut head, entry, adopted, origin)?;
        Ok((head, body))
    });
    match answer {
        Ok((head, body)) => send(downstream, head, body).await,
        Err(HeadError) => false,
    }
}

/// Writes an answer that needs no upstream.
pub async fn send_local(
    downstream: &mut Downstream,
    answer: &LocalAnswer,
    entry: EntryId,
) -> (u16, bool) {
    let asked = downstream
        .head()
        .headers
        .get(ACCESS_CONTROL_REQUEST_HEADERS)
        .cloned();
    let built = match answer {
        LocalAnswer::Greeting => own_head(StatusCode::OK, "text/plain", GREETING.len())
            .map(|head| (head, Bytes::from_static(GREETING.as_bytes()))),
        LocalAnswer::NoContent => {
            bare_head(StatusCode::NO_CONTENT).map(|head| (head, Bytes::new()))
        }
        LocalAnswer::Preflight(origin) => {
            preflight_head(origin, asked).map(|head| (head, Bytes::new()))
        }
    };
    let built = built.and_then(|(mut head, body)| {
        mark(&mut head, entry, None, None)?;
        Ok((head, body))
    });
    match built {
        Ok((head, body)) => {
            let status = head.status.as_u16();
            (status, send(downstream, head, body).await)
        }
        Err(HeadError) => (500, false),
    }
}

async fn send(downstream: &mut Downstream, head: ResponseHeader, body: Bytes) -> bool {
    let bodyless = downstream.is_bodyless(&head);
    if downstream.write_head(&head).is_err() {
        return false;
    }
    if !bodyless && downstream.write_chunk(body).await.is_err() {
        return false;
    }
    downstream.finish().await.is_ok()
}

fn preflight_head(
    AllowedOrigin(origin): &AllowedOrigin,
    asked: Option<HeaderValue>,
) -> Result<ResponseHeader, HeadError> {
    let mut head = bare_head(StatusCode::NO_CONTENT)?;
    set(&mut head, &ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone())?;
    set(
        &mut head,
        &ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST, DELETE"),
    )?;
    if let Some(asked) = asked {
        // `*` would not cover Authorization; SDKs ask for about ten names.
        set(&mut head, &ACCESS_CONTROL_ALLOW_HEADERS, asked)?;
    }
    set(
        &mut head,
        &ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(PREFLIGHT_AGE_S),
    )?;
    set(&mut head, &VARY, HeaderValue::from_static("Origin"))?;
    Ok(head)
}

fn own_head(
    status: StatusCode,
    content_type: &'static str,
    body_bytes: usize,
) -> Result<ResponseHeader, HeadError> {
    let mut head = bare_head(status)?;
    set(
        &mut head,
        &CONTENT_TYPE,
        HeaderValue::from_static(content_type),
    )?;
    set(&mut head, &CONTENT_LENGTH, HeaderValue::from(body_bytes))?;
    Ok(head)
}

fn bare_head(status: StatusCode) -> Result<ResponseHeader, HeadError> {
    let mut head = ResponseHeader::build_no_case(status, None).map_err(|_| HeadError)?;
    set(
        &mut head,
        &CACHE_CONTROL,
        HeaderValue::from_static("no-store"),
    )?;
    Ok(head)
}

fn set(
    head: &mut ResponseHeader,
    name: &http::HeaderName,
    value: HeaderValue,
) -> Result<(), HeadError> {
    head.insert_header(name.clone(), value)
        .map_err(|_| HeadError)
}
