//! What one answer is at, and what is still to be done with it, as [`super::AnswerFlow`] keeps it.
//!
//! Promise: data only.

use bytes::Bytes;

use crate::proxy::purchase::event::{AnswerEnd, Leave};
use crate::proxy::refuse::Code;

/// What the app had of head and lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Its head was not written.
    NotBegun,
    Begun {
        ends_in_newline: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Flows,
    /// Its outcome is written, or being written.
    Settled,
}

/// The action that was handed out last, and what its event is understood by.
#[derive(Debug)]
pub(super) enum Outstanding {
    Nothing,
    Reading,
    Draining,
    Writing { piece: Bytes, held: Option<Bytes> },
    WritingWhole(Bytes),
    Warning { had_held: bool },
    Keeping,
    Settling,
    Finishing { held: Option<Bytes> },
}

#[derive(Debug)]
pub(super) enum PlannedStep {
    Read,
    Give(Bytes),
    GiveWhole(Bytes),
    Settle(AnswerEnd),
    FreePlace,
    Leave(Leave),
    Finish,
    KeepEnd,
    BreakOff(Code),
    Break,
}
