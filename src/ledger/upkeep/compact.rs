//! Compaction: old segments are replaced by one that holds their sums ([`Rollup`]) and the few lines
//! that are still needed.
//!
//! The compacted segment has number 0, so it comes before all others, and its header says up to
//! which segment and record it stands for. It is written beside the journal, synced and renamed: the
//! rename is the moment at which it counts. From then on the segments it stands for are passed over,
//! whether they are still there or not. A second compaction reads the first one's segment, and puts a
//! new one in its place in the same way.
//!
//! Kept as lines are entries whose amount may still come ([`Wanted::awaited`]), those whose evidence
//! lies behind what is compacted, and those that end there. What is in doubt and cannot be resolved
//! any more is kept as a count.
//!
//! Promise: at any instant the files hold the same sums. Nothing is compacted that is damaged, that
//! this bursar does not understand, or whose sums come out different.
//!
//! [`Rollup`]: crate::ledger::rollup::Rollup

mod build;
mod fold;
mod plan;
mod write;

pub use build::{build, clear, commit};
pub use plan::{CompactReport, PASS_BYTES, RETENTION_MS_MIN, Wanted, compactable, plan};
pub use write::Built;

#[cfg(test)]
mod tests;
