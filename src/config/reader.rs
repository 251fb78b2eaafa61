//! Reads the configuration key by key: flags, environment, file and default in that order, each value
//! checked. Type and meaning of a key stand where it is read, default and range in its row (`rows.rs`).
//! The file is read by hand from the parsed TOML and not derived, so that one run names all mistakes,
//! each with its line and the nearest known key.
//!
//! Promise: a mistake never stops the search for further ones, and none yields a configuration: it is
//! noted, and the default goes on in its stead. An error is one line and shows no value that may be a secret.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::de::{DeTable, DeValue};

use super::env::{self, Env, Overrides};
use super::errors::{At, ConfigErrors, Location, bracketed};
use super::key::ApiKey;
use super::opened::{known_place, read_text};
use super::rows::{self, InForce, Row};
use super::written::{LineStarts, entries, integer_of, kind_of, list, quoted};
use crate::money::MicroUsd;

/// What the configuration is read for. Keys and types of the whole file are always checked; values
/// that are not needed are not.
#[derive(Clone, Debug)]
pub enum Need {
    Everything,
    /// This key is used in place of the configured one, which need not be there.
    EverythingWith(ApiKey),
    /// Ledger, addresses and apps, without the apps' tokens.
    Whereabouts,
    /// Where the organization's key is read from.
    KeyPlace,
}

/// The configuration while it is read: what was given, the table that is read now, and the mistakes so far.
pub struct Reader<'a> {
    need: &'a Need,
    overrides: &'a Overrides,
    env: &'a Env,
    /// The directory that relative paths of the file start from.
    file_dir: PathBuf,
    lines: LineStarts,
    /// By name, each entry of a table and where it begins. Only `[[app]]` may have several.
    tables: BTreeMap<&'static str, Vec<(Location, &'a DeTable<'a>)>>,
    table: (&'static str, usize),
    /// Of `table`; `None`: the file has none.
    members: Option<&'a DeTable<'a>>,
    /// Whether a mistake in the value that is read now counts.
    is_needed: bool,
    errors: ConfigErrors,
    warnings: Vec<String>,
    in_force: InForce,
}

/// What was found beside the values.
#[derive(Debug)]
pub struct Findings {
    /// The file that was read; `None` when none was named and none is at a known place.
    pub path: Option<PathBuf>,
    pub errors: ConfigErrors,
    pub warnings: Vec<String>,
    pub in_force: InForce,
}

// === impl Need ===

impl Need {
    fn is_of(&self, table: &str, key: &str) -> bool {
        match self {
            Self::Everything | Self::EverythingWith(_) => true,
            Self::Whereabouts => matches!(table, "ledger" | "listen" | "caps" | "app" | "fleet"),
            Self::KeyPlace => (table, key) == ("upstream", "api_key_file"),
        }
    }
}

// === impl Reader ===

