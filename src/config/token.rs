//! The token that an app shows where SDKs put the API key: 256 random bits, a mark that says whose
//! it is, and a checksum. Kept as a hash.
//!
//! Why BLAKE3 and no password hash: those are slow because people choose passwords that can be
//! guessed. 256 random bits cannot be guessed, fast or slow, and the door hashes each request's token.
//! A token of the operator's own (`token_file`) has at least 32 characters for the same reason.
//!
//! Promise: no `Debug` and no error shows a token or its hash; two hashes are compared in constant
//! time; a mistyped token of bursar's form gets another error than one that was never issued.

use std::fmt::{self, Write};

use zeroize::Zeroizing;

/// What a token of ours begins with.
pub const TOKEN_MARK: &str = "bursar_";

/// Shortest token of an operator's own, in characters.
pub const TOKEN_CHARS_MIN: usize = 32;

/// Random bytes of a token, and digits of its checksum.
const RANDOM_BYTES: usize = 32;
const CHECKSUM_DIGITS: usize = 8;

/// Separates these hashes from every other use of BLAKE3 here.
const HASH_CONTEXT: &str = "bursar 2026-11 app token";

/// A new token; its memory is wiped. `bursar_`, 64 hexadecimal digits, 8 of checksum.
pub struct Token(Zeroizing<String>);

/// What is kept of a token.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TokenHash(blake3::Hash);

/// What a text that is no known token looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenForm {
    /// One of ours as it was given out: of an app that was removed, or rotated since.
    Whole,
    /// One of ours with a slip in it.
    Mistyped,
    /// Something else: an SDK's placeholder, another service's key.
    Foreign,
}

// === impl Token ===

impl Token {
    /// Draws a token. Fails where the system gives no random bytes.
    pub fn draw() -> Result<Self, getrandom::Error> {
        let mut random = Zeroizing::new([0; RANDOM_BYTES]);
        getrandom::fill(random.as_mut_slice())?;
        let mut text = Zeroizing::new(String::with_capacity(
            TOKEN_MARK.len() + 2 * RANDOM_BYTES + CHECKSUM_DIGITS,
        ));
        text.push_str(TOKEN_MARK);
        for byte in random.iter() {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        let sum = crc32c::crc32c(text.as_bytes());
        let _ = write!(text, "{sum:08x}");
        Ok(Self(text))
    }

    /// For the one place that shows it to its owner.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    pub fn hash(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(***)")
    }
}

// === impl TokenHash ===

impl TokenHash {
    pub fn of(token: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(HASH_CONTEXT);
        hasher.update(token);
        Self(hasher.finalize())
    }

    pub fn to_hex(self) -> String {
        self.0.to_hex().to_string()
    }

    /// `None`: not 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        blake3::Hash::from_hex(text).ok().map(Self)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(***)")
    }
}

// === impl TokenForm ===

impl TokenForm {
    pub fn of(text: &[u8]) -> Self {
        let Some(rest) = text.strip_prefix(TOKEN_MARK.as_bytes()) else {
            return Self::Foreign;
        };
        let is_whole = rest.len() == 2 * RANDOM_BYTES + CHECKSUM_DIGITS
            && text
                .split_last_chunk::<CHECKSUM_DIGITS>()
                .is_some_and(|(front, sum)| {
                    format!("{:08x}", crc32c::crc32c(front)).as_bytes() == sum
                });
        match is_whole {
            true => Self::Whole,
            false => Self::Mistyped,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Whole => "unknown",
            Self::Mistyped => "mistyped",
            Self::Foreign => "foreign",
        }
    }
}

#[cfg(test)]
mod tests;
