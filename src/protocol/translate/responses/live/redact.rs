//! The answer's text on its way to the app, piece by piece, without a secret that may be divided between two pieces.
//!
//! Why: each piece stands in an event of its own, so a search of the bytes as they come misses a secret of which the
//! service says one half now and the other half later. An app joins the pieces.
//!
//! Promise: what is given is the text without the secret; what is held back begins like it. Each piece is the inside of
//! a JSON string: none ends inside of a character or an escape.

use std::borrow::Cow;

use crate::protocol::translate::escaped::unit_len;

/// Strikes a secret out of the inside of a JSON string: what it is then, if that differs, and how many of the last
/// bytes may be the secret's beginning, which stay as they are. The flag says that more comes behind them.
pub type Redact = Box<dyn Fn(&[u8], bool) -> (Option<Vec<u8>>, usize) + Send + Sync>;

/// One text in its pieces.
#[derive(Default)]
pub(super) struct RedactedText {
    /// `None`: nothing is secret.
    redact: Option<Redact>,
    /// What may be the secret's beginning.
    held: String,
}

// === impl RedactedText ===

impl RedactedText {
    pub fn without(redact: Redact) -> Self {
        Self {
            redact: Some(redact),
            held: String::new(),
        }
    }

    /// Takes the next piece; what may be given of what was held and of this.
    pub fn pass<'p>(&mut self, piece: &'p str) -> Cow<'p, str> {
        let Some(redact) = &self.redact else {
            return Cow::Borrowed(piece);
        };
        let text = match self.held.is_empty() {
            true => Cow::Borrowed(piece),
            false => Cow::Owned(std::mem::take(&mut self.held) + piece),
        };
        let (clean, begins) = redact(text.as_bytes(), true);
        let text = struck(text, clean);
        if begins == 0 {
            return text;
        }
        let mut text = text.into_owned();
        let end = last_unit_end(&text, text.len().saturating_sub(begins));
        self.held = text.split_off(end);
        Cow::Owned(text)
    }

    /// No more comes: what was held is not the secret, or not to its end.
    pub fn rest(&mut self) -> String {
        let held: Cow<'_, str> = Cow::Owned(std::mem::take(&mut self.held));
        let clean = self.redact.as_ref().and_then(|redact| {
            let (clean, _) = redact(held.as_bytes(), false);
            clean
        });
        struck(held, clean).into_owned()
    }
}

fn struck(text: Cow<'_, str>, clean: Option<Vec<u8>>) -> Cow<'_, str> {
    match clean {
        // The secret is ASCII, so what is left of the text is whole.
        Some(clean) => Cow::Owned(mended(&String::from_utf8_lossy(&clean))),
        None => text,
    }
}

/// Without a backslash that escapes nothing: a search of bytes takes the second one of `\\u0073` for the beginning of
/// an escape, and leaves the first one.
fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let (unit, behind) = rest.split_at(unit_len(rest));
        out.push_str(match unit {
            r"\*" => "**",
            unit => unit,
        });
        rest = behind;
    }
    out
}

/// Where the last character or escape ends that ends within `most` bytes.
fn last_unit_end(text: &str, most: usize) -> usize {
    let mut end = 0;
    loop {
        let unit = unit_len(text.get(end..).unwrap_or_default());
        if unit == 0 || end + unit > most {
            return end;
        }
        end += unit;
    }
}

#[cfg(test)]
mod tests;
