//! What the vision member can tell of a picture: its kind, size and dimensions, read from its bytes.
//!
//! Promise: a picture that is not what it says is described as unreadable, never refused.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Inline bytes whose kind we know.
    Inline {
        kind: &'static str,
        bytes: usize,
        dimensions: Option<(u32, u32)>,
    },
    /// An address; the sandbox has no network, so only its last part is told.
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
            Some(url) if url.starts_with("data:") => Self::inline(url),
            Some(url) => Self::Linked {
                name: url
                    .split(['?', '#'])
                    .next()
                    .and_then(|path| path.rsplit('/').next())
                    .unwrap_or("")
                    .chars()
                    .take(80)
                    .collect(),
            },
            None => Self::Unreadable,
        }
    }

    fn inline(url: &str) -> Self {
        let Some((_, encoded)) = url.split_once(";base64,") else {
            return Self::Unreadable;
        };
        let Ok(bytes) = STANDARD.decode(encoded.trim()) else {
            return Self::Unreadable;
        };
        let kind = if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
            "PNG"
        } else if bytes.starts_with(b"GIF8") {
            "GIF"
        } else if bytes.starts_with(b"\xff\xd8\xff") {
            "JPEG"
        } else if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
            "WebP"
        } else {
            return Self::Unreadable;
        };
        let dimensions = match kind {
            "PNG" => be_u32(&bytes, 16).zip(be_u32(&bytes, 20)),
            "GIF" => le_u16(&bytes, 6).zip(le_u16(&bytes, 8)),
            _ => None,
        };
        Self::Inline {
            kind,
            bytes: bytes.len(),
            dimensions,
        }
    }

    pub fn describe(&self) -> String {
        match self {
            Self::Inline {
                kind,
                bytes,
                dimensions: Some((width, height)),
            } => {
                let shape = match width.cmp(height) {
                    std::cmp::Ordering::Greater => "wide",
                    std::cmp::Ordering::Less => "tall",
                    std::cmp::Ordering::Equal => "square",
                };
                format!("a {shape} {kind} of {width} by {height} pixels ({bytes} bytes)")
            }
            Self::Inline {
                kind,
                bytes,
                dimensions: None,
            } => format!("a {kind} of {bytes} bytes"),
            Self::Linked { name } if name.is_empty() => "a linked picture".to_owned(),
            Self::Linked { name } => format!("a linked picture named {name}"),
            Self::Unreadable => "a picture that cannot be read".to_owned(),
        }
    }
}

fn be_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

fn le_u16(bytes: &[u8], at: usize) -> Option<u32> {
    let two = bytes.get(at..at.checked_add(2)?)?;
    Some(u32::from(u16::from_le_bytes(two.try_into().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_png_is_measured_from_its_own_bytes() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 0, 3, 0, 0, 0, 2]);
        let url = format!("data:image/png;base64,{}", STANDARD.encode(png));

        let picture = Picture::of(&json!({"type": "image_url", "image_url": {"url": url}}));

        assert_eq!(picture.describe(), "a wide PNG of 3 by 2 pixels (24 bytes)");
        assert_eq!(
            Picture::of(&json!({"image_url": "data:,x"})),
            Picture::Unreadable
        );
    }
}
