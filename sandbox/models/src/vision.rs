//! What can be said of a picture from its bytes alone: its kind, its size and its dimensions.
//!
//! Promise: a picture that is not what it claims to be is described as unreadable, never refused.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use image::{ImageFormat, ImageReader};
use serde_json::Value;
use std::{cmp::Ordering, io::Cursor};

/// A picture of a message part, for a sentence: "a wide PNG of 640 by 480 pixels (1234 bytes)".
pub fn described(part: &Value) -> String {
    let url = part.get("image_url");
    let url = url.and_then(|image| image.as_str().or_else(|| image.get("url")?.as_str()));
    let found = match url.map(|url| (url, url.strip_prefix("data:"))) {
        Some((_, Some(inline))) => inline
            .split_once(";base64,")
            .and_then(|(_, encoded)| STANDARD.decode(encoded.trim()).ok())
            .and_then(|bytes| inlined(&bytes)),
        Some((url, None)) => Some(linked(url)),
        None => None,
    };
    found.unwrap_or_else(|| "a picture that cannot be read".to_owned())
}

/// The sandbox has no network, so of an address only the last part is known.
fn linked(url: &str) -> String {
    let path = url.split(['?', '#']).next().unwrap_or("");
    match path.rsplit('/').next().unwrap_or("") {
        "" => "a linked picture".to_owned(),
        name => format!(
            "a linked picture named {}",
            name.chars().take(80).collect::<String>()
        ),
    }
}

fn inlined(bytes: &[u8]) -> Option<String> {
    let format = image::guess_format(bytes).ok()?;
    let kind = match format {
        ImageFormat::Png => "PNG",
        ImageFormat::Jpeg => "JPEG",
        ImageFormat::Gif => "GIF",
        ImageFormat::WebP => "WebP",
        _ => return None,
    };
    let size = bytes.len();
    let reader = ImageReader::with_format(Cursor::new(bytes), format);
    let Ok((width, height)) = reader.into_dimensions() else {
        return Some(format!("a {kind} of {size} bytes"));
    };
    let shape = match width.cmp(&height) {
        Ordering::Greater => "wide",
        Ordering::Less => "tall",
        Ordering::Equal => "square",
    };
    Some(format!(
        "a {shape} {kind} of {width} by {height} pixels ({size} bytes)"
    ))
}

#[cfg(test)]
mod tests;
