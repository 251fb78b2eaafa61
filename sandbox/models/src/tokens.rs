//! The tokenizer: what a token is here, and so what is billed.
//!
//! Assumed (tokenizer): the interface names no tokenizer. Ours is simple enough to count by hand: white
//! space goes with what follows it, a run of letters and digits is one token per six characters begun, and
//! every other character is a token of its own.
//! Promise: the pieces joined give the text back, so a stream of them is the answer.

const RUN_CHARS_MAX: usize = 6;

/// Tokens a message costs beside its text: its role and its borders.
pub const PER_MESSAGE: u64 = 4;

/// The text cut into tokens.
pub fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut run_chars = 0;
    let mut has_body = false;
    for (at, c) in text.char_indices() {
        let goes_on = c.is_alphanumeric() && (1..RUN_CHARS_MAX).contains(&run_chars);
        if has_body && !goes_on {
            pieces.extend(text.get(start..at));
            start = at;
            run_chars = 0;
        }
        has_body = !c.is_whitespace();
        run_chars = if c.is_alphanumeric() {
            run_chars + 1
        } else {
            0
        };
    }
    if start < text.len() {
        pieces.extend(text.get(start..));
    }
    pieces
}

/// How many tokens the text is.
pub fn count(text: &str) -> u64 {
    pieces(text).len() as u64
}

#[cfg(test)]
mod tests;
