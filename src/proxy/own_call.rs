//! A call that bursar makes for itself: a free GET of the service, with the organization's key, on the
//! same connections and under the same limits as the apps' requests.
//!
//! Promise: one attempt, no redirect followed, bounded in time and bytes; it makes no entry, because
//! only routes that cost nothing are asked for.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use http::header::DATE;
use http::{HeaderMap, Method, StatusCode};
use tokio::time::timeout;
use uuid::Uuid;

use super::dispatch::words::attempt_result;
use super::hops::Hops;
use super::request_head;
use crate::clock::{SharedClock, millis};
use crate::config::Config;
use crate::ledger::entry::{AttemptEnd, EntryId};
use crate::protocol::Operation;
use crate::protocol::routes::{Costs, Route};
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::lost::Lost;
use crate::proxy::settings::Settings;
use crate::proxy::upstream::connections::Connections;
use crate::proxy::upstream::exchange;
use crate::proxy::upstream::exchange::WHOLE_BYTES_MAX;
use crate::proxy::upstream::outgoing::Outgoing;
use crate::proxy::upstream::trust::Authorities;

/// From the connection to the last byte. These answers are small and ready.
const CALL_MAX: Duration = Duration::from_secs(30);

/// Largest answer that is read. A run's results are a few hundred bytes each.
const ANSWER_BYTES_MAX: usize = 4 << 20;

/// What is said of a key that the service refuses.
pub const KEY_REFUSED: &str = "it does not take the key";

/// An answer, whole.
pub struct OwnAnswer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// Why there is no answer. In words that hold no key and no bytes of the service.
#[derive(Debug, thiserror::Error)]
pub enum OwnCallError {
    #[error("the request cannot be written")]
    Head,
    #[error("the service was not reached: {0}")]
    Unreached(String),
    #[error("the service's answer broke off, or is larger than {ANSWER_BYTES_MAX} bytes")]
    Body,
    #[error("the service did not answer within {} s", CALL_MAX.as_secs())]
    TooSlow,
}

// === impl OwnAnswer ===

impl OwnAnswer {
    /// What the service's clock said, in Unix milliseconds, where the answer has it.
    pub fn date_ms(&self) -> Option<u64> {
        let text = self.headers.get(DATE)?.to_str().ok()?;
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(UNIX_EPOCH).ok().map(millis)
    }
}

/// Asks for a free route of the table; `id` stands where its pattern has one.
pub async fn get(
    gateway: &Gateway,
    settings: &Settings,
    route: &Route,
    id: &str,
) -> Result<OwnAnswer, OwnCallError> {
    let (end, answer) = ask(settings, route, id).await;
    let status = answer.as_ref().ok().map(|answer| answer.status);
    let result = attempt_result(end, status);
    gateway.metrics.attempt(route.operation, result);
    if let Some(status) = status {
        settings.key_record.heard(status, route.is_metered());
    }
    answer
}

/// What the service answers to `GET /v1/models` with the configuration's key, where no gateway is: for
/// callers that want to know whether it takes the key.
pub async fn models(
    config: Config,
    authorities: Authorities,
    clock: &SharedClock,
) -> Result<OwnAnswer, OwnCallError> {
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| OwnCallError::Head)?;
    let hops = Hops::new(EntryId(Uuid::from_bytes(id)));
    let connections = Arc::new(Connections::trusting(authorities));
    let settings = Settings::new(Arc::new(config), clock, connections, hops);
    let mut rows = settings.table.rows().iter();
    let route = rows.find(|route| route.operation == Operation::Models);
    let route = route.ok_or(OwnCallError::Head)?;
    ask(&settings, route, "").await.1
}

async fn ask(
    settings: &Settings,
    route: &Route,
    id: &str,
) -> (AttemptEnd, Result<OwnAnswer, OwnCallError>) {
    debug_assert!(
        route.costs == Costs::Nothing && route.method == Method::GET,
        "a free GET only: {}",
        route.pattern
    );
    let target = route.pattern.replace("{}", id);
    let Ok(header) = request_head::own_head(settings, &target) else {
        return (AttemptEnd::NotSent, Err(OwnCallError::Head));
    };
    let outgoing = Outgoing {
        header,
        authorization: settings.key.header_value(),
        body: Bytes::new(),
        fresh_connection: false,
        read_timeout: CALL_MAX,
        whole_bytes_max: WHOLE_BYTES_MAX,
        whole_copies: 1,
        echoed_bytes: 0,
    };
    let called = timeout(CALL_MAX, call(settings, &outgoing)).await;
    called.unwrap_or((AttemptEnd::NoHead, Err(OwnCallError::TooSlow)))
}

async fn call(
    settings: &Settings,
    outgoing: &Outgoing,
) -> (AttemptEnd, Result<OwnAnswer, OwnCallError>) {
    let attempted =
        exchange::attempt(&settings.connections, &settings.peers, outgoing, false).await;
    let mut answering = match attempted {
        Ok(answering) => answering,
        Err(failed) => {
            let end = match failed.lost {
                Lost::NotSent(_) => AttemptEnd::NotSent,
                Lost::NoHead(_) | Lost::StaleConnection => AttemptEnd::NoHead,
            };
            let cause = failed.lost.cause().as_str().to_owned();
            let words = failed.words.unwrap_or(cause);
            return (end, Err(OwnCallError::Unreached(words)));
        }
    };
    let head = answering.head().clone();
    let Some(body) = answering.read_body(ANSWER_BYTES_MAX).await else {
        answering.abandon().await;
        return (AttemptEnd::Broken, Err(OwnCallError::Body));
    };
    answering.release(&settings.connections).await;
    let end = if head.status.is_success() {
        AttemptEnd::Answered
    } else {
        AttemptEnd::Refused
    };
    let answer = OwnAnswer {
        status: head.status,
        headers: head.headers.clone(),
        body,
    };
    (end, Ok(answer))
}

/// The service's `/v1/auto/metrics`, or in words why it is not there.
pub async fn auto_metrics(gateway: Arc<Gateway>) -> Result<OwnAnswer, String> {
    let settings = gateway.settings.load_full();
    let mut rows = settings.table.rows().iter();
    let route = rows.find(|route| route.operation == Operation::AutoMetrics);
    let Some(route) = route else {
        return Err("the route table has no metrics".to_owned());
    };
    let answer = get(&gateway, &settings, route, "").await;
    let answer = answer.map_err(|error| error.to_string())?;
    if answer.status == StatusCode::OK {
        return Ok(answer);
    }
    let status = answer.status.as_u16();
    Err(match status {
        401 | 403 => format!("the service answered {status}: {KEY_REFUSED}"),
        404 => "the service answered 404: it has no /v1/auto/metrics".to_owned(),
        _ => format!("the service answered {status} to GET /v1/auto/metrics; try again"),
    })
}
