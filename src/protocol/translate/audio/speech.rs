//! A text in OpenAI's form of speech (`input`, `voice`), as the service's JSON.
//!
//! Promise: a text in the service's own form passes as it came; a voice that has no line in the configuration is
//! left out and listed, never guessed; no format is promised that is not known to be the service's.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::asked::{AudioRequest, Turn, model_name};
use crate::protocol::translate::{Dropped, Untranslatable};

/// What the configuration knows of the service's speech.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    /// The service's voices by the names that apps give.
    pub voices: &'a BTreeMap<String, String>,
    /// What the service's speech comes in, in OpenAI's words.
    pub formats: &'a [String],
}

/// The service's JSON for OpenAI's. `None`: it is not in OpenAI's form.
pub fn speech(body: &[u8], offer: Offer<'_>) -> Option<Result<AudioRequest, Untranslatable>> {
    let members: Map<String, Value> = serde_json::from_slice(body).ok()?;
    let is_openais = members.contains_key("input") && !members.contains_key("text");
    is_openais.then(|| translated(members, offer))
}

fn translated(
    members: Map<String, Value>,
    offer: Offer<'_>,
) -> Result<AudioRequest, Untranslatable> {
    let mut dropped = Dropped::default();
    let mut sent = Map::new();
    let (mut model, mut format) = (None, None);
    for (name, value) in members {
        match (name.as_str(), value) {
            ("input", Value::String(input)) => {
                sent.insert("text".to_owned(), Value::String(input));
            }
            ("input", _) => return Err(refused("input", "`input` is not a text.")),
            (_, Value::Null) => {}
            ("model", Value::String(asked)) => model = Some(model_name(&asked)),
            ("voice", voice) => match voice.as_str().and_then(|asked| offer.voices.get(asked)) {
                Some(voice) => {
                    sent.insert("voice".to_owned(), Value::from(voice.as_str()));
                }
                None => dropped.add("voice"),
            },
            ("response_format", asked) => format = Some(named(&asked, offer)?),
            ("speed", speed) if speed.as_f64() != Some(1.0) => {
                return Err(refused(
                    "speed",
                    "The service speaks at one speed: leave `speed` out, or set it to 1.",
                ));
            }
            ("stream", stream) if stream != Value::Bool(false) => {
                return Err(refused(
                    "stream",
                    "The service gives speech whole: leave `stream` out.",
                ));
            }
            ("stream_format", stream) if stream != "audio" => {
                return Err(refused(
                    "stream_format",
                    "The service gives speech whole: leave `stream_format` out.",
                ));
            }
            ("speed" | "stream" | "stream_format", _) => {}
            ("instructions", _) => dropped.add("instructions"),
            _ => dropped.add("other"),
        }
    }
    Ok(AudioRequest {
        body: Value::Object(sent).to_string().into_bytes(),
        turn: Turn::sound(format),
        model,
        dropped,
    })
}

/// The format that was asked for, where the service's speech comes in it.
fn named(asked: &Value, offer: Offer<'_>) -> Result<String, Untranslatable> {
    let known = asked
        .as_str()
        .and_then(|asked| offer.formats.iter().find(|known| *known == asked));
    known.cloned().ok_or_else(|| {
        let formats = match offer.formats {
            [] => "none is listed".to_owned(),
            formats => format!("listed: {}", formats.join(", ")),
        };
        refused(
            "response_format",
            &format!(
                "The service makes speech in one format and takes no wish. Leave response_format out and read \
                 Content-Type; or ask for a format that [models] speech_formats lists ({formats})."
            ),
        )
    })
}

fn refused(param: &str, message: &str) -> Untranslatable {
    Untranslatable::new(param, message)
}
