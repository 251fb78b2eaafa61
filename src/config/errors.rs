//! What is wrong with a configuration: all of it at once, one clear line each.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value was given: a key on a line of the file, a flag, an environment variable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Location {
    /// Line of the file, counted from 1. `None`: not in the file.
    line: Option<usize>,
    /// `[upstream] base_url`, `--upstream`, `BURSAR_UPSTREAM`, or nothing.
    name: String,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ConfigError {
    place: Location,
    /// The key that was meant, where another word stands for it.
    meant: Option<Location>,
    message: String,
}

/// Every mistake that was found. Printed one a line: `config.toml:7: [upstream] base_url: …`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigErrors {
    path: Option<PathBuf>,
    errors: Vec<ConfigError>,
}

/// A table as the file writes it. Apps are a list of tables.
pub(super) fn bracketed(table: &str) -> String {
    match table {
        "app" => "[[app]]".to_owned(),
        table => format!("[{table}]"),
    }
}

/// A value and where it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct At<T> {
    pub value: T,
    pub place: Location,
}

// === impl Location ===

impl Location {
    /// A key of the file, not yet on a line; also how a key is named in print.
    pub(super) fn key(table: &str, key: &str) -> Self {
        let name = match table {
            "" => key.to_owned(),
            table => format!("{} {key}", bracketed(table)),
        };
        Self { line: None, name }
    }

    /// A flag or an environment variable.
    pub(super) fn named(name: &str) -> Self {
        Self {
            line: None,
            name: name.to_owned(),
        }
    }

    /// A line of the file, where what is wrong has no known key.
    pub(super) fn of_line(line: usize) -> Self {
        Self {
            line: Some(line),
            name: String::new(),
        }
    }

    /// The same key on a line of the file.
    pub(super) fn on_line(&self, line: usize) -> Self {
        Self {
            line: Some(line),
            name: self.name.clone(),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

// === impl At ===

impl<T> At<T> {
    /// Given by a flag or an environment variable.
    pub fn named(name: &str, value: T) -> Self {
        Self {
            value,
            place: Location::named(name),
        }
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    pub(super) fn new(path: Option<&Path>) -> Self {
        Self {
            path: path.map(Path::to_owned),
            errors: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, place: &Location, message: impl Into<String>) {
        self.push_misspelt(place, None, message);
    }

    /// A word that is no key; perhaps `meant` was.
    pub(super) fn push_misspelt(
        &mut self,
        place: &Location,
        meant: Option<Location>,
        message: impl Into<String>,
    ) {
        self.errors.push(ConfigError {
            place: place.clone(),
            meant,
            message: message.into(),
        });
    }

    /// The file itself cannot be read.
    pub(super) fn push_unreadable(&mut self, why: &str) {
        let path = self.path.as_deref().unwrap_or(Path::new(""));
        let place = Location::named(&path.display().to_string());
        self.push(&place, why);
    }

    /// Whether a mistake was noted at this place already.
    pub(super) fn has(&self, place: &Location) -> bool {
        self.errors.iter().any(|error| error.place == *place)
    }

    /// Whether a mistake was noted at this key, on whatever line: a mistake in its value, or a word
    /// that was meant to be it. A caller that looked for it further would report the same mistake twice.
    pub(super) fn has_named(&self, key: &Location) -> bool {
        let names = |place: &Location| place.name == key.name;
        let mut said = self.errors.iter();
        said.any(|error| names(&error.place) || error.meant.as_ref().is_some_and(names))
    }

    /// A line of the file as a person finds it: `config.toml:12`.
    pub(super) fn shown(&self, place: &Location) -> String {
        let path = self.path.as_deref().unwrap_or(Path::new("")).display();
        match place.line {
            Some(line) => format!("{path}:{line}"),
            None => path.to_string(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// The mistakes, one line each: those of the file first, by line.
    pub fn lines(&self) -> Vec<String> {
        let mut errors: Vec<&ConfigError> = self.errors.iter().collect();
        errors.sort_by_key(|error| error.place.line.unwrap_or(usize::MAX));
        errors.into_iter().map(|error| self.line(error)).collect()
    }

    /// Those that stand on a line of the file, whatever flags and environment say beside it.
    pub fn lines_of_file(&self) -> Vec<String> {
        let errors = self
            .errors
            .iter()
            .filter(|error| error.place.line.is_some());
        let errors = errors.cloned().collect();
        let path = self.path.clone();
        Self { path, errors }.lines()
    }

    fn line(&self, error: &ConfigError) -> String {
        let path = self.path.as_deref().map(Path::display);
        let ConfigError { place, message, .. } = error;
        match (path, place.line, place.name.as_str()) {
            (Some(path), Some(line), "") => format!("{path}:{line}: {message}"),
            (Some(path), Some(line), name) => format!("{path}:{line}: {name}: {message}"),
            (_, _, "") => message.clone(),
            (_, _, name) => format!("{name}: {message}"),
        }
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines().join("\n"))
    }
}

impl std::error::Error for ConfigErrors {}
