//! From what was given (flags, environment, file) to checked values: the values and the mistakes so far.
//! One function a table stands in a file below; each takes the first layer that gives a value, checks
//! it, and falls back to the default when none does.
//!
//! Promise: a mistake never stops the search for further ones, and none yields a configuration: it is
//! noted, and the default goes on in its stead.

pub mod app;
pub mod ledger;
pub mod listen;
pub mod reconcile;
pub mod sections;
pub mod upstream;

use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::env::{self, Env};
use super::errors::{ConfigErrors, Place};
use super::file::{At, ConfigFile};
use super::key::KeyFile;
use super::opened::open_to_read;
use super::settings::Overrides;

/// Largest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// What was given, and the mistakes found so far.
pub struct Check<'a> {
    overrides: &'a Overrides,
    env: &'a Env,
    /// The directory that relative paths of the file start from.
    file_dir: PathBuf,
    errors: ConfigErrors,
    warnings: Vec<String>,
}

// === impl Check ===

impl<'a> Check<'a> {
    /// Reads the file, when one is named. A file that cannot be read or is no TOML ends the search:
    /// what would be missing then is perhaps in it.
    pub fn read(
        overrides: &'a Overrides,
        env: &'a Env,
    ) -> Result<(Self, ConfigFile, Option<PathBuf>), ConfigErrors> {
        let path = overrides
            .config
            .clone()
            .or_else(|| env.path(env::BURSAR_CONFIG));
        let mut errors = ConfigErrors::new(path.as_deref());
        let file = match path.as_deref().map(read_file) {
            None => Some(ConfigFile::default()),
            Some(Ok(text)) => ConfigFile::read(&text, &mut errors),
            Some(Err(why)) => {
                errors.push_unreadable(&why);
                None
            }
        };
        let Some(file) = file else {
            return Err(errors);
        };
        let file_dir = path
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned)
            .unwrap_or_default();
        let check = Self {
            overrides,
            env,
            file_dir,
            errors,
            warnings: Vec::new(),
        };
        Ok((check, file, path))
    }

    pub fn overrides(&self) -> &'a Overrides {
        self.overrides
    }

    pub fn env(&self) -> &'a Env {
        self.env
    }

    /// There was no mistake so far.
    pub fn is_sound(&self) -> bool {
        self.errors.is_empty()
    }

    pub fn into_errors(self) -> ConfigErrors {
        self.errors
    }

    pub fn into_warnings(self) -> Vec<String> {
        self.warnings
    }

    /// What stands there is a mistake already.
    pub fn has_refused(&self, place: &Place) -> bool {
        self.errors.has(place)
    }

    /// The same of a key that was given and could not be taken.
    pub fn has_refused_key(&self, table: &'static str, key: &'static str) -> bool {
        self.errors.has_named(&Place::key(table, key))
    }

    /// A place as people read it.
    pub fn shown(&self, place: &Place) -> String {
        self.errors.shown(place)
    }

    /// systemd guards the directory of its credentials.
    pub fn key_file_kind(&self, path: &Path) -> KeyFile {
        let directory = self.env.path(env::CREDENTIALS_DIRECTORY);
        if directory.is_some_and(|directory| path.starts_with(directory)) {
            KeyFile::Credential
        } else {
            KeyFile::Plain
        }
    }

    /// What is allowed and deserves a line in the log.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// A whole number within `range`.
    pub fn number(
        &mut self,
        table: &str,
        key: &str,
        given: Option<At<i64>>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> u64 {
        let Some(At { value, place }) = given else {
            debug_assert!(range.contains(&default), "default of [{table}] {key}");
            return default;
        };
        match u64::try_from(value) {
            Ok(value) if range.contains(&value) => value,
            _ => {
                let (least, most) = (range.start(), range.end());
                self.refuse(&place, format!("takes {least} to {most}, not {value}"));
                default
            }
        }
    }

    pub fn seconds(
        &mut self,
        table: &str,
        key: &str,
        given: Option<At<i64>>,
        default: u64,
        range: RangeInclusive<u64>,
    ) -> Duration {
        Duration::from_secs(self.number(table, key, given, default, range))
    }

    /// One word of a closed set.
    pub fn word<T: Copy>(
        &mut self,
        given: Option<At<String>>,
        default: T,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> T {
        let Some(At { value, place }) = given else {
            return default;
        };
        let found = all.iter().copied().find(|word| as_str(*word) == value);
        if found.is_none() {
            let words: Vec<String> = all
                .iter()
                .map(|word| format!("{:?}", as_str(*word)))
                .collect();
            self.refuse(
                &place,
                format!("takes {}, not {value:?}", words.join(" or ")),
            );
        }
        found.unwrap_or(default)
    }

    /// Every element of a list that is right; the others are mistakes.
    pub fn each<T>(
        &mut self,
        given: Option<Vec<At<String>>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let mut values = Vec::new();
        for At { value, place } in given.unwrap_or_default() {
            match parse(&value) {
                Ok(value) => values.push(value),
                Err(why) => self.refuse(&place, why),
            }
        }
        values
    }

    /// A path of the file: relative ones start from the file's directory.
    pub fn path(&mut self, given: At<String>) -> PathBuf {
        if given.value.is_empty() {
            self.refuse(&given.place, "is empty; leave the key out instead");
        } else if given.value.starts_with('~') || given.value.starts_with('$') {
            self.refuse(
                &given.place,
                format!(
                    "{:?}: ~ and $ stand for nothing here; write the whole path",
                    given.value
                ),
            );
        }
        self.file_dir.join(given.value)
    }

    pub fn variable(&mut self, name: &str) -> Option<At<String>> {
        let value = self.env.get(name)?;
        match value.to_str() {
            Some(text) => Some(At::named(name, text.to_owned())),
            None => {
                self.refuse(&Place::named(name), "is not valid UTF-8");
                None
            }
        }
    }

    pub fn refuse(&mut self, place: &Place, why: impl Into<String>) {
        self.errors.push(place, why);
    }
}

fn read_file(path: &Path) -> Result<String, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        open_to_read(path)?
            .take(FILE_BYTES_MAX + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error| format!("cannot be read: {error}"))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(format!("is larger than {FILE_BYTES_MAX} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| "is not valid UTF-8".to_owned())
}
