//! Sound: a text spoken by the built-in voice, and WAV files with the words beside the samples.
//!
//! Lowest first: `phones`, `voices`, `wav` < `letters` < `reading` < `formant` < `recording`.

pub mod formant;
mod letters;
mod phones;
mod reading;
pub mod recording;
pub mod voices;
pub mod wav;
