//! What can be said of a picture from its bytes alone: its kind, its size and, of a PNG, its dimensions.
//!
//! Promise: a picture that is not what it claims to be is described as unreadable, never refused.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{ImageFormat, ImageReader};
use serde_json::Value;
use std::{cmp::Ordering, io::Cursor};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Inline bytes whose kind is known.
    Inline {
        kind: &'static str,
        bytes: usize,
        dimensions: Option<(u32, u32)>,
    },
    /// An address; the sandbox has no network, so only its last part is known.
    Linked {
        name: String,
    },
    Unreadable,
}

// === impl Picture ===

impl Picture {
    pub fn of(part: &Value) -> Self {
        let url = part
            .get("image_url")
            .and_then(|image| image.as_str().or_else(|| image.get("url")?.as_str()));
        match url {
            Some(url) if url.starts_with("data:") => {
                let bytes = url
                    .split_once(";base64,")
                    .map(|(_, encoded)| STANDARD.decode(encoded.trim()));
                bytes
                    .and_then(Result::ok)
                    .and_then(|bytes| Self::inline(&bytes))
                    .unwrap_or(Self::Unreadable)
            }
            Some(url) => {
                let path = url.split(['?', '#']).next().unwrap_or("");
                let last = path.rsplit('/').next().unwrap_or("");
                Self::Linked {
                    name: last.chars().take(80).collect(),
                }
            }
            None => Self::Unreadable,
        }
    }

    fn inline(bytes: &[u8]) -> Option<Self> {
        let format = image::guess_format(bytes).ok()?;
        let kind = match format {
            ImageFormat::Png => "PNG",
            ImageFormat::Jpeg => "JPEG",
            ImageFormat::Gif => "GIF",
            ImageFormat::WebP => "WebP",
            _ => return None,
        };
        let reader = ImageReader::with_format(Cursor::new(bytes), format);
        Some(Self::Inline {
            kind,
            bytes: bytes.len(),
            dimensions: reader.into_dimensions().ok(),
        })
    }

    /// For a sentence: "a wide PNG of 640 by 480 pixels (1234 bytes)".
    pub fn describe(&self) -> String {
        match self {
            Self::Inline {
                kind,
                bytes,
                dimensions: Some((width, height)),
            } => {
                let shape = match width.cmp(height) {
                    Ordering::Greater => "wide",
                    Ordering::Less => "tall",
                    Ordering::Equal => "square",
                };
                format!("a {shape} {kind} of {width} by {height} pixels ({bytes} bytes)")
            }
            Self::Inline { kind, bytes, .. } => format!("a {kind} of {bytes} bytes"),
            Self::Linked { name } if name.is_empty() => "a linked picture".to_owned(),
            Self::Linked { name } => format!("a linked picture named {name}"),
            Self::Unreadable => "a picture that cannot be read".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests;
