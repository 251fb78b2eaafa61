//! What of an m4a's samples is played.
//!
//! An AAC encoder writes samples before the first and behind the last one that it was given; the edit list of
//! the track (ISO/IEC 14496-12, 8.6.6), or in files without one the tag `iTunSMPB`, says which are the
//! recording. Promise: no more is played than was decoded; what cannot be read changes nothing.

use super::{number, split};

/// `frames` that were decoded at `rate` a second, without those that are not played.
pub fn played(file: &[u8], frames: u64, rate: u32) -> u64 {
    let edited = by_edit_list(file, frames, rate);
    edited.or_else(|| by_tag(file, frames)).unwrap_or(frames)
}

fn by_edit_list(file: &[u8], frames: u64, rate: u32) -> Option<u64> {
    let movie = inside(file, b"moov")?;
    let sound = |track: &&[u8]| {
        let handler = inside(track, b"mdia").and_then(|media| inside(media, b"hdlr"));
        handler.and_then(|body| body.get(8..12)) == Some(b"soun".as_slice())
    };
    let track = boxes(movie, b"trak").find(sound)?;
    let list = inside(inside(track, b"edts")?, b"elst")?;
    let media_scale = timescale(inside(inside(track, b"mdia")?, b"mdhd")?)?;
    let movie_scale = timescale(inside(movie, b"mvhd")?)?;
    let mut all = 0_u64;
    for (duration, begin) in edits(list)? {
        let rest = frames.saturating_sub(in_frames(begin, rate, media_scale)?);
        // 0 is to the end: the list of a file that was still being written.
        let length = match duration {
            0 => rest,
            duration => in_frames(duration, rate, movie_scale)?.min(rest),
        };
        all = all.saturating_add(length);
    }
    Some(all.min(frames))
}

/// Length and begin of each edit that plays something, in ticks of the movie and of the track.
fn edits(list: &[u8]) -> Option<Vec<(u64, u64)>> {
    let count = usize::try_from(number(list, 4)?).ok()?;
    let long = list.first() == Some(&1);
    let row_bytes = if long { 20 } else { 12 };
    let rows = list.get(8..)?.get(..count.checked_mul(row_bytes)?)?;
    let mut edits = Vec::new();
    for row in rows.chunks_exact(row_bytes) {
        let (duration, begin) = if long {
            let begin = i64::from_be_bytes(*row.get(8..)?.first_chunk::<8>()?);
            (u64::from_be_bytes(*row.first_chunk::<8>()?), begin)
        } else {
            let begin = i32::from_be_bytes(*row.get(4..)?.first_chunk::<4>()?);
            (u64::from(number(row, 0)?), i64::from(begin))
        };
        // A negative begin is a pause, of no sample.
        if let Ok(begin) = u64::try_from(begin) {
            edits.push((duration, begin));
        }
    }
    (!edits.is_empty()).then_some(edits)
}

/// The tag's second, third and fourth number, in hex: samples before, samples behind, samples of the recording.
fn by_tag(file: &[u8], frames: u64) -> Option<u64> {
    const NAME: &[u8] = b"iTunSMPB";
    let tags = inside(inside(file, b"moov")?, b"udta")?;
    let at = tags.windows(NAME.len()).position(|word| word == NAME)?;
    let (_, text, _) = split(tags.get(at + NAME.len()..)?).filter(|(name, ..)| *name == b"data")?;
    let text = std::str::from_utf8(text.get(8..)?).ok()?;
    let mut numbers = text.split_ascii_whitespace().skip(1);
    let mut next = || u64::from_str_radix(numbers.next()?, 16).ok();
    let (before, _, recorded) = (next()?, next()?, next()?);
    Some(recorded.min(frames.saturating_sub(before)))
}

/// Ticks a second, of the head of the movie or of a track's media.
fn timescale(head: &[u8]) -> Option<u32> {
    let at = if head.first() == Some(&1) { 20 } else { 12 };
    number(head, at).filter(|scale| *scale > 0)
}

/// Ticks in frames, rounded to the nearest.
fn in_frames(ticks: u64, rate: u32, scale: u32) -> Option<u64> {
    let scale = u128::from(scale);
    let frames = (u128::from(ticks) * u128::from(rate) + scale / 2) / scale;
    u64::try_from(frames).ok()
}

fn inside<'a>(bytes: &'a [u8], name: &'static [u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes, name).next()
}

/// The bodies of the boxes of this name, side by side in `rest`.
fn boxes<'a>(mut rest: &'a [u8], wanted: &'static [u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    std::iter::from_fn(move || {
        loop {
            let (name, body, behind) = split(rest)?;
            rest = behind;
            if name == wanted {
                return Some(body);
            }
        }
    })
}

#[cfg(test)]
mod tests;
