//! May this request spend? Asked behind the claim, which knows what it repeats, and before the intent,
//! which says what is held for it.
//!
//! Promise: what is refused here was not sent, has no entry, and is no retry that an SDK should make by
//! itself; who waits is told at once when the answer is no, and takes no place when its app has left.

use std::sync::Arc;
use std::time::Duration;

use super::Request;
use super::turn::patience;
use super::unsent::{Entered, deserted};
use crate::caps::{Ask, Permit, Refused, Repeats};
use crate::ledger::entry::KeyOrigin;
use crate::money::MicroUsd;
use crate::proxy::claim::live::Live;
use crate::proxy::downstream::Downstream;
use crate::proxy::halt::Spender;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settle::OpenEntry;

/// Longest wait for room below a cap, or for an earlier answer's end.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// There is no permit, and the app was told so or has left. `keep`: its connection can be kept.
pub(super) struct NoPermit {
    pub keep: bool,
}

// === impl Request ===

impl Request<'_> {
    /// Waits until every cap, and the limit of its run, has room. The permit goes to the entry; answers
    /// what is held for it.
    pub(super) async fn permit(
        &self,
        downstream: &mut Downstream,
        entry: &mut OpenEntry,
        request_bytes: u64,
    ) -> Result<MicroUsd, NoPermit> {
        let live = &entry.live;
        let ask = Ask {
            entry: self.entry_id,
            app: live.mark.app.clone(),
            run: self
                .admitted
                .caller
                .run
                .as_ref()
                .map(|run| Arc::clone(&run.id)),
            operation: self.admitted.route.operation,
            request_bytes,
            repeats: self.repeats(live).await,
        };
        let refusal = match self.wait_for_room(downstream, live, ask).await {
            Ok(permit) => {
                let reserved = permit.reserved;
                entry.permit = Some(permit);
                return Ok(reserved);
            }
            Err(refusal) => refusal,
        };
        let ended = self.end_unsent(downstream, entry, Entered::No, refusal.as_ref());
        Err(NoPermit { keep: ended.await })
    }

    /// Whom it spends for.
    pub(super) fn spender(&self) -> Spender {
        Spender {
            gateway: Arc::clone(self.gateway),
            app: Arc::clone(&self.app.name),
            run: self.admitted.caller.run.clone(),
        }
    }

    /// An error without a refusal: the app has left.
    async fn wait_for_room(
        &self,
        downstream: &mut Downstream,
        live: &Live,
        ask: Ask,
    ) -> Result<Permit, Option<Refusal>> {
        let waited = self.gateway.clock.monotonic().saturating_sub(self.arrived);
        let wait = WAIT_MAX.min(patience(self.admitted).saturating_sub(waited));
        let mut stop = self.gateway.stop_signal();
        let spender = self.spender();
        tokio::select! {
            // Who need not wait does not ask whether the app is there.
            biased;
            answer = self.gateway.caps.reserve(ask, wait) => {
                answer.map_err(|refused| Some(refusal(&refused)))
            }
            () = deserted(downstream, live) => Err(None),
            refusal = spender.halted() => Err(Some(refusal)),
            () = stop.wait() => Err(Some(Refusal::new(Code::ShuttingDown))),
        }
    }

    /// What is charged to this organization under the key that this request goes under, if it repeats what
    /// was bought: only an equal request does.
    async fn repeats(&self, live: &Live) -> Option<Repeats> {
        let key = self.key.as_ref()?;
        let adopted = match key.origin {
            KeyOrigin::Minted => return None,
            KeyOrigin::Adopted { from } => Some(from),
            KeyOrigin::App => None,
        };
        // An undelivered request stands behind an adopted key, billed or held.
        let behind = adopted.map(|from| Repeats {
            since_ms: live.first.at_ms,
            from: vec![from],
        });
        if !self.gateway.caps.are_set() && self.admitted.caller.run.is_none() {
            return behind;
        }
        let ledger = &self.gateway.ledger;
        match ledger.key_charge(key, live.mark.fingerprint).await {
            // The key may have been there before midnight, and have waited for its purchase.
            Ok(charge) => charge.map(|charge| Repeats {
                since_ms: charge.since_ms,
                from: charge.entries.into_iter().chain(adopted).collect(),
            }),
            // A ledger that cannot tell takes no intent either, or is told to serve all the same.
            Err(_) => behind,
        }
    }
}

/// The answer to who may not spend.
pub(in crate::proxy) fn refusal(refused: &Refused) -> Refusal {
    let code = match refused {
        Refused::Reached(_) | Refused::RunReached(_) => Code::CapReached,
        Refused::Frozen(_) => Code::Frozen,
        Refused::Removed(_) => Code::AppRemoved,
        Refused::Crowded(_) | Refused::Late(_) => Code::CapBusy,
    };
    Refusal::saying(code, refused.to_string())
}
