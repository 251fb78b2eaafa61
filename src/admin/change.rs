//! What can be changed at run time. Only over the Unix socket, whose peer the kernel names, and only
//! by this process's own user or root: a web page cannot reach a Unix socket, and no port can change
//! anything.
//!
//! Promise: a change is durable and in force when it is answered; a body is bounded, JSON, and said
//! to be JSON.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::Admin;
use super::orders::{self, Order};
use super::runs::{self, RunBody, RunOpen};
use crate::apps::{AppAdd, AppSet, AppsError, Known, Origin, Table};
use crate::calendar;
use crate::caps::OrderError;
use crate::config::{ListenAddr, Token};

/// Largest body of a change, in bytes.
const BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest time for a body to arrive.
const BODY_DEADLINE: Duration = Duration::from_secs(5);

/// Where a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A port, or a socket of another user's: reads.
    Reader,
    /// The Unix socket, by this process's user or root.
    Owner,
}

/// Which app is meant.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppName {
    pub name: String,
}

/// What can be asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    AddApp,
    SetApp,
    RemoveApp,
    RotateApp,
    OpenRun,
    Order(Order),
}

/// What a change came to.
pub(super) enum Made {
    Document(Value),
    Run(RunBody),
}

/// Why nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error("send the change as Content-Type: application/json")]
    NotJson,
    #[error("the change did not arrive whole: {0}")]
    Body(String),
    #[error("this is no such change: {0}")]
    Form(serde_json::Error),
    #[error(transparent)]
    Apps(#[from] AppsError),
    #[error("the proxy listens on Unix sockets alone; a run takes an address with a port")]
    NoPort,
    #[error(transparent)]
    Order(#[from] OrderError),
    #[error("that is no name of an app")]
    NoApp,
    #[error("the state cannot be told: {0}")]
    Told(serde_json::Error),
    #[error("the change failed; the log has the place")]
    Panicked,
}

// === impl Change ===

impl Change {
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "/api/apps/add" => Some(Self::AddApp),
            "/api/apps/set" => Some(Self::SetApp),
            "/api/apps/remove" => Some(Self::RemoveApp),
            "/api/apps/rotate" => Some(Self::RotateApp),
            "/api/runs" => Some(Self::OpenRun),
            _ => Order::of(path).map(Self::Order),
        }
    }
}

// === impl ChangeError ===

