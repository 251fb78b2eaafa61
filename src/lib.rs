//! bursar: a local reverse proxy for one OpenAI-compatible inference service. Every app on this
//! machine spends through one door, nothing is billed twice, and the ledger agrees with the
//! service's books to the micro-dollar, or states how much it does not know.
//!
//! The life of a request, and where each step is written:
//!
//! ```text
//! app ──▶ proxy::accept     a connection, a head under one deadline
//!         proxy::door       the door: host, origin, path, method, length
//!         proxy::purchase   a retry of an undelivered request? join it, or adopt its key
//!         ledger::intend    the intent is durable before anything leaves (I1)
//!         proxy::upstream ──▶ the service, with the key; again if that is safe
//!         protocol::receipt  what it reports as billed
//!         ledger::settle    the receipt is durable before the app sees success (I2)
//!     ◀── proxy::relay      the service's bytes, unchanged
//! ```
//!
//! Ranks: a module may name only those above it.
//!
//! | rank | module | is |
//! |---|---|---|
//! | 0 | [`money`], [`clock`], [`calendar`], [`ceilings`], [`screen`], [`release`] | integers of micro-USD, time as a value, dates as people write them, the service's ceilings as machines share them, foreign text made safe to show, which build this is |
//! | 1 | [`protocol`] | the service's vocabulary: routes, headers, receipts |
//! | 2 | [`config`] | the checked configuration, and the one secret |
//! | 3 | [`ledger`] | what was intended, what was billed, what is not known |
//! | 4 | [`caps`] | how much each app may spend |
//! | 5 | [`telemetry`] | log lines and every metric |
//! | 5 | [`apps`] | which apps may spend |
//! | 6 | [`notices`] | warns that little of a cap is left |
//! | 6 | [`fleet`] | brings the journal to the books of a fleet |
//! | 7 | [`proxy`] | the path of a request |
//! | 7 | [`admin`] | metrics, health, the reading API; knows nothing of the proxy |
//! | 8 | [`server`] | builds all of it, starts it, ends it in the right order |
//! | 9 | [`cli`] | the commands |
//!
//! The sandbox, the service itself for demos and tests, is a package of its own; only
//! `cli::sandbox` and `cli::demo` may name it, and it shares no code with anything here.

#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::print_stdout,
        clippy::print_stderr
    )
)]

pub mod calendar;
pub mod ceilings;
pub mod clock;
#[cfg(test)]
mod generated;
pub mod money;
pub mod places;
pub mod release;
pub mod screen;

pub mod protocol;

pub mod config;

pub mod ledger;

pub mod apps;
pub mod caps;
pub mod telemetry;

#[cfg(feature = "fleet")]
pub mod fleet;
#[cfg(not(feature = "fleet"))]
mod no_fleet;
#[cfg(not(feature = "fleet"))]
use no_fleet as fleet;
pub mod notices;

pub mod admin;
pub mod proxy;

pub mod server;

pub mod cli;
