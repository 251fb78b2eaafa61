//! What is done to old lines: compaction, retention, lookup files, and `ledger verify`.
//!
//! Lowest first: `compact` and `lookups`, `retention`, `verify`.

pub mod compact;
pub mod lookups;
pub mod retention;
pub mod verify;
