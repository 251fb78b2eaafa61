//! Debian's espeak-ng as the voice, when it is installed.
//!
//! A child process without a shell and without our environment: the text goes in by standard input, a WAV
//! comes back by standard output. Promise: it never takes longer than [`DEADLINE`] of the sandbox's time nor
//! more sound than [`SPEECH_S_MAX`]; a child that is given up is killed, and the caller falls back.

use crate::clock::Clock;
use bursar_models::speech::{tones::SPEECH_S_MAX, voices::Voice, wav};
use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use thiserror::Error;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

const DEADLINE: Duration = Duration::from_secs(20);
/// Where packages put it. The environment is not asked: what is found there is not ours to run.
const PLACES: [&str; 3] = [
    "/usr/bin/espeak-ng",
    "/usr/local/bin/espeak-ng",
    "/opt/homebrew/bin/espeak-ng",
];
/// Words per minute: its own pace, then its fastest.
const PACES: [&str; 2] = ["175", "450"];
/// No rate of espeak-ng is higher.
const OUTPUT_BYTES_MAX: u64 = SPEECH_S_MAX * 22_050 * 2 + 1_024;

#[derive(Debug, Error)]
pub enum EspeakError {
    #[error("espeak-ng cannot be run: {0}")]
    Io(#[from] std::io::Error),
    #[error("espeak-ng took too long")]
    TimedOut,
    #[error("espeak-ng made more sound than fits")]
    TooLong,
    #[error("espeak-ng failed")]
    Failed,
    #[error("espeak-ng made no usable sound")]
    NoSound,
}

/// 16-bit samples of one channel.
#[derive(Debug, PartialEq, Eq)]
pub struct Sound {
    pub samples: Vec<i16>,
    pub rate: u32,
}

#[derive(Debug)]
pub struct Espeak {
    program: PathBuf,
}

// === impl Espeak ===

impl Espeak {
    /// Looks for it once. `None` when it is not installed.
    pub fn find() -> Option<Self> {
        let found = PLACES.iter().map(Path::new).find(|path| path.is_file())?;
        Some(Self {
            program: found.to_path_buf(),
        })
    }

    pub async fn speak(
        &self,
        text: &str,
        voice: &Voice,
        clock: &Clock,
    ) -> Result<Sound, EspeakError> {
        // Two brackets would open its own alphabet of sounds; a text is only ever read.
        let text = text.replace("[[", "[ [");
        let mut result = Err(EspeakError::TooLong);
        for pace in PACES {
            if !matches!(result, Err(EspeakError::TooLong)) {
                break;
            }
            result = tokio::select! {
                said = self.run(&text, voice, pace) => said,
                () = clock.sleep(DEADLINE) => Err(EspeakError::TimedOut),
            };
        }
        result
    }

    async fn run(&self, text: &str, voice: &Voice, pace: &str) -> Result<Sound, EspeakError> {
        let mut child = Command::new(&self.program)
            .args(["--stdin", "--stdout", "-b", "1"])
            .args(["-v", voice.espeak, "-p", voice.espeak_pitch, "-s", pace])
            .env_clear()
            .env("LC_ALL", "C.UTF-8")
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(EspeakError::Failed);
        };
        let mut wav = Vec::new();
        let mut output = output.take(OUTPUT_BYTES_MAX + 1);
        let feed = async move {
            // A child that does not read to the end says so by its exit code.
            let _ = input.write_all(text.as_bytes()).await;
        };
        let ((), read) = tokio::join!(feed, output.read_to_end(&mut wav));
        read?;
        if u64::try_from(wav.len()).unwrap_or(u64::MAX) > OUTPUT_BYTES_MAX {
            return Err(EspeakError::TooLong);
        }
        if !child.wait().await?.success() {
            return Err(EspeakError::Failed);
        }
        sound(&wav)
    }
}

fn sound(bytes: &[u8]) -> Result<Sound, EspeakError> {
    let wav = wav::read(bytes).map_err(|_| EspeakError::NoSound)?;
    if wav.channels != 1 || wav.bits != 16 || wav.frames == 0 {
        return Err(EspeakError::NoSound);
    }
    let samples: Vec<i16> = wav
        .pcm
        .chunks_exact(2)
        .filter_map(|two| two.first_chunk::<2>().copied())
        .map(i16::from_le_bytes)
        .collect();
    if u64::try_from(samples.len()).unwrap_or(u64::MAX) > SPEECH_S_MAX * u64::from(wav.rate) {
        return Err(EspeakError::TooLong);
    }
    Ok(Sound {
        samples,
        rate: wav.rate,
    })
}

#[cfg(test)]
mod tests;
