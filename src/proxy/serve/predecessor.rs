//! The look for a request's predecessor: an earlier equal request of the app whose answer it did not get.
//!
//! Promise: the look waits where a moment decides whether this is a purchase of its own: for the end of an
//! old connection, and for the end of an answer that is still read under a key that can be adopted then;
//! nothing was sent of what ends here.

use std::time::Duration;

use tokio::time::{Instant, timeout, timeout_at};

use super::Request;
use super::spend::WAIT_MAX;
use super::turn::patience;
use crate::proxy::claim::{AdoptPolicy, Claim, Claimant};
use crate::proxy::downstream::{Downstream, Presence};
use crate::proxy::refuse::{Code, Refusal};

/// Why a request that waited for its predecessor's end claims nothing.
pub(super) enum Unclaimed {
    Refused(Refusal),
    /// Its app has left.
    Left,
}

// === impl Request ===

impl Request<'_> {
    /// Finds the request's predecessor. A marked retry whose equal is still connected waits for a
    /// moment, because the end of the old connection may be on its way.
    pub(super) async fn claim(
        &self,
        downstream: &mut Downstream,
        claimant: &Claimant,
    ) -> Result<Claim, Unclaimed> {
        let retry = &self.settings.config.retry;
        let policy = AdoptPolicy {
            adopt: retry.adopt,
            window: retry.adopt_window,
        };
        let mut began = Instant::now();
        let mut look_again = true;
        let mut waiter = None;
        loop {
            match self.gateway.claims.claim(claimant, policy, look_again) {
                Claim::LookAgain { mut left, wait } => {
                    let changed = timeout_at(began + wait, left.changed()).await;
                    look_again = matches!(changed, Ok(Ok(())));
                }
                Claim::ReadOn(mut left) => {
                    if downstream.look() != Presence::Here {
                        return Err(Unclaimed::Left);
                    }
                    if waiter.is_none() {
                        let entered = self.gateway.among_waiters(&self.app.name);
                        waiter = Some(entered.map_err(Unclaimed::Refused)?);
                    }
                    tokio::select! {
                        changed = timeout(self.patience_left(), left.changed()) => {
                            if !matches!(changed, Ok(Ok(()))) {
                                return Err(Unclaimed::Refused(still_read()));
                            }
                        }
                        () = downstream.left() => return Err(Unclaimed::Left),
                    }
                    began = Instant::now();
                    look_again = true;
                }
                decided => return Ok(decided),
            }
        }
    }

    fn patience_left(&self) -> Duration {
        let patience = patience(self.admitted).min(WAIT_MAX);
        let deadline = self.arrived.saturating_add(patience);
        deadline.saturating_sub(self.gateway.clock.monotonic())
    }
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
