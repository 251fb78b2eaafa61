//! The inference service, working on this machine.
//!
//! It stands in for the remote service when there is no account and no network: a demo, a test, an app
//! under development. It plans, answers, checks, escalates, meters and refuses as the interface says, from
//! the interface's text alone: it shares no code with the daemon, because a header misspelt in shared code
//! would keep every test green.
//!
//! The promise: nothing here is canned. An answer is computed from its prompt, a bill from its tokens, and
//! the books ([`books`]) hold every debit, so that a test can compare what a client believes with the truth.
//! What the interface leaves open is chosen once, in [`mod@assumptions`], and marked on the wire.
//!
//! The life of a request, in order:
//!
//! | step | file |
//! |---|---|
//! | one connection, one task; faults that end it | [`server`](mod@server) |
//! | request id, log, fault, key, 30 MB | `front` |
//! | path to handler | `router`, `routes/` |
//! | 8 in flight, 120 a minute | `limits` |
//! | first run, replay, wait or conflict | `idempotency` |
//! | plan, answer, judge, escalate | `models` |
//! | one debit | `billing`, [`books`] |
//! | JSON with headers, or a stream with comments | `receipt`, `sse` |
//!
//! `/sandbox/…` ([`control`]) is no part of the interface: it shows the books and sets faults, limits and time.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::print_stdout
    )
)]

pub mod assumptions;
mod auth;
mod billing;
pub mod books;
pub mod clock;
pub mod control;
mod error;
pub mod fault;
mod front;
mod idempotency;
mod limits;
mod models;
pub mod money;
pub mod options;
mod pins;
mod receipt;
mod rollup;
mod router;
mod routes;
pub mod scenario;
pub mod server;
pub mod spec;
mod sse;
mod state;

pub use assumptions::{Assumption, assumptions};
pub use clock::Clock;
pub use options::{Options, RepeatBilled};
pub use router::router;
pub use scenario::Scenario;
pub use server::serve;
pub use state::State;
