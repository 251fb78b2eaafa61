//! The end of a request of which nothing was sent, wherever on its way to the service it was.
//!
//! From the claim on, an equal request that comes when the app has hung up joins the one that waits: it
//! takes over its place in the line and its key. So a wait goes on as long as the app or a follower wants
//! the answer.
//!
//! Promise: the app that waits for the answer is given the reason why there is none, on its own connection or on
//! the one that took over; and no request can join what has ended.

use std::time::Duration;

use tokio::time::sleep;

use super::request::Request;
use crate::proxy::downstream::Downstream;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::shared::{Purchase, ReplayEnd};
use crate::proxy::refuse::Refusal;
use crate::proxy::relay::own;
use crate::proxy::report::{Report, report};
use crate::proxy::settle::{EntryGuard, Measured};

/// How often it is looked whether an app that sends far ahead has left: nothing is read that would show it.
const HUNG_UP_LOOK: Duration = Duration::from_millis(100);

/// Why a request is not sent.
pub enum Ended {
    Refused(Refusal),
    /// Its app has left, and no request follows.
    AppLeft,
}

// === impl Ended ===

impl Ended {
    /// How long it waited for a place.
    fn queued(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.queued,
            Self::AppLeft => None,
        }
    }
}

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Resolves when no app waits for the answer any more: its own has left, and none follows. As between
/// attempts, an end of input is enough: nothing is spent on the answer.
pub async fn deserted(downstream: &mut Downstream, purchase: &Purchase) {
    if downstream.presence() == Presence::Here {
        downstream.left().await;
    }
    // An app that sends far ahead is not read on, and has ended nothing.
    while !downstream.has_hung_up() {
        sleep(HUNG_UP_LOOK).await;
    }
    purchase.app_left();
    while !purchase.gives_up() {
        purchase.unfollowed().await;
    }
}

/// Whether the app has left, or is suspected to, and no request follows. None can after `true`.
pub fn is_deserted(downstream: &mut Downstream, purchase: &Purchase) -> bool {
    if downstream.look() == Presence::Here || !downstream.has_hung_up() {
        return false;
    }
    purchase.app_left();
    purchase.gives_up()
}

/// Ends a request that has an entry. Whether the app's connection can be kept.
pub async fn unsent(
    request: &Request<'_>,
    downstream: &mut Downstream,
    entry: &mut EntryGuard,
    ended: Ended,
) -> bool {
    let is_followed = !entry.purchase().gives_up();
    if is_followed && let Ended::Refused(refusal) = &ended {
        entry
            .purchase()
            .record_end(ReplayEnd::Broken(refusal.clone()));
    }
    let measured = request.measured(ended.queued());
    entry.nothing_sent(measured).await;
    match ended {
        Ended::Refused(_) if is_followed => {
            request.gateway.metrics.disconnect("waiting");
            false
        }
        ended => give(request, downstream, ended, measured).await,
    }
}

/// Ends a request that none can follow. Whether the app's connection can be kept.
pub async fn unclaimed(request: &Request<'_>, downstream: &mut Downstream, ended: Ended) -> bool {
    let measured = request.measured(ended.queued());
    give(request, downstream, ended, measured).await
}

/// Gives the app the reason, and reports it.
async fn give(
    request: &Request<'_>,
    downstream: &mut Downstream,
    ended: Ended,
    measured: Measured,
) -> bool {
    match ended {
        Ended::Refused(refusal) => {
            let origin = request.admitted.origin.as_ref();
            let keep =
                own::give_refusal(downstream, &refusal, request.entry_id, None, origin).await;
            let refused = Report {
                admitted: Some(request.admitted),
                model: request.model.as_deref(),
                measured,
                ..Report::of_refusal(&refusal, request.entry_id)
            };
            report(request.gateway, downstream, &refused);
            keep
        }
        Ended::AppLeft => {
            request.gateway.metrics.disconnect("waiting");
            false
        }
    }
}
