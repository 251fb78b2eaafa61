//! What a recording is, how long it lasts, and whether it is whole.
//!
//! mp3 and m4a are decoded to their last sample, and what an encoder put around the recording is left out; a
//! WAV's plain samples are counted; a webm tells the times of its blocks.
//! Promise: bytes from a socket end in a length or in a reason, never in a panic; the length is counted in
//! whole samples or ticks, because money hangs on it.

use super::{AUDIO_S_MAX, mp4, wav, webm};
use bytes::Bytes;
use std::{
    io::{Cursor, ErrorKind},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};
use symphonia::core::{
    codecs::{CODEC_TYPE_MP3, CODEC_TYPE_NULL, Decoder, DecoderOptions},
    errors::Error,
    formats::{FormatOptions, FormatReader, Track},
    io::MediaSourceStream,
    meta::MetadataOptions,
    probe::Hint,
};
use thiserror::Error as ThisError;

/// More broken frames among ten than this, and the file is broken.
const BROKEN_IN_TEN_MAX: u64 = 1;

#[derive(Debug, ThisError, PartialEq, Eq)]
pub enum ListenError {
    #[error("the audio is broken: {0}")]
    Broken(&'static str),
    #[error("the audio cannot be read: {0} is not supported")]
    Unsupported(&'static str),
    #[error("the audio is neither wav, mp3, m4a nor webm")]
    UnknownContainer,
    #[error("the audio holds no sound")]
    NoSound,
    #[error("the audio is longer than {max_s} s", max_s = AUDIO_S_MAX)]
    TooLong,
    #[error("stopped")]
    Stopped,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    Wav,
    Mp3,
    M4a,
    Webm,
}

/// A time as a whole number of parts of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    pub parts: u64,
    pub per_second: u32,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Heard {
    pub container: Container,
    pub length: Length,
    /// What our own synthesis wrote beside its samples.
    pub said: Option<String>,
}

// === impl Container ===

impl Container {
    /// By the first bytes; an mp3 may begin with tags or in the middle of a stream, so it is what is left.
    fn of(bytes: &[u8]) -> Self {
        let behind = |at: usize, word: &[u8]| bytes.get(at..).is_some_and(|b| b.starts_with(word));
        if behind(0, b"RIFF") && behind(8, b"WAVE") {
            Self::Wav
        } else if behind(4, b"ftyp") {
            Self::M4a
        } else if behind(0, &[0x1a, 0x45, 0xdf, 0xa3]) {
            Self::Webm
        } else {
            Self::Mp3
        }
    }

    /// A name for the file that tells its kind.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Wav => "audio.wav",
            Self::Mp3 => "audio.mp3",
            Self::M4a => "audio.m4a",
            Self::Webm => "audio.webm",
        }
    }
}

// === impl Length ===

impl Length {
    /// For the wire; the nearest number a double holds.
    pub fn seconds(self) -> f64 {
        #[expect(
            clippy::cast_precision_loss,
            reason = "under 2^53 for every length we admit"
        )]
        let parts = self.parts as f64;
        parts / f64::from(self.per_second.max(1))
    }

    fn is_over(self, seconds: u64) -> bool {
        self.parts > seconds.saturating_mul(u64::from(self.per_second))
    }
}

/// Hears a recording to its end. `stop` ends it early.
pub fn listen(bytes: &Bytes, stop: &AtomicBool) -> Result<Heard, ListenError> {
    let container = Container::of(bytes);
    let (length, said) = match container {
        Container::Wav => {
            let wav = wav::read(bytes)?;
            let length = Length {
                parts: wav.frames,
                per_second: wav.rate,
            };
            (length, wav.said)
        }
        Container::Webm => (webm::length(bytes)?, None),
        Container::M4a => {
            mp4::check(bytes)?;
            (decoded_safely(bytes, container, stop)?, None)
        }
        Container::Mp3 => (decoded_safely(bytes, container, stop)?, None),
    };
    if length.parts == 0 {
        return Err(ListenError::NoSound);
    }
    if length.is_over(AUDIO_S_MAX) {
        return Err(ListenError::TooLong);
    }
    Ok(Heard {
        container,
        length,
        said,
    })
}

/// The decoders are not ours: what makes one of them panic is a broken file, not a broken service.
fn decoded_safely(
    bytes: &Bytes,
    container: Container,
    stop: &AtomicBool,
) -> Result<Length, ListenError> {
    catch_unwind(AssertUnwindSafe(|| decoded(bytes, container, stop)))
        .unwrap_or(Err(ListenError::Broken("no decoder can read it")))
}

