//! The look for a request's predecessor: an earlier equal request of the app whose answer it did not get.
//!
//! Promise: the look waits where a moment decides whether this is a purchase of its own: for the end of an
//! old connection, for the end of an answer that is still read under a key that can be adopted then, and,
//! where its own app may have given it up, for the retry; nothing was sent of what ends here.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};

use super::end::Ended;
use super::request::{Request, WAIT_MAX};
use crate::config::Adopt;
use crate::ledger::KeyStanding;
use crate::ledger::query::find;
use crate::proxy::downstream::Downstream;
use crate::proxy::purchase::claim::{Claim, TWIN_WAIT};
use crate::proxy::purchase::claimant::{AdoptPolicy, Claimant};
use crate::proxy::purchase::client::Presence;
use crate::proxy::purchase::shared::Purchase;
use crate::proxy::refuse::{Code, Refusal};

/// Finds the request's predecessor. A marked retry whose equal is still connected waits for a
/// moment, because the end of the old connection may be on its way.
pub async fn claim(
    request: &Request<'_>,
    downstream: &mut Downstream,
    claimant: &Claimant,
) -> Result<Claim, Ended> {
    let policy = adopt_policy(request);
    let mut began = Instant::now();
    let mut look_again = true;
    let mut waiter = None;
    loop {
        match request.gateway.claims.claim(claimant, policy, look_again) {
            Claim::LookAgain { mut left, wait } => {
                let changed = timeout_at(began + wait, left.changed()).await;
                look_again = matches!(changed, Ok(Ok(())));
            }
            Claim::ReadOn(mut left) => {
                if downstream.look() != Presence::Here {
                    return Err(Ended::AppLeft);
                }
                if waiter.is_none() {
                    let entered = request.gateway.among_waiters(&request.app.name);
                    waiter = Some(entered?);
                }
                tokio::select! {
                    changed = timeout(wait_left(request), left.changed()) => {
                        if !matches!(changed, Ok(Ok(()))) {
                            return Err(still_read().into());
                        }
                    }
                    () = downstream.left() => return Err(Ended::AppLeft),
                }
                began = Instant::now();
                look_again = true;
            }
            decided => return Ok(decided),
        }
    }
}

/// Whether this request, which leads, is one that its app gave up before its intent was written: its
/// connection is reset, or its input has ended and an equal request is the app's retry. The purchase is
/// the retry's, which has the answer. `false` as well where a retry has joined this one meanwhile.
/// After `true` none can.
pub async fn is_given_up(
    request: &Request<'_>,
    downstream: &mut Downstream,
    purchase: &Arc<Purchase>,
) -> bool {
    let is_here = match downstream.look_closely() {
        Presence::Here => true,
        // An app that sends far ahead is not read on, and has ended nothing.
        Presence::Suspect => !downstream.has_hung_up(),
        Presence::Gone => false,
    };
    if is_here {
        purchase.goes();
        return false;
    }
    // From here on a retry that comes joins this one.
    purchase.app_left();
    let policy = adopt_policy(request);
    let since = downstream.free_since();
    let claims = &request.gateway.claims;
    let is_suspect = downstream.presence() == Presence::Suspect;
    let waits = is_suspect && policy.adopt != Adopt::Never;
    if waits && !claims.is_anothers(purchase, policy, since) {
        // An app that closed its sending half waits this long for nothing.
        timeout(TWIN_WAIT, purchase.followed()).await.ok();
    }
    !claims.goes(purchase, policy, since, downstream.look())
}

/// Refuses a request under an app's own key that was translated otherwise when the key was first used: the service
/// would refuse it as another request. The journal is searched only where the key went with other bytes alone.
pub async fn check_translation(request: &Request<'_>, purchase: &Purchase) -> Result<(), Refusal> {
    let translated = request.key.as_ref().filter(|key| key.asked.is_some());
    let Some(key) = translated else {
        return Ok(());
    };
    let ledger = &request.gateway.ledger;
    let fingerprint = purchase.request_key.fingerprint;
    // A ledger that cannot answer leaves it to the service.
    if !matches!(
        ledger.key_standing(key, fingerprint).await,
        Ok(KeyStanding::Elsewhere)
    ) {
        return Ok(());
    }
    let state_dir = request.settings.config.ledger.state_dir.clone();
    let (key, text) = (key.clone(), request.admitted.own_key.clone());
    let looking = spawn_blocking(move || {
        let found = find(&state_dir, &text.unwrap_or_default());
        let entries = found.map(|found| found.entries).unwrap_or_default();
        let kept = entries.iter().filter_map(|entry| entry.kept_key.as_ref());
        kept.filter(|kept| kept.is_same_key(&key))
            .any(|kept| kept.asked == key.asked)
    });
    match looking.await {
        Ok(true) => Err(Code::TranslationChanged.into()),
        Ok(false) | Err(_) => Ok(()),
    }
}

fn adopt_policy(request: &Request<'_>) -> AdoptPolicy {
    let retry = &request.settings.config.retry;
    AdoptPolicy {
        adopt: retry.adopt,
        window: retry.adopt_window,
    }
}

fn wait_left(request: &Request<'_>) -> Duration {
    let patience = request.patience().min(WAIT_MAX);
    let deadline = request.arrived.saturating_add(patience);
    deadline.saturating_sub(request.gateway.clock.monotonic())
}

fn still_read() -> Refusal {
    Refusal::saying(
        Code::UpstreamTimeout,
        "The answer to an equal request, which this one repeats, is still being read for its receipt. \
         This request waited for it and was not sent; a repeat is recognised where that answer does not \
         arrive."
            .to_owned(),
    )
}
