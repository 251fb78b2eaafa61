//! How long a recording lasts, or why that cannot be known.
//!
//! Promise: a length is a whole number of samples or ticks, because money hangs on it.

use bursar_models::speech::wav::WavError;
use thiserror::Error as ThisError;

/// No recording may be longer. Assumed (speech-limits).
pub const AUDIO_S_MAX: u64 = 2 * 60 * 60;

#[derive(Debug, ThisError, PartialEq, Eq)]
pub enum ListenError {
    #[error("the audio is broken: {0}")]
    Broken(&'static str),
    #[error("the audio cannot be read: {0} is not supported")]
    Unsupported(&'static str),
    #[error("the audio is neither wav, mp3, m4a nor webm")]
    UnknownContainer,
    #[error("the audio holds no sound")]
    NoSound,
    #[error("the audio is longer than {max_s} s", max_s = AUDIO_S_MAX)]
    TooLong,
    #[error("stopped")]
    Stopped,
}

/// A time as a whole number of parts of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub parts: u64,
    pub per_second: u32,
}

// === impl Length ===

impl Length {
    /// For the wire; the nearest number a double holds.
    pub fn seconds(self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "under 2^53 for every length we admit"
        )]
        let parts = self.parts as f64;
        parts / f64::from(self.per_second.max(1))
    }

    pub fn is_over(self, seconds: u64) -> bool {
        self.parts > seconds.saturating_mul(u64::from(self.per_second))
    }
}

impl From<WavError> for ListenError {
    fn from(error: WavError) -> Self {
        match error {
            WavError::Broken(why) => Self::Broken(why),
            WavError::Unsupported(what) => Self::Unsupported(what),
        }
    }
}
