//! What a recording is, how long it lasts, and whether it is whole.
//!
//! mp3 and m4a are decoded to their last sample, and what an encoder put around the recording is left out; a
//! WAV's plain samples are counted; a webm states the times of its blocks. The first bytes name the container, and
//! only its reader sees the file, behind a check of what it believes: nothing searches a file for another one.
//! Promise: bytes from a socket end in a length or in a reason, never in a panic, and in memory that grows with the
//! bytes and never with a number that they contain; the length is counted in whole samples or ticks, because
//! money hangs on it.

mod mp3;

use super::{
    length::{AUDIO_S_MAX, Length, ListenError},
    mp4, webm,
};
use bursar_models::speech::wav;
use bytes::Bytes;
use std::{
    io::{Cursor, ErrorKind},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicBool, Ordering},
};
use symphonia::{
    core::{
        codecs::{
            CODEC_TYPE_AAC, CODEC_TYPE_MP3, CODEC_TYPE_NULL, CodecParameters, Decoder,
            DecoderOptions,
        },
        errors::Error,
        formats::{FormatOptions, FormatReader, Packet, Track},
        io::MediaSourceStream,
    },
    default::{
        codecs::{AacDecoder, MpaDecoder},
        formats::{IsoMp4Reader, MpaReader},
    },
};

/// More broken frames among ten than this, and the file is broken.
const BROKEN_IN_TEN_MAX: u64 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    Wav,
    Mp3,
    M4a,
    Webm,
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
    /// By the first bytes. What is left is an mp3 or nothing: `mp3::first_frame` says.
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

    /// A file name with the ending of its kind.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Wav => "audio.wav",
            Self::Mp3 => "audio.mp3",
            Self::M4a => "audio.m4a",
            Self::Webm => "audio.webm",
        }
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
        Container::M4a => (safely(|| m4a(bytes, stop))?, None),
        Container::Mp3 => (safely(|| mp3(bytes, stop))?, None),
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
fn safely(read: impl FnOnce() -> Result<Length, ListenError>) -> Result<Length, ListenError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or(Err(ListenError::Broken("no decoder can read it")))
}

fn m4a(bytes: &Bytes, stop: &AtomicBool) -> Result<Length, ListenError> {
    mp4::check(bytes)?;
    let mut reader = IsoMp4Reader::try_new(source(bytes.clone()), &gapless())
        .map_err(|_| ListenError::Broken("the m4a has no index that can be read"))?;
    let is_sound = |track: &&Track| {
        let params = &track.codec_params;
        params.codec != CODEC_TYPE_NULL && params.sample_rate.is_some()
    };
    let track = reader.tracks().iter().find(is_sound);
    let track = track.ok_or(ListenError::NoSound)?.clone();
    let decoder = decoder(&track.codec_params);
    let count = Count::of(&mut reader, &track, decoder, stop)?;
    // The index says how much there must be.
    if count.ticks < track.codec_params.n_frames.unwrap_or(0) {
        return Err(ListenError::Broken("it ends before its index says"));
    }
    count.length(mp4::played(bytes, count.frames, count.rate))
}

fn mp3(bytes: &Bytes, stop: &AtomicBool) -> Result<Length, ListenError> {
    // Without the tags in front: their reader makes room for what they say.
    let frames = bytes.slice(mp3::first_frame(bytes)?..);
    let mut reader = MpaReader::try_new(source(frames), &gapless())
        .map_err(|_| ListenError::UnknownContainer)?;
    let track = reader.tracks().first();
    let track = track.ok_or(ListenError::UnknownContainer)?.clone();
    let decoder = decoder(&track.codec_params);
    let count = Count::of(&mut reader, &track, decoder, stop)?;
    count.length(count.frames)
}

fn source(bytes: Bytes) -> MediaSourceStream {
    MediaSourceStream::new(Box::new(Cursor::new(bytes)), Default::default())
}

fn gapless() -> FormatOptions {
    FormatOptions {
        enable_gapless: true,
        ..FormatOptions::default()
    }
}

/// One for the two kinds of sound that are decoded. That of plain samples makes room for as many as a file says.
fn decoder(params: &CodecParameters) -> Option<Box<dyn Decoder>> {
    let options = DecoderOptions::default();
    match params.codec {
        CODEC_TYPE_AAC => Some(Box::new(AacDecoder::try_new(params, &options).ok()?)),
        CODEC_TYPE_MP3 => Some(Box::new(MpaDecoder::try_new(params, &options).ok()?)),
        _ => None,
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
    /// Hears a track to its end.
    fn of(
        reader: &mut dyn FormatReader,
        track: &Track,
        decoder: Option<Box<dyn Decoder>>,
        stop: &AtomicBool,
    ) -> Result<Self, ListenError> {
        let mut count = Self::default();
        let Some(mut decoder) = decoder else {
            // Assumed (transcription-duration): sound of a kind we cannot decode lasts as long as its packets say.
            count.rate = track.codec_params.time_base.map_or(0, |base| base.denom);
            while let Some(packet) = next(reader, track, stop)? {
                count.frames = count.frames.saturating_add(packet.dur());
                count.ticks = count.ticks.saturating_add(packet.dur());
                count.check_length()?;
            }
            return Ok(count);
        };
        while let Some(packet) = next(reader, track, stop)? {
            count.decode(decoder.as_mut(), &packet)?;
        }
        if count.bad * 10 > count.packets * BROKEN_IN_TEN_MAX {
            return Err(ListenError::Broken("its frames cannot be decoded"));
        }
        Ok(count)
    }

    /// So many samples at the rate that was heard.
    fn length(&self, parts: u64) -> Result<Length, ListenError> {
        match self.rate {
            0 => Err(ListenError::NoSound),
            per_second => Ok(Length { parts, per_second }),
        }
    }

    fn check_length(&self) -> Result<(), ListenError> {
        let longest = AUDIO_S_MAX.saturating_mul(u64::from(self.rate));
        match self.rate > 0 && self.frames > longest {
            true => Err(ListenError::TooLong),
            false => Ok(()),
        }
    }

    fn decode(&mut self, decoder: &mut dyn Decoder, packet: &Packet) -> Result<(), ListenError> {
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
        self.check_length()
    }
}

/// The next packet of the track; `None` at the end.
fn next(
    reader: &mut dyn FormatReader,
    track: &Track,
    stop: &AtomicBool,
) -> Result<Option<Packet>, ListenError> {
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
            Err(_) => return Err(ListenError::Broken("its packets cannot be separated")),
        }
    }
}

#[cfg(test)]
mod tests;
