//! Speech: a text becomes a WAV, a recording becomes its length and words.
//!
//! | step | file |
//! |---|---|
//! | lengths, and why one cannot be told | `length` |
//! | recordings: decoded, counted, checked | `mp4`, `webm`, `listen` |
//! | espeak-ng as a child process | `espeak` |
//! | language tags | `language` |
//!
//! The built-in voice and the words in a WAV file are the matter of the package `bursar-models`.
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
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::{Semaphore, SemaphorePermit};

// Assumed (speech-prices): the interface bills by the minute and tells no price.
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
    waiting: AtomicUsize,
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
            waiting: AtomicUsize::new(0),
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
        let line = Line::join(&self.waiting).ok_or(BUSY)?;
        let place = self.places.acquire().await;
        drop(line);
        place.map_err(|_| ServiceError::Internal)
    }
}

/// One that waits; dropping it leaves the line.
struct Line<'a>(&'a AtomicUsize);

impl<'a> Line<'a> {
    fn join(waiting: &'a AtomicUsize) -> Option<Self> {
        let before = waiting.fetch_add(1, Ordering::AcqRel);
        let line = Self(waiting);
        (before < WAITING_MAX).then_some(line)
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs `work` on a thread that may block. At the deadline it is told to stop, and it does so soon.
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
mod tests {
    use super::*;

    #[test]
    fn a_price_is_rounded_up_once_from_whole_samples() {
        for (parts, per_second, per_minute, micro_usd) in [
            (0, 16_000, 15_000, 0),
            (1, 16_000, 15_000, 1),            // 0.0156
            (64, 16_000, 15_000, 1),           // exactly 1
            (65, 16_000, 15_000, 2),           // 1.0156
            (960_000, 16_000, 15_000, 15_000), // a minute
            (960_001, 16_000, 15_000, 15_001),
            (44_100, 44_100, 6_000, 100), // a second
            (44_101, 44_100, 6_000, 101),
            (600_000_000, 1_000_000_000, 6_000, 60),
            (600_000_001, 1_000_000_000, 6_000, 61),
        ] {
            let length = Length { parts, per_second };
            assert_eq!(
                price(length, per_minute),
                MicroUsd::new(micro_usd),
                "{length:?}"
            );
        }
        let longest = Length {
            parts: u64::MAX,
            per_second: 1,
        };
        assert_eq!(price(longest, u64::MAX), None);
        assert_eq!(
            price(
                Length {
                    parts: 1,
                    per_second: 0
                },
                1
            ),
            None
        );
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_hangs_is_told_to_stop_at_the_deadline() {
        let clock = Clock::system();
        let advance = clock.clone();

        let working = in_time(&clock, |stop| {
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        let moving = async { advance.advance(DEADLINE) };
        let (ended, ()) = tokio::join!(working, moving);

        assert!(matches!(
            ended,
            Err(ServiceError::BackendUnavailable { .. })
        ));
    }

    #[tokio::test]
    async fn beyond_the_line_that_waits_there_is_a_503() {
        let speech = Speech::new();
        let _held = speech.places.acquire_many(2).await.unwrap();
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(speech.place())).collect();
        for one in &mut waiting {
            assert!(futures_util::poll!(one).is_pending());
        }

        assert!(matches!(
            speech.place().await,
            Err(ServiceError::BackendUnavailable { .. })
        ));
        waiting.pop();
        assert!(futures_util::poll!(Box::pin(speech.place())).is_pending());
    }
}
