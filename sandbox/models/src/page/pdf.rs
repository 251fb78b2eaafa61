//! The text of a PDF, from the strings that its pages show.
//!
//! Reads content streams, plain or deflated, and the operators that show text; fonts with an encoding of
//! their own are not known. Promise: bounded in bytes and in time for any input; no page is drawn.

use crate::facts::bytes_pattern;
use flate2::read::ZlibDecoder;
use regex::bytes::Regex;
use std::{io::Read as _, sync::LazyLock};

/// Bytes that all streams together may unpack to.
const UNPACKED_MAX: usize = 4 * 1024 * 1024;
/// How far before its stream a dictionary is looked for.
const DICTIONARY_BYTES: usize = 1_024;
/// A shift back by so many thousandths of the font's size is a space.
const GAP: f64 = -180.0;

static STREAM: LazyLock<Regex> =
    LazyLock::new(|| bytes_pattern(r"(?s-u)stream\r?\n?(.*?)endstream"));
/// A string in brackets, one in hexadecimal digits, or a word.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    bytes_pattern(
        r"(?s-u)\(((?:[^\\()]|\\.|\((?:[^\\()]|\\.)*\))*)\)|<([0-9A-Fa-f\s]*)>|[^\s()<>\[\]{}%]+|%[^\n]*",
    )
});

/// The lines of text in the order of the file.
pub fn text(file: &[u8]) -> String {
    let mut lines = String::new();
    let mut left = UNPACKED_MAX;
    for caps in STREAM.captures_iter(file) {
        let (Some(whole), Some(body)) = (caps.get(0), caps.get(1)) else {
            continue;
        };
        let from = whole.start().saturating_sub(DICTIONARY_BYTES);
        let before = file.get(from..whole.start()).unwrap_or_default();
        let own = before
            .windows(4)
            .rposition(|four| four == b" obj")
            .unwrap_or(0);
        let packed = before.get(own..).unwrap_or_default();
        let mut content = Vec::new();
        let most = u64::try_from(left).unwrap_or(0);
        // What was unpacked before an error is text all the same.
        let _ = if packed.windows(11).any(|name| name == b"FlateDecode") {
            ZlibDecoder::new(body.as_bytes())
                .take(most)
                .read_to_end(&mut content)
        } else {
            body.as_bytes().take(most).read_to_end(&mut content)
        };
        left = left.saturating_sub(content.len());
        if content.windows(2).any(|two| two == b"BT") {
            show(&content, &mut lines);
        }
    }
    lines
}

/// Adds the text of one content stream.
fn show(content: &[u8], lines: &mut String) {
    let end_line = |lines: &mut String| {
        if !lines.is_empty() && !lines.ends_with('\n') {
            lines.push('\n');
        }
    };
    let mut texts: Vec<String> = Vec::new();
    let mut numbers: Vec<f64> = Vec::new();
    // Where the last `Tm` put the line.
    let mut height = None;
    for caps in TOKEN.captures_iter(content) {
        if let Some(literal) = caps.get(1) {
            texts.push(unescaped(literal.as_bytes()));
            continue;
        }
        if let Some(digits) = caps.get(2) {
            texts.push(hex(digits.as_bytes()));
            continue;
        }
        let word = caps.get(0).map_or("", |word| {
            std::str::from_utf8(word.as_bytes()).unwrap_or("")
        });
        if let Ok(number) = word.parse::<f64>() {
            numbers.push(number);
            if number < GAP && !texts.is_empty() {
                texts.push(" ".to_owned());
            }
            continue;
        }
        let down = numbers.last().copied();
        match word {
            "Tj" | "TJ" => lines.push_str(&texts.concat()),
            "'" | "\"" => {
                end_line(lines);
                lines.push_str(&texts.concat());
            }
            "T*" | "ET" => end_line(lines),
            "Td" | "TD" if down.is_some_and(|down| down != 0.0) => end_line(lines),
            "Tm" if down != height => {
                end_line(lines);
                height = down;
            }
            name if name.starts_with('/') => continue,
            _ => {}
        }
        texts.clear();
        numbers.clear();
    }
    end_line(lines);
}

/// A string in brackets without its escapes: `\(`, `\n`, `\053`.
fn unescaped(literal: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = literal.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match (byte, rest.peek().copied()) {
            (b'\\', Some(b'0'..=b'7')) => {
                let mut code = 0;
                for _ in 0..3 {
                    if let Some(digit) = rest.next_if(|digit| (b'0'..=b'7').contains(digit)) {
                        code = code * 8 + u32::from(digit - b'0');
                    }
                }
                text.extend(char::from_u32(code));
            }
            (b'\\', Some(b'n' | b'r' | b't' | b'\n' | b'\r')) => {
                rest.next();
                text.push(' ');
            }
            (b'\\', escaped) => {
                rest.next();
                text.extend(escaped.map(char::from));
            }
            _ => text.push(char::from(byte)),
        }
    }
    text
}

/// A string in hexadecimal digits; one that holds control characters is of a font that is not known.
fn hex(digits: &[u8]) -> String {
    let digits: Vec<u32> = digits
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .collect();
    let codes = digits
        .chunks(2)
        .map(|two| two.iter().fold(0, |sum, digit| sum * 16 + digit));
    let text: String = codes.filter_map(char::from_u32).collect();
    if text.chars().any(char::is_control) {
        return String::new();
    }
    text
}

#[cfg(test)]
mod tests;
