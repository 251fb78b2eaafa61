//! What a holder of shared caps and the fleet's database say to each other about leases: money of one cap and one
//! window, for one ledger.
//!
//! Why here: the holder's rules stand in this room, and the calls in the fleet's.
//!
//! Promise: values alone. An answer is what the database has: the holder takes its totals, and a lease that an answer
//! to [`Lease`]s presented does not name is void.

use uuid::Uuid;

use super::window::{Period, Window};
use crate::ledger::totals::MicroUsdSum;
use crate::money::MicroUsd;

/// What was ever granted on a lease, and what of it came back. The difference is what may be spent on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeaseTotals {
    pub granted: MicroUsd,
    pub given_back: MicroUsd,
    /// The number of the last part that was given back; 0: none was.
    pub give_back_number: u32,
}

/// A lease as its holder has it. There is one of a ledger, a cap and a window; it grows and shrinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    pub lease: Uuid,
    pub cap: String,
    /// By the database's clock.
    pub window: Window,
    pub totals: LeaseTotals,
}

/// A lease as the database has it, with the time that it has left. Both counts run from the moment of the answer on,
/// which lies within the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveLease {
    pub lease: Lease,
    /// 0: its window is that of now.
    pub begins_in_ms: u64,
    pub ends_in_ms: u64,
    /// By the lines that were shipped. More than the holder counts where a journal was restored from a backup.
    pub billed: MicroUsdSum,
}

/// A cap of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedCap {
    pub cap: String,
    pub period: Period,
    /// An IANA name.
    pub zone: String,
    pub limit: MicroUsd,
    /// Of all ledgers, in the window of now: what was leased to them, or billed where that is more.
    pub charged: MicroUsdSum,
    pub window: Window,
    /// The most that this ledger may have of a window. `None`: no less than all of it.
    pub largest: Option<MicroUsd>,
    /// How many windows behind that of now may be leased ahead, and the most of each.
    pub ahead_windows: u32,
    pub ahead: MicroUsd,
}

/// What a holder hears when it presents its leases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The database was restored from a backup, and grants nothing yet.
    pub is_paused: bool,
    pub caps: Vec<SharedCap>,
    /// All that are this ledger's and not over.
    pub leases: Vec<LiveLease>,
}

/// A wish for more of a cap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseAsk {
    pub cap: String,
    /// The same again where the answer was lost: it is granted once.
    pub request: Uuid,
    pub want: MicroUsd,
    /// One reservation: less is not taken apart further.
    pub least: MicroUsd,
    /// 0: the window of now.
    pub ahead: u32,
}

/// What became of a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    Granted(Grant),
    /// Nothing is left. `may_return`: others hold a part that they may give back.
    Empty {
        may_return: bool,
        limit: MicroUsd,
    },
    /// The fleet has no cap of this name.
    NoCap,
    /// The database was restored from a backup, and grants nothing yet.
    Paused,
    /// This ledger has its largest share, or may lease less far ahead.
    Share {
        limit: MicroUsd,
    },
    /// The database has not heard this machine's leases: since its start, since the machine's, or since another one
    /// presented them. They are to be presented; nothing else is wrong.
    Elsewhere,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// With what is granted now.
    pub lease: LiveLease,
    /// By this request.
    pub amount: MicroUsd,
    /// Of the cap, in this window, for anybody.
    pub left: MicroUsd,
    pub limit: MicroUsd,
}

/// A part of a lease that is not needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GiveBack {
    pub lease: Uuid,
    /// One more than the last; the same again where the answer was lost.
    pub number: u32,
    pub amount: MicroUsd,
    /// All lines that spend of this lease are at or before it.
    pub up_to_seq: u64,
}

/// What became of a part that was given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GiveBackAnswer {
    Taken(LeaseTotals),
    /// This number was taken before; nothing changed.
    Known(LeaseTotals),
    /// The database lacks lines: they are to be shipped first.
    Behind,
    /// More than is open, or a number that does not follow.
    TooMuch(LeaseTotals),
    /// The ledger has no such lease.
    Unknown,
}
