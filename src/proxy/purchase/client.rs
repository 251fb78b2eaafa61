//! The app at the other end of a connection, as far as a purchase asks about it.
//!
//! | what is known | its input ends | it takes or keeps bytes | its connection breaks, or a write fails | bursar's stop cuts a write |
//! |---|---|---|---|---|
//! | here | suspect | – | gone | cut |
//! | suspect | – | proven | gone | cut |
//! | proven | – | – | gone | cut |
//! | gone | – | – | – | cut |
//! | cut | – | – | – | – |
//!
//! A *proven* app closed its sending half only: it took bytes after its input had ended.
//!
//! Promise: no socket is known here; a connection answers through [`AppProbe`].

use std::fmt::Debug;

/// Whether the app is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    Here,
    /// Its input ended; it may still read.
    Suspect,
    Gone,
}

/// What is known of an app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientState {
    #[default]
    Here,
    Suspect {
        /// Bytes that its socket had taken when its input was seen to have ended.
        taken_before: u64,
    },
    Proven,
    Gone,
    /// bursar's stop cut what was written to it.
    Cut,
}

/// What became of body bytes that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Body bytes were handed to the app's connection: these, or the ones held before them.
    Out,
    /// None was: they wait for their successor.
    Held,
}

/// A look at an app's connection from outside the task that serves it. Does not keep it open.
pub trait AppProbe: Debug + Send + Sync {
    /// Whether the app's input has ended or the connection is gone, noticed by its task or not.
    fn has_hung_up(&self) -> bool;

    /// Bytes that the app's socket has taken: a number that stands still while the app takes nothing.
    fn taken_bytes(&self) -> u64;
}

// === impl ClientState ===

impl ClientState {
    pub fn presence(self) -> Presence {
        match self {
            Self::Here => Presence::Here,
            Self::Suspect { .. } | Self::Proven => Presence::Suspect,
            Self::Gone | Self::Cut => Presence::Gone,
        }
    }

    /// `taken`: bytes that its socket has taken by now.
    pub fn input_ended(&mut self, taken: u64) {
        if *self == Self::Here {
            *self = Self::Suspect {
                taken_before: taken,
            };
        }
    }

    /// Its socket has taken so many bytes by now: a suspect that took more since is proven.
    pub fn has_taken(&mut self, taken: u64) {
        if let Self::Suspect { taken_before } = self
            && taken > *taken_before
        {
            *self = Self::Proven;
        }
    }

    /// What was written to it was not refused.
    pub fn accepts_bytes(&mut self) {
        if let Self::Suspect { .. } = self {
            *self = Self::Proven;
        }
    }

    pub fn is_lost(&mut self) {
        if *self != Self::Cut {
            *self = Self::Gone;
        }
    }

    pub fn is_cut_off(&mut self) {
        *self = Self::Cut;
    }
}

#[cfg(test)]
mod tests;
