//! The end of a request of which nothing was sent, wherever on its way to the service it was.
//!
//! From the claim on, an equal request that comes when the app has hung up joins the one that waits: it
//! takes over its place in the line and its key. So who waits, waits for whoever is to have the answer.
//!
//! Promise: whoever waits for the answer is told why there is none, on the app's own connection or on
//! the one that took over; and nobody can join what has ended.

use super::Request;
use crate::proxy::claim::live::{Live, TapeEnd};
use crate::proxy::downstream::{Downstream, Presence};
use crate::proxy::refuse::Refusal;
use crate::proxy::settle::OpenEntry;

/// What the ledger knows of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    No,
    /// Its intent is written.
    Intent,
}

/// Resolves when nobody waits for the answer any more: the app has left, and nobody follows. As between
/// attempts, an end of input is enough: nothing is spent on the answer.
pub(super) async fn deserted(downstream: &mut Downstream, live: &Live) {
    if downstream.presence() == Presence::Here {
        downstream.left().await;
    }
    live.app_left();
    while !live.gives_up() {
        live.unfollowed().await;
    }
}

/// Whether the app has left, or is suspected to, and nobody follows. Nobody can after `true`.
pub(super) fn is_deserted(downstream: &mut Downstream, live: &Live) -> bool {
    if downstream.look() == Presence::Here {
        return false;
    }
    live.app_left();
    live.gives_up()
}

// === impl Request ===

impl Request<'_> {
    /// Ends it: with a refusal, or without one where nobody waits any more. Whether the app's connection
    /// can be kept.
    pub(super) async fn end_unsent(
        &self,
        downstream: &mut Downstream,
        entry: &mut OpenEntry,
        entered: Entered,
        refusal: Option<&Refusal>,
    ) -> bool {
        let is_followed = !entry.live.gives_up();
        if is_followed && let Some(refusal) = refusal {
            entry.live.record_end(TapeEnd::Broken(refusal.clone()));
        }
        match entered {
            Entered::No => entry.never_sent(),
            Entered::Intent => entry.nothing_sent().await,
        }
        match refusal {
            Some(refusal) if !is_followed => self.refuse(downstream, refusal).await,
            Some(_) | None => {
                self.gateway.metrics.disconnect("waiting");
                false
            }
        }
    }
}
