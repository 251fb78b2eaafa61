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
use crate::apps::{AppAdd, AppSet, Known, Origin, Table};
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

/// A trial of `[notify]` is asked for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TryNotice {}

/// The trial arrived.
#[derive(Debug, Serialize, Deserialize)]
pub struct NoticeSent {
    /// Without what may be secret.
    pub way: String,
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
    /// Of each of its sessions.
    pub session_cap_micro_usd: Option<MicroUsd>,
    pub session_requests_max: Option<u64>,
    /// Where the configuration has it: `config.toml:12`.
    pub declared: Option<String>,
    /// When it was added, and since when its token holds (RFC 3339).
    pub added: Option<String>,
    pub token_since: Option<String>,
}

/// What can be asked for here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeRoute {
    App(AppChange),
    Order(Order),
    /// A trial of `[notify]`.
    TryNotice,
    OpenRun,
}

/// What becomes of an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppChange {
    Add,
    Set,
    Remove,
    Rotate,
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
            "/api/apps/add" => Some(Self::App(AppChange::Add)),
            "/api/apps/set" => Some(Self::App(AppChange::Set)),
            "/api/apps/remove" => Some(Self::App(AppChange::Remove)),
            "/api/apps/rotate" => Some(Self::App(AppChange::Rotate)),
            "/api/caps/notify" => Some(Self::TryNotice),
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
    let on_disk = Arc::clone(admin);
    let changing = match change {
        ChangeRoute::OpenRun => {
            let asked: RunOpen = parse(&body)?;
            return runs::open(admin, asked, holds_run).await.map(Made::Run);
        }
        ChangeRoute::TryNotice => {
            let TryNotice {} = parse(&body)?;
            let way = admin.notices.try_now().await?;
            return text_of(&NoticeSent { way }).map(Made::Document);
        }
        ChangeRoute::App(change) => spawn_blocking(move || change_app(&on_disk, change, &body)),
        ChangeRoute::Order(order) => spawn_blocking(move || {
            orders::carry_out(&on_disk.caps, order, &body)?;
            text_of(&on_disk.caps.document())
        }),
    };
    let text = changing.await.map_err(|_| ChangeError::Panicked)??;
    Ok(Made::Document(text))
}

/// Writes and flushes the file of the apps: for a thread that may block.
fn change_app(admin: &Admin, change: AppChange, body: &[u8]) -> Result<String, ChangeError> {
    let (apps, now_ms) = (&admin.apps, admin.clock.wall_ms());
    let token_of = |name: &str, token: &Token, was_open| {
        text_of(&NewToken::new(
            name,
            token,
            was_open,
            &apps.table(),
            &admin.proxy,
        ))
    };
    match change {
        AppChange::Add => {
            let new: AppAdd = parse(body)?;
            let was_open = apps.table().is_anonymous_allowed();
            let token = apps.add(&new, now_ms)?;
            tracing::info!(app = %new.name, "an app was added");
            token_of(&new.name, &token, was_open)
        }
        AppChange::Set => {
            let asked: AppSet = parse(body)?;
            apps.set(&asked)?;
            tracing::info!(app = %asked.name, "an app has other caps");
            text_of(&AppDocument::named(&asked.name, &apps.table()))
        }
        AppChange::Remove => {
            let AppName { name } = parse(body)?;
            apps.remove(&name)?;
            tracing::info!(app = %name, "an app was removed");
            text_of(&Removed::new(&name, &apps.table()))
        }
        AppChange::Rotate => {
            let AppName { name } = parse(body)?;
            let token = apps.rotate(&name, now_ms)?;
            tracing::info!(app = %name, "an app has a new token");
            token_of(&name, &token, false)
        }
    }
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
            session_cap_micro_usd: app.session.cap,
            session_requests_max: app.session.requests,
            declared,
            added,
            token_since,
        }
    }
}

fn text_of(document: &impl Serialize) -> Result<String, ChangeError> {
    serde_json::to_string(document).map_err(ChangeError::Unwritable)
}
