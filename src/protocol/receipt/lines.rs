//! The lines of a receipt as received: header fields, comment lines, the amount of a body. The
//! parsed receipt says what bursar understood; these lines are what was sent, as evidence.
//!
//! Promise: at most [`LINES_MAX`] lines of [`LINE_CHARS_MAX`] characters, printable ASCII, and only
//! fields that are receipts: no text of a prompt or an answer.

use http::{HeaderMap, HeaderName};

use crate::protocol::names::{IDEMPOTENT_REPLAYED, ServiceNames};

/// Most lines that are kept of one attempt; one more says that there were others.
pub const LINES_MAX: usize = 16;
/// Longest line, in characters; what is cut off leaves [`CUT`].
pub const LINE_CHARS_MAX: usize = 256;

const CUT: &str = "[cut]";
const MORE: &str = "[further lines were not kept]";

/// The receipt lines of one attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiptLines(Vec<String>);

// === impl ReceiptLines ===

impl ReceiptLines {
    /// The receipt fields of a head, in a fixed order. What may not be kept was struck out of it.
    pub fn of_headers(names: &ServiceNames, headers: &HeaderMap) -> Self {
        let mut lines = Self::default();
        let receipt_names: [&HeaderName; 8] = [
            &names.billed,
            &names.would_have_cost,
            &names.served_by,
            &names.specialist,
            &names.escalated,
            &names.route_version,
            &names.input_required,
            &IDEMPOTENT_REPLAYED,
        ];
        for name in receipt_names {
            for value in headers.get_all(name) {
                lines.push(&[name.as_str().as_bytes(), b": ", value.as_bytes()]);
            }
        }
        lines
    }

    /// Takes a comment line `: name value` when it is a receipt's.
    pub fn take_comment(&mut self, names: &ServiceNames, name: &[u8], value: &[u8]) {
        let is_receipt = [
            &names.comment_billed,
            &names.comment_would_have_cost,
            &names.comment_served_by,
            &names.comment_route_version,
        ]
        .into_iter()
        .any(|known| **known == *name);
        if is_receipt {
            self.push(&[b": ", name, b" ", value]);
        }
    }

    /// Takes a line, whose parts these are. What is not printable ASCII is written as `\xNN`.
    pub fn push(&mut self, parts: &[&[u8]]) {
        if self.0.len() > LINES_MAX {
            return;
        }
        if self.0.len() == LINES_MAX {
            self.0.push(MORE.to_owned());
            return;
        }
        let length = parts.iter().map(|part| part.len()).sum();
        let mut shown = String::with_capacity(length);
        let bytes = parts.iter().copied().flatten();
        bytes.for_each(|byte| write_shown(&mut shown, *byte));
        if shown.len() > LINE_CHARS_MAX {
            // All of it is ASCII, so every index is a character boundary.
            shown.truncate(LINE_CHARS_MAX - CUT.len());
            shown.push_str(CUT);
        }
        self.0.push(shown);
    }

    /// As the journal keeps them.
    pub fn into_vec(self) -> Vec<String> {
        self.0
    }

    /// Adds the lines that came after a head to the lines of that head.
    pub fn append_to(&self, kept: &mut Vec<String>) {
        for line in &self.0 {
            if kept.len() <= LINES_MAX {
                let is_full = kept.len() == LINES_MAX;
                kept.push(if is_full { MORE } else { line }.to_owned());
            }
        }
    }
}

fn write_shown(shown: &mut String, byte: u8) {
    if byte == b' ' || byte.is_ascii_graphic() {
        shown.push(char::from(byte));
    } else {
        shown.push_str(&format!("\\x{byte:02x}"));
    }
}

#[cfg(test)]
mod tests;
