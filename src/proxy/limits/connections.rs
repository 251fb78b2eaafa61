//! How many connections apps may hold, and room for those of their heads that are large.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::places::Places;

/// Most of the room that is the Unix sockets' own while ports take all they can, and the other way round.
const OWN_ROOM_MAX: usize = 128;

/// Heads above [`PLACE_BYTES`] at once, each up to 64 KiB: 32 MiB.
const LARGE_HEADS_MAX: usize = 512;

/// Those that find no place and are refused at once. A refusal costs a descriptor for half a second; in a flood
/// the others find their connection closed, or the ledger and the service would lack descriptors.
pub const TURN_AWAYS_MAX: usize = 64;

/// Room for large heads.
#[derive(Debug)]
pub struct LargeHeads(Arc<Semaphore>);

/// The places of all connections of apps. Where all are taken, one that rests gives way to a new one; where none
/// does: 503 and close.
pub fn places(connections_max: usize) -> Places {
    let own_room = OWN_ROOM_MAX.min(connections_max / 6);
    Places::new(connections_max.saturating_sub(own_room), connections_max)
}

// === impl LargeHeads ===

impl LargeHeads {
    /// Room for one, until it is dropped. `None`: there is none now.
    pub fn admit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }
}

impl Default for LargeHeads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(LARGE_HEADS_MAX)))
    }
}
