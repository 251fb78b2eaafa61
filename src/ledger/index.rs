//! What is kept beside the journal so that a start need not read all of it: the index in sled, and the
//! file of what counts against caps. Both can be made anew from the journal at any time.
//!
//! Lowest first: `db`, `rows`, `tree`, `usage_file`. Only this folder names sled.

pub mod db;
pub mod rows;
pub mod tree;
pub mod usage_file;
