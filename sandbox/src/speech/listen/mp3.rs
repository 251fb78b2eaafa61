//! Where the frames of an mp3 begin.
//!
//! An mp3 has no head of its own: tags may precede its frames, and a cut recording begins inside one. A sync
//! word alone is found in any other file too, so a frame counts when its header can be and the next frame follows it.
//! Promise: before the first frame, at most 64 KiB behind the tags are searched.

use crate::speech::length::ListenError;

/// The head of an ID3v2 tag, and of its repetition at the end.
const TAG_HEAD_BYTES: usize = 10;
/// What may precede the first frame: the rest of a cut one, or padding that is in no tag.
const LEAD_IN_BYTES_MAX: usize = 64 * 1024;
const HEADER_BYTES: usize = 4;

/// Thousand bits a second of layer III, by the header's index: MPEG 1, and MPEG 2 and 2.5.
const RATES_1: [usize; 15] = [
    0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
];
const RATES_2: [usize; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/// A frame's header, as far as it says where the next one is and whether they belong together.
#[derive(Clone, Copy)]
struct Header {
    bytes: usize,
    version: u8,
    sample_rate: usize,
    is_mono: bool,
}

/// The place of the first frame; what has none is no audio that is known.
pub fn first_frame(file: &[u8]) -> Result<usize, ListenError> {
    let behind_tags = behind_tags(file)?;
    (behind_tags..file.len())
        .take(LEAD_IN_BYTES_MAX)
        .find(|at| file.get(*at..).is_some_and(is_frame))
        .ok_or(ListenError::UnknownContainer)
}

/// Behind the ID3v2 tags at the front (ID3v2.4, 3.1: "ID3", two bytes of version, flags, a size of 4 * 7 bits).
fn behind_tags(file: &[u8]) -> Result<usize, ListenError> {
    let mut at = 0;
    while let Some(head) = file
        .get(at..)
        .and_then(|rest| rest.first_chunk::<TAG_HEAD_BYTES>())
        .filter(|head| head.starts_with(b"ID3"))
    {
        let [_, _, _, _, _, flags, size @ ..] = *head;
        if size.iter().any(|byte| *byte >= 0x80) {
            return Err(ListenError::Broken("the size of its tag is no number"));
        }
        let body = size
            .iter()
            .fold(0, |sum, byte| (sum << 7) | usize::from(*byte));
        let heads = if flags & 0x10 == 0 { 1 } else { 2 };
        at += heads * TAG_HEAD_BYTES + body;
        if at > file.len() {
            return Err(ListenError::Broken(
                "its tag ends beyond the end of the file",
            ));
        }
    }
    Ok(at)
}

/// A frame that is whole, with another one behind it or the end of the file.
fn is_frame(bytes: &[u8]) -> bool {
    let Some(header) = Header::read(bytes) else {
        return false;
    };
    match bytes.get(header.bytes..) {
        None => false,
        // What is left at the end may be a tag, or nothing.
        Some(rest) if rest.len() < HEADER_BYTES || rest.starts_with(b"TAG") => true,
        Some(rest) => Header::read(rest).is_some_and(|next| header.goes_with(next)),
    }
}

// === impl Header ===

impl Header {
    /// ISO/IEC 11172-3, 2.4.1.3, of layer III with a rate that is stated.
    fn read(bytes: &[u8]) -> Option<Self> {
        let [sync, kind, rates, mode] = *bytes.first_chunk::<HEADER_BYTES>()?;
        let version = (kind >> 3) & 3;
        let is_layer_3 = (kind >> 1) & 3 == 1;
        if sync != 0xff || kind & 0xe0 != 0xe0 || version == 1 || !is_layer_3 {
            return None;
        }
        let (table, slots_per_rate) = match version {
            3 => (&RATES_1, 144_000),
            _ => (&RATES_2, 72_000),
        };
        let kilobits = *table
            .get(usize::from(rates >> 4))
            .filter(|rate| **rate > 0)?;
        let mpeg_1 = *[44_100, 48_000, 32_000].get(usize::from((rates >> 2) & 3))?;
        let sample_rate = match version {
            3 => mpeg_1,
            2 => mpeg_1 / 2,
            _ => mpeg_1 / 4,
        };
        let padding = usize::from((rates >> 1) & 1);
        Some(Self {
            bytes: slots_per_rate * kilobits / sample_rate + padding,
            version,
            sample_rate,
            is_mono: mode >> 6 == 3,
        })
    }

    fn goes_with(self, next: Self) -> bool {
        (self.version, self.sample_rate, self.is_mono)
            == (next.version, next.sample_rate, next.is_mono)
    }
}

#[cfg(test)]
mod tests;
