//! The voices that can be asked for.
//!
//! Assumed (speech-form): the interface tells neither ids nor the default; these four are it.
//! Promise: an id means the same pitch in both engines.

#[derive(Debug)]
pub struct Voice {
    pub id: &'static str,
    /// Of the built-in voice.
    pub pitch_hz: f32,
    /// How much higher than an average man's its formants lie.
    pub tract: f32,
    /// Language and variant as espeak-ng spells them.
    pub espeak: &'static str,
    /// Pitch as espeak-ng counts it, 0 to 99.
    pub espeak_pitch: &'static str,
}

const fn voice(
    id: &'static str,
    pitch_hz: f32,
    tract: f32,
    espeak: &'static str,
    espeak_pitch: &'static str,
) -> Voice {
    Voice {
        id,
        pitch_hz,
        tract,
        espeak,
        espeak_pitch,
    }
}

/// The first is the default.
static VOICES: [Voice; 4] = [
    voice("alto", 190.0, 1.12, "en-us+f2", "45"),
    voice("soprano", 235.0, 1.18, "en-us+f3", "60"),
    voice("tenor", 130.0, 1.02, "en-us+m3", "50"),
    voice("bass", 95.0, 0.97, "en-us+m1", "30"),
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
