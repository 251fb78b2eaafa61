//! What is done beside the writer, and to old lines: the index, compaction, retention, lookup files, and
//! `ledger verify`.
//!
//! Lowest first: `indexing`, `compact` and `lookups`, `retention`, `verify`.

pub mod compact;
pub mod indexing;
pub mod lookups;
pub mod retention;
pub mod verify;
