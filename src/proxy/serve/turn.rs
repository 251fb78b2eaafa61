//! Between the claim and the intent: what the service refuses to everybody is answered here, and a
//! request that needs a place at the service waits for it.
//!
//! Promise: nothing was sent of what ends here, and no entry is made of it; whoever hangs up leaves at
//! once; what waits when bursar stops is told so.

use std::time::Duration;

use super::unsent::{Entered, deserted, is_deserted};
use super::{Request, spend};
use crate::ledger::entry::KeyOrigin;
use crate::proxy::admit::Admitted;
use crate::proxy::breaker::{Asks, Pass};
use crate::proxy::downstream::Downstream;
use crate::proxy::queue::{Slot, Turn, Unserved};
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::OpenEntry;
use crate::proxy::waiters::Waiter;

/// "else 10 minutes": the client default of the interface.
const PATIENCE_DEFAULT: Duration = Duration::from_secs(600);

/// An app that says more is not believed: attempts are not begun for longer than this.
const PATIENCE_MAX: Duration = Duration::from_secs(3600);

/// What asks for leave takes less than this where it need not wait.
const WAIT_MIN: Duration = Duration::from_millis(5);

/// A request that may go.
pub struct Going {
    pub pass: Pass,
    /// `None` where the service's ceilings do not hold.
    pub slot: Option<Slot>,
    /// How long it waited for room below its limits, and for its place.
    pub queued: Duration,
}

/// Why a request does not go.
enum Stays {
    Refused(Refusal),
    /// Its app has left.
    Left,
}

// === impl Going ===

impl Going {
    /// The time it took to get leave below its limits. Without a wait that is bursar's own.
    pub fn waited_before(&mut self, for_room: Duration) {
        if for_room >= WAIT_MIN {
            self.queued = self.queued.saturating_add(for_room);
        }
    }

    pub fn free(pass: Pass) -> Self {
        Self {
            pass,
            slot: None,
            queued: Duration::ZERO,
        }
    }
}

// === impl Request ===

impl Request<'_> {
    /// Waits until this request may go. `Err` where it has ended instead: whether the app's connection
    /// can be kept.
    pub(super) async fn turn(
        &self,
        downstream: &mut Downstream,
        entry: &mut OpenEntry,
    ) -> Result<Going, bool> {
        match self.wait(downstream, entry).await {
            Ok(going) => Ok(going),
            Err(stays) => {
                let refusal = match &stays {
                    Stays::Refused(refusal) => Some(refusal),
                    Stays::Left => None,
                };
                let ended = self.end_unsent(downstream, entry, Entered::No, refusal);
                Err(ended.await)
            }
        }
    }

    async fn wait(&self, downstream: &mut Downstream, entry: &OpenEntry) -> Result<Going, Stays> {
        let breaker = &self.gateway.breaker;
        let asks = self.asks(entry).await;
        breaker.look(asks).map_err(Stays::Refused)?;
        let (slot, queued) = if self.admitted.route.is_inference() {
            let (slot, queued) = self.place(downstream, entry).await?;
            (Some(slot), queued)
        } else {
            (None, Duration::ZERO)
        };
        // Much may have happened meanwhile, and only who goes may be the one that asks for all.
        let pass = breaker.pass(asks).map_err(Stays::Refused)?;
        if !queued.is_zero() {
            if is_deserted(downstream, &entry.live) {
                return Err(Stays::Left);
            }
            self.look_at_limits()?;
        }
        Ok(Going { pass, slot, queued })
    }

    /// While it waited, others told what they cost.
    fn look_at_limits(&self) -> Result<(), Stays> {
        match self.gateway.caps.over(self.entry_id) {
            Some(refused) => Err(Stays::Refused(spend::refusal(&refused))),
            None => Ok(()),
        }
    }

    /// A place among those who may wait, for whatever it is. `Err` as in [`Self::turn`].
    pub(super) async fn may_wait(
        &self,
        downstream: &mut Downstream,
        entry: &mut OpenEntry,
    ) -> Result<Waiter, bool> {
        match self.gateway.among_waiters(&self.app.name) {
            Ok(waiter) => Ok(waiter),
            Err(refusal) => {
                let ended = self.end_unsent(downstream, entry, Entered::No, Some(&refusal));
                Err(ended.await)
            }
        }
    }

    async fn place(
        &self,
        downstream: &mut Downstream,
        entry: &OpenEntry,
    ) -> Result<(Slot, Duration), Stays> {
        let deadline = self.arrived.saturating_add(patience(self.admitted));
        let app = &entry.live.mark.app;
        let began = self.gateway.clock.monotonic();
        let waited = || self.gateway.clock.monotonic().saturating_sub(began);
        let spender = self.spender();
        let entered = tokio::select! {
            biased;
            entered = self.gateway.queue.enter(app, Turn::First, deadline) => entered,
            () = deserted(downstream, &entry.live) => return Err(Stays::Left),
            halt = spender.halted() => {
                return Err(Stays::Refused(halt.having_waited(waited())));
            }
        };
        entered.map_err(|unserved| {
            let refusal = match unserved {
                Unserved::Full { retry_after } => Refusal::new(Code::QueueFull).after(retry_after),
                Unserved::TooLate { retry_after } => {
                    let what = format!(
                        "The service's minute is full: this request could go in {} s at the earliest.",
                        retry_after.as_secs().saturating_add(1)
                    );
                    Refusal::because(Code::QueueTimeout, what).after(retry_after)
                }
                Unserved::TooLong {
                    waited,
                    retry_after,
                } => {
                    let what = format!("The request waited {:.1} s.", waited.as_secs_f64());
                    Refusal::because(Code::QueueTimeout, what).after(retry_after)
                }
                Unserved::Closed => Refusal::new(Code::ShuttingDown),
            };
            Stays::Refused(refusal.having_waited(waited()))
        })
    }

    /// Whether the request's key may be known to the service: then it is answered from what is stored
    /// there, "even with zero balance".
    async fn asks(&self, entry: &OpenEntry) -> Asks {
        let Some(key) = &self.key else {
            return Asks::Anew;
        };
        let is_known = match key.origin {
            KeyOrigin::Minted => false,
            KeyOrigin::Adopted { .. } => true,
            // The ledger is asked only where the answer matters.
            KeyOrigin::App => {
                self.gateway.breaker.is_refusing() && {
                    let fingerprint = entry.live.mark.fingerprint;
                    let charge = self.gateway.ledger.key_charge(key, fingerprint).await;
                    // A ledger that cannot tell knows nothing.
                    matches!(charge, Ok(Some(_)))
                }
            }
        };
        if is_known { Asks::Again } else { Asks::Anew }
    }
}

/// The app's announced patience, at most an hour, "less the larger of 1 s and 10 %", and never less than
/// half of it; else 10 minutes.
pub(super) fn patience(admitted: &Admitted) -> Duration {
    admitted.patience.map_or(PATIENCE_DEFAULT, |announced| {
        let announced = announced.min(PATIENCE_MAX);
        // Who waits for a second would be left none to wait for a place.
        let margin = (announced / 10)
            .max(Duration::from_secs(1))
            .min(announced / 2);
        announced.saturating_sub(margin)
    })
}
