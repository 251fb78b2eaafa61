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
use super::state::{Flow, Move, Reading, moved};
use crate::config::OnDisconnect;
use crate::ledger::entry::InDoubt;
use crate::proxy::client_watch::Cut;
use crate::proxy::limits::queue::Drained;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::drain::{DrainBounds, Reader, Verdict};
use crate::proxy::upstream::exchange::Answering;

/// Most bytes that are read for nobody.
const STREAM_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most bytes of a document that are read for nobody; the service stores answers up to 16 MB.
const DOCUMENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Wait for the clean end behind an end mark, so that the upstream connection can be reused.
const AFTER_END_WAIT: Duration = Duration::from_secs(1);

impl Relay<'_> {
    /// The service's next move, within the bounds of a drain when nobody reads.
    pub(super) async fn read_on(&mut self, flow: &mut Flow, answering: &mut Answering) -> Move {
        loop {
            if let Some(reason) = self.drain_over(flow) {
                return Move::Stop(reason);
            }
            let before = self.gateway.clock.monotonic();
            // With its end mark the app may leave; the service's end is then only worth a moment.
            let only_the_end = flow.settled && flow.forward.is_to_app();
            let follower = self
                .app
                .purchase
                .clone()
                .filter(|purchase| purchase.is_followed());
            let presence = self.app.downstream.presence();
            if flow.settled && !only_the_end && follower.is_none() {
                // Nobody reads, and everything is settled: no drain bounds this any more.
                return read_the_end(answering).await;
            }
            let left = match presence {
                Presence::Suspect if only_the_end => Some(AFTER_END_WAIT),
                Presence::Gone if only_the_end => return read_the_end(answering).await,
                Presence::Here | Presence::Suspect | Presence::Gone => {
                    let since = flow.reading.drain.since().filter(|_| !flow.settled);
                    let bound = self.drain_time(flow);
                    since.map(|since| since.saturating_add(bound).saturating_sub(before))
                }
            };
            // A document is read to its end, and what is settled ends by itself.
            let ends_early = flow.scanner.is_some() && !flow.settled;
            let place = flow.reading.place.as_ref().filter(|_| ends_early);
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

    /// A metered answer that is no stream.
    fn is_document(&self, flow: &Flow) -> bool {
        flow.scanner.is_none() && self.entry.is_some()
    }

    /// How long an answer is read on for nobody. A document is read to its end, unless it has none: it has as
    /// long as a silence may last, and room for more than any document of the interface.
    fn drain_time(&self, flow: &Flow) -> Duration {
        let config = &self.settings.config;
        match self.is_document(flow) {
            true => config.upstream.read_timeout,
            false => config.streams.drain_timeout,
        }
    }

    /// Begins, bounds and lifts the drain. `Some` when the reading is to end.
    fn drain_over(&self, flow: &mut Flow) -> Option<InDoubt> {
        if flow.settled {
            return None;
        }
        let now = self.gateway.clock.monotonic();
        let is_document = self.is_document(flow);
        let (reader, bounds) = match (is_document, self.reader(flow)) {
            (false, reader) => (
                reader,
                DrainBounds {
                    time: self.drain_time(flow),
                    bytes: STREAM_BYTES_MAX,
                },
            ),
            (true, reader) => (
                match reader {
                    Reader::Perhaps => Reader::Nobody,
                    reader => reader,
                },
                DrainBounds {
                    time: self.drain_time(flow),
                    bytes: DOCUMENT_BYTES_MAX,
                },
            ),
        };
        let verdict = flow.reading.drain.look(reader, now, bounds);
        if reader == Reader::Somebody {
            flow.reading = Reading::default();
        }
        let place = flow.reading.place.as_ref();
        if flow.reading.drain.is_on() && !is_document && place.is_some_and(Drained::is_displaced) {
            self.gateway.metrics.drain("displaced");
            return Some(InDoubt::ClientGone);
        }
        match verdict {
            Verdict::GoesOn => None,
            Verdict::MayBegin if is_document => {
                flow.reading.drain.begin(now);
                None
            }
            Verdict::MayBegin => self.begin_drain(flow, now),
            Verdict::Over => {
                self.gateway.metrics.drain("cut");
                Some(InDoubt::ClientGone)
            }
        }
    }

    /// Nobody reads a stream any more. `Some` when nothing reads it on.
    fn begin_drain(&self, flow: &mut Flow, now: Duration) -> Option<InDoubt> {
        if self.entry.is_none() {
            // A free answer that nobody reads is worth nothing.
            return Some(InDoubt::ClientGone);
        }
        let on_disconnect = self.declared.on_disconnect;
        let on_disconnect = on_disconnect.unwrap_or(self.settings.config.streams.on_disconnect);
        if on_disconnect == OnDisconnect::Cancel {
            self.gateway.metrics.drain("cancelled");
            return Some(InDoubt::ClientGone);
        }
        let Ok(permit) = Arc::clone(&self.gateway.drains).try_acquire_owned() else {
            self.gateway.metrics.drain("refused");
            return Some(InDoubt::ClientGone);
        };
        let reading = &mut flow.reading;
        reading.permit = Some(permit);
        // An app that stalled has lost it already.
        if reading.place.is_none() {
            reading.place = self.dispatch.place.drains();
        }
        reading.drain.begin(now);
        None
    }

    /// What goes to the tape is not for the leading app any more, wherever that is.
    fn reader(&self, flow: &Flow) -> Reader {
        let purchase = self.app.purchase.as_ref();
        if purchase.is_some_and(|purchase| purchase.is_followed()) {
            return Reader::Somebody;
        }
        match self.app.downstream.presence() {
            Presence::Here if flow.forward.is_to_app() => Reader::Somebody,
            Presence::Suspect if flow.forward.is_to_app() && self.app.downstream.is_proven() => {
                Reader::Somebody
            }
            Presence::Suspect if flow.forward.is_to_app() => Reader::Perhaps,
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
