//! Reading an answer on when its app may be gone: the receipt comes last.
//!
//! | state | an app reads | perhaps | perhaps, for as long as may be | no app reads |
//! |---|---|---|---|---|
//! | off | off | suspected | – | may begin |
//! | suspected | off | suspected | may begin | may begin |
//! | on, within its bounds | off | on | on | on |
//! | on, beyond them | off | over | over | over |
//!
//! Promise: pure. What an app was suspected for counts as time in which no app read.

use std::time::Duration;

/// Whether an app reads what comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readership {
    Present,
    /// The app's input ended in a silence of the service. It may still read.
    Uncertain,
    Absent,
}

/// How far an answer is read without an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainBounds {
    pub time: Duration,
    pub bytes: usize,
}

/// What is read without an app. Times are monotonic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Drain {
    #[default]
    Off,
    Suspected {
        since: Duration,
    },
    On {
        since: Duration,
        bytes: usize,
    },
}

/// Since when an answer that is read whole before it is given has no app to read it. One that drips would be
/// read for ever: no silence in it is ever too long.
#[derive(Debug, Default)]
pub struct UnreadSince(Option<Duration>);

/// Whether the reading goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainCheck {
    GoesOn,
    /// No app reads: it ends, unless [`Drain::begin`] may be called.
    MayBegin,
    Over,
}

// === impl Drain ===

impl Drain {
    /// Before the next read.
    pub fn look(&mut self, reader: Readership, now: Duration, bounds: DrainBounds) -> DrainCheck {
        let is_late = |since: Duration| now.saturating_sub(since) >= bounds.time;
        match (*self, reader) {
            (_, Readership::Present) => {
                *self = Self::Off;
                DrainCheck::GoesOn
            }
            (Self::On { since, bytes }, _) if is_late(since) || bytes > bounds.bytes => {
                DrainCheck::Over
            }
            (Self::On { .. }, _) => DrainCheck::GoesOn,
            (Self::Off, Readership::Uncertain) => {
                *self = Self::Suspected { since: now };
                DrainCheck::GoesOn
            }
            (Self::Suspected { since }, Readership::Uncertain) if !is_late(since) => {
                DrainCheck::GoesOn
            }
            (Self::Off | Self::Suspected { .. }, _) => DrainCheck::MayBegin,
        }
    }

    pub fn begin(&mut self, now: Duration) {
        let since = self.since().unwrap_or(now);
        *self = Self::On { since, bytes: 0 };
    }

    /// So much has come.
    pub fn took(&mut self, count: usize) {
        if let Self::On { bytes, .. } = self {
            *bytes = bytes.saturating_add(count);
        }
    }

    /// Since when no app reads, or perhaps none.
    pub fn since(&self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::Suspected { since } | Self::On { since, .. } => Some(*since),
        }
    }

    pub fn is_on(&self) -> bool {
        matches!(self, Self::On { .. })
    }
}

// === impl UnreadSince ===

impl UnreadSince {
    /// Before the next piece is waited for: whether no app has been there for longer than this.
    pub fn for_longer_than(&mut self, limit: Duration, is_unread: bool, now: Duration) -> bool {
        if !is_unread {
            self.0 = None;
            return false;
        }
        let since = *self.0.get_or_insert(now);
        now.saturating_sub(since) > limit
    }
}

#[cfg(test)]
mod tests;
