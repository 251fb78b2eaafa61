//! One purchase, over its attempts and over the repeats of its app: which earlier request an equal one
//! belongs to, what follows the end of an attempt, what of its answer is kept for whom.
//!
//! Lowest first:
//!
//! ```text
//! age, backoff  of a key; between attempts
//! retry         what follows the end of an attempt
//! claimant      who asks for what
//! delivery      who has what of an answer, and what is kept of it
//! fate          how it ended, for the table and the ledger
//! live          a request that runs, seen from its leader, its follower and the ledger
//! forward       where the pieces of its answer go
//! drain         how long it is read for nobody
//! slots, claim  the table of undelivered requests
//! ```
//!
//! Each of `retry`, `delivery`, `forward` and `drain` has its table of states in its head.
//!
//! Promise: no I/O. The model check beside the proxy drives these files themselves.

pub mod age;
pub mod backoff;
pub mod claim;
pub mod claimant;
pub mod client;
mod delivery;
pub mod drain;
pub mod fate;
pub mod forward;
pub mod lost;
pub mod retry;
pub mod shared;
mod slots;
