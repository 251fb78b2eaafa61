//! The text on what is attached: PDF pages, plain text files, and the words of pictures and recordings.
//!
//! Pictures and recordings are read where this crate wrote the words into them, as on the transcription route.
//! Promise: bounded work whatever is attached; what cannot be read is no text, never an error.

pub mod paper;
mod pdf;

use crate::speech::wav;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

/// Characters kept of one attachment.
const CHARS_MAX: usize = 40_000;
/// Bytes of an attachment that are looked at.
const BYTES_MAX: usize = 8 * 1024 * 1024;

/// The text of a message part that is given inline; `None` when there is none to read.
pub fn text_of(part: &Value) -> Option<String> {
    if let Some(encoded) = part.pointer("/input_audio/data").and_then(Value::as_str) {
        return kept(wav::read(&decoded(encoded)?).ok()?.said?);
    }
    let url = part
        .pointer("/file/file_data")
        .or_else(|| part.get("file_data"))
        .or_else(|| part.pointer("/image_url/url"))
        .or_else(|| part.get("image_url"))?
        .as_str()?;
    let (mime, encoded) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let bytes = decoded(encoded)?;
    let text = if bytes.starts_with(b"%PDF") {
        pdf::text(&bytes)
    } else if bytes.starts_with(b"\x89PNG") {
        paper::text(&bytes)
    } else if mime.starts_with("text/") {
        String::from_utf8_lossy(&bytes).into_owned()
    } else {
        String::new()
    };
    kept(text)
}

fn decoded(encoded: &str) -> Option<Vec<u8>> {
    if encoded.len() / 4 * 3 > BYTES_MAX {
        return None;
    }
    STANDARD.decode(encoded.trim()).ok()
}

fn kept(text: String) -> Option<String> {
    let text: String = text.trim().chars().take(CHARS_MAX).collect();
    (!text.is_empty()).then_some(text)
}
