//! The one thread that writes, what it starts from, and the way to it.
//!
//! Lowest first: `queue`, `backlog`, `rebuild`, `load`, `hub`, `left`, `committer`, `writer`.

pub mod backlog;
mod committer;
pub mod hub;
mod left;
mod load;
mod prune_clock;
pub mod queue;
mod rebuild;
pub mod writer;
