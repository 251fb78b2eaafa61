//! The one thread that writes, what it starts from, and the way to it.
//!
//! Lowest first: `queue`, `backlog`, `feed`, `rebuild`, `load`, `shared`, `left`, `committer`, `writer`.

pub mod backlog;
mod committer;
mod feed;
mod left;
mod load;
mod prune_clock;
pub mod queue;
mod rebuild;
pub mod shared;
pub mod writer;
