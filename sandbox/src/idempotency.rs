//! The Idempotency-Key table of the interface, whole.
//!
//! | situation | here |
//! |---|---|
//! | first request with a key | [`Begin::Run`]; a 2xx of a stored kind is kept 24 hours |
//! | same key, endpoint and body within 24 h | [`Begin::Replay`] |
//! | same key, different body or endpoint within 24 h | 422 |
//! | same key while the first runs | waits up to 9 minutes, then replays, or runs if the first failed, or 409 |
//! | first failed | nothing stored, the next one runs |
//! | more than 24 h later | the key is free |
//! | not stored (agent turns, embeddings, over 1 MB, streams) | stays bound; a repeat runs and is billed once |
//! | agent turns and streams while the first runs | run alongside, billed once |
//!
//! Promise: see `table`, which holds the keys; `stored` is an answer and its replay, `kept` a key on disk.

mod kept;
mod stored;
mod table;

pub use kept::KeptBinding;
pub use stored::Stored;
pub use table::{Begin, BilledKey, Claim, Keys, RunPermit, WhileRunning};

#[cfg(test)]
mod tests;
