//! What travels inside of answers and requests: base64, the heads of WAV and PNG files, and forms.
//!
//! Promise: a length or size is read from the bytes themselves; what is not the format is an error.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::cli::error::CliError;

/// A picture's size in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub width: u32,
    pub height: u32,
}

/// PCM sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sound {
    /// Samples a second.
    pub rate: u32,
    /// Samples of one channel.
    pub samples: u64,
}

/// A `multipart/form-data` body.
#[derive(Debug)]
pub struct Form {
    boundary: String,
    body: Vec<u8>,
}

pub fn decode(base64: &str) -> Result<Vec<u8>, CliError> {
    STANDARD
        .decode(base64)
        .map_err(|error| CliError::Failed(format!("that is no base64: {error}")))
}

/// Media type and bytes of `data:TYPE;base64,BYTES`.
pub fn data_url(url: &str) -> Result<(String, Vec<u8>), CliError> {
    let parts = url.strip_prefix("data:");
    let parts = parts.and_then(|rest| rest.split_once(";base64,"));
    let (media, base64) =
        parts.ok_or_else(|| CliError::Failed("that is no data URL".to_owned()))?;
    Ok((media.to_owned(), decode(base64)?))
}

// === impl Pixels ===

impl Pixels {
    pub fn of_png(png: &[u8]) -> Result<Self, CliError> {
        let of = || {
            png.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
            let four = |at: usize| Some(u32::from_be_bytes(png.get(at..at + 4)?.try_into().ok()?));
            let (width, height) = (four(16)?, four(20)?);
            Some(Self { width, height })
        };
        of().ok_or_else(|| CliError::Failed("that is no PNG".to_owned()))
    }
}

// === impl Sound ===

impl Sound {
    /// Walks through the chunks of a RIFF file.
    pub fn of_wav(wav: &[u8]) -> Result<Self, CliError> {
        Self::read(wav).ok_or_else(|| CliError::Failed("that is no PCM WAV".to_owned()))
    }

    fn read(wav: &[u8]) -> Option<Self> {
        if wav.get(..4)? != b"RIFF" || wav.get(8..12)? != b"WAVE" {
            return None;
        }
        let four = |at: usize| {
            let bytes = wav.get(at..at.checked_add(4)?)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        let two = |at: usize| {
            let bytes = wav.get(at..at.checked_add(2)?)?;
            Some(u16::from_le_bytes(bytes.try_into().ok()?))
        };
        let (mut at, mut format) = (12, None);
        loop {
            let size = usize::try_from(four(at + 4)?).ok()?;
            let body = at + 8;
            match wav.get(at..at + 4)? {
                // 1: PCM. `block` is the bytes of one sample of all channels.
                b"fmt " if two(body)? == 1 => format = Some((four(body + 4)?, two(body + 12)?)),
                b"data" => {
                    let (rate, block) = format?;
                    wav.get(body..body.checked_add(size)?)?;
                    let samples = size.checked_div(usize::from(block))?;
                    return Some(Self {
                        rate,
                        samples: u64::try_from(samples).ok()?,
                    });
                }
                _ => {}
            }
            at = body.checked_add(size)?.checked_add(size % 2)?;
        }
    }

    /// How long it is, in milliseconds, halves up.
    pub fn ms(self) -> Option<u64> {
        let rate = u64::from(self.rate);
        let thousandths = self.samples.checked_mul(1000)?.checked_add(rate / 2)?;
        thousandths.checked_div(rate)
    }
}

// === impl Form ===

impl Form {
    pub fn new() -> Result<Self, CliError> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| CliError::Failed(error.to_string()))?;
        Ok(Self {
            // Nothing that is sent holds these 128 bits by chance.
            boundary: format!("bursar-{:032x}", u128::from_be_bytes(bits)),
            body: Vec::new(),
        })
    }

    #[must_use]
    pub fn field(self, name: &str, value: &str) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_bytes())
    }

    #[must_use]
    pub fn file(self, name: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"{name}\"; filename=\"{name}\""), bytes)
    }

    fn part(mut self, disposition: &str, bytes: &[u8]) -> Self {
        let boundary = &self.boundary;
        let head = format!("--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
        self.body.extend_from_slice(head.as_bytes());
        self.body.extend_from_slice(bytes);
        self.body.extend_from_slice(b"\r\n");
        self
    }

    /// `Content-Type` and body.
    pub fn finish(mut self) -> (String, Vec<u8>) {
        let end = format!("--{}--\r\n", self.boundary);
        self.body.extend_from_slice(end.as_bytes());
        let content_type = format!("multipart/form-data; boundary={}", self.boundary);
        (content_type, self.body)
    }
}

#[cfg(test)]
mod tests;
