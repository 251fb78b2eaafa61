//! The connection of a request, as far as a fault may affect it: whether and how it ends early.
//!
//! Promise: a connection without a cut ends normally; a cut is marked before the socket closes.

use serde::{Deserialize, Serialize};
use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// `close` ends the connection with FIN, in the middle of the body; `reset` with RST.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CutKind {
    #[default]
    Close,
    Reset,
}

/// A response with this extension is not written: the connection ends instead.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection was ended by a fault")]
pub struct HangUp;

/// The connection of a request, as far as a fault may affect it.
#[derive(Clone, Debug, Default)]
pub struct ConnectionEnd {
    end: Arc<AtomicU8>,
}

const END_CLOSE: u8 = 0;
const END_RESET_WHEN_CUT: u8 = 1;
const END_RESET: u8 = 2;

// === impl ConnectionEnd ===

impl ConnectionEnd {
    /// Sets how the connection ends if it is cut.
    pub fn arm(&self, kind: CutKind) {
        let end = match kind {
            CutKind::Close => END_CLOSE,
            CutKind::Reset => END_RESET_WHEN_CUT,
        };
        self.end.store(end, Ordering::SeqCst);
    }

    /// The cut is happening now.
    pub fn mark_cut(&self) {
        if self.end.load(Ordering::SeqCst) == END_RESET_WHEN_CUT {
            self.end.store(END_RESET, Ordering::SeqCst);
        }
    }

    /// Whether it is to end with a reset now.
    pub fn resets(&self) -> bool {
        self.end.load(Ordering::SeqCst) == END_RESET
    }
}
