//! The one integration binary. Its modules are named by the promise they hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod config_errors;
mod crash;
mod demo;
mod door;
mod golden;
mod heads;
mod ledger_lost;
mod literals;
mod process;
mod reading;
mod receipts;
mod retries;
mod streams;
mod tidy;
mod tls;
mod undelivered;
