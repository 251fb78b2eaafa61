//! Reading on when the app has left, because the receipt comes last.
//!
//! Promise: bounded in time, bytes and number; what it cost is counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::{Flow, Move, Relay, moved};
use crate::config::OnDisconnect;
use crate::ledger::entry::InDoubt;
use crate::proxy::downstream::Presence;
use crate::proxy::exchange::Answering;
use crate::proxy::settle::billed_of;

/// Most bytes that are read for nobody.
const DRAIN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Wait for the clean end behind an end mark, so that the upstream connection can be reused.
pub(super) const AFTER_END_WAIT: Duration = Duration::from_secs(1);

/// Reading on after the app left.
#[derive(Default)]
pub(super) struct Drain {
    slot: Option<OwnedSemaphorePermit>,
    pub(super) since: Option<Duration>,
    pub(super) bytes: usize,
}

impl Relay<'_> {
    /// Begins, bounds and lifts the drain. `Some` when the reading is to end.
    pub(super) fn drain_over(&self, flow: &mut Flow) -> Option<InDoubt> {
        let followed = self
            .app
            .live
            .as_ref()
            .is_some_and(|live| live.is_followed());
        if flow.settled {
            return None;
        }
        // What goes to the tape is not for the leading app any more, wherever that is.
        let has_reader =
            followed || !flow.on_tape && self.app.downstream.presence() != Presence::Gone;
        if has_reader {
            flow.drain = Drain::default();
            return None;
        }
        if self.entry.is_none() {
            // A free answer that nobody reads is worth nothing.
            return Some(InDoubt::ClientGone);
        }
        let now = self.gateway.clock.monotonic();
        let streams = &self.settings.config.streams;
        let Some(since) = flow.drain.since else {
            if streams.on_disconnect == OnDisconnect::Cancel {
                self.gateway.metrics.drain("cancelled");
                return Some(InDoubt::ClientGone);
            }
            match Arc::clone(&self.gateway.drains).try_acquire_owned() {
                Ok(slot) => flow.drain.slot = Some(slot),
                Err(_) => {
                    self.gateway.metrics.drain("refused");
                    return Some(InDoubt::ClientGone);
                }
            }
            flow.drain.since = Some(now);
            return None;
        };
        let over = now.saturating_sub(since) >= streams.drain_timeout
            || flow.drain.bytes > DRAIN_BYTES_MAX;
        if over {
            self.gateway.metrics.drain("cut");
        }
        over.then_some(InDoubt::ClientGone)
    }

    /// What the drain came to, once the answer is settled.
    pub(super) fn count_drain(&self, flow: &Flow, complete: bool) {
        if flow.drain.since.is_none() {
            return;
        }
        if complete {
            self.gateway.metrics.drain("completed");
        }
        self.count_drained();
    }

    /// What was read for nobody has its price.
    pub(in crate::proxy::relay) fn count_drained(&self) {
        if let Some(billed) = self.state.and_then(billed_of) {
            self.gateway.metrics.drained(billed);
        }
    }
}

/// The end of an answer whose receipt is in and whose app has gone.
pub(super) async fn read_the_end(answering: &mut Answering) -> Move {
    let read = async {
        loop {
            match moved(answering.next_chunk().await) {
                Move::Chunk(_) => {}
                ended => return ended,
            }
        }
    };
    match timeout(AFTER_END_WAIT, read).await {
        Ok(moved) => moved,
        Err(_) => Move::Stop(InDoubt::ClientGone),
    }
}
