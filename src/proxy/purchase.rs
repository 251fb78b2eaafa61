//! One purchase, over its attempts and over the repeats of its app: which earlier request an equal one
//! belongs to, what follows the end of an attempt, and what of the answer is written, kept, read on and
//! settled as.
//!
//! Lowest first:
//!
//! ```text
//! client        what is known of the app at the other end of a connection
//! lost          how an attempt ended that brought no head
//! age, backoff  of a key; between attempts
//! retry         what follows the end of an attempt
//! attempts      the attempts of one request, and what stands between two of them
//! claimant      what makes two requests equal
//! repeats       how many retries shared a purchase, until its price is known
//! delivery      which app has what of an answer, and what is kept of it
//! shared        one purchase, as its leader, its follower and the ledger share it
//! forward       where the pieces of its answer go
//! drain         how long it is read without a reader
//! event         what happens to an answer, and what is to be done about it
//! answer        the machine of an answer on its way to the app that asked
//! following     the same for an app that takes it over
//! slots, claim  the table of undelivered requests
//! ```
//!
//! Each of `client`, `retry`, `attempts`, `delivery`, `forward`, `drain`, `answer` and `following` has its table of states in
//! its head. The shells that move bytes (`dispatch`, `relay`, `client_watch`, `downstream`) carry out what
//! these decide.
//!
//! Promise: no I/O, and no socket is known here. The model check (`simulation`) drives these files themselves.

pub mod age;
pub mod answer;
pub mod attempts;
pub mod backoff;
pub mod claim;
pub mod claimant;
pub mod client;
mod delivery;
pub mod drain;
pub mod event;
pub mod following;
mod forward;
pub mod lost;
pub mod repeats;
pub mod retry;
pub mod shared;
#[cfg(test)]
mod simulation;
mod slots;
