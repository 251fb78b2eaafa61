//! WAV files: one written with the words that were said in it, and any read to its last frame.
//!
//! The words stand in a chunk of their own behind the samples, with the SHA-256 of the samples: a
//! transcription that finds them knows that exactly this sound said exactly this text.
//! Promise: a file written here has true sizes; words are found only beside the samples they were written
//! for; a file that lies about its sizes is refused, not guessed at.

use ring::digest::{SHA256, digest};

/// Assumed (speech-text): the chunk with the spoken text.
const SAID: &[u8; 4] = b"said";
const SHA256_BYTES: usize = 32;
/// Programs that write to a pipe leave a size near the largest, because they cannot know it.
const UNKNOWN_SIZE_FROM: u32 = 0x7fff_0000;

/// Why a file is not read; the words complete "the audio is broken" and "is not supported".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WavError {
    #[error("the audio is broken: {0}")]
    Broken(&'static str),
    #[error("the audio cannot be read: {0} is not supported")]
    Unsupported(&'static str),
}

/// What a WAV file holds.
#[derive(Debug)]
pub struct Wav<'a> {
    pub channels: u16,
    pub bits: u16,
    pub rate: u32,
    pub frames: u64,
    /// The samples as they stand in the file.
    pub pcm: &'a [u8],
    /// The words written beside exactly these samples.
    pub said: Option<String>,
}

/// A mono file of 16-bit samples. `None` when it would not fit into the format's 32-bit sizes.
pub fn write(samples: &[i16], rate: u32, said: &str) -> Option<Vec<u8>> {
    let pcm: Vec<u8> = samples.iter().flat_map(|s| s.to_le_bytes()).collect();
    let words = [digest(&SHA256, &pcm).as_ref(), said.as_bytes()].concat();
    let bytes_per_s = rate.checked_mul(2)?.to_le_bytes();
    let format = [
        [1, 0, 1, 0].as_slice(),
        &rate.to_le_bytes(),
        &bytes_per_s,
        &[2, 0, 16, 0],
    ]
    .concat();
    let mut chunks = b"WAVE".to_vec();
    for (name, body) in [(b"fmt ", &format), (b"data", &pcm), (SAID, &words)] {
        chunks.extend_from_slice(&chunk(name, body)?);
    }
    chunk(b"RIFF", &chunks)
}

fn chunk(name: &[u8; 4], body: &[u8]) -> Option<Vec<u8>> {
    let size = u32::try_from(body.len()).ok()?.to_le_bytes();
    let padding: &[u8] = if body.len() % 2 == 1 { &[0] } else { &[] };
    Some([name.as_slice(), &size, body, padding].concat())
}

/// Reads a file of plain samples: integers, floats, A-law or mu-law.
pub fn read(bytes: &[u8]) -> Result<Wav<'_>, WavError> {
    let mut rest = bytes
        .strip_prefix(b"RIFF")
        .and_then(|rest| rest.get(4..))
        .and_then(|rest| rest.strip_prefix(b"WAVE"))
        .ok_or(WavError::Broken("the RIFF head is not whole"))?;
    let mut format: Option<&[u8]> = None;
    let mut pcm: Option<&[u8]> = None;
    let mut said: Option<&[u8]> = None;
    // At the end of a file some writers leave a byte.
    while let Some((name, size, behind)) = head(rest) {
        let known = usize::try_from(size).ok();
        let body = match known.and_then(|size| behind.get(..size)) {
            Some(body) => body,
            None if name == b"data" && size >= UNKNOWN_SIZE_FROM => behind,
            None => {
                return Err(WavError::Broken("a chunk ends beyond the end of the file"));
            }
        };
        match name {
            b"fmt " => format = format.or(Some(body)),
            b"data" => pcm = pcm.or(Some(body)),
            SAID => said = said.or(Some(body)),
            _ => {}
        }
        rest = behind
            .get(body.len().saturating_add(body.len() % 2)..)
            .unwrap_or_default();
    }
    let format = format.ok_or(WavError::Broken("there is no fmt chunk"))?;
    let pcm = pcm.ok_or(WavError::Broken("there is no data chunk"))?;
    let two = |at: usize| format.get(at..)?.first_chunk::<2>();
    let short = |at| Some(u16::from_le_bytes(*two(at)?));
    let rate = format.get(4..).and_then(|rest| rest.first_chunk::<4>());
    let (Some(tag), Some(channels), Some(rate), Some(block), Some(bits)) =
        (short(0), short(2), rate, short(12), short(14))
    else {
        return Err(WavError::Broken("the fmt chunk is not whole"));
    };
    let rate = u32::from_le_bytes(*rate);
    // The extensible form has the tag at the head of a longer id.
    let tag = Some(tag).filter(|tag| *tag != 0xfffe).or_else(|| short(24));
    let plain = match tag.unwrap_or(0xfffe) {
        1 => matches!(bits, 8 | 16 | 24 | 32),
        3 => matches!(bits, 32 | 64),
        6 | 7 => bits == 8,
        _ => return Err(WavError::Unsupported("this kind of samples in a WAV file")),
    };
    let whole = u32::from(channels) * u32::from(bits / 8) == u32::from(block);
    if !plain || !whole || block == 0 || rate == 0 {
        return Err(WavError::Broken("the fmt chunk contradicts itself"));
    }
    let frames = pcm.len() / usize::from(block);
    Ok(Wav {
        channels,
        bits,
        rate,
        frames: u64::try_from(frames).unwrap_or(u64::MAX),
        pcm,
        said: said.and_then(|body| words(body, pcm)),
    })
}

/// Name and size of the chunk at the front, and what is behind its head.
fn head(bytes: &[u8]) -> Option<(&[u8; 4], u32, &[u8])> {
    let (name, rest) = bytes.split_first_chunk::<4>()?;
    let (size, behind) = rest.split_first_chunk::<4>()?;
    Some((name, u32::from_le_bytes(*size), behind))
}

fn words(body: &[u8], pcm: &[u8]) -> Option<String> {
    let (written, text) = body.split_at_checked(SHA256_BYTES)?;
    if written != digest(&SHA256, pcm).as_ref() {
        return None;
    }
    std::str::from_utf8(text).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests;
