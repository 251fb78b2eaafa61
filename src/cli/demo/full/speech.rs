//! Part 5: a text is spoken, and what was spoken is heard. The interface tells no price for either, so
//! the ledger has the seconds.
//!
//! Promise: the seconds in the ledger are those of the sound's own samples.

use serde_json::json;

use super::calls::text;
use super::payload::{Sound, decode};
use super::tour::Tour;
use crate::cli::CliError;
use crate::cli::demo::answer::seconds;
use crate::ledger::entry::{EntryId, State};

const TEXT: &str = "Rivers run to the sea, and the ledger remembers.";

/// What was spoken.
#[derive(Clone, Debug)]
pub struct Recorded {
    audio_base64: String,
    ms: u64,
}

// === impl Tour ===

impl Tour<'_> {
    pub(super) async fn synthesis(&mut self) -> Result<(), CliError> {
        self.story.stage.fact("text", TEXT)?;
        let got = self
            .post("/v1/audio/speech", &json!({"text": TEXT}))
            .await?;
        let audio_base64 = text(&got.body, "/audio_base64")?.to_owned();
        let wav = decode(&audio_base64)?;
        let sound = Sound::of_wav(&wav)?;
        let ms = sound.ms();
        let ms = ms.ok_or_else(|| CliError::Failed("the sound has no length".to_owned()))?;
        self.story.stage.fact(
            "sound",
            format_args!(
                "WAV, {} bytes: {} samples, {} a second, {}",
                wav.len(),
                sound.samples,
                sound.rate,
                seconds(ms)
            ),
        )?;
        self.recorded = Some(Recorded { audio_base64, ms });
        self.heard_by_the_ledger(got.entry, ms).await
    }

    pub(super) async fn transcription(&mut self) -> Result<(), CliError> {
        let recorded = Self::needs(self.recorded.as_ref(), "recording")?;
        let body = json!({ "audio_base64": recorded.audio_base64 });
        let got = self.post("/v1/audio/transcriptions", &body).await?;
        let heard = text(&got.body, "/text")?;
        self.story.stage.fact("heard", heard)?;
        self.story
            .expect(heard == TEXT, "what was heard is not what was said");
        self.heard_by_the_ledger(got.entry, recorded.ms).await
    }

    async fn heard_by_the_ledger(
        &mut self,
        entry: Option<EntryId>,
        ms: u64,
    ) -> Result<(), CliError> {
        let entry = self.paid(entry, None).await?;
        self.story.expect(
            entry.state == State::Unreported && entry.audio_ms == Some(ms),
            "the ledger does not have the seconds of the sound, or has a price",
        );
        Ok(())
    }
}
