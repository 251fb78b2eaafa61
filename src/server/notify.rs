//! What systemd is notified of: still starting, ready, reloading, stopping, alive.
//!
//! Promise: without systemd (no `NOTIFY_SOCKET`) every call does nothing, and no call waits: a write to a
//! socket without a reader blocks, so a thread of its own writes. The watchdog is fed only
//! while the ledger's writer thread shows that it lives: a daemon that cannot write receipts is
//! better restarted than left running.

use std::convert::Infallible;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use sd_notify::NotifyState;

use crate::admin::WRITER_SILENCE_MAX;
use crate::ledger::Ledger;

/// How often more time is asked for while starting.
const STARTING_PAUSE: Duration = Duration::from_secs(10);

/// How much: from each asking on, a start that does not ask again for so long has failed.
const STARTING_TIME: Duration = Duration::from_secs(60);

/// Notifications that may wait to be sent; those above it are dropped.
const PENDING_MAX: usize = 64;

/// One message to systemd.
struct Notice {
    states: Vec<NotifyState<'static>>,
    /// What `systemctl status` shows from now on.
    status: Option<String>,
}

/// The thread that writes to systemd.
static NOTIFIER: OnceLock<SyncSender<Notice>> = OnceLock::new();

/// A keep-alive of the watchdog waits to be sent; one is enough.
static KEEP_ALIVE_WAITS: AtomicBool = AtomicBool::new(false);

/// Asks for more time to start, again and again until it is dropped.
pub async fn still_starting() -> Infallible {
    let mut ticks = tokio::time::interval(STARTING_PAUSE);
    loop {
        ticks.tick().await;
        let micros = u32::try_from(STARTING_TIME.as_micros()).unwrap_or(u32::MAX);
        send(&[NotifyState::ExtendTimeoutUsec(micros)]);
    }
}

pub fn ready() {
    send(&[NotifyState::Ready]);
}

/// Ready after a reload, and what came of it: `systemctl status` shows it until the next one. Empty: nothing to say.
pub fn ready_after_reload(outcome: String) {
    notify(Notice {
        states: vec![NotifyState::Ready],
        // A line end would begin another message.
        status: Some(outcome.replace('\n', " ")),
    });
}

/// Must be followed by [`ready_after_reload`], whatever the reload came to.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => send(&[NotifyState::Reloading, now]),
        Err(_) => send(&[NotifyState::Reloading]),
    }
}

pub fn stopping() {
    send(&[NotifyState::Stopping]);
}

/// Feeds the watchdog, if there is one, twice in its time. Never returns.
pub async fn feed_watchdog(ledger: Ledger) {
    let Some(deadline) = sd_notify::watchdog_enabled() else {
        return std::future::pending().await;
    };
    let mut ticks = tokio::time::interval((deadline / 2).max(Duration::from_millis(1)));
    let mut fed = true;
    loop {
        ticks.tick().await;
        let alive = ledger.health().heartbeat_age <= WRITER_SILENCE_MAX;
        if alive {
            if !KEEP_ALIVE_WAITS.swap(true, Ordering::SeqCst) {
                send(&[NotifyState::Watchdog]);
            }
        } else if fed {
            tracing::error!("the ledger's writer is silent; the watchdog is not fed any more");
        }
        fed = alive;
    }
}

fn send(states: &[NotifyState<'static>]) {
    notify(Notice {
        states: states.to_vec(),
        status: None,
    });
}

fn notify(notice: Notice) {
    let notifier = NOTIFIER.get_or_init(start_notifier);
    if notifier.try_send(notice).is_err() {
        tracing::warn!("systemd does not read its notifications; the newest one was dropped");
    }
}

fn start_notifier() -> SyncSender<Notice> {
    let (notifier, pending) = sync_channel::<Notice>(PENDING_MAX);
    let started = thread::Builder::new()
        .name("notify".to_owned())
        .spawn(move || {
            for notice in pending {
                let status = notice.status.as_deref().map(NotifyState::Status);
                let states: Vec<NotifyState<'_>> =
                    notice.states.iter().cloned().chain(status).collect();
                if let Err(error) = sd_notify::notify(&states) {
                    tracing::warn!(%error, "systemd could not be notified");
                }
                KEEP_ALIVE_WAITS.store(false, Ordering::SeqCst);
            }
        });
    if let Err(error) = started {
        tracing::warn!(%error, "no thread can notify systemd");
    }
    notifier
}
