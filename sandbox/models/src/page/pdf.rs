//! The text of a PDF, from the strings its pages show.
//!
//! Reads content streams, plain or deflated, and the operators that show text; fonts with an encoding of
//! their own are not known. Promise: bounded in bytes and in time for any input; no page is drawn.

use flate2::read::ZlibDecoder;
use std::io::Read as _;

/// Bytes that all streams together may unpack to.
const UNPACKED_MAX: usize = 4 * 1024 * 1024;
/// How far before its stream a dictionary is looked for.
const DICTIONARY_BYTES: usize = 1_024;
/// A shift back by so many thousandths of the font's size is a space.
const GAP: f64 = -180.0;

/// The lines of text in the order the file shows them.
pub fn text(file: &[u8]) -> String {
    let mut page = Page::default();
    let mut left = UNPACKED_MAX;
    let mut at = 0;
    while let Some(start) = find(file, at, b"stream") {
        let Some(end) = find(file, start, b"endstream") else {
            break;
        };
        at = end + b"endstream".len();
        let body_start = start + b"stream".len();
        let body = file.get(body_start..end).unwrap_or_default();
        let body = body
            .strip_prefix(b"\r\n")
            .or_else(|| body.strip_prefix(b"\n"))
            .unwrap_or(body);
        let dictionary = file
            .get(start.saturating_sub(DICTIONARY_BYTES)..start)
            .unwrap_or_default();
        let dictionary = match rfind(dictionary, b" obj") {
            Some(own) => dictionary.get(own..).unwrap_or_default(),
            None => dictionary,
        };
        let content = if find(dictionary, 0, b"FlateDecode").is_some() {
            let mut unpacked = Vec::new();
            let most = u64::try_from(left).unwrap_or(0);
            // What was unpacked before an error is text all the same.
            let _ = ZlibDecoder::new(body).take(most).read_to_end(&mut unpacked);
            unpacked
        } else {
            body.iter().copied().take(left).collect()
        };
        left = left.saturating_sub(content.len());
        if find(&content, 0, b"BT").is_some() {
            page.read(&content);
        }
    }
    page.lines.push(std::mem::take(&mut page.line));
    let lines: Vec<&str> = page.lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

fn find(within: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let at = within
        .get(from..)?
        .windows(what.len())
        .position(|window| window == what)?;
    Some(from + at)
}

fn rfind(within: &[u8], what: &[u8]) -> Option<usize> {
    within
        .windows(what.len())
        .rposition(|window| window == what)
}

#[derive(Default)]
struct Page {
    lines: Vec<String>,
    line: String,
    /// Where the last `Tm` put the line.
    height: Option<f64>,
}

/// What stands before an operator.
enum Operand {
    Number(f64),
    Text(String),
    Other,
}

// === impl Page ===

impl Page {
    fn read(&mut self, content: &[u8]) {
        let mut operands: Vec<Operand> = Vec::new();
        let mut at = 0;
        while let Some(byte) = content.get(at).copied() {
            match byte {
                b'(' => operands.push(Operand::Text(literal(content, &mut at))),
                b'<' if content.get(at + 1) != Some(&b'<') => {
                    operands.push(Operand::Text(hex(content, &mut at)));
                }
                b'[' | b']' | b'<' | b'>' | b'{' | b'}' => at += 1,
                b'%' => {
                    at = find(content, at, b"\n").unwrap_or(content.len());
                }
                b if b.is_ascii_whitespace() || b == b')' => at += 1,
                _ => {
                    let start = at;
                    at += 1;
                    while content
                        .get(at)
                        .is_some_and(|b| !b.is_ascii_whitespace() && !b"()<>[]{}/%".contains(b))
                    {
                        at += 1;
                    }
                    let word = content.get(start..at).unwrap_or_default();
                    let word = std::str::from_utf8(word).unwrap_or("");
                    if let Ok(number) = word.parse() {
                        operands.push(Operand::Number(number));
                    } else if word.starts_with('/') {
                        operands.push(Operand::Other);
                    } else {
                        self.operate(word, &operands);
                        operands.clear();
                    }
                }
            }
        }
    }

    fn operate(&mut self, operator: &str, operands: &[Operand]) {
        let number = |from_end: usize| match operands.iter().rev().nth(from_end) {
            Some(Operand::Number(number)) => Some(*number),
            _ => None,
        };
        match operator {
            "Tj" | "TJ" => self.show(operands),
            "'" | "\"" => {
                self.end_line();
                self.show(operands);
            }
            "T*" | "ET" => self.end_line(),
            "Td" | "TD" if number(0).is_some_and(|down| down != 0.0) => self.end_line(),
            "Tm" => {
                let height = number(0);
                if height != self.height {
                    self.end_line();
                }
                self.height = height;
            }
            _ => {}
        }
    }

    fn show(&mut self, operands: &[Operand]) {
        for operand in operands {
            match operand {
                Operand::Text(text) => self.line.push_str(text),
                Operand::Number(shift) if *shift < GAP => self.line.push(' '),
                Operand::Number(_) | Operand::Other => {}
            }
        }
    }

    fn end_line(&mut self) {
        if !self.line.trim().is_empty() {
            self.lines.push(std::mem::take(&mut self.line));
        }
    }
}

/// A string in brackets; `at` is moved behind it.
fn literal(content: &[u8], at: &mut usize) -> String {
    let mut text = String::new();
    let mut depth = 0_usize;
    while let Some(byte) = content.get(*at).copied() {
        *at += 1;
        match byte {
            b'(' => {
                depth += 1;
                if depth == 1 {
                    continue;
                }
            }
            b')' => {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
            b'\\' => {
                let escaped = content.get(*at).copied().unwrap_or(b' ');
                *at += 1;
                match escaped {
                    b'n' | b'r' | b't' | b'\n' | b'\r' => text.push(' '),
                    b'0'..=b'7' => {
                        let mut code = u32::from(escaped - b'0');
                        for _ in 0..2 {
                            if let Some(digit @ b'0'..=b'7') = content.get(*at).copied() {
                                code = code * 8 + u32::from(digit - b'0');
                                *at += 1;
                            }
                        }
                        text.extend(char::from_u32(code));
                    }
                    other => text.push(char::from(other)),
                }
                continue;
            }
            _ => {}
        }
        text.push(char::from(byte));
    }
    text
}

/// A string in hexadecimal digits; one that holds control characters is of a font we do not know.
fn hex(content: &[u8], at: &mut usize) -> String {
    let end = find(content, *at, b">").unwrap_or(content.len());
    let digits: Vec<u32> = content
        .get(*at..end)
        .unwrap_or_default()
        .iter()
        .filter_map(|byte| char::from(*byte).to_digit(16))
        .collect();
    *at = end + 1;
    let text: String = digits
        .chunks(2)
        .map(|two| two.iter().fold(0, |sum, digit| sum * 16 + digit))
        .filter_map(char::from_u32)
        .collect();
    if text.chars().any(char::is_control) {
        return String::new();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::ZlibEncoder};
    use std::io::Write as _;

    #[test]
    fn lines_are_read_from_plain_and_from_packed_pages() {
        let shown =
            b"BT /F1 11 Tf 60 700 Td (Total \\(net\\): 5) Tj T* [(Gr) -20 (oss) -400 <36>] TJ ET";
        let mut packed = ZlibEncoder::new(Vec::new(), Compression::default());
        packed.write_all(shown).unwrap();
        let packed = packed.finish().unwrap();
        let file = |dictionary: &str, body: &[u8]| {
            let mut file = format!("%PDF-1.4\n5 0 obj\n{dictionary}\nstream\n").into_bytes();
            file.extend_from_slice(body);
            file.extend_from_slice(b"\nendstream\nendobj");
            file
        };

        for file in [
            file("<< >>", shown),
            file("<< /Filter /FlateDecode >>", &packed),
        ] {
            assert_eq!(text(&file), "Total (net): 5\nGross 6\n");
        }
    }

    #[test]
    fn what_unpacks_without_end_and_what_is_broken_ends() {
        let mut bomb = ZlibEncoder::new(Vec::new(), Compression::best());
        bomb.write_all(b"BT (a) Tj ET ").unwrap();
        bomb.write_all(&vec![b' '; 20 * 1024 * 1024]).unwrap();
        let mut file = b"%PDF-1.4\n1 0 obj << /FlateDecode >>\nstream\n".to_vec();
        file.extend(bomb.finish().unwrap());
        file.extend(b"\nendstream");

        assert_eq!(text(&file).trim(), "a");
        assert_eq!(text(b"%PDF stream (((\\"), "");
        assert_eq!(text(b"stream BT ((( endstream").trim(), "");
    }
}
