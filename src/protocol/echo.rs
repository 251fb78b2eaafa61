//! What of a text also stands in others: the words in which a service refuses a request may repeat the request, and
//! no prompt may get into a log.
//!
//! Two texts are compared as they came, and once more as they read: escapes of JSON undone at any depth, white space
//! folded, the letters of ASCII in one case. Each run of [`RUN_BYTES`] holds one block of eight bytes that begins at a multiple of eight
//! in the long text, so only those are looked up, and the runs around the few that are known.
//!
//! Promise: every run of at least [`RUN_BYTES`] bytes that both texts have is found, in either comparison. Time grows
//! with the sum of the lengths, whatever the texts hold, and memory with the short text alone.

use std::collections::HashMap;
use std::ops::Range;

use zeroize::Zeroizing;

/// Shortest run that counts.
pub const RUN_BYTES: usize = 16;

/// What stands in the place of what was struck out, or cut off.
pub const STRUCK: char = '…';

const BLOCK_BYTES: usize = 8;

/// Bits of the filter, as a power of two: one in a hundred blocks is looked up in vain where the short text has 5,000.
const FILTER_BITS: u32 = 19;

/// So much of a long text is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A short text, and what of it is struck out.
pub struct Echo<'a> {
    text: &'a str,
    /// For each byte of it.
    struck: Vec<bool>,
    /// Once it is compared.
    compared: Option<ComparedForms>,
}

/// A text in its two forms.
struct ComparedForms {
    as_it_came: TextRuns,
    as_it_reads: TextRuns,
    /// For each byte of the text as it reads, the bytes that it stands for.
    sources: Vec<Range<usize>>,
}

/// The runs of one text, and which of them stand elsewhere, too.
struct TextRuns {
    /// One bit for each block, by its hash.
    filter: Vec<u64>,
    /// Each run once.
    numbers: HashMap<[u8; RUN_BYTES], usize>,
    /// By place in the text, the number of the run that begins there.
    at: Vec<usize>,
    /// By number.
    found: Vec<bool>,
}

/// Reads a text byte by byte.
#[derive(Default)]
struct PlainReader {
    escape: EscapePart,
    /// The first half of a character beyond 16 bits.
    high: Option<u32>,
    /// The last byte was a blank.
    after_blank: bool,
}

#[derive(Clone, Copy, Default)]
enum EscapePart {
    #[default]
    None,
    /// Behind one backslash or several.
    Backslash,
    /// The digits of `\u` so far.
    Unicode { digits: [u8; 4], count: usize },
}

// === impl Echo ===

impl<'a> Echo<'a> {
    pub fn of(text: &'a str) -> Self {
        Self {
            text,
            struck: vec![false; text.len()],
            compared: None,
        }
    }

    /// Strikes out what stands in this text, too.
    pub fn hears(&mut self, other: &[u8]) {
        // A shorter text holds no run.
        if self.text.len() >= RUN_BYTES && other.len() >= RUN_BYTES {
            let text = self.text;
            let compared = self.compared.get_or_insert_with(|| ComparedForms::of(text));
            compared.hears(other);
        }
    }

    /// Strikes these bytes out.
    pub fn strike(&mut self, bytes: Range<usize>) {
        if let Some(struck) = self.struck.get_mut(bytes) {
            struck.fill(true);
        }
    }

    /// What is left of the first `bytes_max` bytes, in at most `chars_max` characters. A character of which a byte is
    /// struck out is struck out.
    pub fn left(mut self, bytes_max: usize, chars_max: usize) -> String {
        if let Some(compared) = self.compared.take() {
            for at in compared.as_it_came.places() {
                self.strike(at..at + RUN_BYTES);
            }
            for at in compared.as_it_reads.places() {
                let run = compared.sources.get(at..at + RUN_BYTES);
                if let [first, .., last] = run.unwrap_or_default() {
                    self.strike(first.start..last.end);
                }
            }
        }
        let mut left = String::new();
        let mut count = 0;
        for (at, character) in self.text.char_indices() {
            let is_struck = self
                .struck
                .get(at..at + character.len_utf8())
                .is_none_or(|bytes| bytes.contains(&true));
            let is_last = at + character.len_utf8() == self.text.len();
            let is_full = at >= bytes_max || count + 1 >= chars_max;
            if is_struck || at >= bytes_max || (is_full && !is_last) {
                if !left.ends_with(STRUCK) {
                    left.push(STRUCK);
                    count += 1;
                }
            } else {
                left.push(character);
                count += 1;
            }
            if is_full {
                break;
            }
        }
        left
    }
}

// === impl ComparedForms ===

impl ComparedForms {
    fn of(text: &str) -> Self {
        let mut reader = PlainReader::default();
        let (mut read, mut sources, mut begun) = (Vec::new(), Vec::new(), 0);
        for (at, byte) in text.bytes().enumerate() {
            reader.feed(byte, &mut read);
            if read.len() > sources.len() {
                sources.resize(read.len(), begun..at + 1);
                begun = at + 1;
            }
        }
        reader.finish(&mut read);
        sources.resize(read.len(), begun..text.len());
        Self {
            as_it_came: TextRuns::of(text.as_bytes()),
            as_it_reads: TextRuns::of(&read),
            sources,
        }
    }

    fn hears(&mut self, other: &[u8]) {
        self.as_it_came.look(other);
        let mut reader = PlainReader::default();
        // A secret is compared, too.
        let mut read = Zeroizing::new(Vec::with_capacity(PIECE_BYTES.min(other.len()) + RUN_BYTES));
        for piece in other.chunks(PIECE_BYTES) {
            for byte in piece {
                reader.feed(*byte, &mut read);
            }
            self.as_it_reads.look(&read);
            // A run that ends in the next piece.
            let known = read.len().saturating_sub(RUN_BYTES - 1);
            read.drain(..known);
        }
        reader.finish(&mut read);
        self.as_it_reads.look(&read);
    }
}

