//! What systemd is told: ready, reloading, stopping, alive.
//!
//! Promise: without systemd (no `NOTIFY_SOCKET`) every call does nothing. The watchdog is fed only
//! while the ledger's writer thread shows that it lives: a daemon that cannot write receipts is
//! better restarted than left running.

use std::time::Duration;

use sd_notify::NotifyState;

use crate::admin::WRITER_SILENCE_MAX;
use crate::ledger::Ledger;

pub fn ready() {
    tell(&[NotifyState::Ready]);
}

/// Must be followed by [`ready`], whatever the reload came to.
pub fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

pub fn stopping() {
    tell(&[NotifyState::Stopping]);
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
            tell(&[NotifyState::Watchdog]);
        } else if fed {
            tracing::error!("the ledger's writer is silent; the watchdog is not fed any more");
        }
        fed = alive;
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "systemd could not be told");
    }
}
