//! What writes, what it starts from, the way to it, and whose turn it is: one at a time.
//!
//! Lowest first: `queue`, `backlog`, `rebuild`, `load`, `hub`, `left`, `committer`, `writer`, `shared`.

pub mod backlog;
mod committer;
pub mod hub;
mod left;
mod load;
mod prune_clock;
pub mod queue;
mod rebuild;
pub mod shared;
pub mod writer;
