//! The app at the other end of a connection, as far as a purchase asks about it.
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
