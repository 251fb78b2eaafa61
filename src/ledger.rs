//! The ledger: what was intended, what was billed, and what is not known. An append-only journal is
//! the truth, one at a time writes it, and sled is an index that can be rebuilt at any time.
//!
//! Lowest first; each reaches lower ones only (`tests/it/tidy.rs` holds it):
//!
//! | rank | | |
//! |---|---|---|
//! | 0 | `shared_text` `id` `fingerprint` `kept_key` `leases` `marks` `error` `options` `entry` `sums` `tallies` `rollup` `delivery` `record` | nouns: what is written |
//! | 1 | `journal` | the state directory and its lines: written, read back, surveyed |
//! | 2 | `fold` | pure: the state that follows from records |
//! | 3 | `index` | what is kept beside the journal and can be rebuilt from it |
//! | 4 | `read` | questions, answered from files |
//! | 5 | `upkeep` | compaction, retention, `ledger verify` |
//! | 6 | `write` | what writes, the queue to it, and whose turn it is |
//! | 7 | `handle` | [`Ledger`], the handle that all other rooms hold |
//!
//! Other rooms use the names exported below; the folders are private to the ledger.

pub mod entry;
pub mod error;
pub mod fingerprint;
pub mod kept_key;
mod leases;
pub mod marks;
pub(crate) mod record;

mod delivery;
mod fold;
mod handle;
mod id;
mod index;
mod journal;
mod options;
mod read;
mod rollup;
mod shared_text;
mod sums;
mod tallies;
mod upkeep;
mod write;

pub use error::LedgerError;
pub use fingerprint::{ArrivingHash, FingerprintParts, GivenAs};
pub use fold::books::WaitingRun;
pub use fold::keys::{KeyCharge, KeyStanding};
#[cfg(test)]
pub(crate) use fold::{books, keys};
pub use fold::{state, totals, undelivered};
pub use handle::{Ledger, compact};
pub(crate) use journal::state_dir;
pub use options::{
    Copied, Durability, LedgerOptions, OnCommit, OnFailure, OnProgress, SEGMENT_BYTES_MAX,
};
pub use read::reconcile;
pub use totals::{Compared, LineKey, LineSums, MicroUsdSum, Standing, Totals};
pub use upkeep::compact::{CompactReport, RETENTION_MS_MIN};
pub use write::hub::LedgerHealth;

/// Questions to the ledger's files: beside a running daemon or without one.
pub mod query {
    pub use super::entry::StateWord;
    pub use super::journal::report::{BadRange, Gap, Misplaced, Missing, ScanReport};
    pub use super::read::filter::{Filter, Listing};
    pub use super::read::find::{Found, FoundBy, PART_CHARS_MIN, TAIL_CHARS, find};
    pub use super::read::group_by::GroupBy;
    pub use super::read::indexed::spend;
    pub use super::read::listing::{compacted_until_ms, entries, for_each_entry, list};
    #[cfg(feature = "fleet")]
    pub use super::read::since::{
        GapWhy, Place, Shelved, Since, compacted_seq, last_seq, lines_since,
    };
    pub use super::read::spend::{Spend, SpendRow};
    pub use super::read::views::{DeliveryWord, EntryView, ReceiptWord};
    pub use super::read::window::{Period, SINCE_EDGE_MS, UNTIL_EDGE_MS, Unknown, window};
    pub use super::record::How;
    pub use super::upkeep::compact::{CompactReport, compactable};
    pub use super::upkeep::verify::{Damage, DamageKind, IndexCheck, VerifyReport, verify};
}

/// What counts against caps.
pub mod usage {
    pub use super::fold::charge::Charge;
    pub use super::fold::sessions::{SESSIONS_MAX, SessionAt, SessionSum};
    pub use super::fold::usage::{
        CapUsage, Charged, Dearest, OnUsage, Price, PriceHistory, UsageUpdate, quarter_of,
    };
    pub use super::read::usage::{RunSoFar, read, read_run};
}

#[cfg(test)]
pub(crate) use tests::fixtures;
#[cfg(test)]
mod tests;
