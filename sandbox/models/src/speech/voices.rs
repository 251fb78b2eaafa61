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

const fn voice(
    id: &'static str,
    pitch_hz: u64,
    espeak: &'static str,
    espeak_pitch: &'static str,
) -> Voice {
    Voice {
        id,
        pitch_hz,
        espeak,
        espeak_pitch,
    }
}

/// The first is the default.
static VOICES: [Voice; 4] = [
    voice("alto", 190, "en-us+f2", "45"),
    voice("soprano", 235, "en-us+f3", "60"),
    voice("tenor", 130, "en-us+m3", "50"),
    voice("bass", 95, "en-us+m1", "30"),
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