impl ChangeError {
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(_)
            | Self::Form(_)
            | Self::NoApp
            | Self::Order(OrderError::NoCap { .. } | OrderError::NotRaised { .. }) => {
                StatusCode::BAD_REQUEST
            }
            Self::Order(OrderError::Ledger(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Told(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Apps(AppsError::Unknown { .. }) => StatusCode::NOT_FOUND,
            Self::Apps(AppsError::Ledger(_) | AppsError::Random(_) | AppsError::Damaged { .. })
            | Self::Panicked => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Apps(_) | Self::NoPort => StatusCode::CONFLICT,
        }
    }
}

/// Makes a change and answers what it came to.
pub(super) async fn make(
    admin: &Arc<Admin>,
    change: Change,
    request: Request<Incoming>,
    holds_run: &AtomicBool,
) -> Result<Made, ChangeError> {
    let body = read(request).await?;
    let now_ms = admin.clock.wall_ms();
    let apps = Arc::clone(&admin.apps);
    let document = match change {
        Change::OpenRun => {
            let asked: RunOpen = parse(&body)?;
            return runs::open(admin, asked, holds_run).await.map(Made::Run);
        }
        Change::AddApp => {
            let new: AppAdd = parse(&body)?;
            let name = new.name.clone();
            let was_open = apps.table().is_anonymous_allowed();
            let token = on_disk(move || apps.add(&new, now_ms)).await?;
            tracing::info!(app = %name, "an app was added");
            given(&name, &token, was_open, &admin.apps.table(), &admin.proxy)
        }
        Change::SetApp => {
            let asked: AppSet = parse(&body)?;
            let name = asked.name.clone();
            on_disk(move || apps.set(&asked)).await?;
            tracing::info!(app = %name, "an app has other caps");
            one(&name, &admin.apps.table())
        }
        Change::RemoveApp => {
            let AppName { name } = parse(&body)?;
            let asked = name.clone();
            on_disk(move || apps.remove(&asked)).await?;
            tracing::info!(app = %name, "an app was removed");
            removed(&name, &admin.apps.table())
        }
        Change::Order(order) => {
            let act = orders::understood(admin, order, &body)?;
            spawn_blocking(act)
                .await
                .map_err(|_| ChangeError::Panicked)??;
            serde_json::to_value(admin.caps.view()).map_err(ChangeError::Told)?
        }
        Change::RotateApp => {
            let AppName { name } = parse(&body)?;
            let asked = name.clone();
            let token = on_disk(move || apps.rotate(&asked, now_ms)).await?;
            tracing::info!(app = %name, "an app has a new token");
            given(&name, &token, false, &admin.apps.table(), &admin.proxy)
        }
    };
    Ok(Made::Document(document))
}

/// The one answer that shows a token, and what an app needs beside it.
pub fn given(
    name: &str,
    token: &Token,
    was_anonymous: bool,
    table: &Table,
    proxy: &[ListenAddr],
) -> Value {
    let is_anonymous = table.is_anonymous_allowed();
    json!({
        "name": name,
        "token": token.reveal(),
        "base_url": runs::base_url(proxy).map(|url| format!("{url}/v1")),
        "anonymous": is_anonymous,
        // Callers without a token could spend until this change.
        "closed": was_anonymous && !is_anonymous,
    })
}

pub fn removed(name: &str, table: &Table) -> Value {
    json!({ "name": name, "anonymous": table.is_anonymous_allowed() })
}

/// Everybody who may spend, without tokens and hashes.
pub fn list(table: &Table) -> Value {
    let apps: Vec<Value> = table.known().iter().map(known).collect();
    json!({ "anonymous": table.is_anonymous_allowed(), "apps": apps })
}

/// One app, as [`list`] shows it; `null` where it is gone again.
pub fn one(name: &str, table: &Table) -> Value {
    let mut apps = table.known().iter();
    apps.find(|known| *known.app.name == *name)
        .map_or(Value::Null, known)
}

fn known(known: &Known) -> Value {
    let app = &known.app;
    let (place, added, token_since) = match &known.origin {
        Origin::Declared { place } => (Some(place), None, None),
        Origin::Added { at_ms, token_at_ms } => (
            None,
            calendar::rfc3339(*at_ms),
            calendar::rfc3339(*token_at_ms),
        ),
    };
    json!({
        "name": *app.name,
        // A command without a daemon leaves the files with the tokens alone.
        "token": known.token.is_some() || app.token_file.is_some(),
        "uids": app.uids,
        "cap_hour_micro_usd": app.limits.hour,
        "cap_day_micro_usd": app.limits.day,
        "cap_month_micro_usd": app.limits.month,
        "request_floor_micro_usd": app.request_floor,
        "declared": place,
        "added": added,
        "token_since": token_since,
    })
}

async fn read(request: Request<Incoming>) -> Result<Bytes, ChangeError> {
    let media_type = request.headers().get(CONTENT_TYPE);
    if media_type.is_none_or(|given| given.as_bytes() != b"application/json") {
        return Err(ChangeError::NotJson);
    }
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX);
    match timeout(BODY_DEADLINE, body.collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) => Err(ChangeError::Body(error.to_string())),
        Err(_) => Err(ChangeError::Body("it took too long".to_owned())),
    }
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ChangeError> {
    serde_json::from_slice(body).map_err(ChangeError::Form)
}

/// The file is written and flushed on a thread that may block.
async fn on_disk<T: Send + 'static>(
    change: impl FnOnce() -> Result<T, AppsError> + Send + 'static,
) -> Result<T, ChangeError> {
    match spawn_blocking(change).await {
        Ok(changed) => Ok(changed?),
        Err(_) => Err(ChangeError::Panicked),
    }
}
