//! The text of a PDF, from the strings that its pages show.
//!
//! Reads content streams, plain or deflated, and the operators that show text; fonts with an encoding of
//! their own are not known. Promise: bounded in bytes and in time for any input; no page is drawn.

use crate::text::{group, patterns};
use flate2::read::ZlibDecoder;
use regex::Captures;
use std::io::Read as _;

/// Bytes that all streams together may unpack to.
const UNPACKED_MAX: u64 = 4 * 1024 * 1024;
/// A shift back by so many thousandths of the font's size is a space.
const GAP: f64 = -180.0;

patterns! {
    STREAM = r"(?s)stream\r?\n?(.*?)endstream";
    /// A string in brackets, one in hexadecimal digits, or a word.
    TOKEN = r"(?s)\(((?:[^\\()]|\\.|\((?:[^\\()]|\\.)*\))*)\)|<([0-9A-Fa-f\s]*)>|[^\s()<>\[\]{}%]+|%[^\n]*";
    /// `\053`, `\n`, `\(`.
    ESCAPE = r"(?s)\\(?:([0-7]{1,3})|([nrt\r\n])|(.))";
}

/// The lines of text in the order of the file.
pub fn text(file: &[u8]) -> String {
    let mut lines = String::new();
    let mut left = UNPACKED_MAX;
    for caps in STREAM.captures_iter(&latin1(file)) {
        let body: Vec<u8> = group(&caps, 1)
            .chars()
            .filter_map(|c| u8::try_from(c).ok())
            .collect();
        let mut content = Vec::new();
        // What was unpacked before an error is text all the same; what is not packed unpacks to nothing.
        let _ = ZlibDecoder::new(body.as_slice())
            .take(left)
            .read_to_end(&mut content);
        left = left.saturating_sub(content.len() as u64);
        let content = if content.is_empty() { body } else { content };
        show(&latin1(&content), &mut lines);
    }
    lines
}

/// Each byte as the character of its number.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// Adds the text of one content stream.
fn show(content: &str, lines: &mut String) {
    if !content.contains("BT") {
        return;
    }
    let end_line = |lines: &mut String| {
        if !lines.is_empty() && !lines.ends_with('\n') {
            lines.push('\n');
        }
    };
    let mut shown = String::new();
    let mut number = None;
    // Where the last `Tm` put the line.
    let mut height = None;
    for caps in TOKEN.captures_iter(content) {
        let word = group(&caps, 0);
        if let Some(literal) = caps.get(1) {
            shown += &ESCAPE.replace_all(literal.as_str(), unescaped);
            continue;
        } else if let Some(digits) = caps.get(2) {
            shown += &hex(digits.as_str());
            continue;
        } else if let Ok(parsed) = word.parse::<f64>() {
            number = Some(parsed);
            if parsed < GAP && !shown.is_empty() {
                shown.push(' ');
            }
            continue;
        }
        match word {
            "Tj" | "TJ" => lines.push_str(&shown),
            "'" | "\"" => {
                end_line(lines);
                lines.push_str(&shown);
            }
            "T*" | "ET" => end_line(lines),
            "Td" | "TD" if number != Some(0.0) => end_line(lines),
            "Tm" if number != height => {
                end_line(lines);
                height = number;
            }
            _ => {}
        }
        if !word.starts_with('/') {
            shown.clear();
            number = None;
        }
    }
    end_line(lines);
}

fn unescaped(caps: &Captures<'_>) -> String {
    if caps.get(2).is_some() {
        return " ".to_owned();
    }
    let code = u32::from_str_radix(group(caps, 1), 8)
        .ok()
        .and_then(char::from_u32);
    code.map_or_else(|| group(caps, 3).to_owned(), String::from)
}

/// A string in hexadecimal digits; one that holds control characters is of a font that is not known.
fn hex(digits: &str) -> String {
    let digits: Vec<u32> = digits.chars().filter_map(|c| c.to_digit(16)).collect();
    let codes = digits
        .chunks(2)
        .map(|two| two.iter().fold(0, |sum, digit| sum * 16 + digit));
    let text: String = codes.filter_map(char::from_u32).collect();
    if text.contains(char::is_control) {
        String::new()
    } else {
        text
    }
}

#[cfg(test)]
mod tests;
