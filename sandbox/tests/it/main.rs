//! The sandbox through its socket, by promise. Only bytes cross: no type of the library but `Options`,
//! `Clock` and `serve` is used.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing
)]

mod agent;
mod chat;
mod disconnect;
mod faults;
mod golden;
mod idempotency;
mod limits;
mod others;
mod parallel;
mod streaming;
mod support;
mod tools;
