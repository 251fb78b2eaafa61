//! The rows of the table: what is measured, in which order, and through which targets.
//!
//! Why an order: memory is measured on processes that have served nothing else, and small requests on
//! processes with a past, for that is the state a sidecar is in.

use serde::{Deserialize, Serialize};

use crate::target::Kind;

/// One thing that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Row {
    Idle,
    W3r,
    W4a,
    W4b,
    W1bFresh,
    Burst,
    W1b,
    W1a,
    W1o,
    /// Open loop at the highest of some rates that the pass-through holds.
    Rate,
    /// Open loop at 10,000 a second.
    RateHigh,
    W2a,
    W2b,
    W3,
    /// With an entry in the ledger and without, the same bytes, in one process.
    Metered,
    Free,
    MeteredStream,
    FreeStream,
}

/// Rows of one stage share their processes, which are new when it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Connections,
    SlowStreams,
    Uploads,
    Requests,
}

pub const STAGES: [Stage; 4] = [
    Stage::Connections,
    Stage::SlowStreams,
    Stage::Uploads,
    Stage::Requests,
];

// === impl Row ===

impl Row {
    /// In the order of measuring.
    pub const ALL: [Self; 18] = [
        Self::Idle,
        Self::W3r,
        Self::W4a,
        Self::W4b,
        Self::W1bFresh,
        Self::Burst,
        Self::W1b,
        Self::W1a,
        Self::W1o,
        Self::Rate,
        Self::RateHigh,
        Self::W2a,
        Self::W2b,
        Self::W3,
        Self::Metered,
        Self::Free,
        Self::MeteredStream,
        Self::FreeStream,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::W3r => "W3r",
            Self::W4a => "W4a",
            Self::W4b => "W4b",
            Self::W1bFresh => "W1b-fresh",
            Self::Burst => "burst",
            Self::W1b => "W1b",
            Self::W1a => "W1a",
            Self::W1o => "W1o",
            Self::Rate => "rate",
            Self::RateHigh => "rate-high",
            Self::W2a => "W2a",
            Self::W2b => "W2b",
            Self::W3 => "W3",
            Self::Metered => "metered",
            Self::Free => "free",
            Self::MeteredStream => "metered-stream",
            Self::FreeStream => "free-stream",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|row| row.name() == name)
    }

    pub fn what(self) -> &'static str {
        match self {
            Self::Idle => "5,000 idle keep-alive connections, one request on each before",
            Self::W3r => "1,000 streams at once of 50 chunks, 50 ms apart, begun within 1 s",
            Self::W4a => "upload of 1 MB, 4 at once",
            Self::W4b => "upload of 20 MB, 2 at once",
            Self::W1bFresh => "W1b on a process that has served nothing",
            Self::Burst => "1,000 connections at once with a small JSON each, three times",
            Self::W1b => "small JSON, 64 connections, after the bursts",
            Self::W1a => "small JSON, 1 connection",
            Self::W1o => "small JSON, open loop at 1,000 a second",
            Self::Rate => "small JSON, open loop at the highest rate tried that BP holds",
            Self::RateHigh => "small JSON, open loop at 10,000 a second",
            Self::W2a => "stream of 100 chunks without a pause, 1 connection",
            Self::W2b => "the same, 64 connections",
            Self::W3 => "streams of 50 chunks, 5 ms apart, 500 connections",
            Self::Metered => "W1b, an entry for each request",
            Self::Free => "the same bytes on a route without an entry",
            Self::MeteredStream => "W2b, an entry for each request",
            Self::FreeStream => "the same bytes on a route without an entry",
        }
    }

    pub fn stage(self) -> Stage {
        match self {
            Self::Idle => Stage::Connections,
            Self::W3r => Stage::SlowStreams,
            Self::W4a | Self::W4b => Stage::Uploads,
            _ => Stage::Requests,
        }
    }

    pub fn runs_on(self, kind: Kind) -> bool {
        match self {
            Self::W1a => true,
            Self::Metered | Self::Free | Self::MeteredStream | Self::FreeStream => {
                kind == Kind::Bursar
            }
            Self::W1bFresh => matches!(kind, Kind::Bursar | Kind::PassThrough),
            _ => kind != Kind::Direct,
        }
    }

    /// `make bench-quick` has these only.
    pub fn is_quick(self) -> bool {
        matches!(
            self,
            Self::W3r | Self::W4a | Self::W1b | Self::W1a | Self::W1o | Self::W2b
        )
    }

    /// The disk is measured under this row's load, too.
    pub fn loads_disk(self) -> bool {
        matches!(self, Self::W1b | Self::W1o | Self::Rate | Self::RateHigh)
    }
}
