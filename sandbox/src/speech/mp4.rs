//! A look over the boxes of an m4a before a decoder believes them.
//!
//! The tables of an index begin with how many rows they have, and the decoder makes room for that many at
//! once, as it does for a packet of any stated size: twenty bytes could ask for a hundred gigabytes, and a
//! failed allocation ends the process. Promise: a file that passes states no more rows or packets than its bytes can
//! hold, no packet larger than itself, and no box or descriptor reaches over the one around it.

mod edit;

pub use edit::played;

use super::length::ListenError;

const DEPTH_MAX: usize = 16;
/// The fixed fields of a sound's sample entry, before the boxes in it.
const SOUND_ENTRY_BYTES: usize = 28;
const TABLE: ListenError = ListenError::Broken("a table of its index is not whole");

pub fn check(bytes: &[u8]) -> Result<(), ListenError> {
    boxes(bytes, 0, bytes.len())
}

/// Checks the boxes side by side in `rest`, in a file of `file_bytes`.
fn boxes(mut rest: &[u8], depth: usize, file_bytes: usize) -> Result<(), ListenError> {
    if depth > DEPTH_MAX {
        return Err(ListenError::Broken("its boxes are nested too deep"));
    }
    let within = |body: &[u8]| boxes(body, depth + 1, file_bytes);
    while rest.len() >= 8 {
        let (name, body, behind) = split(rest).ok_or(ListenError::Broken(
            "a box ends beyond the end of its place",
        ))?;
        // The reader takes the size 0, "to the end of the file", for none. Zeros alone are padding.
        if depth > 0 && rest.starts_with(&[0; 4]) && *name != [0; 4] {
            return Err(ListenError::Broken("a box inside another has no size"));
        }
        let fits = |size: Option<u32>| {
            let size = size.and_then(|size| usize::try_from(size).ok());
            size.filter(|size| *size <= file_bytes)
                .map(drop)
                .ok_or(TABLE)
        };
        match name {
            b"moov" | b"trak" | b"mdia" | b"minf" | b"stbl" | b"moof" | b"traf" | b"mvex"
            | b"edts" | b"udta" | b"wave" => within(body)?,
            // Each entry of the list holds boxes in turn.
            b"meta" => within(body.get(4..).unwrap_or_default())?,
            b"ilst" => tags(body, within)?,
            b"hdlr" if body.len() < 24 => return Err(TABLE),
            b"stsd" => {
                let (kind, entry, _) = body.get(8..).and_then(split).ok_or(TABLE)?;
                sample_entry(kind, entry, within)?;
            }
            b"esds" => descriptors(body.get(4..).ok_or(TABLE)?, 0)?,
            b"stco" | b"stss" => drop(rows(body, 4, 4)?),
            b"co64" | b"stts" | b"ctts" => drop(rows(body, 4, 8)?),
            b"stsc" | b"elst" => drop(rows(body, 4, 12)?),
            b"stsz" => match number(body, 4) {
                // Without one size for all, each packet has a row.
                Some(0) => {
                    for row in rows(body, 8, 4)?.chunks_exact(4) {
                        fits(number(row, 0))?;
                    }
                }
                size => fits(size)?,
            },
            // The size of a fragment's packets, when none is stated there.
            b"trex" => fits(number(body, 16))?,
            b"tfhd" | b"trun" => fragment(name, body, file_bytes, &fits)?,
            _ => {}
        }
        rest = behind;
    }
    Ok(())
}

/// A track's kind of samples. The reader looks into the boxes of those that it takes for sound, behind the fixed
/// fields of its version (QuickTime File Format, sound sample descriptions).
fn sample_entry(
    kind: &[u8; 4],
    entry: &[u8],
    within: impl Fn(&[u8]) -> Result<(), ListenError>,
) -> Result<(), ListenError> {
    const SOUND: [&[u8; 4]; 16] = [
        b"mp4a", b"alac", b"fLaC", b"Opus", b".mp3", b"lpcm", b"wave", b"alaw", b"ulaw", b"raw ",
        b"sowt", b"twos", b"in24", b"in32", b"fl32", b"fl64",
    ];
    let more = match entry.get(8..10) {
        Some([0, 1]) => 16,
        Some([0, 2]) => 36,
        _ => 0,
    };
    let boxes = entry.get(SOUND_ENTRY_BYTES..).ok_or(TABLE)?;
    match SOUND.contains(&kind) {
        true => within(boxes.get(more..).ok_or(TABLE)?),
        false => Ok(()),
    }
}

