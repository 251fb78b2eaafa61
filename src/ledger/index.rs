//! What is kept beside the journal so that a start need not read all of it: the index in sled, and the
//! file of what counts against caps. Both can be made anew from the journal at any time.
//!
//! Lowest first: `figures`, `db`, `blocks`, `rows`, `lines`, `write`, `snapshot`,
//! `tree`, `copy`, `usage_file`. Only this folder names sled.

pub mod blocks;
pub mod copy;
pub mod db;
pub mod figures;
pub mod lines;
pub mod rows;
pub mod snapshot;
pub mod tree;
pub mod usage_file;
mod write;
