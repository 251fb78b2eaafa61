//! The voices that can be asked for.
//!
//! Assumed (speech-form): the interface names neither ids nor a default.
//! Promise: an id is the same register in both engines.

#[derive(Debug)]
pub struct Voice {
    pub id: &'static str,
    /// The lowest tone of the built-in voice.
    pub pitch_hz: u64,
    /// Language and variant as espeak-ng spells them.
    pub espeak: &'static str,
    /// Pitch as espeak-ng counts it, 0 to 99.
    pub espeak_pitch: &'static str,
}

/// The first is the default.
#[rustfmt::skip]
static VOICES: [Voice; 4] = [
    Voice { id: "alto", pitch_hz: 190, espeak: "en-us+f2", espeak_pitch: "45" },
    Voice { id: "soprano", pitch_hz: 235, espeak: "en-us+f3", espeak_pitch: "60" },
    Voice { id: "tenor", pitch_hz: 130, espeak: "en-us+m3", espeak_pitch: "50" },
    Voice { id: "bass", pitch_hz: 95, espeak: "en-us+m1", espeak_pitch: "30" },
];

pub fn default() -> &'static Voice {
    let [first, ..] = &VOICES;
    first
}

pub fn by_id(id: &str) -> Option<&'static Voice> {
    VOICES.iter().find(|voice| voice.id == id)
}

/// The ids, for an error text.
pub fn ids() -> String {
    VOICES.each_ref().map(|voice| voice.id).join(", ")
}
