//! A recording in a form (`multipart/form-data`), as OpenAI's clients send it, as the service's JSON.
//!
//! Promise: each field of the form that would change the answer's meaning and cannot be honored is refused by its
//! name; no text of a field but `language` goes out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::stream;

use super::asked::{AudioRequest, Form, Unsent, model_name};
use crate::protocol::translate::{Dropped, Untranslatable};

/// What is read of a form.
#[derive(Default)]
struct Recording {
    file: Option<Bytes>,
    model: Option<String>,
    language: Option<String>,
    form: Option<Form>,
    dropped: Dropped,
}

/// Most fields of a form. OpenAI's has about ten.
const FIELDS_MAX: usize = 64;

const BEFORE_AUDIO: &str = "{\"audio_base64\":\"";
const BEHIND_AUDIO: &str = "\"";

/// The JSON for a form. `content_type`: the header that came with it. `body_bytes_max`: of the JSON.
pub fn transcription(
    content_type: &str,
    body: Bytes,
    body_bytes_max: usize,
) -> Result<AudioRequest, Unsent> {
    let recording = read(content_type, body)?;
    let Some(file) = recording.file.filter(|file| !file.is_empty()) else {
        return Err(refused(
            "file",
            "The form has no recording: send it as the field `file`.",
        )
        .into());
    };
    let behind = behind_audio(recording.language.as_deref());
    let around = BEFORE_AUDIO.len().saturating_add(behind.len());
    let room = body_bytes_max.saturating_sub(around);
    let file_bytes_max = room / 4 * 3;
    if file.len() > file_bytes_max {
        return Err(Unsent::TooLarge {
            file_bytes: file.len(),
            file_bytes_max,
        });
    }
    let encoded = file.len().div_ceil(3).saturating_mul(4);
    let mut json = String::with_capacity(around.saturating_add(encoded));
    json.push_str(BEFORE_AUDIO);
    STANDARD.encode_string(&file, &mut json);
    json.push_str(&behind);
    Ok(AudioRequest {
        body: json.into_bytes(),
        turn: recording.form.unwrap_or(Form::Json).into(),
        model: recording.model,
        dropped: recording.dropped,
    })
}

fn behind_audio(language: Option<&str>) -> String {
    match language {
        Some(language) => {
            let language = serde_json::Value::from(language);
            format!("{BEHIND_AUDIO},\"language\":{language}}}")
        }
        None => format!("{BEHIND_AUDIO}}}"),
    }
}

/// Reads a form that is there whole: nothing is waited for.
fn read(content_type: &str, body: Bytes) -> Result<Recording, Untranslatable> {
    let malformed = |_| {
        refused(
            "",
            "The body is no form: multipart/form-data, with a boundary.",
        )
    };
    let boundary = multer::parse_boundary(content_type).map_err(malformed)?;
    let whole = stream::iter([Ok::<_, multer::Error>(body)]);
    let mut form = multer::Multipart::new(whole, boundary);
    let reading = async {
        let mut recording = Recording::default();
        let mut fields = 0;
        while let Some(mut field) = form.next_field().await.map_err(malformed)? {
            fields += 1;
            if fields > FIELDS_MAX {
                return Err(refused("", "The form has more than 64 fields."));
            }
            let mut value = Bytes::new();
            while let Some(piece) = field.chunk().await.map_err(malformed)? {
                value = match value.is_empty() {
                    // The whole field is one piece, and not copied.
                    true => piece,
                    false => Bytes::from([value, piece].concat()),
                };
            }
            recording.take(field.name().unwrap_or_default(), value)?;
        }
        Ok(recording)
    };
    let read = reading.now_or_never();
    read.unwrap_or_else(|| Err(refused("", "The form does not end.")))
}

fn refused(param: &str, message: &str) -> Untranslatable {
    Untranslatable::new(param, message)
}

// === impl Recording ===

impl Recording {
    fn take(&mut self, name: &str, value: Bytes) -> Result<(), Untranslatable> {
        if name == "file" {
            if self.file.replace(value).is_some() {
                return Err(refused(
                    "file",
                    "The form has more than one file; the service hears one.",
                ));
            }
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(&value).map(str::trim) else {
            return Err(refused(known(name), "A field of the form is not UTF-8."));
        };
        match known(name) {
            // An empty field is what clients send where nothing was set.
            _ if text.is_empty() => {}
            "model" => self.model = Some(model_name(text)),
            "language" => self.language = Some(text.to_owned()),
            "response_format" => self.form = Some(form_of(text)?),
            "stream" if is_false(text) => {}
            name @ "stream" => {
                return Err(refused(
                    name,
                    "The service hears a recording whole: leave `stream` out.",
                ));
            }
            name @ "timestamp_granularities" => {
                return Err(refused(
                    name,
                    "The service gives no times of words or segments: leave timestamp_granularities out.",
                ));
            }
            name @ "include" => {
                return Err(refused(
                    name,
                    "The service gives no logprobs: leave include out.",
                ));
            }
            name @ ("known_speaker_names" | "known_speaker_references") => {
                return Err(refused(name, "The service does not distinguish speakers."));
            }
            name @ ("prompt" | "temperature" | "chunking_strategy" | "keywords" | "languages") => {
                self.dropped.add(name);
            }
            _ => self.dropped.add("other"),
        }
        Ok(())
    }
}

fn form_of(format: &str) -> Result<Form, Untranslatable> {
    match format {
        "json" => Ok(Form::Json),
        "text" => Ok(Form::Text),
        "verbose_json" => Ok(Form::VerboseJson),
        "srt" | "vtt" => Err(refused(
            "response_format",
            "Subtitles (srt, vtt) need times, which the service does not give: ask for json, text or verbose_json.",
        )),
        "diarized_json" => Err(refused(
            "response_format",
            "The service does not distinguish speakers: ask for json, text or verbose_json.",
        )),
        _ => Err(refused(
            "response_format",
            "response_format is json, text or verbose_json.",
        )),
    }
}

fn is_false(text: &str) -> bool {
    text == "0" || text.eq_ignore_ascii_case("false")
}

/// The name of a field as a word of the form, never a text of the app's: `include[]` and `include` are one. Empty:
/// another one.
fn known(name: &str) -> &'static str {
    const KNOWN: [&str; 13] = [
        "model",
        "language",
        "languages",
        "keywords",
        "prompt",
        "response_format",
        "temperature",
        "stream",
        "chunking_strategy",
        "include",
        "timestamp_granularities",
        "known_speaker_names",
        "known_speaker_references",
    ];
    let name = name.split('[').next().unwrap_or(name);
    KNOWN.into_iter().find(|known| *known == name).unwrap_or("")
}
