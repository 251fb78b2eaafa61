//! The end of a request: the answer goes to the app, or to the one that followed it, and the table
//! of undelivered requests hears how.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use pingora::http::ResponseHeader;

use super::*;
use crate::proxy::claim::Fate;
use crate::proxy::claim::live::{TapeEnd, TapeItem};

impl World {
    /// As `Relay::give_whole` and `Relay::run` do it.
    pub(super) fn deliver(&mut self, at: usize) {
        let flight = self.flights.remove(at);
        let live = &flight.live;
        let is_answer = flight.answer.is_some();
        let is_own_key = is_own(live);
        let mut is_delivered = false;
        let was_handed_out = live.is_handed_out();
        let taken = was_handed_out || live.take();
        if flight.app_here && taken && self.dice.chance(90) {
            if is_answer {
                live.handed_out();
                self.note("delivered", flight.entry.0.as_u128());
                self.paper.audit.delivered(flight.entry, is_own_key);
                is_delivered = true;
            }
        } else if !was_handed_out {
            if flight.app_here && taken {
                live.app_left();
            }
            if taken {
                live.not_taken();
            }
            let status = if is_answer { 200 } else { 502 };
            let head = ResponseHeader::build(status, None).expect("a head");
            live.record_head(Arc::new(head), false);
            let chunk = live.record_chunk(Bytes::from_static(b"x"));
            chunk.now_or_never().expect("one byte fits");
            live.record_end(TapeEnd::Complete);
        }
        let is_known_zero = flight.state == Some(State::Failed) && live.adoptions == 0;
        let fate = if is_known_zero || is_delivered || live.is_handed_out() {
            Fate::Closed
        } else {
            Fate::Undelivered
        };
        self.tell_delivery(live, fate == Fate::Undelivered);
        self.claims.finish(live, fate);
    }

    /// As `Gateway::tell_delivery`.
    pub(super) fn tell_delivery(&mut self, live: &Live, undelivered: bool) {
        let at_ms = self.clock.wall_ms();
        live.tell_delivery(undelivered, at_ms, |row, delivered| {
            let handover = Handover {
                delivered,
                assumed: false,
            };
            let command = Command::Deliver(Box::new(row), handover);
            self.paper.pending.push(command);
        });
    }

    /// The intent could not be written: nothing was sent.
    pub(super) fn never_sent(&mut self, id: EntryId) {
        let Some(at) = self.flights.iter().position(|flight| flight.entry == id) else {
            return;
        };
        let flight = self.flights.remove(at);
        let fate = if flight.live.adoptions > 0 {
            Fate::Undelivered
        } else {
            Fate::Closed
        };
        self.claims.finish(&flight.live, fate);
    }

    /// A connection that follows reads one item.
    pub(super) fn follower_reads(&mut self) {
        if self.followers.is_empty() {
            return;
        }
        let at = self.dice.below(self.followers.len());
        let (follower, is_success) = &mut self.followers[at];
        let item = follower.next().now_or_never();
        match item {
            None | Some(TapeItem::Chunk(_)) => {}
            Some(TapeItem::Head { head, .. }) => *is_success = head.status.is_success(),
            Some(TapeItem::End(end)) => {
                let (mut follower, is_success) = self.followers.remove(at);
                if is_success && matches!(end, TapeEnd::Complete) {
                    follower.handed_out();
                    let live = Arc::clone(&follower.live);
                    drop(follower);
                    self.tell_delivery(&live, false);
                    self.claims.delivered(&live.mark, live.entry);
                    self.note("followed", live.entry.0.as_u128());
                    self.paper.audit.delivered(live.entry, is_own(&live));
                }
            }
        }
    }
}

/// An app may ask twice under its own key, and gets it twice.
fn is_own(live: &Live) -> bool {
    live.key
        .as_ref()
        .is_some_and(|key| key.origin == KeyOrigin::App)
}
