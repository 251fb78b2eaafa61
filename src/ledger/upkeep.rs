//! What is done to old lines: compaction, retention, and `ledger verify`.
//!
//! Lowest first: `compact`, `retention`, `verify`.

pub mod compact;
pub mod retention;
pub mod verify;
