//! The one integration binary. Its modules are named by the promise they hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod config_errors;
mod crash;
mod demo;
mod door;
mod golden;
mod literals;
mod process;
mod reading;
mod tidy;
mod tls;
