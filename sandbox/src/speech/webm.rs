//! How long a webm lasts, from its container.
//!
//! Opus and Vorbis are not decoded here, and a file can make symphonia's Matroska reader panic, so
//! this reads the few elements that state times. Browsers record without a duration and with clusters of
//! unknown size: then the times of the blocks count.
//! Promise: nothing is kept of a file but a few numbers; a header cannot make the sound shorter than its last block nor longer than that block can be.

use super::length::{Length, ListenError};

const NS: u32 = 1_000_000_000;
/// No block of sound lasts longer.
const BLOCK_NS_MAX: u64 = 1_000_000_000;
const TICK_NS_DEFAULT: u64 = 1_000_000;
/// A block names its track by a number that takes one byte in every file there is.
const TRACKS_MAX: usize = 127;

mod id {
    pub const EBML: u32 = 0x1a45_dfa3;
    pub const DOC_TYPE: u32 = 0x4282;
    pub const SEGMENT: u32 = 0x1853_8067;
    pub const INFO: u32 = 0x1549_a966;
    pub const TIMESTAMP_SCALE: u32 = 0x2a_d7b1;
    pub const DURATION: u32 = 0x4489;
    pub const TRACKS: u32 = 0x1654_ae6b;
    pub const TRACK: u32 = 0xae;
    pub const TRACK_NUMBER: u32 = 0xd7;
    pub const TRACK_TYPE: u32 = 0x83;
    pub const CODEC: u32 = 0x86;
    pub const CLUSTER: u32 = 0x1f43_b675;
    pub const TIMESTAMP: u32 = 0xe7;
    pub const SIMPLE_BLOCK: u32 = 0xa3;
    pub const BLOCK_GROUP: u32 = 0xa0;
    pub const BLOCK: u32 = 0xa1;
    pub const BLOCK_DURATION: u32 = 0x9b;
}

/// What was read so far.
#[derive(Debug, Default)]
struct Reading {
    is_known: bool,
    tick_ns: Option<u64>,
    duration_ticks: Option<f64>,
    tracks: Vec<Track>,
    cluster_ticks: u64,
    /// Start of the last two blocks of sound, ns.
    last_ns: Option<u64>,
    last_but_one_ns: Option<u64>,
    /// Where the sound of any block ends, as far as a block says.
    end_ns: u64,
}

#[derive(Debug, Default)]
struct Track {
    number: u64,
    sound: bool,
    opus: bool,
}

/// The length of the sound in nanoseconds.
pub fn length(bytes: &[u8]) -> Result<Length, ListenError> {
    let mut reading = Reading::default();
    let mut rest = bytes;
    // Elements that hold others are entered and all others skipped, so that an unknown size needs no end.
    while !rest.is_empty() {
        let (id, size, behind) =
            head(rest).ok_or(ListenError::Broken("an element is not whole"))?;
        let known = size.and_then(|size| usize::try_from(size).ok());
        let body = known.and_then(|size| behind.get(..size));
        let entered = matches!(
            id,
            id::EBML
                | id::SEGMENT
                | id::INFO
                | id::TRACKS
                | id::TRACK
                | id::CLUSTER
                | id::BLOCK_GROUP
        );
        match body {
            None if size.is_some() => {
                return Err(ListenError::Broken(
                    "an element ends beyond the end of the file",
                ));
            }
            None if !entered => return Err(ListenError::Broken("an element has no size")),
            Some(body) if !entered => {
                reading.element(id, body)?;
                rest = behind.get(body.len()..).unwrap_or_default();
            }
            _ => {
                if id == id::TRACK {
                    if reading.tracks.len() == TRACKS_MAX {
                        return Err(ListenError::Unsupported("more than 127 tracks"));
                    }
                    reading.tracks.push(Track::default());
                }
                rest = behind;
            }
        }
    }
    reading.length()
}

// === impl Reading ===

