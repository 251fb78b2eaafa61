//! The door's judgement of a request, held back while the request's run is on its way: a daemon that was
//! just started hears of the runs of `bursar exec` again within a moment.
//!
//! Promise: no other request waits; nothing of the request was read but its head.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::proxy::door::admit;
use crate::proxy::door::admit::Inbound;
use crate::proxy::downstream::Downstream;
use crate::proxy::gateway::Gateway;
use crate::proxy::refuse::{Code, Refusal};
use crate::proxy::settings::Settings;

/// Longest wait for a run to be there. After it the refusal asks the app to try again.
const RUN_WAIT: Duration = Duration::from_secs(2);

pub async fn admit(
    gateway: &Arc<Gateway>,
    settings: &Settings,
    downstream: &Downstream,
) -> Result<Inbound, Refusal> {
    let judge = || {
        let now = gateway.clock.monotonic();
        admit::admit(settings, &gateway.apps, downstream, now)
    };
    // Nearly always the run is there, or there is none.
    let admission = judge();
    if !is_awaited(&admission) {
        return admission;
    }
    let until = Instant::now() + RUN_WAIT;
    let (mut openings, mut changes) = (gateway.apps.openings(), gateway.apps.changes());
    let mut stop = gateway.life.stop_signal();
    loop {
        let is_late = Instant::now() >= until;
        let admission = judge();
        if is_late || !is_awaited(&admission) {
            return admission;
        }
        // Whichever comes, the door decides anew.
        let moved = async {
            tokio::select! {
                _ = openings.changed() => {}
                _ = changes.changed() => {}
                () = stop.wait() => {}
            }
        };
        let in_time = timeout_at(until, moved).await;
        if in_time.is_ok() && gateway.life.is_stopping() {
            return Err(Refusal::new(Code::ShuttingDown));
        }
    }
}

fn is_awaited(admission: &Result<Inbound, Refusal>) -> bool {
    matches!(admission, Err(refusal) if refusal.code == Code::RunAwaited)
}
