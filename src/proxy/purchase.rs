//! One purchase, over its attempts and over the repeats of its app: which earlier request an equal one
//! belongs to, what follows the end of an attempt, what of its answer is kept for whom.
//!
//! Lowest first: `age` (of a key), `backoff`, `retry` (what follows an attempt), `claimant` (who asks for
//! what), `live` (a request that runs, seen from its leader and its follower), `handover` (what of it the
//! ledger knows), `slots` (the rows of the table), `claim` (the table of undelivered requests).
//!
//! Promise: no I/O. The model check beside the proxy drives these files themselves.

pub mod age;
pub mod backoff;
pub mod claim;
pub mod claimant;
pub mod handover;
pub mod live;
pub mod retry;
mod slots;
