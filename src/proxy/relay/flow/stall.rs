//! An app that takes nothing of its answer while another request waits for its place at the service.
//!
//! What an app does not take is kept for it by its connection, within bounds. Beyond them a write waits, and
//! so does the service; then the app loses the answer to the request that waits for its place there, as a
//! stream that is read without a reader does.

use std::time::Duration;

use tokio::time::Instant;

use crate::proxy::limits::queue::{Drained, UpstreamSlot};

/// An app that takes nothing for so long, with all kept for it that may be, is in the way of others. The
/// kernel has room for more in large steps: an app that reads slowly shows it once in seconds.
const STALL_MAX: Duration = Duration::from_secs(10);

/// How often it is looked at.
const STALL_LOOK: Duration = Duration::from_millis(250);

/// Resolves when an app that stalls has to give its place at the service to a request that waits.
/// `taken_bytes`: what its socket has taken.
pub(super) async fn wanted_by_others(
    place: Option<&UpstreamSlot>,
    taken_bytes: impl Fn() -> u64,
) -> Drained {
    let Some(place) = place else {
        return std::future::pending().await;
    };
    let (mut seen, mut since) = (taken_bytes(), Instant::now());
    let mut offered: Option<Drained> = None;
    loop {
        let look = tokio::time::sleep(STALL_LOOK);
        match offered.take() {
            Some(drained) => {
                tokio::select! {
                    biased;
                    () = drained.displaced() => return drained,
                    () = look => {}
                }
                offered = Some(drained);
            }
            None => look.await,
        }
        let now = taken_bytes();
        if now != seen {
            (seen, since) = (now, Instant::now());
            offered = None;
        } else if offered.is_none() && since.elapsed() >= STALL_MAX {
            offered = Some(place.drains());
        }
    }
}

#[cfg(test)]
mod tests;
