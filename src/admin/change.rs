//! What can be changed at run time. Only over the Unix socket, whose peer the kernel names, and only
//! by this process's own user or root: a web page cannot reach a Unix socket, and no port can change
//! anything.
//!
//! Promise: a change is durable and in force when it is answered.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use http::Request;
use hyper::body::Incoming;
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::body::{ChangeError, parse, read};
use super::orders::{self, Order};
use super::runs::{self, RunBody, RunOpen};
use super::shared::Admin;
use crate::apps::{AppAdd, AppSet, AppsError, Known, Origin, Table};
use crate::calendar;
use crate::config::{ListenAddr, Token};
use crate::money::MicroUsd;

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

/// The one answer that shows a token, and what an app needs beside it.
#[derive(Serialize, Deserialize)]
pub struct NewToken {
    pub name: String,
    pub token: String,
    /// `None`: the proxy listens on sockets alone.
    pub base_url: Option<String>,
    pub anonymous: bool,
    /// Callers without a token could spend until this change.
    pub closed: bool,
}

/// An app that was removed.
#[derive(Debug, Serialize, Deserialize)]
pub struct Removed {
    pub name: String,
    pub anonymous: bool,
}

/// Every app that may spend, without tokens and hashes: the document of `/api/apps`.
#[derive(Debug, Serialize, Deserialize)]
pub struct AppsDocument {
    /// Callers that are no app may spend.
    pub anonymous: bool,
    pub apps: Vec<AppDocument>,
}

/// One app.
#[derive(Debug, Serialize, Deserialize)]
pub struct AppDocument {
    pub name: String,
    /// There is a token. A command without a daemon leaves the files with the tokens alone.
    pub token: bool,
    pub uids: Vec<u32>,
    pub cap_hour_micro_usd: Option<MicroUsd>,
    pub cap_day_micro_usd: Option<MicroUsd>,
    pub cap_month_micro_usd: Option<MicroUsd>,
    pub request_floor_micro_usd: Option<MicroUsd>,
    /// Where the configuration has it: `config.toml:12`.
    pub declared: Option<String>,
    /// When it was added, and since when its token holds (RFC 3339).
    pub added: Option<String>,
    pub token_since: Option<String>,
}

/// What can be asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRoute {
    AddApp,
    SetApp,
    RemoveApp,
    RotateApp,
    OpenRun,
    Order(Order),
}

/// What a change came to.
pub(super) enum Made {
    /// The text of a document.
    Document(String),
    Run(RunBody),
}

// === impl ChangeRoute ===

impl ChangeRoute {
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

/// Makes a change and answers what it came to.
pub(super) async fn make(
    admin: &Arc<Admin>,
    change: ChangeRoute,
    request: Request<Incoming>,
    holds_run: &AtomicBool,
) -> Result<Made, ChangeError> {
    let body = read(request).await?;
    let now_ms = admin.clock.wall_ms();
    let apps = Arc::clone(&admin.apps);
    let document = match change {
        ChangeRoute::OpenRun => {
            let asked: RunOpen = parse(&body)?;
            return runs::open(admin, asked, holds_run).await.map(Made::Run);
        }
        ChangeRoute::AddApp => {
            let new: AppAdd = parse(&body)?;
            let name = new.name.clone();
            let was_open = apps.table().is_anonymous_allowed();
            let token = on_disk(move || apps.add(&new, now_ms)).await?;
            tracing::info!(app = %name, "an app was added");
            text_of(&NewToken::new(
                &name,
                &token,
                was_open,
                &admin.apps.table(),
                &admin.proxy,
            ))?
        }
        ChangeRoute::SetApp => {
            let asked: AppSet = parse(&body)?;
            let name = asked.name.clone();
            on_disk(move || apps.set(&asked)).await?;
            tracing::info!(app = %name, "an app has other caps");
            text_of(&AppDocument::named(&name, &admin.apps.table()))?
        }
        ChangeRoute::RemoveApp => {
            let AppName { name } = parse(&body)?;
            let asked = name.clone();
            on_disk(move || apps.remove(&asked)).await?;
            tracing::info!(app = %name, "an app was removed");
            text_of(&Removed::new(&name, &admin.apps.table()))?
        }
        ChangeRoute::Order(order) => {
            let act = orders::understood(admin, order, &body)?;
            spawn_blocking(act)
                .await
                .map_err(|_| ChangeError::Panicked)??;
            text_of(&admin.caps.view())?
        }
        ChangeRoute::RotateApp => {
            let AppName { name } = parse(&body)?;
            let asked = name.clone();
            let token = on_disk(move || apps.rotate(&asked, now_ms)).await?;
            tracing::info!(app = %name, "an app has a new token");
            text_of(&NewToken::new(
                &name,
                &token,
                false,
                &admin.apps.table(),
                &admin.proxy,
            ))?
        }
    };
    Ok(Made::Document(document))
}

// === impl NewToken ===

impl NewToken {
    /// `was_anonymous`: callers without a token could spend before the change.
    pub fn new(
        name: &str,
        token: &Token,
        was_anonymous: bool,
        table: &Table,
        proxy: &[ListenAddr],
    ) -> Self {
        let anonymous = table.is_anonymous_allowed();
        Self {
            name: name.to_owned(),
            token: token.reveal().to_owned(),
            base_url: runs::base_url(proxy).map(|url| format!("{url}/v1")),
            anonymous,
            closed: was_anonymous && !anonymous,
        }
    }
}

// === impl Removed ===

impl Removed {
    pub fn new(name: &str, table: &Table) -> Self {
        Self {
            name: name.to_owned(),
            anonymous: table.is_anonymous_allowed(),
        }
    }
}

// === impl AppsDocument ===

impl AppsDocument {
    pub fn of(table: &Table) -> Self {
        Self {
            anonymous: table.is_anonymous_allowed(),
            apps: table.known().iter().map(AppDocument::of).collect(),
        }
    }
}

// === impl AppDocument ===

impl AppDocument {
    /// `None` where the app is gone again.
    pub fn named(name: &str, table: &Table) -> Option<Self> {
        let mut apps = table.known().iter();
        apps.find(|known| *known.app.name == *name).map(Self::of)
    }

    fn of(known: &Known) -> Self {
        let app = &known.app;
        let (declared, added, token_since) = match &known.origin {
            Origin::Declared { place } => (Some(place.clone()), None, None),
            Origin::Added { at_ms, token_at_ms } => (
                None,
                calendar::rfc3339(*at_ms),
                calendar::rfc3339(*token_at_ms),
            ),
        };
        Self {
            name: app.name.to_string(),
            token: known.token.is_some() || app.token_file.is_some(),
            uids: app.uids.clone(),
            cap_hour_micro_usd: app.limits.hour,
            cap_day_micro_usd: app.limits.day,
            cap_month_micro_usd: app.limits.month,
            request_floor_micro_usd: app.request_floor,
            declared,
            added,
            token_since,
        }
    }
}

fn text_of(document: &impl Serialize) -> Result<String, ChangeError> {
    serde_json::to_string(document).map_err(ChangeError::Unwritable)
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
