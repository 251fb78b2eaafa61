//! `POST /v1/audio/speech` and `POST /v1/audio/transcriptions`.
//!
//! Interface, Idempotency-Key: "The audio routes ignore it: a retry runs and bills again."
//! Promise: one debit per success, from the exact length of the sound that was made or heard; a failure
//! bills nothing. Assumed (speech-limits): the ceilings on inference do not apply here.

use crate::{
    billing::Charged,
    error::{RouteResult, ServiceError},
    fields::Fields,
    inbound::Inbound,
    purchase::{Goods, JsonAnswer, Order, Rules, WorkResult, purchase},
    settings::Synthesis,
    spec,
    speech::{self, Length, language},
    state::State,
};
use axum::{Extension, extract::State as Shared};
use base64::{
    Engine as _,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig, general_purpose},
};
use bursar_models::speech::voices;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
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
) -> RouteResult {
    let form = async {
        let fields = Fields::parse(&inbound.body)?;
        let text = fields.required_text("text")?;
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
        let voice = match fields.text("voice")? {
            None => voices::default(),
            Some(id) => voices::by_id(id).ok_or_else(|| {
                ServiceError::Invalid(format!("voice: unknown; there are {}", voices::ids()))
                    .assumed("speech-form")
            })?,
        };
        Ok(Order::unkept(
            &inbound,
            speak(&state, text.to_owned(), voice),
        ))
    };
    purchase(&state, inbound.clone(), Rules::Beside, form).await
}

async fn speak(
    state: &State,
    text: String,
    voice: &'static voices::Voice,
) -> Result<WorkResult, ServiceError> {
    let synthesis: Synthesis = state.settings().synthesis;
    let (speech, clock) = (&state.speech, &state.clock);
    let spoken = speech.speak(&text, voice, synthesis, clock).await?;
    let body = json!({
        "audio_base64": general_purpose::STANDARD.encode(&spoken.wav),
        "sample_rate": spoken.length.per_second,
        "duration_s": spoken.length.seconds(),
        "format": "wav",
    });
    let marks = vec!["speech-form", "speech-text"];
    goods(
        spoken.length,
        speech::SPEECH_MICRO_USD_PER_MINUTE,
        marks,
        body,
    )
}

/// Speech to text.
pub async fn transcriptions(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let form = async {
        let fields = Fields::parse(&inbound.body)?;
        let audio = audio(&fields)?;
        let asked = fields.text("language")?;
        if asked.is_some_and(|tag| !language::is_tag(tag)) {
            return Err(ServiceError::invalid(
                "language must be a language tag, as en or pt-BR",
            ));
        }
        Ok(Order::unkept(
            &inbound,
            hear(&state, audio, asked.map(str::to_owned)),
        ))
    };
    purchase(&state, inbound.clone(), Rules::Beside, form).await
}

async fn hear(
    state: &State,
    audio: Bytes,
    asked: Option<String>,
) -> Result<WorkResult, ServiceError> {
    let heard = state.speech.listen(audio.clone(), &state.clock).await?;
    let file_name = heard.container.file_name();
    let hint = asked.as_deref().and_then(language::two_letters);
    let transcript = match state.fleet.transcribe(&audio, file_name, hint).await {
        Some(transcript) => Some(transcript?),
        None => None,
    };
    let mut marks = match transcript {
        Some(_) => Vec::new(),
        None => vec!["transcription-text"],
    };
    marks.extend(["transcription-language", "transcription-duration"]);
    let (text, heard_language) = match transcript {
        Some(transcript) => (transcript.text, transcript.language),
        // Assumed (transcription-text): the words of our own synthesis, otherwise none. Never
        // invented ones.
        None => (heard.said.unwrap_or_default(), None),
    };
    // Assumed (transcription-language): the requested one, else the server's, else the one that the text
    // suggests.
    let language = asked
        .or(heard_language)
        .unwrap_or_else(|| language::of_text(&text).to_owned());
    let body = json!({
        "text": text,
        "language": language,
        "duration_s": heard.length.seconds(),
    });
    let per_minute = speech::TRANSCRIPTION_MICRO_USD_PER_MINUTE;
    goods(heard.length, per_minute, marks, body)
}

fn goods(
    length: Length,
    micro_usd_per_minute: u64,
    marks: Vec<&'static str>,
    body: Value,
) -> Result<WorkResult, ServiceError> {
    let price = speech::price(length, micro_usd_per_minute).ok_or(ServiceError::Internal)?;
    let answer = Box::new(move |_: &Charged| JsonAnswer::json(HeaderMap::new(), &marks, &body));
    Ok(WorkResult::Whole(Goods { price, answer }))
}

/// The recording's bytes.
fn audio(fields: &Fields) -> Result<Bytes, ServiceError> {
    let text = fields.required_text("audio_base64")?;
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
