//! Paths of the admin listener and what each answers.
//!
//! Promise: every answer is whole, is not cached, and names no secret: what is shown is the ledger,
//! the metrics and the addresses.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use serde::Serialize;
use serde_json::json;

use super::change::{self, AppsDocument, ChangeRoute, Made, Via};
use super::documents::{
    ErrorDocument, FleetStatus, LedgerStatus, ReceiptsDocument, SpendDocument, SpendQuestion,
    StatusDocument,
};
use super::door::Browsed;
use super::explain::Explanation;
use super::failure::Failure;
use super::line::line;
use super::query::ReceiptsQuestion;
use super::reading::{read, read_in, turn};
use super::reconcile::{self, Figure, Reconciliation};
use super::runs::{self, RunBody};
use super::shared::Admin;
use super::{door, overview, page, query};
use crate::calendar;
use crate::config::ListenAddr;
use crate::ledger::LedgerError;
use crate::ledger::query::{
    Filter, FoundBy, Listing, Spend, compacted_until_ms, find, list, window,
};
use crate::ledger::reconcile::compare;
use crate::protocol::routes::{Lookup, RouteTable, anthropics};
use crate::protocol::{Dialect, translate};
use crate::telemetry::exposition;
use crate::telemetry::metrics::{ComparisonResult, Difference};

const TEXT: &str = "text/plain; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const SVG: &str = "image/svg+xml";

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

type Answer = Response<Either<Full<Bytes>, RunBody>>;

