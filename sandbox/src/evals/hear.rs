//! `auto` on a recording: the transcription route's own work and price.
//!
//! Interface, Speech: "transcription (speech to text)"; Metering: "Speech routes bill per minute of audio".
//!
//! Assumed (eval-transcription): `auto` writes down a row's recording as `/v1/audio/transcriptions` does and
//! is billed as it; a frontier model gets the recording as an `input_audio` part of a chat request.
//! Promise: words are heard by the configured server or read where our own synthesis wrote them, never
//! invented.

use super::{ask::Asker, rows::EvalRow, stored::Evals};
use crate::{
    catalog::Task,
    error::ServiceError,
    money::MicroUsd,
    speech::{self, TRANSCRIPTION_MICRO_USD_PER_MINUTE},
};

/// Whether `auto` hears the rows of this task instead of reading them.
pub fn is_heard(task: &Task) -> bool {
    task.scoring_strategy == "transcription"
}

/// What is said in a row's recording, and the price of hearing it.
pub async fn hear(
    evals: &Evals,
    asker: &Asker,
    at: usize,
    row: &EvalRow,
) -> Result<(String, MicroUsd), ServiceError> {
    let audio = asker
        .recording(evals, at, row)
        .await?
        .ok_or_else(|| ServiceError::invalid("the row lacks an input"))?;
    let heard = evals
        .parts
        .speech
        .listen(audio.clone(), &evals.parts.clock)
        .await?;
    let file_name = heard.container.file_name();
    let text = match evals.parts.fleet.transcribe(&audio, file_name, None).await {
        Some(transcript) => transcript?.text,
        None => heard.said.unwrap_or_default(),
    };
    let price = speech::price(heard.length, TRANSCRIPTION_MICRO_USD_PER_MINUTE)
        .ok_or(ServiceError::Internal)?;
    Ok((text, price))
}
