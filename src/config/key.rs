//! The organization's key: the one secret of this process.
//!
//! Promise: it is in no `Debug`, no `Display` and no error; its memory is wiped when the last user
//! lets go of it; it leaves as the value of one header that is marked sensitive (rule I9).

mod spellings;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bytes::Bytes;
use http::HeaderValue;
use thiserror::Error;
use zeroize::Zeroizing;

use self::spellings::{Hit, Spellings};
use super::env::{CREDENTIALS_DIRECTORY, Env};
use super::opened::open_to_read;

/// Longest key, in characters.
pub const KEY_CHARS_MAX: usize = 512;
const BEARER: &[u8] = b"Bearer ";
/// Permission bits that let every user of the machine read or replace a file.
const OPEN_TO_OTHERS: u32 = 0o006;

/// The key, held once: the header value is the only copy, and its buffer wipes itself.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// `Bearer …`, marked sensitive.
    header: HeaderValue,
    from: KeyFile,
}

/// Why there is no usable key. None of these texts holds any of it.
#[derive(Debug, Error)]
pub enum KeyError {
    #[error("the key file {path} cannot be read: {cause}")]
    Unreadable { path: String, cause: String },
    #[error("the file {path} does not exist")]
    Missing { path: String },
    #[error(
        "every user of this machine can read or replace the key file {path} (mode {mode:04o}); run: chmod o-rwx {path}"
    )]
    OpenToOthers { path: String, mode: u32 },
    #[error("the key is empty")]
    Empty,
    #[error("the key is longer than {KEY_CHARS_MAX} characters")]
    TooLong,
    #[error(
        "the key holds a space, a line break or another character that is not visible ASCII; only the key itself belongs there, without \"Bearer\""
    )]
    Characters,
}

/// Whether the permission bits of a file with a secret are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFile {
    /// A file that the operator made: other users must not be able to read it.
    Plain,
    /// Below `$CREDENTIALS_DIRECTORY`: systemd guards the directory.
    Credential,
}

// === impl KeyFile ===

impl KeyFile {
    pub(super) fn at(path: &Path, env: &Env) -> Self {
        let directory = env.path(CREDENTIALS_DIRECTORY);
        match directory.is_some_and(|directory| path.starts_with(directory)) {
            true => Self::Credential,
            false => Self::Plain,
        }
    }

    /// The permission bits of a file, where they let other users read or replace it.
    pub(super) fn open_to_others(self, file: &File) -> io::Result<Option<u32>> {
        let metadata = file.metadata()?;
        let mode = metadata.permissions().mode() & 0o7777;
        // A pipe (`<(pass show key)`) has no lasting place that others could open.
        let is_open = self == Self::Plain && metadata.is_file() && mode & OPEN_TO_OTHERS != 0;
        Ok(is_open.then_some(mode))
    }
}

// === impl ApiKey ===

impl ApiKey {
    /// Reads the key from a file. One line end behind it is not part of it.
    pub fn from_file(path: &Path, kind: KeyFile) -> Result<Self, KeyError> {
        let unreadable = |error: io::Error| {
            let path = shown_missing(path);
            match error.kind() {
                io::ErrorKind::NotFound => KeyError::Missing { path },
                _ => KeyError::Unreadable {
                    path,
                    cause: error.to_string(),
                },
            }
        };
        let file = open_to_read(path).map_err(unreadable)?;
        if let Some(mode) = kind.open_to_others(&file).map_err(unreadable)? {
            let path = shown(path);
            return Err(KeyError::OpenToOthers { path, mode });
        }
        let text = read_key(file).map_err(unreadable)?;
        let key = Self::from_text(&text)?;
        Ok(Self { from: kind, ..key })
    }

    /// Writes the key and a line end behind it: for the file of the key alone.
    pub fn write_to(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(self.secret())?;
        to.write_all(b"\n")
    }

    /// Checks the key: 1 to 512 characters of visible ASCII. One line end behind it is not part
    /// of it.
    pub fn from_text(text: &[u8]) -> Result<Self, KeyError> {
        let key = text
            .strip_suffix(b"\r\n")
            .or_else(|| text.strip_suffix(b"\n"))
            .unwrap_or(text);
        if key.is_empty() {
            return Err(KeyError::Empty);
        }
        if key.len() > KEY_CHARS_MAX {
            return Err(KeyError::TooLong);
        }
        if !key.iter().all(u8::is_ascii_graphic) {
            return Err(KeyError::Characters);
        }
        let value = Zeroizing::new([BEARER, key].concat());
        let mut header = HeaderValue::from_maybe_shared(Bytes::from_owner(value))
            .map_err(|_| KeyError::Characters)?;
        header.set_sensitive(true);
        let from = KeyFile::Plain;
        Ok(Self { header, from })
    }

