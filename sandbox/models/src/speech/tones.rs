//! The built-in voice: a tone for each word, high or low by the word, long or short by its letters.
//!
//! It is no speech: it has the length, the price and the form of speech, and the words stand beside the samples.
//! Promise: the same words and voice give the same samples on every machine; no text takes longer than
//! [`SPEECH_S_MAX`]: what would is spoken faster.

use super::{
    voices::{self, Voice},
    wav,
};
use crate::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};

/// Samples a second.
pub const RATE_HZ: u32 = 16_000;
/// No speech is longer.
pub const SPEECH_S_MAX: u64 = 600;
/// Silence at both ends, between words, and behind a sentence.
const EDGE_MS: u64 = 40;
const WORD_MS: u64 = 50;
const SENTENCE_MS: u64 = 320;
/// A word's own time, and that of each of its letters.
const LEAST_MS: u64 = 120;
const LETTER_MS: u64 = 40;
const LETTERS_MAX: usize = 14;
/// A tone is at most so much higher than the voice.
const HIGHER_HZ: u64 = 120;
const LOUDNESS: i64 = 12_000;
/// A tone swells and fades within so many samples.
const FADE: u64 = 240;

/// A WAV of the words in the default voice; `None` when it would not fit into the format.
pub fn recording(words: &str) -> Option<Vec<u8>> {
    let samples = speak(words, voices::default(), &AtomicBool::new(false))?;
    wav::write(&samples, RATE_HZ, words)
}

/// Says `text`. `None` when `stop` was set meanwhile.
pub fn speak(text: &str, voice: &Voice, stop: &AtomicBool) -> Option<Vec<i16>> {
    speak_within(SPEECH_S_MAX * 1_000, text, voice, stop)
}

fn speak_within(longest_ms: u64, text: &str, voice: &Voice, stop: &AtomicBool) -> Option<Vec<i16>> {
    let parts = parts(text, voice);
    let all_ms: u64 = parts.iter().map(|(ms, _)| ms).sum();
    let mut samples = Vec::new();
    let mut spoken_ms = 0;
    for (ms, pitch_hz) in parts {
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        spoken_ms += ms;
        // The end of each part on the time line, shrunk when the whole is too long.
        let end_ms = spoken_ms * longest_ms.min(all_ms) / all_ms.max(1);
        let length = (end_ms * u64::from(RATE_HZ) / 1_000).saturating_sub(samples.len() as u64);
        let step = (pitch_hz << 32) / u64::from(RATE_HZ);
        samples.extend((0..length).map(|at| sample(at * step, at.min(length - at).min(FADE))));
    }
    Some(samples)
}

/// The length in milliseconds and the pitch of each tone; silence has the pitch 0.
fn parts(text: &str, voice: &Voice) -> Vec<(u64, u64)> {
    let mut parts = vec![(EDGE_MS, 0)];
    for word in text.split_whitespace() {
        let letters: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
        if !letters.is_empty() {
            let count = letters.chars().count().min(LETTERS_MAX) as u64;
            let mut rng = Rng::from_parts(&[letters.to_lowercase().as_bytes()]);
            let pitch_hz = voice.pitch_hz + rng.below(HIGHER_HZ);
            parts.push((LEAST_MS + LETTER_MS * count, pitch_hz));
        }
        let ends = word.ends_with(['.', '!', '?']);
        parts.push((if ends { SENTENCE_MS } else { WORD_MS }, 0));
    }
    parts.push((EDGE_MS, 0));
    parts
}

/// A triangle's height at this phase, of which 2^32 are a period.
fn sample(phase: u64, fade: u64) -> i16 {
    let in_period = i64::try_from(phase & 0xffff_ffff).unwrap_or(0);
    // From 0 up to a quarter, down to minus a quarter, and back.
    let quarter = 1_i64 << 30;
    let height = quarter - (in_period - quarter).abs();
    let height = height.max(-2 * quarter - height);
    let fade = i64::try_from(fade).unwrap_or(0);
    let loud = (height >> 15) * LOUDNESS / (quarter >> 15) * fade / FADE as i64;
    i16::try_from(loud).unwrap_or(i16::MAX)
}

#[cfg(test)]
mod tests;
