//! Part 5: a text is spoken, and what was spoken is heard. The interface tells no price for either, so
//! the ledger has the seconds.
//!
//! Promise: the seconds in the ledger are those of the sound's own samples.

use serde_json::json;

use super::document::text;
use super::payload::{Sound, decode};
use crate::cli::demo::answer::seconds;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::ledger::entry::{EntryId, State};

const TEXT: &str = "Rivers run to the sea, and the ledger remembers.";

/// What was spoken.
#[derive(Clone, Debug)]
pub struct Recorded {
    audio_base64: String,
    ms: u64,
}

pub async fn synthesis(scene: &mut Scene<'_>) -> Result<Recorded, CliError> {
    scene.stage.fact("text", TEXT)?;
    let got = scene
        .call("/v1/audio/speech", &json!({"text": TEXT}))
        .await?;
    let audio_base64 = text(&got.body, "/audio_base64")?.to_owned();
    let wav = decode(&audio_base64)?;
    let sound = Sound::of_wav(&wav)?;
    let ms = sound.ms();
    let ms = ms.ok_or_else(|| CliError::Failed("the sound has no length".to_owned()))?;
    scene.stage.fact(
        "sound",
        format_args!(
            "WAV, {} bytes: {} samples, {} a second, {}",
            wav.len(),
            sound.samples,
            sound.rate,
            seconds(ms)
        ),
    )?;
    heard_by_the_ledger(scene, got.entry, ms).await?;
    Ok(Recorded { audio_base64, ms })
}

pub async fn transcription(scene: &mut Scene<'_>, recorded: &Recorded) -> Result<(), CliError> {
    let body = json!({ "audio_base64": recorded.audio_base64 });
    let got = scene.call("/v1/audio/transcriptions", &body).await?;
    let heard = text(&got.body, "/text")?;
    scene.stage.fact("heard", heard)?;
    scene.expect(heard == TEXT, "what was heard is not what was said");
    heard_by_the_ledger(scene, got.entry, recorded.ms).await
}

async fn heard_by_the_ledger(
    scene: &mut Scene<'_>,
    entry: Option<EntryId>,
    ms: u64,
) -> Result<(), CliError> {
    let entry = scene.paid(entry, None).await?;
    scene.expect(
        entry.state == State::Unreported && entry.audio_ms == Some(ms),
        "the ledger does not have the seconds of the sound, or has a price",
    );
    Ok(())
}
