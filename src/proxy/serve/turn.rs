//! Between the claim and the intent: what the service refuses to all is answered here, and a
//! request that needs a place at the service waits for it.
//!
//! Promise: nothing was sent of what ends here, and no entry is made of it; an app that hangs up leaves at
//! once; what waits when bursar stops is refused.

use std::time::Duration;

use super::end::{Ended, deserted, is_deserted};
use super::request::Request;
use crate::ledger::KeyStanding;
use crate::ledger::entry::KeyOrigin;
use crate::proxy::downstream::Downstream;
use crate::proxy::limits::breaker::{Asks, Pass};
use crate::proxy::limits::queue::{Priority, Unserved, UpstreamSlot};
use crate::proxy::purchase::shared::Purchase;
use crate::proxy::refuse::{Code, Refusal};

/// What asks for leave takes less than this where it need not wait.
const WAIT_MIN: Duration = Duration::from_millis(5);

/// A request that may go.
pub struct Admission {
    pub pass: Pass,
    /// `None` where the service's ceilings do not hold.
    pub slot: Option<UpstreamSlot>,
    /// How long it waited for room below its limits, and for its place.
    pub queued: Duration,
}

// === impl Admission ===

impl Admission {
    /// The time it took to get leave below its limits. Without a wait that is bursar's own.
    pub fn having_waited(mut self, for_room: Duration) -> Self {
        if for_room >= WAIT_MIN {
            self.queued = self.queued.saturating_add(for_room);
        }
        self
    }

    pub fn free(pass: Pass) -> Self {
        Self {
            pass,
            slot: None,
            queued: Duration::ZERO,
        }
    }
}

/// Waits until this request may go.
pub async fn turn(
    request: &Request<'_>,
    downstream: &mut Downstream,
    purchase: &Purchase,
) -> Result<Admission, Ended> {
    let breaker = &request.gateway.breaker;
    let asks = asks(request, purchase).await;
    breaker.look(asks)?;
    let (slot, queued) = if request.admitted.route.is_inference() {
        let (slot, queued) = place(request, downstream, purchase).await?;
        (Some(slot), queued)
    } else {
        (None, Duration::ZERO)
    };
    // Much may have happened meanwhile, and only a request that goes may be the one that asks for all.
    let pass = breaker.pass(asks)?;
    if !queued.is_zero() {
        if is_deserted(downstream, purchase) {
            return Err(Ended::AppLeft);
        }
        // While it waited, the cost of others became known.
        if let Some(over) = request.gateway.caps.over(request.entry_id) {
            return Err(Refusal::from(&over).into());
        }
    }
    Ok(Admission { pass, slot, queued })
}

async fn place(
    request: &Request<'_>,
    downstream: &mut Downstream,
    purchase: &Purchase,
) -> Result<(UpstreamSlot, Duration), Ended> {
    let gateway = request.gateway;
    let app = &purchase.request_key.app;
    let began = gateway.clock.monotonic();
    let waited = || gateway.clock.monotonic().saturating_sub(began);
    let guard = request.guard();
    let entered = tokio::select! {
        biased;
        entered = gateway.queue.enter(app, Priority::First, request.deadline()) => entered,
        () = deserted(downstream, purchase) => return Err(Ended::AppLeft),
        halt = guard.halted() => return Err(halt.having_waited(waited()).into()),
    };
    entered.map_err(|unserved| refusal_of(unserved).having_waited(waited()).into())
}

fn refusal_of(unserved: Unserved) -> Refusal {
    match unserved {
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
    }
}

/// Whether the request's key may be known to the service: then it is answered from what is stored
/// there, "even with zero balance".
async fn asks(request: &Request<'_>, purchase: &Purchase) -> Asks {
    let Some(key) = &request.key else {
        return Asks::Anew;
    };
    let is_known = match key.origin {
        KeyOrigin::Minted => false,
        KeyOrigin::Adopted { .. } => true,
        // The ledger is asked only where the answer matters.
        KeyOrigin::App => {
            request.gateway.breaker.is_refusing() && {
                let fingerprint = purchase.request_key.fingerprint;
                let standing = request.gateway.ledger.key_standing(key, fingerprint).await;
                // A ledger that cannot answer knows nothing.
                matches!(standing, Ok(KeyStanding::Charged(_)))
            }
        }
    };
    if is_known { Asks::Again } else { Asks::Anew }
}
