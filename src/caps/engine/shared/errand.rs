//! What the shell carries between [`super::SharedCaps`] and the fleet's database.
//!
//! Promise: values alone; every call that a holder makes is one of these.

use uuid::Uuid;

use crate::caps::leases::{GiveBack, GiveBackAnswer, Held, Lease, LeaseAnswer, LeaseAsk};

/// What the shell is to carry to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Errand {
    /// All that is held, after a start and with each hello.
    Present(Vec<Lease>),
    Ask(LeaseAsk),
    /// Its `up_to_seq` is the journal's last line.
    GiveBack(GiveBack),
}

/// What a visit to the database is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// What is held is presented: lines are shipped behind that, for a restored database knows no lease that they name.
    Present,
    /// What is lacking. Nothing goes back: that takes lines that were shipped.
    Ask,
    /// All of it.
    Whole,
    /// Nothing is asked for any more, and what is open goes back.
    Last,
    /// The same of a machine that does not come again: it needs no allowance.
    Leave,
}

// === impl Round ===

impl Round {
    pub const fn is_last(self) -> bool {
        matches!(self, Self::Last | Self::Leave)
    }
}

/// What the database said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heard {
    Held(Held),
    Answer { cap: String, answer: LeaseAnswer },
    GaveBack { lease: Uuid, answer: GiveBackAnswer },
}

// === impl Heard ===

impl Heard {
    /// Whether the database grants nothing because it was restored, where it was so far as `before` says.
    pub fn says_paused(&self, before: bool) -> bool {
        match self {
            Self::Held(held) => held.is_paused,
            Self::Answer { answer, .. } => before || *answer == LeaseAnswer::Paused,
            Self::GaveBack { .. } => before,
        }
    }
}