impl Reading {
    fn element(&mut self, id: u32, body: &[u8]) -> Result<(), ListenError> {
        match id {
            id::DOC_TYPE => self.is_known = matches!(body, b"webm" | b"matroska"),
            id::TIMESTAMP_SCALE => self.tick_ns = number(body).filter(|ns| *ns > 0),
            id::DURATION => self.duration_ticks = float(body),
            id::TRACK_NUMBER | id::TRACK_TYPE | id::CODEC => {
                if let Some(track) = self.tracks.last_mut() {
                    match id {
                        id::TRACK_NUMBER => track.number = number(body).unwrap_or(0),
                        id::TRACK_TYPE => track.sound = number(body) == Some(2),
                        _ => track.opus = body.starts_with(b"A_OPUS"),
                    }
                }
            }
            id::TIMESTAMP => {
                self.cluster_ticks =
                    number(body).ok_or(ListenError::Broken("a cluster has no time"))?;
            }
            id::SIMPLE_BLOCK | id::BLOCK => self.block(body)?,
            id::BLOCK_DURATION => {
                if let (Some(last), Some(ticks)) = (self.last_ns, number(body)) {
                    let block_ns = ticks.saturating_mul(self.tick_ns()).min(BLOCK_NS_MAX);
                    self.end_ns = self.end_ns.max(last.saturating_add(block_ns));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn block(&mut self, body: &[u8]) -> Result<(), ListenError> {
        let broken = ListenError::Broken("a block is not whole");
        let Some((number, rest)) = vint(body) else {
            return Err(broken);
        };
        let Some(([high, low, flags], frames)) = rest.split_first_chunk::<3>() else {
            return Err(broken);
        };
        let Some(track) = self
            .tracks
            .iter()
            .find(|track| Some(track.number) == number)
        else {
            return Err(ListenError::Broken("a block belongs to no track"));
        };
        if !track.sound {
            return Ok(());
        }
        let offset = i64::from(i16::from_be_bytes([*high, *low]));
        let ticks = self.cluster_ticks.saturating_add_signed(offset);
        let start_ns = ticks.saturating_mul(self.tick_ns());
        let laced = flags & 0x06 != 0;
        let frame_ns = if track.opus && !laced {
            opus_ns(frames)
        } else {
            0
        };
        if self.last_ns.is_none_or(|last| start_ns > last) {
            self.last_but_one_ns = self.last_ns.replace(start_ns);
        }
        self.end_ns = self.end_ns.max(start_ns.saturating_add(frame_ns));
        Ok(())
    }

    fn tick_ns(&self) -> u64 {
        self.tick_ns.unwrap_or(TICK_NS_DEFAULT)
    }

    /// The header's duration, held between the last block and what a block can last; without one, the end of
    /// the last block, which lasts as long as it says or as the one before it.
    fn length(&self) -> Result<Length, ListenError> {
        if !self.is_known {
            return Err(ListenError::UnknownContainer);
        }
        let Some(last_ns) = self.last_ns else {
            return Err(ListenError::NoSound);
        };
        let header_ns = self.duration_ticks.and_then(|ticks| {
            #[expect(clippy::cast_precision_loss, reason = "a tick is far under 2^53 ns")]
            let ns = (ticks * self.tick_ns() as f64).round();
            #[expect(
                clippy::cast_possible_truncation,
                reason = "a cast of a float saturates"
            )]
            #[expect(clippy::cast_sign_loss, reason = "the filter leaves what is positive")]
            Some(ns)
                .filter(|ns| ns.is_finite() && *ns > 0.0)
                .map(|ns| ns as u64)
        });
        let gap_ns = self.last_but_one_ns.map_or(0, |before| last_ns - before);
        let latest_ns = last_ns.saturating_add(BLOCK_NS_MAX);
        let parts = match header_ns {
            Some(ns) => ns.clamp(last_ns, latest_ns),
            None if self.end_ns > last_ns => self.end_ns,
            None => last_ns.saturating_add(gap_ns).min(latest_ns),
        };
        Ok(Length {
            parts,
            per_second: NS,
        })
    }
}

/// Id, size (`None` when unknown) and what is behind the head of the element at the front.
fn head(bytes: &[u8]) -> Option<(u32, Option<u64>, &[u8])> {
    let width = usize::try_from(bytes.first()?.leading_zeros()).ok()? + 1;
    let (id, rest) = bytes.split_at_checked(width).filter(|_| width <= 4)?;
    let id = u32::try_from(number(id)?).ok()?;
    let (size, behind) = vint(rest)?;
    Some((id, size, behind))
}

/// A number of variable width, its marker taken off; `None` inside when all its bits are set.
fn vint(bytes: &[u8]) -> Option<(Option<u64>, &[u8])> {
    let width = bytes.first()?.leading_zeros() + 1;
    if width > 8 {
        return None;
    }
    let (number_bytes, rest) = bytes.split_at_checked(usize::try_from(width).ok()?)?;
    let mask = (1_u64 << (7 * width)) - 1;
    let value = number(number_bytes)? & mask;
    Some(((value != mask).then_some(value), rest))
}

fn number(bytes: &[u8]) -> Option<u64> {
    (bytes.len() <= 8).then(|| {
        bytes
            .iter()
            .fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
    })
}

fn float(bytes: &[u8]) -> Option<f64> {
    match bytes.len() {
        4 => bytes
            .first_chunk()
            .map(|b| f64::from(f32::from_be_bytes(*b))),
        8 => bytes.first_chunk().map(|b| f64::from_be_bytes(*b)),
        _ => None,
    }
}

/// How long an Opus packet lasts (RFC 6716, 3.1): its first byte names the frame, and how many there are.
fn opus_ns(packet: &[u8]) -> u64 {
    let Some(toc) = packet.first() else {
        return 0;
    };
    let config = toc >> 3;
    let frame_us: u64 = match (config, config & 3) {
        (0..12, 0) => 10_000,
        (0..12, 1) => 20_000,
        (0..12, 2) => 40_000,
        (0..12, _) => 60_000,
        (12..16, n) if n & 1 == 0 => 10_000,
        (12..16, _) => 20_000,
        (_, 0) => 2_500,
        (_, 1) => 5_000,
        (_, 2) => 10_000,
        (_, _) => 20_000,
    };
    let frames = match toc & 3 {
        0 => 1,
        1 | 2 => 2,
        _ => u64::from(packet.get(1).map_or(0, |count| count & 0x3f)),
    };
    // A packet lasts 120 ms at most.
    (frame_us * frames).min(120_000) * 1_000
}

#[cfg(test)]
mod tests;