    /// The value of the `Authorization` header towards the upstream, marked sensitive. Clones
    /// share the one buffer.
    pub fn header_value(&self) -> HeaderValue {
        self.header.clone()
    }

    /// Whether it is systemd's credential: a copy that was made when the service started.
    pub fn is_a_copy(&self) -> bool {
        self.from == KeyFile::Credential
    }

    /// Whether the key stands somewhere in `bytes`, as it is or as JSON spells it: nothing that holds it
    /// may go to an app.
    pub fn occurs_in(&self, bytes: &[u8]) -> bool {
        self.spellings().find(bytes, false).is_some()
    }

    /// Whether the key stands in a header's name, where letters have lost their case.
    pub fn is_named_in(&self, name: &str) -> bool {
        let secret = self.secret();
        name.len() >= secret.len()
            && name
                .as_bytes()
                .windows(secret.len())
                .any(|part| part.eq_ignore_ascii_case(secret))
    }

    /// `bytes` with every occurrence of the key struck out; `None` when it does not occur.
    pub fn redacted(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut clean = Vec::new();
        let mut rest = bytes;
        while let Some(Hit::Whole(span)) = self.spellings().find(rest, false) {
            clean.extend_from_slice(rest.get(..span.start)?);
            clean.extend_from_slice(b"***");
            rest = rest.get(span.end..)?;
        }
        if rest.len() == bytes.len() {
            return None;
        }
        clean.extend_from_slice(rest);
        Some(clean)
    }

    /// `bytes` with a star for each byte of the key, where it stands, and how many of the last of them may
    /// be its beginning: those stay as they are. `more_comes`: behind `bytes`. `None`: it does not occur.
    pub fn redacted_chunk(&self, bytes: &[u8], more_comes: bool) -> (Option<Vec<u8>>, usize) {
        let mut clean = None;
        let mut at = 0;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            match self.spellings().find(rest, more_comes) {
                Some(Hit::Whole(span)) => {
                    let stars = at + span.start..at + span.end;
                    at = stars.end;
                    let clean = clean.get_or_insert_with(|| bytes.to_vec());
                    if let Some(stars) = clean.get_mut(stars) {
                        stars.fill(b'*');
                    }
                }
                Some(Hit::Begins(from)) => return (clean, rest.len() - from),
                None => return (clean, 0),
            }
        }
    }

    fn spellings(&self) -> Spellings<'_> {
        Spellings(self.secret())
    }

    pub(super) fn secret(&self) -> &[u8] {
        self.header
            .as_bytes()
            .strip_prefix(BEARER)
            .unwrap_or_default()
    }
}

/// What may be a key, and a little more where it is too long for one; wiped when it is dropped.
pub fn read_key(from: impl Read) -> io::Result<Zeroizing<Vec<u8>>> {
    // Room for the longest key, its line end and one byte too many; no copy by growth.
    let mut text = Zeroizing::new(Vec::with_capacity(KEY_CHARS_MAX + 3));
    let limit = u64::try_from(KEY_CHARS_MAX + 3).unwrap_or(u64::MAX);
    from.take(limit).read_to_end(&mut text)?;
    Ok(text)
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

impl fmt::Display for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}

/// The path as an error shows it.
fn shown(path: &Path) -> String {
    path.to_string_lossy().escape_debug().to_string()
}

/// The path of a file that is not there. A key that was given in place of its file must not get into
/// the log.
fn shown_missing(path: &Path) -> String {
    let there = path.ancestors().skip(1).find(|folder| folder.is_dir());
    let missing = there.and_then(|folder| path.strip_prefix(folder).ok());
    if looks_like_a_key(&missing.unwrap_or(path).to_string_lossy()) {
        "(not shown: it looks like a key; give the path of its file)".to_owned()
    } else {
        shown(path)
    }
}

/// Long, and of more kinds of letters than a file's name usually has. With a slash in it a key looks
/// like folders.
fn looks_like_a_key(text: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| text.bytes().any(|byte| kind(&byte));
    let is_mixed = has(u8::is_ascii_uppercase) || (has(u8::is_ascii_digit) && !text.contains('.'));
    text.len() >= 20 && is_mixed
}

#[cfg(test)]
mod tests;