fn decoded(bytes: &Bytes, container: Container, stop: &AtomicBool) -> Result<Length, ListenError> {
    let mut reader = open(bytes, container)?;
    let track = reader
        .tracks()
        .iter()
        .find(|track| is_sound(track, container))
        .ok_or(match container {
            Container::Mp3 => ListenError::UnknownContainer,
            _ => ListenError::NoSound,
        })?
        .clone();
    let codecs = symphonia::default::get_codecs();
    let mut count = Count::default();
    match codecs.make(&track.codec_params, &DecoderOptions::default()) {
        Ok(mut decoder) => {
            while let Some(packet) = next(reader.as_mut(), &track, stop)? {
                count.decode(decoder.as_mut(), &packet)?;
            }
            if count.bad * 10 > count.packets * BROKEN_IN_TEN_MAX {
                return Err(ListenError::Broken("its frames cannot be decoded"));
            }
        }
        // Assumed (transcription-duration): sound of a kind we cannot decode lasts as long as its packets say.
        Err(_) => {
            while let Some(packet) = next(reader.as_mut(), &track, stop)? {
                count.frames = count.frames.saturating_add(packet.dur());
                count.ticks = count.ticks.saturating_add(packet.dur());
            }
            count.rate = track.codec_params.time_base.map_or(0, |base| base.denom);
        }
    }
    // The index of an m4a tells how much there must be.
    let told = track.codec_params.n_frames.unwrap_or(0);
    if container == Container::M4a && count.ticks < told {
        return Err(ListenError::Broken("it ends before its index says"));
    }
    let parts = match container {
        Container::M4a => mp4::played(bytes, count.frames, count.rate),
        _ => count.frames,
    };
    match count.rate {
        0 => Err(ListenError::NoSound),
        per_second => Ok(Length { parts, per_second }),
    }
}

#[derive(Debug, Default)]
struct Count {
    frames: u64,
    /// Samples a second of what was decoded first.
    rate: u32,
    packets: u64,
    /// Packets that could not be decoded; they last as long as they say.
    bad: u64,
    ticks: u64,
}

// === impl Count ===

impl Count {
    fn decode(
        &mut self,
        decoder: &mut dyn Decoder,
        packet: &symphonia::core::formats::Packet,
    ) -> Result<(), ListenError> {
        self.packets += 1;
        self.ticks = self.ticks.saturating_add(packet.dur());
        let frames = match decoder.decode(packet) {
            Ok(sound) => {
                let rate = sound.spec().rate;
                if self.rate == 0 {
                    self.rate = rate;
                } else if rate != self.rate {
                    return Err(ListenError::Unsupported("a sample rate that changes"));
                }
                u64::try_from(sound.frames()).unwrap_or(u64::MAX)
            }
            Err(Error::DecodeError(_) | Error::IoError(_)) => {
                self.bad += 1;
                packet.dur()
            }
            Err(_) => return Err(ListenError::Broken("no decoder can read it")),
        };
        self.frames = self.frames.saturating_add(frames);
        let longest = AUDIO_S_MAX.saturating_mul(u64::from(self.rate));
        if self.rate > 0 && self.frames > longest {
            return Err(ListenError::TooLong);
        }
        Ok(())
    }
}

fn open(bytes: &Bytes, container: Container) -> Result<Box<dyn FormatReader>, ListenError> {
    let mut hint = Hint::new();
    hint.with_extension(match container {
        Container::M4a => "m4a",
        Container::Wav => "wav",
        _ => "mp3",
    });
    let source = MediaSourceStream::new(Box::new(Cursor::new(bytes.clone())), Default::default());
    let format = FormatOptions {
        enable_gapless: true,
        ..FormatOptions::default()
    };
    let probed = symphonia::default::get_probe()
        .format(&hint, source, &format, &MetadataOptions::default())
        .map_err(|_| match container {
            Container::M4a => ListenError::Broken("the m4a has no index that can be read"),
            _ => ListenError::UnknownContainer,
        })?;
    Ok(probed.format)
}

fn is_sound(track: &Track, container: Container) -> bool {
    match container {
        Container::Mp3 => track.codec_params.codec == CODEC_TYPE_MP3,
        _ => {
            track.codec_params.codec != CODEC_TYPE_NULL && track.codec_params.sample_rate.is_some()
        }
    }
}

/// The next packet of the track; `None` at the end.
fn next(
    reader: &mut dyn FormatReader,
    track: &Track,
    stop: &AtomicBool,
) -> Result<Option<symphonia::core::formats::Packet>, ListenError> {
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(ListenError::Stopped);
        }
        match reader.next_packet() {
            Ok(packet) if packet.track_id() == track.id => return Ok(Some(packet)),
            Ok(_) => {}
            Err(Error::IoError(error)) if error.kind() == ErrorKind::UnexpectedEof => {
                return Ok(None);
            }
            Err(_) => return Err(ListenError::Broken("its packets cannot be told apart")),
        }
    }
}

#[cfg(test)]
mod tests;
