//! The service's answer of a speech route, in OpenAI's form.
//!
//! Promise: text and numbers are the service's own, as they came; what it did not say is left out.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::asked::{Form, Turn};
use crate::protocol::translate::Unrendered;

/// An answer as the app reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    pub body: Vec<u8>,
    pub content_type: &'static str,
}

/// `{text, language, duration_s}`
#[derive(Deserialize)]
struct Transcript<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
    #[serde(borrow, default)]
    language: Option<&'a RawValue>,
    #[serde(borrow, default)]
    duration_s: Option<&'a RawValue>,
}

/// `{audio_base64, sample_rate, duration_s, format}`
#[derive(Deserialize)]
struct Speech<'a> {
    #[serde(borrow)]
    audio_base64: &'a RawValue,
    #[serde(default)]
    format: Option<String>,
}

/// Some encoders leave the padding out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

/// What cannot be named otherwise.
const BYTES: &str = "application/octet-stream";

/// The whole answer as the app asked for it.
pub fn answer(turn: &Turn, body: &[u8]) -> Result<Rendered, Unrendered> {
    match turn.form() {
        form @ (Form::Json | Form::Text | Form::VerboseJson) => transcript(form, body),
        Form::Sound | Form::NamedSound => sound(turn.format(), body),
    }
}

fn transcript(form: Form, body: &[u8]) -> Result<Rendered, Unrendered> {
    let unfit = || Unrendered::new("The service's answer has no text.");
    let heard: Transcript<'_> = serde_json::from_slice(body).map_err(|_| unfit())?;
    let text: String = serde_json::from_str(heard.text.get()).map_err(|_| unfit())?;
    if form == Form::Text {
        return Ok(Rendered {
            body: text.into_bytes(),
            content_type: TEXT,
        });
    }
    let mut json = String::from("{");
    if form == Form::VerboseJson {
        json.push_str("\"task\":\"transcribe\",");
        for (name, value) in [("language", heard.language), ("duration", heard.duration_s)] {
            if let Some(value) = value.filter(|value| value.get() != "null") {
                json.push_str(&format!("\"{name}\":{value},"));
            }
        }
    }
    json.push_str(&format!("\"text\":{}}}", heard.text));
    Ok(Rendered {
        body: json.into_bytes(),
        content_type: JSON,
    })
}

fn sound(named: Option<&str>, body: &[u8]) -> Result<Rendered, Unrendered> {
    let unfit = || Unrendered::new("The service's answer has no sound in base64.");
    let spoken: Speech<'_> = serde_json::from_slice(body).map_err(|_| unfit())?;
    let made = spoken.format.map(|format| format.to_ascii_lowercase());
    if let Some(asked) = named
        && made.as_deref() != Some(asked)
    {
        return Err(Unrendered::new(format!(
            "The service made speech of another format than {asked}: [models] speech_formats lists what it does \
                 not make. Leave response_format out."
        )));
    }
    let quoted = spoken.audio_base64.get();
    let inside = quoted
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let decoded = match inside {
        // A slash may be written with an escape.
        Some(escaped) if escaped.contains('\\') => {
            let text: String = serde_json::from_str(quoted).map_err(|_| unfit())?;
            LENIENT.decode(text)
        }
        Some(plain) => LENIENT.decode(plain),
        None => return Err(unfit()),
    };
    Ok(Rendered {
        body: decoded.map_err(|_| unfit())?,
        content_type: made.as_deref().map_or(BYTES, content_type),
    })
}

/// Assumed: the words that the service has for formats are those of OpenAI.
fn content_type(format: &str) -> &'static str {
    match format {
        "wav" => "audio/wav",
        "mp3" => "audio/mpeg",
        "opus" => "audio/opus",
        "ogg" => "audio/ogg",
        "aac" => "audio/aac",
        "flac" => "audio/flac",
        "m4a" => "audio/mp4",
        "webm" => "audio/webm",
        "pcm" => "audio/pcm",
        _ => BYTES,
    }
}
