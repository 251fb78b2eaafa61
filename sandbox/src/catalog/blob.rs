//! Documents, scans and recordings of the golden sets, built from the text in the catalog.
//!
//! A row of a task file contains `{"$pdf": [lines]}`, `{"$png": [lines]}` or `{"$wav": "words"}` where the
//! row that a client sees has a data URL. So a document can be compared with its text by eye, and no binary
//! file is kept. The data URL has the form that chat messages carry.
//! Promise: each result is a whole file of its kind, and the same text gives the same bytes.

mod pdf;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bursar_models::{page::paper, speech::tones};
use serde_json::Value;

/// The data URL for a builder object; `None` for a value that is not one; an error for a broken one.
pub fn built(value: &Value) -> Option<Result<String, String>> {
    let object = value.as_object().filter(|object| object.len() == 1)?;
    let (kind, source) = object.iter().next()?;
    let bytes = match kind.as_str() {
        "$pdf" => lines(source)
            .and_then(|lines| pdf::page(&lines))
            .map(|bytes| ("application/pdf", bytes)),
        "$png" => lines(source)
            .and_then(|lines| paper::page(&lines))
            .map(|bytes| ("image/png", bytes)),
        "$wav" => source
            .as_str()
            .ok_or_else(|| "words must be a string".to_owned())
            .and_then(|words| tones::recording(words).ok_or_else(|| "too many words".to_owned()))
            .map(|bytes| ("audio/wav", bytes)),
        _ => return None,
    };
    Some(bytes.map(|(mime, bytes)| format!("data:{mime};base64,{}", STANDARD.encode(bytes))))
}

fn lines(source: &Value) -> Result<Vec<&str>, String> {
    source
        .as_array()
        .and_then(|lines| lines.iter().map(Value::as_str).collect())
        .ok_or_else(|| "lines must be an array of strings".to_owned())
}
