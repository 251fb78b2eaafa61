//! The one integration binary. Its modules are named by the promise they hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

mod activation;
mod apps;
mod asking;
mod attack;
mod caps;
mod config_errors;
mod connections;
mod conversations;
mod corpus;
mod cost;
mod crash;
mod damage;
mod demo;
mod dialects;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod disk;
mod doctor;
mod documents;
mod door;
mod exec;
mod explain;
mod failed_calls;
mod fleet;
mod golden;
mod heads;
mod hostile;
mod in_doubt;
mod installing;
mod key_evidence;
mod key_set;
mod ledger_care;
mod ledger_lost;
mod ledgers;
mod literals;
mod loops;
mod marks;
mod memory;
mod monitoring;
mod notices;
mod orders;
mod parts;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod power;
mod process;
mod reading;
mod receipts;
mod reconcile;
mod retries;
mod sandbox_program;
mod screens;
mod secrets;
mod service_unit;
mod shaping;
mod starting;
mod streams;
mod threats;
mod tidy;
mod tls;
mod traffic;
mod undelivered;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod watchdog;
