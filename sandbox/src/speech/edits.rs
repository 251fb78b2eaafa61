//! The edit list of an m4a: which part of the decoded sound is the recording.
//!
//! An AAC encoder puts a lead-in before the sound and fills the last frame; the list says what of it is to be
//! heard. Interface, POST /v1/audio/transcriptions: "Bills per minute of input audio": what nobody hears is none.
//! Promise: a list that makes no sense changes nothing, and no list makes a recording longer than its samples.

use super::mp4::{number, split};

/// A box's name and body.
type Found<'a> = (&'a [u8; 4], &'a [u8]);

/// How many of the `frames` that were decoded, at `rate` a second, are presented.
pub fn presented(bytes: &[u8], frames: u64, rate: u32) -> u64 {
    of_the_list(bytes, frames, rate)
        .filter(|presented| *presented > 0)
        .map_or(frames, |presented| presented.min(frames))
}

fn of_the_list(bytes: &[u8], frames: u64, rate: u32) -> Option<u64> {
    let movie = child(bytes, b"moov")?;
    let sound = boxes(movie)
        .filter(|(name, _)| *name == b"trak")
        .map(|(_, track)| track)
        .find(|track| is_sound(track))?;
    let list = child(child(sound, b"edts")?, b"elst")?;
    let ticks = time_scale(child(movie, b"mvhd")?)?;
    let media_ticks = time_scale(child(child(sound, b"mdia")?, b"mdhd")?)?;
    let in_frames = |time: u64, scale: u32| -> Option<u64> {
        let parts = u128::from(time).checked_mul(u128::from(rate))?;
        u64::try_from(parts.div_ceil(u128::from(scale))).ok()
    };
    let mut all = 0_u64;
    for (length, start) in entries(list)? {
        // An empty edit is a pause before the sound; it holds none.
        let Some(start) = start else { continue };
        let rest = frames.saturating_sub(in_frames(start, media_ticks)?);
        let told = match length {
            // To the end, as in a file that is written while it is recorded.
            0 => rest,
            length => in_frames(length, ticks)?.min(rest),
        };
        all = all.saturating_add(told);
    }
    Some(all)
}

fn is_sound(track: &[u8]) -> bool {
    let handler = child(track, b"mdia").and_then(|media| child(media, b"hdlr"));
    handler.and_then(|handler| handler.get(8..12)) == Some(b"soun")
}

/// Ticks a second of an `mvhd` or `mdhd`; the fields before it are wider in version 1.
fn time_scale(head: &[u8]) -> Option<u32> {
    let at = match head.first()? {
        0 => 12,
        _ => 20,
    };
    number(head, at).filter(|scale| *scale > 0)
}

/// Length in the movie's ticks and start in the track's; an empty edit has no start.
fn entries(list: &[u8]) -> Option<Vec<(u64, Option<u64>)>> {
    let is_wide = *list.first()? != 0;
    let count = usize::try_from(number(list, 4)?).ok()?;
    let row_bytes = if is_wide { 20 } else { 12 };
    let rows = list.get(8..)?.get(..count.checked_mul(row_bytes)?)?;
    let wide = |row: &[u8], at: usize| {
        let eight = row.get(at..)?.first_chunk::<8>()?;
        Some(u64::from_be_bytes(*eight))
    };
    let entry = |row: &[u8]| {
        let (length, start) = match is_wide {
            true => (wide(row, 0)?, wide(row, 8)?),
            false => {
                let start = number(row, 4)?;
                let none = start == u32::MAX;
                (
                    u64::from(number(row, 0)?),
                    if none { u64::MAX } else { u64::from(start) },
                )
            }
        };
        Some((length, (start != u64::MAX).then_some(start)))
    };
    rows.chunks_exact(row_bytes).map(entry).collect()
}

fn child<'a>(body: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(body)
        .find(|(other, _)| *other == name)
        .map(|(_, body)| body)
}

/// The boxes side by side.
fn boxes(mut rest: &[u8]) -> impl Iterator<Item = Found<'_>> {
    std::iter::from_fn(move || {
        let (name, body, behind) = split(rest)?;
        rest = behind;
        Some((name, body))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TONE: &[u8] = include_bytes!("../../tests/fixtures/tone.m4a");
    /// 13 frames of 1,024 samples.
    const FRAMES: u64 = 13 * 1_024;

    /// The fixture with another entry: length in milliseconds, start in samples.
    fn edited(length: u32, start: u32) -> Vec<u8> {
        let mut bytes = TONE.to_vec();
        let at = bytes.windows(4).position(|four| four == b"elst").unwrap() + 12;
        bytes[at..at + 4].copy_from_slice(&length.to_be_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&start.to_be_bytes());
        bytes
    }

    #[test]
    fn a_recording_lasts_as_long_as_its_edit_list_presents_and_never_longer_than_its_samples() {
        for (length, start, frames) in [
            // As it is: 750 ms from the end of the lead-in.
            (750, 1_024, 12_000),
            (500, 1_024, 8_000),
            (500, 12_312, 1_000),
            // To the end of the sound.
            (0, 1_024, FRAMES - 1_024),
            (9_000, 1_024, FRAMES - 1_024),
            // What leaves nothing makes no sense, nor does an empty edit alone.
            (750, 20_000, FRAMES),
            (750, u32::MAX, FRAMES),
        ] {
            let bytes = edited(length, start);
            assert_eq!(
                presented(&bytes, FRAMES, 16_000),
                frames,
                "{length} {start}"
            );
        }
    }

    #[test]
    fn without_a_list_that_can_be_read_every_sample_counts() {
        let mut no_rows = TONE.to_vec();
        let at = no_rows.windows(4).position(|four| four == b"elst").unwrap();
        no_rows[at + 8..at + 12].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut no_list = TONE.to_vec();
        no_list[at..at + 4].copy_from_slice(b"free");
        let half = &TONE[..TONE.len() / 2];

        for bytes in [&no_rows[..], &no_list, half, b"", b"\0\0\0\0moov"] {
            assert_eq!(presented(bytes, FRAMES, 16_000), FRAMES);
        }
    }
}
