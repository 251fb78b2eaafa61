//! The end of a request of which nothing was sent, wherever on its way to the service it was.
//!
//! From the claim on, an equal request that comes when the app has hung up joins the one that waits: it
//! takes over its place in the line and its key. So a wait goes on as long as the app or a follower wants
//! the answer.
//!
//! Promise: the app that waits for the answer is given the reason why there is none, on its own connection or on
//! the one that took over; and nobody can join what has ended.

use std::time::Duration;

use super::request::Request;
use crate::ledger::entry::EntryId;
use crate::proxy::door::admit::Admitted;
use crate::proxy::downstream::Downstream;
use crate::proxy::gateway::Gateway;
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::shared::{Purchase, ReplayEnd};
use crate::proxy::refuse::Refusal;
use crate::proxy::relay::own;
use crate::proxy::report::{Report, report};
use crate::proxy::settle::{Measured, OpenEntry};

/// Why a request is not sent.
pub enum Ended {
    Refused(Refusal),
    /// Its app has left, and nobody follows.
    AppLeft,
}

// === impl Ended ===

impl From<Refusal> for Ended {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Resolves when nobody waits for the answer any more: the app has left, and nobody follows. As between
/// attempts, an end of input is enough: nothing is spent on the answer.
pub async fn deserted(downstream: &mut Downstream, purchase: &Purchase) {
    if downstream.presence() == Presence::Here {
        downstream.left().await;
    }
    purchase.app_left();
    while !purchase.gives_up() {
        purchase.unfollowed().await;
    }
}

/// Whether the app has left, or is suspected to, and nobody follows. Nobody can after `true`.
pub fn is_deserted(downstream: &mut Downstream, purchase: &Purchase) -> bool {
    if downstream.look() == Presence::Here {
        return false;
    }
    purchase.app_left();
    purchase.gives_up()
}

/// Ends a request that has an entry. Whether the app's connection can be kept.
pub async fn unsent(
    request: &Request<'_>,
    downstream: &mut Downstream,
    entry: &mut OpenEntry,
    ended: Ended,
) -> bool {
    let is_followed = !entry.purchase.gives_up();
    if is_followed && let Ended::Refused(refusal) = &ended {
        entry
            .purchase
            .record_end(ReplayEnd::Broken(refusal.clone()));
    }
    entry.nothing_sent().await;
    match ended {
        Ended::Refused(_) if is_followed => {
            request.gateway.metrics.disconnect("waiting");
            false
        }
        ended => unclaimed(request, downstream, ended).await,
    }
}

/// Ends a request that nobody can follow. Whether the app's connection can be kept.
pub async fn unclaimed(request: &Request<'_>, downstream: &mut Downstream, ended: Ended) -> bool {
    match ended {
        Ended::Refused(refusal) => {
            let keep = own::give_refusal(downstream, &refusal, request.entry_id).await;
            let (gateway, admitted) = (request.gateway, Some(request.admitted));
            report_refusal(
                gateway,
                &refusal,
                admitted,
                request.entry_id,
                request.arrived,
            );
            keep
        }
        Ended::AppLeft => {
            request.gateway.metrics.disconnect("waiting");
            false
        }
    }
}

pub fn report_refusal(
    gateway: &Gateway,
    refusal: &Refusal,
    admitted: Option<&Admitted>,
    entry_id: EntryId,
    arrived: Duration,
) {
    report(
        gateway,
        &Report {
            app: admitted.map(|admitted| &*admitted.caller.app.name),
            route: admitted.map(|admitted| &admitted.route),
            entry: Some(entry_id),
            adopted: None,
            stream: false,
            status: refusal.status().as_u16(),
            code: Some(refusal.code.as_str()),
            attempts: 0,
            state: None,
            measured: Measured {
                total: gateway.clock.monotonic().saturating_sub(arrived),
                queue: refusal.queued.unwrap_or_default(),
                ..Measured::default()
            },
        },
    );
}
