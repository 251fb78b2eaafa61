//! May this request spend? Asked behind the claim, which knows what it repeats, and before the intent,
//! which says what is held for it.
//!
//! Promise: what is refused here was not sent, has no entry, and is no retry that an SDK should make by
//! itself; a waiting request is refused at once when the answer is no, and takes no place when its app has left.

use std::sync::Arc;

use super::end::{Ended, deserted};
use super::request::{Request, WAIT_MAX};
use crate::caps::{Ask, Permit, Repeats};
use crate::ledger::entry::KeyOrigin;
use crate::proxy::downstream::Downstream;
use crate::proxy::purchase::shared::Purchase;
use crate::proxy::refuse::{Code, Refusal};

/// Waits until every cap, and the limit of its run, has room.
pub async fn permit(
    request: &Request<'_>,
    downstream: &mut Downstream,
    purchase: &Purchase,
    request_bytes: u64,
) -> Result<Permit, Ended> {
    let ask = Ask {
        entry: request.entry_id,
        app: purchase.request_key.app.clone(),
        run: request
            .admitted
            .caller
            .run
            .as_ref()
            .map(|run| Arc::clone(&run.id)),
        session: request.admitted.app_session(),
        operation: request.admitted.route.operation,
        request_bytes,
        repeats: repeats(request, purchase).await,
    };
    let gateway = request.gateway;
    let waited = gateway.clock.monotonic().saturating_sub(request.arrived);
    let wait = WAIT_MAX.min(request.patience().saturating_sub(waited));
    let mut stop = gateway.life.stop_signal();
    let guard = request.guard();
    tokio::select! {
        // A request that need not wait does not ask whether the app is there.
        biased;
        answer = gateway.caps.reserve(ask, wait) => {
            answer.map_err(|refused| Refusal::from(&refused).into())
        }
        () = deserted(downstream, purchase) => Err(Ended::AppLeft),
        refusal = guard.halted() => Err(refusal.into()),
        () = stop.wait() => Err(Refusal::new(Code::ShuttingDown).into()),
    }
}

/// What is charged to this organization under the key that this request goes under, if it repeats what
/// was bought: only an equal request does.
async fn repeats(request: &Request<'_>, purchase: &Purchase) -> Option<Repeats> {
    let key = request.key.as_ref()?;
    let adopted = match key.origin {
        KeyOrigin::Minted => return None,
        KeyOrigin::Adopted { from } => Some(from),
        KeyOrigin::App => None,
    };
    // An undelivered request stands behind an adopted key, billed or held.
    let behind = adopted.map(|from| Repeats {
        since_ms: purchase.first.at_ms,
        from: vec![from],
    });
    if !request.gateway.caps.are_set() && request.admitted.caller.run.is_none() {
        return behind;
    }
    let ledger = &request.gateway.ledger;
    match ledger
        .key_standing(key, purchase.request_key.fingerprint)
        .await
    {
        // The key may have been there before midnight, and have waited for its purchase.
        Ok(standing) => standing.charge().map(|charge| Repeats {
            since_ms: charge.since_ms,
            from: charge.entries.into_iter().chain(adopted).collect(),
        }),
        // A ledger that cannot answer takes no intent either, or is set to serve all the same.
        Err(_) => behind,
    }
}