/// Answers one request.
/// `holds_run` is set when the answer is one that stays open.
pub async fn answer(
    admin: &Arc<Admin>,
    via: Via,
    holds_run: &AtomicBool,
    request: Request<Incoming>,
) -> Answer {
    let config = admin.config.load_full();
    let allowed = &config.listen.allowed_hosts;
    let change = ChangeRoute::of(request.uri().path()).filter(|_| via == Via::Owner);
    let may_change = change.is_some();
    let (method, path) = (request.method(), request.uri().path());
    let admitted = door::admit(method, path, request.headers(), allowed, may_change)
        .and_then(|()| door::check_target(request.uri()));
    let is_let_in = match &admitted {
        Ok(()) => true,
        Err(refused) => refused.status == StatusCode::METHOD_NOT_ALLOWED,
    };
    if is_let_in && is_for_apps(request.method(), request.uri().path()) {
        return elsewhere(admin, request.uri().path());
    }
    if let Err(refused) = admitted {
        let mut answer = plain(refused.status, refused.text);
        if refused.status == StatusCode::METHOD_NOT_ALLOWED {
            let headers = answer.headers_mut();
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        return answer;
    }
    if let Some(change) = change.filter(|_| request.method() == Method::POST) {
        return match change::make(admin, change, request, holds_run).await {
            Ok(Made::Document(text)) => document(StatusCode::OK, &text),
            Ok(Made::Run(body)) => {
                let mut answer = Response::new(Either::Right(body));
                let kind = HeaderValue::from_static("application/x-ndjson");
                answer.headers_mut().insert(CONTENT_TYPE, kind);
                answer
            }
            Err(error) => refused(error.status(), error.to_string()),
        };
    }
    let asked = request.uri().query().unwrap_or_default();
    if let Some(browsed) = Browsed::of(request.uri().path()) {
        return for_browser(admin, browsed).await;
    }
    let answered = match request.uri().path() {
        "/metrics" => return metrics(admin),
        "/healthz" => return verdict(admin.healthy().map(|()| None)),
        "/readyz" => return readyz(admin),
        "/api/spend" => written(api_spend(admin, asked).await),
        "/api/receipts" => written(api_receipts(admin, via, asked).await),
        "/api/explain" => written(api_explain(admin, via, asked).await),
        "/api/reconcile" => written(api_reconcile(admin, via, asked).await),
        "/api/caps" => written(query::nothing(asked).map(|()| admin.caps.document())),
        "/api/apps" => {
            written(query::nothing(asked).map(|()| AppsDocument::of(&admin.apps.table())))
        }
        "/api/line" => written(line(admin, asked)),
        "/api/status" => written(query::nothing(asked).map(|()| status(admin))),
        _ => {
            let text = "Here are /, /explain/ENTRY, /metrics, /healthz, /readyz, /api/status, /api/line, \
                        /api/spend, /api/receipts, /api/apps, /api/caps, /api/explain and /api/reconcile. Apps are \
                        served on the proxy's port.";
            return plain(StatusCode::NOT_FOUND, text);
        }
    };
    match answered {
        Ok(text) => document(StatusCode::OK, &text),
        Err(failure) => failed(&failure),
    }
}

/// Whether a path is one of an app whose base URL names this listener.
fn is_for_apps(method: &Method, path: &str) -> bool {
    static ROUTES: LazyLock<RouteTable> = LazyLock::new(|| RouteTable::new(&[]));
    let is_known = || {
        let with_base = format!("/v1{path}");
        !matches!(ROUTES.look_up(method, &with_base), Lookup::Unknown)
    };
    path.split('/').any(|part| part == "v1") || is_known()
}

/// Where apps go: a base URL that this machine reaches, else the sockets.
fn for_apps(proxy: &[ListenAddr]) -> String {
    runs::base_url(proxy).map_or_else(
        || {
            let sockets: Vec<String> = proxy.iter().map(ToString::to_string).collect();
            sockets.join(", ")
        },
        |base_url| format!("{base_url}/v1"),
    )
}

/// Both error shapes, as SDKs read them, or that of Anthropic's clients, with the address that apps go to.
fn elsewhere(admin: &Admin, path: &str) -> Answer {
    let address = for_apps(&admin.proxy);
    let detail = format!(
        "This is bursar's admin address, where receipts are read. The base URL of apps is {address} (or …/agent/v1; \
         ANTHROPIC_BASE_URL ends in /agent). Nothing was sent."
    );
    let error = json!({
        "detail": detail,
        "error": { "message": detail, "type": "bursar_error", "param": null, "code": "admin_address" },
    });
    if anthropics::is_path(path)
        && let Some(error) = translate::error(
            Dialect::Messages,
            StatusCode::NOT_FOUND.as_u16(),
            error.to_string().as_bytes(),
        )
    {
        return respond(StatusCode::NOT_FOUND, JSON, error);
    }
    document(StatusCode::NOT_FOUND, &error)
}

async fn for_browser(admin: &Arc<Admin>, browsed: Browsed<'_>) -> Answer {
    let page = |status, html: String| {
        let mut answer = respond(status, HTML, html);
        let policy = HeaderValue::from_static(page::POLICY);
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        answer
    };
    match browsed {
        Browsed::StatusPage => {
            let html = overview::status_page(admin, &status(admin)).await;
            page(StatusCode::OK, html)
        }
        Browsed::EntryPage(id) => match overview::entry_page(admin, id).await {
            Ok(Some(html)) => page(StatusCode::OK, html),
            Ok(None) => page(StatusCode::NOT_FOUND, page::entry::missing()),
            Err(failure) => failed(&failure),
        },
        Browsed::Icon => respond(StatusCode::OK, SVG, page::ICON),
    }
}

fn metrics(admin: &Admin) -> Answer {
    let (totals, health) = admin.ledger.totals_and_health();
    match admin.metrics.render(&totals, &health) {
        Ok(text) => respond(StatusCode::OK, exposition::CONTENT_TYPE, text),
        Err(error) => {
            tracing::error!(%error, "the metrics cannot be written");
            plain(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
        }
    }
}

fn verdict(verdict: Result<Option<String>, String>) -> Answer {
    match verdict {
        Ok(None) => plain(StatusCode::OK, "ok"),
        Ok(Some(wrong)) => plain(StatusCode::OK, &format!("degraded: {wrong}")),
        Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

/// A second line where any caller may spend; the first is what it always was.
fn readyz(admin: &Admin) -> Answer {
    const NOTE: &str = "anonymous: every process of this machine may spend without a token";
    match admin.ready() {
        Ok(wrong) if admin.apps.table().is_anonymous_allowed() => {
            let first = wrong.map_or_else(|| "ok".to_owned(), |wrong| format!("degraded: {wrong}"));
            plain(StatusCode::OK, &format!("{first}\n{NOTE}"))
        }
        verdict_of => verdict(verdict_of),
    }
}

async fn api_spend(admin: &Arc<Admin>, asked: &str) -> Result<SpendDocument, Failure> {
    let asked = query::spend(asked)?;
    let sums = read_spend(admin, asked.clone()).await?;
    Ok(SpendDocument::new(&asked, sums))
}

/// Only the daemon's user and root read Idempotency-Keys.
async fn api_receipts(
    admin: &Arc<Admin>,
    via: Via,
    asked: &str,
) -> Result<ReceiptsDocument, Failure> {
    let ReceiptsQuestion { filter, id_part } = query::receipts(asked)?;
    let listing = read(admin, move |state_dir| {
        let Some(part) = id_part else {
            let compacted_until_ms = compacted_until_ms(state_dir)?;
            return Ok(Some(ReceiptsDocument {
                compacted_until_ms,
                ..list(state_dir, &filter)?.into()
            }));
        };
        let found = find(state_dir, &part)?;
        match found.by {
            Some(FoundBy::Id | FoundBy::Tail | FoundBy::Prefix) if !found.candidates.is_empty() => {
                Ok(None)
            }
            Some(FoundBy::Id | FoundBy::Tail | FoundBy::Prefix) => {
                let id = found.entries.first().map(|entry| entry.id);
                Ok(Some(list(state_dir, &Filter { id, ..filter })?.into()))
            }
            // Of another kind: no id ends so.
            Some(FoundBy::Key | FoundBy::RequestId) | None => Ok(Some(Listing::default().into())),
        }
    });
    let receipts = listing.await?.ok_or_else(query::ambiguous_id)?;
    Ok(match via {
        Via::Owner => receipts,
        Via::Reader => receipts.without_keys(),
    })
}

/// The same holds for keys here.
async fn api_explain(admin: &Arc<Admin>, via: Via, asked: &str) -> Result<Explanation, Failure> {
    let text = query::explain(asked)?;
    let found = read(admin, move |state_dir| find(state_dir, &text)).await?;
    let explanation = Explanation::new(&found);
    Ok(match via {
        Via::Owner => explanation,
        Via::Reader => explanation.without_keys(),
    })
}

/// Holds the ledger against the service's own figure, or against one that was typed in.
async fn api_reconcile(
    admin: &Arc<Admin>,
    via: Via,
    asked: &str,
) -> Result<Reconciliation, Failure> {
    match query::reconcile(asked)? {
        Figure::Typed(invoice) => {
            let now_ms = admin.clock.wall_ms();
            read(admin, move |state_dir| invoice.compare(state_dir, now_ms)).await
        }
        Figure::Document if via == Via::Owner => Ok(ask_service(admin).await?.aged(Duration::ZERO)),
        Figure::Document => {
            let asking = Arc::clone(admin);
            let asked = admin
                .reconciled
                .ask(|| async move { ask_service(&asking).await.map_err(Arc::new) });
            let (reconciled, age) = asked.await.ok_or(Failure::Panicked)?;
            match &*reconciled {
                Ok(reconciliation) => Ok(reconciliation.clone().aged(age)),
                Err(failure) if matches!(**failure, Failure::Busy) => Err(Failure::Busy),
                Err(failure) => Err(Failure::Earlier {
                    failure: Arc::clone(failure),
                    age_s: age.as_secs(),
                }),
            }
        }
    }
}

/// The service's figure, and the ledger's of the same moment. The turn to read that comes first: a call whose
/// answer cannot be held against anything is not made.
pub(super) async fn ask_service(admin: &Arc<Admin>) -> Result<Reconciliation, Failure> {
    let asked = compare_with_service(admin).await;
    let result = match &asked {
        Ok(reconciliation) => reconciliation.conclusion.into(),
        Err(_) => ComparisonResult::Failed,
    };
    admin.metrics.evidence.reconciled(result);
    asked
}

async fn compare_with_service(admin: &Arc<Admin>) -> Result<Reconciliation, Failure> {
    let turn = turn(admin).await?;
    let figures = (admin.auto_metrics)().await.map_err(Failure::Service)?;
    let asked = admin.config.load().reconcile.clone();
    let billed = reconcile::spend_in(&figures.document, &asked.spend_field)?;
    let until_ms = admin.clock.wall_ms();
    let since_ms = until_ms.saturating_sub(asked.window_days.saturating_mul(DAY_MS));
    let window = read_in(turn, admin, move |state_dir| {
        window(state_dir, since_ms, until_ms)
    });
    let window = window.await?;
    let compared = compare(billed.into(), &window);
    admin.metrics.evidence.differs(Difference {
        micro_usd: compared.difference,
        unexplained: compared.unexplained,
        unbounded: compared.unbounded,
        at_ms: until_ms,
    });
    Ok(Reconciliation {
        service_clock_ms: figures.service_clock_ms,
        ..Reconciliation::new(&asked.spend_field, &window, &compared)
    })
}

fn status(admin: &Admin) -> StatusDocument {
    let (totals, health) = admin.ledger.totals_and_health();
    let config = admin.config.load();
    let uptime_ms = admin.clock.wall_ms().saturating_sub(admin.started_ms);
    let is_adding_up = health.is_adding_up;
    let status = StatusDocument {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started: calendar::rfc3339(admin.started_ms),
        uptime_s: uptime_ms / 1000,
        draining: admin.draining.load(Ordering::Relaxed),
        in_flight: (admin.in_flight)(),
        anonymous: admin.apps.table().is_anonymous_allowed(),
        proxy: admin.proxy.iter().map(ToString::to_string).collect(),
        upstream: config.upstream.base_url.to_string(),
        key: (admin.key)(),
        traffic: admin.metrics.traffic.now().into(),
        config: config.path.as_ref().map(|path| path.display().to_string()),
        waits_for_restart: admin.waits_for_restart.load().to_vec(),
        ledger: LedgerStatus::new(config.ledger.state_dir.display().to_string(), health),
        fleet: admin.metrics.fleet.now().map(FleetStatus::from),
        ..StatusDocument::default()
    };
    status.with_totals(&totals, is_adding_up)
}

async fn read_spend(admin: &Arc<Admin>, asked: SpendQuestion) -> Result<Spend, Failure> {
    let ledger = admin.ledger.clone();
    read(admin, move |_| {
        ledger.spend(asked.since_ms, asked.until_ms, &asked.by, &asked.zone)
    })
    .await
}

fn failed(failure: &Failure) -> Answer {
    let status = status_of(failure);
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(error = %failure, "a question to the ledger failed");
    }
    refused(status, failure.to_string())
}

fn status_of(failure: &Failure) -> StatusCode {
    match failure {
        Failure::Earlier { failure, .. } => status_of(failure),
        Failure::Query(_) => StatusCode::BAD_REQUEST,
        Failure::Ledger(LedgerError::TooManyRows { .. }) => StatusCode::BAD_REQUEST,
        Failure::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Failure::Service(_) | Failure::Figure(_) => StatusCode::BAD_GATEWAY,
        Failure::Ledger(_) | Failure::Json(_) | Failure::Panicked => {
            StatusCode::INTERNAL_SERVER_ERROR
        }
    }
}

/// The text of a document.
fn written<E: Into<Failure>>(answer: Result<impl Serialize, E>) -> Result<String, Failure> {
    Ok(serde_json::to_string(&answer.map_err(Into::into)?)?)
}

fn refused(status: StatusCode, detail: String) -> Answer {
    let error = ErrorDocument { detail };
    match serde_json::to_string(&error) {
        Ok(text) => document(status, &text),
        Err(_) => plain(status, &error.detail),
    }
}

fn document(status: StatusCode, text: &impl Display) -> Answer {
    respond(status, JSON, format!("{text}\n"))
}

fn plain(status: StatusCode, text: &str) -> Answer {
    respond(status, TEXT, format!("{text}\n"))
}

fn respond(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Either::Left(Full::new(body.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in door::PROTECTION {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    answer
}

#[cfg(test)]
mod tests;
