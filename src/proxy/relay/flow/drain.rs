//! Reading the rest of an answer, and reading on when the app has left, because the receipt comes
//! last.
//!
//! Promise: a stream is read on for nobody within bounds of time, bytes and number, and how that
//! ended is counted; a document is read to its end, within wide bounds. An app that leaves is noticed also while the
//! service is silent.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::super::Relay;
use super::state::{Drain, Flow, Move, moved};
use crate::config::OnDisconnect;
use crate::ledger::entry::InDoubt;
use crate::proxy::attend::Cut;
use crate::proxy::downstream::Presence;
use crate::proxy::limits::queue::{Drained, Slot};
use crate::proxy::upstream::exchange::Answering;

/// Most bytes that are read for nobody.
const DRAIN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes of a document that are read for nobody; the service stores answers up to 16 MB.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Wait for the clean end behind an end mark, so that the upstream connection can be reused.
const AFTER_END_WAIT: Duration = Duration::from_secs(1);

/// Who reads what comes next.
enum Reader {
    Somebody,
    /// The app's input ended in a silence of the service. It may still read.
    Perhaps,
    Nobody,
}

impl Relay<'_> {
    /// The service's next move, within the bounds of a drain when nobody reads.
    pub(super) async fn read_on(&mut self, flow: &mut Flow, answering: &mut Answering) -> Move {
        loop {
            if let Some(reason) = self.drain_over(flow) {
                return Move::Stop(reason);
            }
            let before = self.gateway.clock.monotonic();
            // With its end mark the app may leave; the service's end is then only worth a moment.
            let only_the_end = flow.settled && !flow.on_tape;
            let presence = self.app.downstream.presence();
            let left = match presence {
                Presence::Suspect if only_the_end => Some(AFTER_END_WAIT),
                Presence::Gone if only_the_end => return read_the_end(answering).await,
                Presence::Here | Presence::Suspect | Presence::Gone => {
                    let since = flow.drain.since.or(flow.drain.suspected);
                    since.map(|since| {
                        since
                            .saturating_add(self.settings.config.streams.drain_timeout)
                            .saturating_sub(before)
                    })
                }
            };
            let follower = self.app.live.clone().filter(|live| live.is_followed());
            // A document is read to its end, and what is settled ends by itself.
            let ends_early = flow.scanner.is_some() && !flow.settled;
            let place = flow.drain.place.as_ref().filter(|_| ends_early);
            let displaced = place.map(Drained::displaced);
            let chunk = async {
                tokio::select! {
                    biased;
                    () = of(displaced) => None,
                    () = of(follower.as_ref().map(|follower| follower.unfollowed())) => None,
                    read = answering.next_chunk() => Some(read),
                }
            };
            // `None` in whatever place: who reads has changed, and the loop's head decides.
            let read = match (presence, left) {
                (Presence::Here, _) => self.app.attend_while_here(chunk).await,
                (_, None) => self.app.attend_unless_broken(chunk).await,
                (_, Some(left)) => {
                    match timeout(left, self.app.attend_unless_broken(chunk)).await {
                        Ok(read) => read,
                        Err(_) if only_the_end => return Move::Stop(InDoubt::ClientGone),
                        // Time is up, and somebody may follow by now.
                        Err(_) => Ok(None),
                    }
                }
            };
            if !only_the_end || presence != Presence::Here {
                let waited = self.gateway.clock.monotonic().saturating_sub(before);
                self.dispatch.service_time = self.dispatch.service_time.saturating_add(waited);
            }
            match read.map(Option::flatten) {
                Ok(Some(read)) => return moved(read),
                Ok(None) => {}
                Err(Cut) => return Move::Stop(InDoubt::Shutdown),
            }
        }
    }

    /// Begins, bounds and lifts the drain. `Some` when the reading is to end.
    fn drain_over(&self, flow: &mut Flow) -> Option<InDoubt> {
        if flow.settled {
            return None;
        }
        let now = self.gateway.clock.monotonic();
        if flow.scanner.is_none() && self.entry.is_some() {
            return self.document_over(flow, now);
        }
        let streams = &self.settings.config.streams;
        let is_over = |since: Duration| now.saturating_sub(since) >= streams.drain_timeout;
        match self.reader(flow) {
            Reader::Somebody => {
                flow.drain = Drain::default();
                return None;
            }
            Reader::Perhaps => {
                let since = *flow.drain.suspected.get_or_insert(now);
                if !is_over(since) {
                    return None;
                }
            }
            Reader::Nobody => {}
        }
        if self.entry.is_none() {
            // A free answer that nobody reads is worth nothing.
            return Some(InDoubt::ClientGone);
        }
        let Some(since) = flow.drain.since else {
            let own = self.declared.on_disconnect;
            if own.unwrap_or(streams.on_disconnect) == OnDisconnect::Cancel {
                self.gateway.metrics.drain("cancelled");
                return Some(InDoubt::ClientGone);
            }
            match Arc::clone(&self.gateway.drains).try_acquire_owned() {
                Ok(slot) => {
                    flow.drain.slot = Some(slot);
                    // An app that stalled has lost it already.
                    if flow.drain.place.is_none() {
                        flow.drain.place = self.dispatch.slot.as_ref().map(Slot::drains);
                    }
                }
                Err(_) => {
                    self.gateway.metrics.drain("refused");
                    return Some(InDoubt::ClientGone);
                }
            }
            // What it was suspected for counts.
            flow.drain.since = flow.drain.suspected.or(Some(now));
            flow.drain.bytes = 0;
            return None;
        };
        if flow.drain.place.as_ref().is_some_and(Drained::is_displaced) {
            self.gateway.metrics.drain("displaced");
            return Some(InDoubt::ClientGone);
        }
        let over = is_over(since) || flow.drain.bytes > DRAIN_BYTES_MAX;
        if over {
            self.gateway.metrics.drain("cut");
        }
        over.then_some(InDoubt::ClientGone)
    }

    /// A document is read to its end for nobody, too, unless it has none: it has as long as a silence
    /// may last, and room for more than any document of the interface.
    fn document_over(&self, flow: &mut Flow, now: Duration) -> Option<InDoubt> {
        if matches!(self.reader(flow), Reader::Somebody) {
            flow.drain = Drain::default();
            return None;
        }
        let since = *flow.drain.since.get_or_insert_with(|| {
            flow.drain.bytes = 0;
            now
        });
        let limit = self.settings.config.upstream.read_timeout;
        let over = now.saturating_sub(since) > limit || flow.drain.bytes > DOCUMENT_BYTES_MAX;
        if over {
            self.gateway.metrics.drain("cut");
        }
        over.then_some(InDoubt::ClientGone)
    }

    /// What goes to the tape is not for the leading app any more, wherever that is.
    fn reader(&self, flow: &Flow) -> Reader {
        let live = self.app.live.as_ref();
        if live.is_some_and(|live| live.is_followed()) {
            return Reader::Somebody;
        }
        match self.app.downstream.presence() {
            Presence::Here if !flow.on_tape => Reader::Somebody,
            Presence::Suspect if !flow.on_tape && self.app.downstream.is_proven() => {
                Reader::Somebody
            }
            Presence::Suspect if !flow.on_tape => Reader::Perhaps,
            Presence::Here | Presence::Suspect | Presence::Gone => Reader::Nobody,
        }
    }

    /// The answer has ended, and nobody has shown to be there for it.
    pub(super) fn drains(&self, flow: &Flow) -> bool {
        self.entry.is_some() && !matches!(self.reader(flow), Reader::Somebody)
    }
}

/// Awaits what there is to await, else for ever.
async fn of(future: Option<impl Future<Output = ()>>) {
    match future {
        Some(future) => future.await,
        None => std::future::pending().await,
    }
}

/// The end of an answer whose receipt is in and whose app has gone.
async fn read_the_end(answering: &mut Answering) -> Move {
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
