//! A run of `bursar exec`, opened over the Unix socket: the answer is a stream of lines that stays open
//! as long as the run, the first of them with what the child has to know.
//!
//! Why a stream: the process that opened the run may be killed at any moment, and its connection ends with
//! it. Promise: a run ends, and its token with it, within two seconds of its connection.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;
use tokio::time::{Interval, interval};
use uuid::Uuid;

use super::body::ChangeError;
use super::shared::Admin;
use crate::apps::runs::Run;
use crate::apps::{AppsError, OpenRun};
use crate::caps::RunLimit;
use crate::config::{ListenAddr, TokenForm, TokenHash};
use crate::ledger::usage::read_run;
use crate::money::MicroUsd;

/// How often a line goes out, so that a connection whose other end has gone shows.
const BEAT: Duration = Duration::from_secs(1);

/// How far the clock may have been set back since a run began.
const CLOCK_SLACK_MS: u64 = 60 * 60 * 1000;

/// What is asked for.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunOpen {
    pub app: String,
    /// Drawn by the process that opens the run, so that the run can be continued after a restart of the
    /// daemon.
    pub token: String,
    #[serde(default)]
    pub max_micro_usd: Option<MicroUsd>,
    /// The run to take up again.
    #[serde(default)]
    pub run: Option<String>,
}

/// The first line of the stream that holds a run open.
#[derive(Debug, Serialize, Deserialize)]
pub struct RunOpened {
    pub run: String,
    pub app: String,
    pub base_url: String,
    pub started_ms: u64,
    pub state_dir: PathBuf,
}

/// The answer's body: a first line, then an empty one each second, without end.
pub struct RunBody {
    first: Option<Bytes>,
    beat: Interval,
    /// Open as long as this is read.
    _run: OpenRun,
    _limit: Option<RunLimit>,
}

async fn with_limit(
    admin: &Arc<Admin>,
    run: Run,
    max: Option<MicroUsd>,
    token: TokenHash,
) -> Result<(OpenRun, Option<RunLimit>), ChangeError> {
    let limit = match max {
        None => None,
        Some(max) => Some(limit(admin, &run, max).await?),
    };
    let apps = Arc::clone(&admin.apps);
    let opening = spawn_blocking(move || apps.open_run(run, token)).await;
    Ok((opening.map_err(|_| ChangeError::Panicked)??, limit))
}

/// Opens a run.
pub(super) async fn open(
    admin: &Arc<Admin>,
    asked: RunOpen,
    holds: &AtomicBool,
) -> Result<RunBody, ChangeError> {
    if TokenForm::of(asked.token.as_bytes()) != TokenForm::Whole {
        return Err(ChangeError::Body("its token is not whole".to_owned()));
    }
    let base_url = base_url(&admin.proxy).ok_or(ChangeError::NoPort)?;
    let table = admin.apps.table();
    let is_default = *table.default_app().name == *asked.app;
    let app = match table.app(&asked.app) {
        Some(app) if !is_default || table.is_anonymous_allowed() => Arc::clone(app),
        Some(_) | None => return Err(AppsError::Unknown { name: asked.app }.into()),
    };
    let hash = TokenHash::of(asked.token.as_bytes());
    let run = match asked.run {
        None => Run::new(&app, admin.clock.wall_ms())?,
        Some(id) => {
            let id = Uuid::try_parse(&id)
                .map_err(|_| ChangeError::Body("its run is no id".to_owned()))?;
            Run::again(id, &app)
        }
    };
    // Reading what it spent may take a while.
    admin.apps.expect_run(hash, admin.clock.monotonic());
    let opened = with_limit(admin, run, asked.max_micro_usd, hash).await;
    if opened.is_err() {
        // The run did not open: requests with its token are refused at once.
        admin.apps.expect_no_run(hash);
    }
    let (open, limit) = opened?;
    let first = serde_json::to_string(&RunOpened {
        run: open.run.id.to_string(),
        app: app.name.to_string(),
        base_url,
        started_ms: admin.clock.wall_ms(),
        state_dir: admin.config.load().ledger.state_dir.clone(),
    });
    let first = first.map_err(ChangeError::Unwritable)?;
    tracing::info!(run = %open.run.id, app = %app.name, "a run of bursar exec begins");
    holds.store(true, Ordering::Relaxed);
    Ok(RunBody {
        first: Some(Bytes::from(format!("{first}\n"))),
        beat: interval(BEAT),
        _run: open,
        _limit: limit,
    })
}

/// Its limit, with what the ledger has of a run that this process does not know.
async fn limit(admin: &Arc<Admin>, run: &Run, max: MicroUsd) -> Result<RunLimit, ChangeError> {
    let (caps, run) = (Arc::clone(&admin.caps), run.clone());
    let state_dir = admin.config.load().ledger.state_dir.clone();
    // The id holds when the run began. A clock that was set back a little does no harm.
    let began = Uuid::try_parse(&run.id)
        .ok()
        .and_then(|id| id.get_timestamp());
    let began_ms = began.map_or(0, |began| began.to_unix().0.saturating_mul(1000));
    let since_ms = began_ms.saturating_sub(CLOCK_SLACK_MS);
    let read = move || {
        let so_far = || read_run(&state_dir, &run.id, since_ms);
        caps.open_run(&run.id, max, so_far)
    };
    let limit = spawn_blocking(read).await;
    let limit = limit.map_err(|_| ChangeError::Panicked)?;
    Ok(limit.map_err(AppsError::from)?)
}

/// Where a process of this machine reaches the proxy. `None`: through Unix sockets alone.
pub fn base_url(proxy: &[ListenAddr]) -> Option<String> {
    proxy.iter().find_map(|address| match address {
        ListenAddr::Unix(_) => None,
        ListenAddr::Tcp(address) => Some(format!("http://{}", reached(*address))),
    })
}

/// An address of all is reached at loopback.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

// === impl RunBody ===

impl Body for RunBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        this.beat
            .poll_tick(cx)
            .map(|_| Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
    }
}
