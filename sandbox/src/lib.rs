//! The inference service, working on this machine.
//!
//! It stands in for the remote service when there is no account and no network: a demo, a test, an app
//! under development. It plans, answers, checks, escalates, meters and refuses as the interface says, from
//! the interface's text alone: it shares no code with the daemon, because a header misspelt in shared code
//! would keep every test green.
//!
//! The promise: nothing here is canned. An answer is computed from its prompt, a bill from its tokens, and
//! the books (`books`) hold every debit, so that a test can compare what a client believes with the truth.
//! What the interface leaves open is chosen once, in `assumptions`, and marked on the wire.
//!
//! The life of a request, in order:
//!
//! | step | file |
//! |---|---|
//! | one connection, one task; faults that end it | `server` |
//! | request id, log, fault, key, 30 MB | `front` |
//! | path to handler | `routes` |
//! | 8 in flight, 120 a minute | `limits` |
//! | limits, form, key, balance, work, debit, store: the order | `purchase` |
//! | first run, replay, wait or conflict | `idempotency` |
//! | voices, recordings, minutes of audio | `speech` |
//! | plan, answer, judge, escalate | `fleet`, `models`, `remote` |
//! | one debit | `billing`, `books` |
//! | rows, documents and runs that score models on them | `evals` |
//! | an eval answer's score, and how sure a mean is | `scoring` |
//! | debit and key on disk, in one write | `keep`, `store` |
//! | JSON with headers, or a stream with comments | `receipt`, `sse` |
//!
//! Ranks, the lowest first; a file or folder reaches lower ones only (`tests/it/tidy/rooms.rs` holds that):
//! nouns and means (`spec`, `money`, `clock`, `store`, `settings`, `connection`, …) · `error`, `fault` · models and
//! keys of requests · `form`, `keep`, `remote`, `inbound` · `books`, `idempotency`, `pins`, `fleet` · `billing`, `catalog`,
//! `options` · `endpoints`, `scoring` · `evals`, `deploy` · `state` (all parts together) · `purchase`, `front`, `control` ·
//! `routes` · `server`. A part is given what it needs; only the files above `state` see all.
//!
//! `/sandbox/…` (`control`) is no part of the interface: it shows the books and sets faults, limits and time.

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

mod assumptions;
mod auth;
mod billing;
mod books;
mod catalog;
mod checkpoint;
mod clock;
mod connection;
mod control;
mod deploy;
mod endpoints;
mod error;
mod evals;
mod fault;
mod fields;
mod fingerprint;
mod fleet;
mod form;
mod front;
mod idempotency;
mod inbound;
mod keep;
mod key_id;
mod limits;
mod models;
mod money;
pub mod openapi;
pub mod options;
mod pins;
mod purchase;
mod receipt;
mod received;
mod remote;
mod rollup;
mod routes;
mod scenario;
mod scoring;
mod server;
mod settings;
mod spec;
mod speech;
mod sse;
mod state;
mod steps;
mod store;
mod verdict;

pub use assumptions::{Assumption, assumptions};
pub use clock::Clock;
pub use options::Options;
pub use remote::settings::{ModelServer, Role};
pub use routes::router;
pub use scenario::Scenario;
pub use server::{serve, serve_and_judge};
pub use settings::{RepeatBilled, Settings, Synthesis};
pub use state::State;
pub use store::StoreError;
pub use verdict::Verdict;
