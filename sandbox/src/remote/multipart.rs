//! The form that carries a recording: one file and a few fields (RFC 7578).
//!
//! Promise: the border does not occur in the recording; a name cannot break out of its quotes.

use crate::fingerprint::hex;
use sha2::{Digest, Sha256};

/// A form, ready to be sent.
pub struct Form {
    pub content_type: String,
    pub body: Vec<u8>,
}

// === impl Form ===

impl Form {
    pub fn of(bytes: &[u8], file_name: &str, model: &str, language: Option<&str>) -> Self {
        let border = border_outside(bytes);
        let mut body = Vec::with_capacity(bytes.len() + 1024);
        let fields = [
            ("model", Some(model)),
            ("language", language),
            ("response_format", Some("json")),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                let value: String = value.chars().filter(|c| !c.is_control()).collect();
                let part = format!(
                    "--{border}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n"
                );
                body.extend_from_slice(part.as_bytes());
            }
        }
        let safe_name: String = file_name
            .chars()
            .filter(|c| c.is_ascii_graphic() && !matches!(c, '"' | '\\' | '/'))
            .collect();
        let head = format!(
            "--{border}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{safe_name}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
        );
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(format!("\r\n--{border}--\r\n").as_bytes());
        Self {
            content_type: format!("multipart/form-data; boundary={border}"),
            body,
        }
    }
}

/// A boundary that the bytes do not contain: a recording cannot contain its own digest.
fn border_outside(bytes: &[u8]) -> String {
    let digest: String = hex(&Sha256::digest(bytes)).chars().take(40).collect();
    format!("recording-{digest}")
}

#[cfg(test)]
mod tests;
