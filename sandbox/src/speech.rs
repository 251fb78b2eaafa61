//! Speech: a text becomes a WAV, a recording becomes its length and words.
//!
//! | step | file |
//! |---|---|
//! | lengths, and why one cannot be known | `length` |
//! | recordings: decoded, counted, checked | `mp4`, `webm`, `listen` |
//! | espeak-ng as a child process | `espeak` |
//! | language tags | `language` |
//!
//! The package `bursar-models` has the built-in voice, and writes and reads the words in a WAV file.
//!
//! Promise: work on sound never holds a thread of the runtime, has a deadline, and two pieces of it run at
//! once at most; prices are taken from whole samples.

mod espeak;
pub mod language;
mod length;
mod listen;
mod mp4;
mod webm;

pub use length::Length;

use crate::{clock::Clock, error::ServiceError, money::MicroUsd, settings::Synthesis, spec};
use bursar_models::speech::{tones, voices::Voice, wav};
use bytes::Bytes;
use espeak::{Espeak, Sound};
use length::ListenError;
use listen::Heard;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

// Assumed (speech-prices): the interface bills by the minute and names no price.
pub const SPEECH_MICRO_USD_PER_MINUTE: u64 = 15_000;
pub const TRANSCRIPTION_MICRO_USD_PER_MINUTE: u64 = 6_000;

// Assumed (speech-limits): lengths and sizes of audio are not shown.
/// No recording may be larger, decoded from base64.
pub const AUDIO_BYTES_MAX: usize = 20 * 1024 * 1024;
const AT_ONCE: usize = 2;
const WAITING_MAX: usize = 32;
const DEADLINE: Duration = Duration::from_secs(60);

/// Interface, Errors 503: briefly unavailable.
const BUSY: ServiceError = ServiceError::BackendUnavailable {
    retry_after_s: spec::IN_FLIGHT_RETRY_AFTER_S,
};

#[derive(Debug)]
pub struct Speech {
    /// Found once, at the start.
    espeak: Option<Espeak>,
    places: Semaphore,
    /// One permit for each request that waits for a place.
    waiting: Semaphore,
}

/// A finished file.
#[derive(Debug)]
pub struct Spoken {
    pub wav: Vec<u8>,
    pub length: Length,
}

// === impl Speech ===

impl Speech {
    pub fn new() -> Self {
        Self {
            espeak: Espeak::find(),
            places: Semaphore::new(AT_ONCE),
            waiting: Semaphore::new(WAITING_MAX),
        }
    }

    /// Says `text` with espeak-ng when it is there and wanted, else with the built-in voice.
    pub async fn speak(
        &self,
        text: &str,
        voice: &'static Voice,
        synthesis: Synthesis,
        clock: &Clock,
    ) -> Result<Spoken, ServiceError> {
        let place = self.place().await?;
        let espeak = match synthesis {
            Synthesis::Auto => self.espeak.as_ref(),
            Synthesis::BuiltIn => None,
        };
        let mut said: Option<Sound> = None;
        if let Some(espeak) = espeak {
            match espeak.speak(text, voice, clock).await {
                Ok(sound) => said = Some(sound),
                Err(error) => tracing::warn!(%error, "the built-in voice speaks instead"),
            }
        }
        let text = text.to_owned();
        let spoken = in_time(clock, move |stop| {
            let sound = match said {
                Some(sound) => sound,
                None => Sound {
                    samples: tones::speak(&text, voice, stop)?,
                    rate: tones::RATE_HZ,
                },
            };
            let parts = u64::try_from(sound.samples.len()).ok()?;
            Some(Spoken {
                wav: wav::write(&sound.samples, sound.rate, &text)?,
                length: Length {
                    parts,
                    per_second: sound.rate,
                },
            })
        })
        .await;
        drop(place);
        spoken?.ok_or(ServiceError::Internal)
    }

    /// Hears a recording to its end.
    pub async fn listen(&self, audio: Bytes, clock: &Clock) -> Result<Heard, ServiceError> {
        let place = self.place().await?;
        let heard = in_time(clock, move |stop| listen::listen(&audio, stop)).await;
        drop(place);
        // Assumed (speech-limits): what is wrong with the audio is a failed validation.
        heard?.map_err(|error| match error {
            ListenError::Stopped => BUSY,
            reason => {
                ServiceError::Invalid(format!("audio_base64: {reason}")).assumed("speech-limits")
            }
        })
    }

    /// A place to work in; 503 when too many wait for one.
    async fn place(&self) -> Result<SemaphorePermit<'_>, ServiceError> {
        if let Ok(place) = self.places.try_acquire() {
            return Ok(place);
        }
        let _waiting = self.waiting.try_acquire().map_err(|_| BUSY)?;
        let place = self.places.acquire().await;
        place.map_err(|_| ServiceError::Internal)
    }
}

/// Runs `work` on a thread that may block. At the deadline `stop` is set, and the work ends soon.
async fn in_time<T: Send + 'static>(
    clock: &Clock,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> Result<T, ServiceError> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let mut task = tokio::task::spawn_blocking(move || work(&seen));
    let done = tokio::select! {
        biased;
        done = &mut task => Some(done),
        () = clock.sleep(DEADLINE) => None,
    };
    let ended = match done {
        Some(ended) => ended,
        None => {
            stop.store(true, Ordering::Relaxed);
            drop(task.await);
            return Err(BUSY);
        }
    };
    ended.map_err(|error| {
        tracing::error!(%error, "work on sound broke");
        ServiceError::Internal
    })
}

/// Interface, Metering: "Speech routes bill per minute of audio."
///
/// Assumed (speech-prices): by the exact length, rounded up once to a whole micro-USD.
pub fn price(length: Length, micro_usd_per_minute: u64) -> Option<MicroUsd> {
    let minutes_parts = 60 * u128::from(length.per_second);
    let micro = u128::from(length.parts)
        .checked_mul(u128::from(micro_usd_per_minute))?
        .checked_add(minutes_parts.checked_sub(1)?)?
        .checked_div(minutes_parts)?;
    u64::try_from(micro).ok().and_then(MicroUsd::new)
}

#[cfg(test)]
mod tests;
