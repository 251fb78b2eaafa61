//! A recording of given words for the task catalog: the built-in voice, without waiting for a place.
//!
//! Promise: the same words give the same bytes on every machine, whether espeak-ng is there or not, and a
//! transcription of them finds the words.

use super::{tones, voices, wav};
use std::sync::atomic::AtomicBool;

/// A WAV of the words; `None` when they would be longer than the synthesis allows.
pub fn of(words: &str) -> Option<Vec<u8>> {
    let samples = tones::speak(words, voices::default(), &AtomicBool::new(false))?;
    wav::write(&samples, tones::RATE_HZ, words)
}