/// The descriptors of an `esds` (ISO/IEC 14496-1, 7.2.6): of a stream, of its decoder, and of what the decoder needs,
/// one in the other, each behind some fields.
fn descriptors(mut rest: &[u8], depth: usize) -> Result<(), ListenError> {
    // The reader leaves two bytes and fewer alone.
    while rest.len() > 2 {
        let (tag, body, behind) = descriptor(rest).ok_or(TABLE)?;
        let fields = match tag {
            3 => Some(stream_fields(body).ok_or(TABLE)?),
            4 => Some(13),
            _ => None,
        };
        if let Some(fields) = fields.filter(|_| depth < DEPTH_MAX) {
            descriptors(body.get(fields..).ok_or(TABLE)?, depth + 1)?;
        }
        rest = behind;
    }
    Ok(())
}

/// Tag and body of the descriptor at the front, and what is behind it. Its size is one to four times seven bits.
fn descriptor(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (tag, mut rest) = bytes.split_first()?;
    let mut size = 0;
    for _ in 0..4 {
        let (bits, behind) = rest.split_first()?;
        rest = behind;
        size = (size << 7) | usize::from(bits & 0x7f);
        if bits & 0x80 == 0 {
            break;
        }
    }
    let (body, behind) = rest.split_at_checked(size)?;
    Some((*tag, body, behind))
}

/// The bytes of a stream's descriptor before the descriptors in it.
fn stream_fields(body: &[u8]) -> Option<usize> {
    let flags = *body.get(2)?;
    let mut fields = 3;
    if flags & 0x80 != 0 {
        fields += 2;
    }
    if flags & 0x40 != 0 {
        fields += 1 + usize::from(*body.get(fields)?);
    }
    if flags & 0x20 != 0 {
        fields += 2;
    }
    Some(fields)
}

/// Checks the boxes in each entry of a list of tags.
fn tags(
    mut rest: &[u8],
    within: impl Fn(&[u8]) -> Result<(), ListenError>,
) -> Result<(), ListenError> {
    while rest.len() >= 8 {
        let (_, tag, behind) = split(rest).ok_or(TABLE)?;
        within(tag)?;
        rest = behind;
    }
    Ok(())
}

/// The sizes of packets in the two boxes whose flags say which fields there are (ISO/IEC 14496-12, 8.8).
fn fragment(
    name: &[u8; 4],
    body: &[u8],
    file_bytes: usize,
    fits: &impl Fn(Option<u32>) -> Result<(), ListenError>,
) -> Result<(), ListenError> {
    let flags = number(body, 0).ok_or(TABLE)?;
    let has = |flag: u32, bytes: usize| if flags & flag == 0 { 0 } else { bytes };
    if name == b"tfhd" {
        let at = 8 + has(0x1, 8) + has(0x2, 4) + has(0x8, 4);
        return match has(0x10, 4) {
            0 => Ok(()),
            _ => fits(number(body, at)),
        };
    }
    let row_bytes = has(0x100, 4) + has(0x200, 4) + has(0x400, 4) + has(0x800, 4);
    let fields = 8 + has(0x1, 4) + has(0x4, 4);
    let count = usize::try_from(number(body, 4).ok_or(TABLE)?).map_err(|_| TABLE)?;
    let there = body.get(fields..).ok_or(TABLE)?;
    let needed = count.checked_mul(row_bytes).ok_or(TABLE)?;
    let rows = there.get(..needed).ok_or(TABLE)?;
    // Packets without a row each are counted one by one all the same.
    if count > file_bytes {
        return Err(TABLE);
    }
    if has(0x200, 4) > 0 {
        for row in rows.chunks_exact(row_bytes) {
            fits(number(row, has(0x100, 4)))?;
        }
    }
    Ok(())
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_be_bytes(*four))
}

/// The rows of a table whose count is at `at`.
fn rows(body: &[u8], at: usize, row_bytes: usize) -> Result<&[u8], ListenError> {
    let count = number(body, at).and_then(|count| usize::try_from(count).ok());
    let bytes = count.and_then(|count| count.checked_mul(row_bytes));
    body.get(at + 4..)
        .zip(bytes)
        .and_then(|(there, bytes)| there.get(..bytes))
        .ok_or(TABLE)
}

/// Name and body of the box at the front, and what is behind it.
fn split(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (size, rest) = bytes.split_first_chunk::<4>()?;
    let (name, rest) = rest.split_first_chunk::<4>()?;
    let (body_len, rest) = match u32::from_be_bytes(*size) {
        0 => (rest.len(), rest),
        1 => {
            let (long, rest) = rest.split_first_chunk::<8>()?;
            let whole = usize::try_from(u64::from_be_bytes(*long)).ok()?;
            (whole.checked_sub(16)?, rest)
        }
        size => (usize::try_from(size).ok()?.checked_sub(8)?, rest),
    };
    let (body, behind) = rest.split_at_checked(body_len)?;
    Some((name, body, behind))
}

#[cfg(test)]
mod tests;
