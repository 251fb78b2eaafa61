//! How many connections apps may hold.

use crate::places::Places;

/// Connections at once by ports, and as many by Unix sockets. Above it one that rests gives way; where none
/// does: 503 and close.
pub const CONNECTIONS_MAX: usize = 640;

/// Room that is the Unix sockets' own while ports take all they can, and the other way round.
const OWN_ROOM: usize = 128;

/// Those above it that are refused at once. A refusal costs a descriptor for half a second; in a flood
/// the others find their connection closed, or the ledger and the service would lack descriptors.
pub const TURN_AWAYS_MAX: usize = 64;

/// The places of all connections of apps.
pub fn places() -> Places {
    Places::new(CONNECTIONS_MAX, CONNECTIONS_MAX + OWN_ROOM)
}