// === impl TextRuns ===

impl TextRuns {
    fn of(text: &[u8]) -> Self {
        let mut runs = Self {
            filter: vec![0; 1 << (FILTER_BITS - u64::BITS.ilog2())],
            numbers: HashMap::new(),
            at: Vec::new(),
            found: Vec::new(),
        };
        for run in text.windows(RUN_BYTES) {
            let Ok(run) = <[u8; RUN_BYTES]>::try_from(run) else {
                continue;
            };
            let next = runs.found.len();
            let number = *runs.numbers.entry(run).or_insert(next);
            if number == next {
                runs.found.push(false);
            }
            runs.at.push(number);
        }
        for block in text.windows(BLOCK_BYTES) {
            let (word, bit) = place_in_filter(block);
            if let Some(word) = runs.filter.get_mut(word) {
                *word |= bit;
            }
        }
        runs
    }

    fn look(&mut self, other: &[u8]) {
        let mut last = None;
        for (number, block) in other.chunks_exact(BLOCK_BYTES).enumerate() {
            let (word, bit) = place_in_filter(block);
            if self.filter.get(word).is_none_or(|word| word & bit == 0) {
                continue;
            }
            let at = number * BLOCK_BYTES;
            for start in at.saturating_sub(BLOCK_BYTES)..=at {
                let run = other
                    .get(start..)
                    .and_then(<[u8]>::first_chunk::<RUN_BYTES>);
                // One letter again and again is looked up once.
                if run == last {
                    continue;
                }
                last = run;
                let number = run.and_then(|run| self.numbers.get(run));
                if let Some(found) = number.and_then(|number| self.found.get_mut(*number)) {
                    *found = true;
                }
            }
        }
    }

    /// Where a run begins that stands elsewhere, too.
    fn places(&self) -> impl Iterator<Item = usize> {
        let is_found = |number: usize| self.found.get(number).copied().unwrap_or_default();
        let numbers = self.at.iter().enumerate();
        numbers.filter_map(move |(at, number)| is_found(*number).then_some(at))
    }
}

/// Which bit of the filter is a block's.
fn place_in_filter(block: &[u8]) -> (usize, u64) {
    let block = block.first_chunk::<BLOCK_BYTES>().copied();
    // An odd number without a pattern: 2^64 by the golden ratio.
    let hash = u64::from_le_bytes(block.unwrap_or_default()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let place = hash >> (u64::BITS - FILTER_BITS);
    let word = usize::try_from(place / u64::from(u64::BITS)).unwrap_or_default();
    (word, 1 << (place % u64::from(u64::BITS)))
}

// === impl PlainReader ===

impl PlainReader {
    fn feed(&mut self, byte: u8, read: &mut Vec<u8>) {
        match (self.escape, byte) {
            (EscapePart::None | EscapePart::Backslash, b'\\') => {
                self.escape = EscapePart::Backslash
            }
            (EscapePart::None, byte) => self.put(byte, read),
            (EscapePart::Backslash, b'u') => {
                self.escape = EscapePart::Unicode {
                    digits: [0; 4],
                    count: 0,
                };
            }
            (EscapePart::Backslash, byte) => {
                self.escape = EscapePart::None;
                let is_blank = matches!(byte, b'n' | b'r' | b't' | b'b' | b'f');
                self.put(if is_blank { b' ' } else { byte }, read);
            }
            (EscapePart::Unicode { mut digits, count }, byte) if byte.is_ascii_hexdigit() => {
                if let Some(digit) = digits.get_mut(count) {
                    *digit = byte;
                }
                let count = count + 1;
                self.escape = EscapePart::Unicode { digits, count };
                if count == digits.len() {
                    self.escape = EscapePart::None;
                    self.put_unit(digits, read);
                }
            }
            (EscapePart::Unicode { .. }, byte) => {
                self.finish(read);
                self.feed(byte, read);
            }
        }
    }

    /// What is no escape after all.
    fn finish(&mut self, read: &mut Vec<u8>) {
        if let EscapePart::Unicode { digits, count } = std::mem::take(&mut self.escape) {
            self.put(b'u', read);
            for digit in digits.into_iter().take(count) {
                self.put(digit, read);
            }
        }
    }

    /// One number of UTF-16.
    fn put_unit(&mut self, digits: [u8; 4], read: &mut Vec<u8>) {
        let text = std::str::from_utf8(&digits).unwrap_or_default();
        let unit = u32::from_str_radix(text, 16).unwrap_or_default();
        let code = match (self.high.take(), unit) {
            (_, 0xd800..=0xdbff) => {
                self.high = Some(unit);
                return;
            }
            (Some(high), 0xdc00..=0xdfff) => 0x1_0000 + ((high - 0xd800) << 10) + (unit - 0xdc00),
            _ => unit,
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        for byte in character.encode_utf8(&mut [0; 4]).bytes() {
            self.put(byte, read);
        }
    }

    fn put(&mut self, byte: u8, read: &mut Vec<u8>) {
        self.high = None;
        let is_blank = byte <= b' ' || byte == 0x7f;
        if !is_blank {
            read.push(byte.to_ascii_lowercase());
        } else if !self.after_blank {
            read.push(b' ');
        }
        self.after_blank = is_blank;
    }
}

#[cfg(test)]
mod tests;
