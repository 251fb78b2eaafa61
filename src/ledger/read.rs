//! Questions to the ledger's files, answered beside a running daemon or without one, with no lock.
//!
//! Promise: reads only. A line being written now is not there yet; everything else is as the daemon
//! sees it, and the sums are the same to the micro-dollar (rule I10). What is held does not grow
//! with the journal (rule I11): see [`listing::list`], [`listing::for_each_entry`] and
//! [`indexed::spend`].
//!
//! Lowest first: `views`, `group_by`, `filter`, `lookup`, `listing`, `spend`, `indexed`, `window`, `usage`, `find`, `reconcile`, `since`.

pub mod filter;
pub mod find;
pub mod group_by;
pub mod indexed;
pub mod listing;
pub mod lookup;
pub mod reconcile;
#[cfg(feature = "fleet")]
pub mod since;
pub mod spend;
pub mod usage;
pub mod views;
pub mod window;

#[cfg(test)]
mod tests;
