//! Names of headers and SSE comments. The service puts its own name into them, so that name is
//! config (`service_name`); everything else is a constant.
//!
//! Promise: each literal of the interface is spelled once on this side, here, and occurs verbatim
//! in docs/interface.md.

use http::{HeaderMap, HeaderName};
use thiserror::Error;

/// The app's or bursar's key for one logical request.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// `true` when the answer is a stored replay; absent otherwise.
pub const IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
/// The service's diagnostic id of one answer.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Id of the ledger entry, on every answer.
pub const X_BURSAR_ENTRY: HeaderName = HeaderName::from_static("x-bursar-entry");
/// Id of the undelivered entry whose purchase this answer is.
pub const X_BURSAR_ADOPTED: HeaderName = HeaderName::from_static("x-bursar-adopted");
/// Code of an error made by bursar.
pub const X_BURSAR_ERROR: HeaderName = HeaderName::from_static("x-bursar-error");
/// Milliseconds that the request waited here for its turn.
pub const X_BURSAR_QUEUE_MS: HeaderName = HeaderName::from_static("x-bursar-queue-ms");
/// Ids of the bursars that a request has passed; it goes to near addresses only (`proxy/hops`).
pub const X_BURSAR_VIA: HeaderName = HeaderName::from_static("x-bursar-via");
/// What the app wants its spending summed by ([`crate::protocol::tags`]); it does not leave this machine.
pub const X_BURSAR_TAGS: HeaderName = HeaderName::from_static("x-bursar-tags");
/// Whether an SDK is to retry by itself (`true`, `false`).
pub const X_SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// Wait in milliseconds; finer than `Retry-After`.
pub const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
/// Number of retries an OpenAI SDK has made of this request.
pub const X_STAINLESS_RETRY_COUNT: HeaderName = HeaderName::from_static("x-stainless-retry-count");
/// Seconds an OpenAI SDK waits for bytes (Python).
pub const X_STAINLESS_READ_TIMEOUT: HeaderName =
    HeaderName::from_static("x-stainless-read-timeout");
/// Seconds an OpenAI SDK waits for the answer (Node).
pub const X_STAINLESS_TIMEOUT: HeaderName = HeaderName::from_static("x-stainless-timeout");

/// Headers that programs name their sessions in, in the order in which they count: Claude Code's, then Codex's
/// in its several spellings. [`ServiceNames::session`] comes before them.
pub const SESSIONS: [HeaderName; 4] = [
    HeaderName::from_static("x-claude-code-session-id"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("conversation_id"),
];

/// Longest accepted service name, in characters.
const SERVICE_NAME_CHARS_MAX: usize = 32;

/// The names that hold the service's own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceNames {
    /// `X-Service-Billed`: micro-USD integer.
    pub billed: HeaderName,
    /// `X-Service-Frontier-Would-Have-Cost`: micro-USD integer, an estimate, never billed money.
    pub would_have_cost: HeaderName,
    /// `X-Service-Served-By`.
    pub served_by: HeaderName,
    /// `X-Service-Specialist`.
    pub specialist: HeaderName,
    /// `X-Service-Escalated`.
    pub escalated: HeaderName,
    /// `X-Service-Route-Version`.
    pub route_version: HeaderName,
    /// `X-Service-Input-Required`.
    pub input_required: HeaderName,
    /// `X-Service-Session`, a request header; part of what a key is bound to.
    pub session: HeaderName,
    /// `X-Service-RTE-Query`, a request header; part of what a key is bound to.
    pub rte_query: HeaderName,
    /// `service-billed-micro-usd`, the name in a stream's comment line.
    pub comment_billed: Box<[u8]>,
    /// `service-frontier-would-have-cost-micro-usd`.
    pub comment_would_have_cost: Box<[u8]>,
    /// `service-served-by`.
    pub comment_served_by: Box<[u8]>,
    /// `service-route-version`.
    pub comment_route_version: Box<[u8]>,
}

/// Why a service name cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NamesError {
    #[error(
        "a service name is 1 to 32 lower-case letters, digits and hyphens, the first of them a letter"
    )]
    Grammar,
}

// === impl ServiceNames ===

impl ServiceNames {
    /// `service_name` as header names have it: `[a-z][a-z0-9-]{0,31}`.
    pub fn new(service_name: &str) -> Result<Self, NamesError> {
        if !is_service_name(service_name) {
            return Err(NamesError::Grammar);
        }
        let header = |rest: &str| {
            HeaderName::try_from(format!("x-{service_name}-{rest}"))
                .map_err(|_| NamesError::Grammar)
        };
        let comment = |rest: &str| Box::<[u8]>::from(format!("{service_name}-{rest}").into_bytes());
        Ok(Self {
            billed: header("billed")?,
            would_have_cost: header("frontier-would-have-cost")?,
            served_by: header("served-by")?,
            specialist: header("specialist")?,
            escalated: header("escalated")?,
            route_version: header("route-version")?,
            input_required: header("input-required")?,
            session: header("session")?,
            rte_query: header("rte-query")?,
            comment_billed: comment("billed-micro-usd"),
            comment_would_have_cost: comment("frontier-would-have-cost-micro-usd"),
            comment_served_by: comment("served-by"),
            comment_route_version: comment("route-version"),
        })
    }
}

/// The members of a field that is a list (RFC 9110, 5.6.1), over all its lines; empty ones are among them.
pub fn members<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let values = headers.get_all(name).into_iter();
    values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
}

fn is_service_name(name: &str) -> bool {
    name.len() <= SERVICE_NAME_CHARS_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

#[cfg(test)]
mod tests;