impl<'a> Reader<'a> {
    /// What `values` reads from all that was given. A file that cannot be read or is no TOML ends the
    /// search: what would be missing then is perhaps in it.
    pub fn read<T>(
        overrides: &Overrides,
        env: &Env,
        need: &Need,
        values: impl FnOnce(&mut Reader<'_>) -> T,
    ) -> Result<(T, Findings), ConfigErrors> {
        let path = overrides
            .config
            .clone()
            .or_else(|| env.path(env::BURSAR_CONFIG))
            .or_else(|| known_place(env));
        let mut errors = ConfigErrors::new(path.as_deref());
        let text = match path.as_deref().map(read_text) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(why)) => {
                errors.push_unreadable(&why);
                return Err(errors);
            }
        };
        let lines = LineStarts::of(&text);
        let (file, syntax_errors) = DeTable::parse_recoverable(&text);
        if !syntax_errors.is_empty() {
            for error in syntax_errors {
                let line = error.span().map_or(1, |span| lines.line_of(&span));
                let message = error.message().replace('\n', "; ");
                errors.push(
                    &Location::of_line(line),
                    format!("not valid TOML: {message}"),
                );
            }
            return Err(errors);
        }
        let mut reader = Reader::new(overrides, env, need, errors, lines);
        reader.file_dir = path
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned)
            .unwrap_or_default();
        reader.divide(file.get_ref());
        let values = values(&mut reader);
        let findings = Findings {
            path,
            errors: reader.errors,
            warnings: reader.warnings,
            in_force: reader.in_force,
        };
        Ok((values, findings))
    }

    fn new(
        overrides: &'a Overrides,
        env: &'a Env,
        need: &'a Need,
        errors: ConfigErrors,
        lines: LineStarts,
    ) -> Self {
        Self {
            need,
            overrides,
            env,
            file_dir: PathBuf::new(),
            lines,
            tables: BTreeMap::new(),
            table: ("", 0),
            members: None,
            is_needed: false,
            errors,
            warnings: Vec::new(),
            in_force: InForce::default(),
        }
    }

    /// Divides the file into its tables. A key without a row is a mistake.
    fn divide(&mut self, file: &'a DeTable<'a>) {
        self.tables.insert("", vec![(Location::default(), file)]);
        for (key, value) in file {
            if let Some(table) = rows::table_named(key.get_ref()) {
                let line = self.lines.line_of(&key.span());
                let shown = bracketed(table);
                let lines = &self.lines;
                let entries = entries(&shown, value.get_ref(), line, lines, &mut self.errors);
                self.tables.insert(table, entries);
            }
        }
        for (table, entries) in &self.tables {
            for (key, value) in entries.iter().flat_map(|(_, members)| *members) {
                let name = key.get_ref();
                let is_table = table.is_empty() && rows::table_named(name).is_some();
                if rows::row(table, name).is_none() && !is_table {
                    let place = Location::of_line(self.lines.line_of(&key.span()));
                    let message = rows::refusal(table, name, value.get_ref());
                    let meant = rows::meant(table, name);
                    self.errors.push_misspelt(&place, meant, message);
                }
            }
        }
    }

    // === where values come from ===

    pub fn need(&self) -> &'a Need {
        self.need
    }

    pub fn overrides(&self) -> &'a Overrides {
        self.overrides
    }

    pub fn env(&self) -> &'a Env {
        self.env
    }

    /// Turns to a table; the keys that are read next are its.
    pub fn enter(&mut self, table: &'static str) {
        self.enter_entry(table, 0);
    }

    /// Turns to one entry of a list of tables. Returns where it begins.
    pub fn enter_entry(&mut self, table: &'static str, entry: usize) -> Location {
        let entries = self.tables.get(table);
        let found = entries.and_then(|entries| entries.get(entry));
        self.table = (table, entry);
        self.members = found.map(|(_, members)| *members);
        found.map(|(place, _)| place.clone()).unwrap_or_default()
    }

    /// How often the table stands in the file.
    pub fn count(&self, table: &str) -> usize {
        self.tables.get(table).map_or(0, Vec::len)
    }

    /// Where the file gives a key of this table.
    pub fn place(&self, key: &str) -> Option<Location> {
        let value = self.members?.get(key)?;
        let line = self.lines.line_of(&value.span());
        Some(Location::key(self.table.0, key).on_line(line))
    }

    pub fn variable(&mut self, name: &str) -> Option<At<String>> {
        let value = self.env.get(name)?;
        match value.to_str() {
            Some(text) => Some(At::named(name, text.to_owned())),
            None => {
                self.refuse(&Location::named(name), "is not valid UTF-8");
                None
            }
        }
    }

    // === mistakes ===

    /// Notes a mistake in the value that is read now.
    pub fn refuse(&mut self, place: &Location, why: impl Into<String>) {
        if self.is_needed {
            self.errors.push(place, why);
        }
    }

    /// Whether a mistake in the value that is read now counts.
    pub fn is_needed(&self) -> bool {
        self.is_needed
    }

    /// What stands there is a mistake already.
    pub fn has_refused(&self, place: &Location) -> bool {
        self.errors.has(place)
    }

    /// The same of a key of this table that was given and could not be taken.
    pub fn has_refused_key(&self, key: &str) -> bool {
        self.errors.has_named(&Location::key(self.table.0, key))
    }

    /// What is allowed and deserves a line in the log.
    pub fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(text.into());
    }

    /// A place as people read it.
    pub fn shown(&self, place: &Location) -> String {
        self.errors.shown(place)
    }

    // === keys ===

    /// Begins to read a key of this table.
    fn row(&mut self, key: &str) -> Option<&'static Row> {
        self.is_needed = self.need.is_of(self.table.0, key);
        let row = rows::row(self.table.0, key);
        if row.is_none() {
            let message = "stands on no line of the shipped config.toml";
            self.errors.push(&Location::key(self.table.0, key), message);
        }
        row
    }

    /// What the file gives for a key of this table, or its default. `None`: an example alone.
    fn given<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<At<T>> {
        let row = self.row(key)?;
        if let Some(given) = self.members.and_then(|members| members.get(key)) {
            let (value, place) = (given.get_ref(), self.place(key)?);
            match read(value) {
                Some(value) => return Some(At { value, place }),
                None => {
                    let message = format!("takes {wanted}, not {}", kind_of(value));
                    self.errors.push(&place, message);
                }
            }
        }
        let value = row.default.as_ref().and_then(read)?;
        let place = Location::key(self.table.0, key);
        Some(At { value, place })
    }

    /// Notes the value in force of a key of this table, as TOML.
    pub fn set(&mut self, key: &str, value: impl Display) {
        let (table, entry) = self.table;
        self.in_force.set(table, entry, key, value.to_string());
    }

    /// A string; its meaning is checked by the caller.
    pub fn text(&mut self, key: &str) -> Option<At<String>> {
        self.given(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A path, and where it stands.
    pub fn path(&mut self, key: &str) -> Option<At<PathBuf>> {
        let given = self.text(key)?;
        let path = self.whole_path(given);
        self.set(key, quoted(&path.value.to_string_lossy()));
        Some(path)
    }

    /// A path of the file: relative ones start from the file's directory.
    pub fn whole_path(&mut self, given: At<String>) -> At<PathBuf> {
        let At { value, place } = given;
        if value.is_empty() {
            self.refuse(&place, "is empty; leave the key out instead");
        } else if value.starts_with('~') || value.starts_with('$') {
            self.refuse(
                &place,
                format!("{value:?}: ~ and $ are not expanded here; write the whole path"),
            );
        }
        let value = self.file_dir.join(value);
        At { value, place }
    }

    pub fn flag(&mut self, key: &str) -> Option<bool> {
        let At { value, .. } = self.given(key, "true or false", DeValue::as_bool)?;
        self.set(key, value);
        Some(value)
    }

    /// A whole number in the range of its row; the default in place of one beyond it.
    pub fn number(&mut self, key: &str) -> u64 {
        let number = self.number_if_given(key);
        let default = || rows::row(self.table.0, key)?.default.as_ref();
        let number = number.or_else(|| integer_of(default()?)?.try_into().ok());
        let number = number.unwrap_or_default();
        self.set(key, number);
        number
    }

    pub fn seconds(&mut self, key: &str) -> Duration {
        Duration::from_secs(self.number(key))
    }

    /// Micro-dollars.
    pub fn amount(&mut self, key: &str) -> Option<MicroUsd> {
        self.number_if_given(key).map(MicroUsd::new)
    }

    /// A whole number in the range of its row.
    pub fn count_if_given(&mut self, key: &str) -> Option<u64> {
        self.number_if_given(key)
    }

    fn number_if_given(&mut self, key: &str) -> Option<u64> {
        let At { value, place } = self.given(key, "a whole number", integer_of)?;
        let Some(range) = rows::row(self.table.0, key).and_then(|row| row.range.clone()) else {
            let message = "the shipped config.toml has no range for it";
            self.errors.push(&place, message);
            return None;
        };
        let number = u64::try_from(value).ok().filter(|it| range.contains(it));
        match number {
            Some(number) => self.set(key, number),
            None => {
                let (least, most) = (range.start(), range.end());
                let unit = match key.ends_with("_micro_usd") {
                    true => "micro-dollars, ",
                    false => "",
                };
                self.refuse(
                    &place,
                    format!("takes {unit}{least} to {most}, not {value}"),
                );
            }
        }
        number
    }

    /// One word of a closed set. `None`: not given, or none of them.
    pub fn word<T: Copy + Display>(&mut self, key: &str, all: &[T]) -> Option<T> {
        let At { value, place } = self.text(key)?;
        let found = all.iter().find(|word| word.to_string() == value);
        match found {
            Some(_) => self.set(key, quoted(&value)),
            None => {
                let words: Vec<String> = all.iter().map(|word| quoted(&word.to_string())).collect();
                let message = format!("takes {}, not {value:?}", words.join(" or "));
                self.refuse(&place, message);
            }
        }
        found.copied()
    }

    /// A list of strings.
    pub fn strings(&mut self, key: &str) -> At<Vec<At<String>>> {
        self.elements(key, "a list of strings, such as [\"…\"]", |value| {
            value.as_str().map(str::to_owned)
        })
    }

    pub fn integers(&mut self, key: &str) -> Vec<At<i64>> {
        let wanted = "a list of whole numbers, such as [1000]";
        self.elements(key, wanted, integer_of).value
    }

    /// A list of numbers between which and decimals there is no difference, as they are written.
    pub fn decimals(&mut self, key: &str) -> Vec<At<String>> {
        let wanted = "a list of numbers, such as [0.5, 0.8]";
        let written = |value: &DeValue<'_>| match value {
            DeValue::Float(float) => Some(float.as_str().to_owned()),
            value => integer_of(value).map(|integer| integer.to_string()),
        };
        self.elements(key, wanted, written).value
    }

    fn elements<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl Fn(&DeValue<'_>) -> Option<T>,
    ) -> At<Vec<At<T>>> {
        let mut elements = Vec::new();
        let given = self.given(key, wanted, DeValue::as_array);
        for element in given.iter().flat_map(|given| given.value) {
            let line = self.lines.line_of(&element.span());
            let place = Location::key(self.table.0, key).on_line(line);
            match read(element.get_ref()) {
                Some(value) => elements.push(At { value, place }),
                None => {
                    let given = kind_of(element.get_ref());
                    let message = format!("takes {wanted}; this element is {given}");
                    self.errors.push(&place, message);
                }
            }
        }
        At {
            value: elements,
            place: given.map(|given| given.place).unwrap_or_default(),
        }
    }

    /// Every element of a list that is right; the others are mistakes.
    pub fn each<T: Display>(
        &mut self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Vec<T> {
        let mut values = Vec::new();
        for At { value, place } in self.strings(key).value {
            match parse(&value) {
                Ok(value) => values.push(value),
                Err(why) => self.refuse(&place, why),
            }
        }
        let shown = values.iter().map(|value| quoted(&value.to_string()));
        self.set(key, list(shown));
        values
    }

    /// A table of strings, in the order of its names.
    pub fn string_map(&mut self, key: &str) -> Vec<(String, At<String>)> {
        let wanted = "a table of strings, such as { \"…\" = \"…\" }";
        let mut pairs = Vec::new();
        let given = self.given(key, wanted, DeValue::as_table);
        for (name, element) in given.iter().flat_map(|given| given.value) {
            let line = self.lines.line_of(&name.span());
            let place = Location::key(self.table.0, key).on_line(line);
            let name = name.get_ref();
            match element.get_ref().as_str() {
                Some(text) => {
                    let value = text.to_owned();
                    pairs.push((name.to_string(), At { value, place }));
                }
                None => {
                    let given = kind_of(element.get_ref());
                    let message = format!("takes {wanted}; the value of {name:?} is {given}");
                    self.errors.push(&place, message);
                }
            }
        }
        pairs
    }
}
