//! Sound: a tone for each word of a text, and WAV files with the words beside the samples.
//!
//! Lowest first: `voices`, `wav` < `tones`.

pub mod tones;
pub mod voices;
pub mod wav;
