//! Giving the pieces of a flowing answer out: to the app, or to the tape for whoever follows it.
//!
//! What an app does not take is kept for it by its connection, within bounds. Beyond them a write waits, and
//! so does the service; then the app loses the answer to whoever waits for its place there, as a stream
//! that is read for nobody does.
//!
//! Promise: what an app that has hung up did not read is not counted as given; until something is that
//! counts, who follows gets the answer in its place, from its first byte on.

use std::pin::pin;
use std::time::Duration;

use bytes::Bytes;
use pingora::http::ResponseHeader;
use tokio::time::Instant;

use super::super::Relay;
use super::state::{Flow, Halt};
use crate::proxy::limits::queue::{Drained, Slot};
use crate::proxy::purchase::client::{AppProbe, Presence, Written};

/// An app that takes nothing for so long, with all kept for it that may be, is in the way of others. The
/// kernel has room for more in large steps: an app that reads slowly shows it once in seconds.
const STALL_MAX: Duration = Duration::from_secs(10);

/// How often it is looked at.
const STALL_LOOK: Duration = Duration::from_millis(250);

impl Relay<'_> {
    /// Gives bytes to the app, or records them for whoever follows it.
    pub(super) async fn give(&mut self, flow: &mut Flow, bytes: Bytes) -> Result<(), Halt> {
        if flow.forward.asks_for_app() {
            self.app.look();
        }
        self.give_way(flow).await?;
        if flow.forward.is_to_app() {
            let held = self.app.downstream.held();
            if self.write(flow, bytes.clone()).await {
                return Ok(());
            }
            self.app.lost();
            if self.app.downstream.is_cut() {
                if let Some(purchase) = &self.app.purchase {
                    purchase.cuts_short();
                }
                return Err(Halt::Cut);
            }
            if !self.turn_over(flow, held).await? {
                return Ok(());
            }
        }
        self.record(flow, bytes).await
    }

    /// Before anything is given that counts: who follows by now gets it in the app's place.
    pub(super) async fn give_way(&mut self, flow: &mut Flow) -> Result<(), Halt> {
        let held = self.app.downstream.held();
        if flow
            .forward
            .gives_way(self.app.purchase.as_deref(), &flow.head)
            && let Some(held) = held
        {
            self.record(flow, held).await?;
        }
        Ok(())
    }

    /// A write to the app failed: what was held for it goes to whoever follows. `false`: the app has a part
    /// of the answer, and the rest is nobody's.
    pub(super) async fn turn_over(
        &mut self,
        flow: &mut Flow,
        held: Option<Bytes>,
    ) -> Result<bool, Halt> {
        if !flow
            .forward
            .failed(self.app.purchase.as_deref(), &flow.head)
        {
            return Ok(false);
        }
        if let Some(held) = held {
            self.record(flow, held).await?;
        }
        Ok(true)
    }

    /// Waits for a slow follower, but not beyond bursar's shutdown, and not in the way of others.
    async fn record(&mut self, flow: &mut Flow, bytes: Bytes) -> Result<(), Halt> {
        let Some(purchase) = self.app.purchase.clone() else {
            return Ok(());
        };
        let mut cut = self.gateway.life.cut_signal();
        let before = self.gateway.clock.monotonic();
        let place = self.dispatch.place.slot();
        let recorded = tokio::select! {
            biased;
            () = purchase.record_chunk(bytes) => Ok(()),
            wanted = wanted_by_others(place, || purchase.follower_went()) => {
                purchase.gives_up_follower();
                flow.reading.place = Some(wanted);
                Ok(())
            }
            () = cut.wait() => {
                purchase.cuts_short();
                Err(Halt::Cut)
            }
        };
        self.app_had_the_word_since(before);
        recorded
    }

    async fn write(&mut self, flow: &mut Flow, bytes: Bytes) -> bool {
        if self.app.downstream.presence() == Presence::Gone {
            return false;
        }
        if !flow.head_written {
            flow.head_written = true;
            let head = ResponseHeader::clone(&flow.head);
            if self.app.downstream.write_head(head).await.is_err() {
                return false;
            }
        }
        let ends_in_newline = bytes.last() == Some(&b'\n');
        let before = self.gateway.clock.monotonic();
        let place = self.dispatch.place.slot();
        let app = self.app.downstream.probe();
        let written = {
            let write = pin!(self.app.downstream.write_chunk(bytes));
            tokio::select! {
                biased;
                written = write => written.ok(),
                wanted = wanted_by_others(place, || app.taken_bytes()) => {
                    // Until the place goes: no other has to make room for the same.
                    flow.reading.place = Some(wanted);
                    None
                }
            }
        };
        self.app_had_the_word_since(before);
        let Some(written) = written else {
            // Half a chunk may have gone out.
            self.app.downstream.mark_broken();
            return false;
        };
        flow.ends_in_newline = ends_in_newline;
        let is_out = written == Written::Out;
        flow.forward.wrote(self.app.purchase.as_deref(), is_out);
        true
    }

    /// What an app takes to read is its own time.
    pub(in crate::proxy::relay) fn app_had_the_word_since(&mut self, before: Duration) {
        let took = self.gateway.clock.monotonic().saturating_sub(before);
        self.app_time = self.app_time.saturating_add(took);
    }
}

/// Resolves when an app that stalls has to give its place at the service to somebody who waits. `went`:
/// what its socket has taken.
async fn wanted_by_others(place: Option<&Slot>, went: impl Fn() -> u64) -> Drained {
    let Some(place) = place else {
        return std::future::pending().await;
    };
    let (mut seen, mut since) = (went(), Instant::now());
    let mut offered: Option<Drained> = None;
    loop {
        let look = tokio::time::sleep(STALL_LOOK);
        match offered.take() {
            Some(drained) => {
                tokio::select! {
                    biased;
                    () = drained.displaced() => return drained,
                    () = look => {}
                }
                offered = Some(drained);
            }
            None => look.await,
        }
        let now = went();
        if now != seen {
            (seen, since) = (now, Instant::now());
            offered = None;
        } else if offered.is_none() && since.elapsed() >= STALL_MAX {
            offered = Some(place.drains());
        }
    }
}

#[cfg(test)]
mod tests;
