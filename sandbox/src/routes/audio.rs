//! `POST /v1/audio/speech` and `POST /v1/audio/transcriptions`.
//!
//! Interface, Idempotency-Key: "The audio routes ignore it: a retry runs and bills again."
//! Promise: one debit per success, from the exact length of the sound that was made or heard; whatever fails
//! bills nothing. Assumed (speech-limits): the ceilings on inference do not hold here.

use crate::{
    error::{ServiceError, mark_assumed},
    inbound::Inbound,
    settings::Synthesis,
    spec,
    speech::{self, Length, language},
    state::State,
};
use axum::{
    Extension, Json,
    extract::State as Shared,
    response::{IntoResponse, Response},
};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};
use bursar_models::speech::voices;
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// With or without the signs that fill up the end.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Text to speech.
pub async fn speech(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    let fields = fields(&inbound.body)?;
    let text = required(&fields, "text")?;
    // Interface, Limits: speech `text` has at most 5000 characters.
    if text.chars().count() > spec::SPEECH_CHARS_MAX {
        return Err(ServiceError::Invalid(format!(
            "text must have at most {} characters",
            spec::SPEECH_CHARS_MAX
        )));
    }
    if text.trim().is_empty() {
        return Err(ServiceError::invalid("text must not be empty"));
    }
    // Interface, POST /v1/audio/speech: omit `voice` for the default voice.
    let voice = match optional(&fields, "voice")? {
        None => voices::default(),
        Some(id) => voices::by_id(id).ok_or_else(|| {
            ServiceError::Invalid(format!("voice: unknown; there are {}", voices::ids()))
                .assumed("speech-form")
        })?,
    };
    state.books.check_balance(&inbound.org)?;
    let synthesis: Synthesis = state.settings().synthesis;
    let spoken = state
        .speech
        .speak(text, voice, synthesis, &state.clock)
        .await?;
    inbound.fault.work(&state.clock, &state.holds).await;
    bill(
        &state,
        &inbound,
        spoken.length,
        speech::SPEECH_MICRO_USD_PER_MINUTE,
    )?;
    let mut response = Json(json!({
        "audio_base64": general_purpose::STANDARD.encode(&spoken.wav),
        "sample_rate": spoken.length.per_second,
        "duration_s": spoken.length.seconds(),
        "format": "wav",
    }))
    .into_response();
    mark_assumed(&mut response, "speech-form");
    mark_assumed(&mut response, "speech-text");
    Ok(response)
}

/// Speech to text.
pub async fn transcriptions(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    let fields = fields(&inbound.body)?;
    let audio = audio(&fields)?;
    let asked = optional(&fields, "language")?;
    if asked.is_some_and(|tag| !language::is_tag(tag)) {
        return Err(ServiceError::invalid(
            "language must be a language tag, as en or pt-BR",
        ));
    }
    state.books.check_balance(&inbound.org)?;
    let heard = state.speech.listen(audio.clone(), &state.clock).await?;
    let file_name = heard.container.file_name();
    let told = asked.and_then(language::two_letters);
    let transcript = match state.fleet.transcribe(&audio, file_name, told).await {
        Some(transcript) => Some(transcript?),
        None => None,
    };
    let by_server = transcript.is_some();
    let (text, heard_language) = match transcript {
        Some(transcript) => (transcript.text, transcript.language),
        // Assumed (transcription-text): words of our own synthesis, else none. Never invented ones.
        None => (heard.said.unwrap_or_default(), None),
    };
    // Assumed (transcription-language): what was asked for, else what the server heard, else what the text tells.
    let language = match (asked, heard_language) {
        (Some(asked), _) => asked.to_owned(),
        (None, Some(heard)) => heard,
        (None, None) => language::of_text(&text).to_owned(),
    };
    inbound.fault.work(&state.clock, &state.holds).await;
    bill(
        &state,
        &inbound,
        heard.length,
        speech::TRANSCRIPTION_MICRO_USD_PER_MINUTE,
    )?;
    let mut response = Json(json!({
        "text": text,
        "language": language,
        "duration_s": heard.length.seconds(),
    }))
    .into_response();
    if !by_server {
        mark_assumed(&mut response, "transcription-text");
    }
    mark_assumed(&mut response, "transcription-language");
    mark_assumed(&mut response, "transcription-duration");
    Ok(response)
}

/// Interface, Idempotency-Key: "The audio routes ignore it: a retry runs and bills again."
fn bill(
    state: &State,
    inbound: &Inbound,
    length: Length,
    micro_usd_per_minute: u64,
) -> Result<(), ServiceError> {
    let price = speech::price(length, micro_usd_per_minute).ok_or(ServiceError::Internal)?;
    state.billing.charge_unkeyed(inbound, price)
}

/// The recording's bytes.
fn audio(fields: &Map<String, Value>) -> Result<Bytes, ServiceError> {
    let text = required(fields, "audio_base64")?;
    let bytes = LENIENT
        .decode(text)
        .map_err(|error| ServiceError::Invalid(format!("audio_base64 is no base64: {error}")))?;
    if bytes.is_empty() {
        return Err(ServiceError::invalid("audio_base64 must not be empty"));
    }
    if bytes.len() > speech::AUDIO_BYTES_MAX {
        return Err(ServiceError::Invalid(format!(
            "audio_base64 holds more than {} bytes",
            speech::AUDIO_BYTES_MAX
        ))
        .assumed("speech-limits"));
    }
    Ok(Bytes::from(bytes))
}

/// Members that are not named in the interface are not looked at.
fn fields(body: &[u8]) -> Result<Map<String, Value>, ServiceError> {
    let body: Value = serde_json::from_slice(body).map_err(|error| {
        ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
    })?;
    match body {
        Value::Object(fields) => Ok(fields),
        _ => Err(ServiceError::invalid("the body must be a JSON object")),
    }
}

fn required<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<&'a str, ServiceError> {
    optional(fields, name)?.ok_or_else(|| ServiceError::Invalid(format!("{name} is required")))
}

/// A text, or `None` when it is left out or null.
fn optional<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a str>, ServiceError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ServiceError::Invalid(format!("{name} must be a string"))),
    }
}
