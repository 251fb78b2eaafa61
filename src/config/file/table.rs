//! One table of the file while it is read: what is taken is known, what is left is not.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::known::{meant, refusal};
use crate::config::errors::{At, ConfigErrors, Place};

/// A table's members that nobody has taken yet.
pub(super) struct Table<'a> {
    name: &'static str,
    members: BTreeMap<String, Member<'a>>,
    lines: &'a Lines,
    errors: &'a mut ConfigErrors,
}

struct Member<'a> {
    line: usize,
    value: &'a DeValue<'a>,
    value_line: usize,
}

/// Finds the line of a byte offset.
pub(super) struct Lines {
    starts: Vec<usize>,
}

// === impl Table ===

impl<'a> Table<'a> {
    pub(super) fn new(
        name: &'static str,
        table: &'a DeTable<'a>,
        lines: &'a Lines,
        errors: &'a mut ConfigErrors,
    ) -> Self {
        let members = table
            .iter()
            .map(|(key, value)| {
                let member = Member {
                    line: lines.line_of(&key.span()),
                    value: value.get_ref(),
                    value_line: lines.line_of(&value.span()),
                };
                (key.get_ref().to_string(), member)
            })
            .collect();
        Self {
            name,
            members,
            lines,
            errors,
        }
    }

    pub(super) fn string(&mut self, key: &str) -> Option<At<String>> {
        self.take(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    pub(super) fn boolean(&mut self, key: &str) -> Option<At<bool>> {
        self.take(key, "true or false", DeValue::as_bool)
    }

    pub(super) fn integer(&mut self, key: &str) -> Option<At<i64>> {
        self.take(key, "a whole number", integer_of)
    }

    pub(super) fn integers(&mut self, key: &str) -> Option<Vec<At<i64>>> {
        const WANTED: &str = "a list of whole numbers, such as [1000]";
        let At { value, place } = self.take(key, WANTED, |value| value.as_array())?;
        let mut integers = Vec::new();
        for element in value {
            let place = place.on_line(self.lines.line_of(&element.span()));
            match integer_of(element.get_ref()) {
                Some(value) => integers.push(At { value, place }),
                None => {
                    let given = kind_of(element.get_ref());
                    let message = format!("takes {WANTED}; this element is {given}");
                    self.errors.push(&place, message);
                }
            }
        }
        Some(integers)
    }

    pub(super) fn strings(&mut self, key: &str) -> Option<At<Vec<At<String>>>> {
        const WANTED: &str = "a list of strings, such as [\"…\"]";
        let At { value, place } = self.take(key, WANTED, |value| value.as_array())?;
        let mut strings = Vec::new();
        for element in value {
            let place = place.on_line(self.lines.line_of(&element.span()));
            match element.get_ref().as_str() {
                Some(text) => strings.push(At {
                    value: text.to_owned(),
                    place,
                }),
                None => {
                    let given = kind_of(element.get_ref());
                    let message = format!("takes {WANTED}; this element is {given}");
                    self.errors.push(&place, message);
                }
            }
        }
        Some(At {
            value: strings,
            place,
        })
    }

    pub(super) fn string_map(&mut self, key: &str) -> Vec<(String, At<String>)> {
        const WANTED: &str = "a table of strings, such as { \"…\" = \"…\" }";
        let Some(At { value, place }) = self.take(key, WANTED, |value| value.as_table()) else {
            return Vec::new();
        };
        let mut pairs = Vec::new();
        for (name, element) in value {
            let place = place.on_line(self.lines.line_of(&name.span()));
            match element.get_ref().as_str() {
                Some(text) => pairs.push((
                    name.get_ref().to_string(),
                    At {
                        value: text.to_owned(),
                        place,
                    },
                )),
                None => {
                    let (name, given) = (name.get_ref(), kind_of(element.get_ref()));
                    let message = format!("takes {WANTED}; the value of {name:?} is {given}");
                    self.errors.push(&place, message);
                }
            }
        }
        pairs
    }

    /// Reads the table `name` with `read`, then refuses what `read` did not take.
    pub(super) fn table(&mut self, name: &'static str, read: impl FnOnce(&mut Table<'_>)) {
        let Some(member) = self.members.remove(name) else {
            return;
        };
        let DeValue::Table(members) = member.value else {
            let given = kind_of(member.value);
            let message = format!("[{name}] is a table; here it is {given}");
            self.errors.push(&Place::of_line(member.line), message);
            return;
        };
        let mut table = Table::new(name, members, self.lines, self.errors);
        read(&mut table);
        table.refuse_the_rest();
    }

    /// Reads each table of the list `[[name]]` with `read`, then refuses what `read` did not take.
    pub(super) fn tables(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(&mut Table<'_>, Place),
    ) {
        let Some(member) = self.members.remove(name) else {
            return;
        };
        let Some(list) = member.value.as_array() else {
            let given = kind_of(member.value);
            let message = format!("[[{name}]] is a list of tables; here it is {given}");
            self.errors.push(&Place::of_line(member.line), message);
            return;
        };
        for element in list {
            let line = self.lines.line_of(&element.span());
            let DeValue::Table(members) = element.get_ref() else {
                let given = kind_of(element.get_ref());
                let message = format!("[[{name}]] is a list of tables; this element is {given}");
                self.errors.push(&Place::of_line(line), message);
                continue;
            };
            let mut table = Table::new(name, members, self.lines, self.errors);
            read(&mut table, Place::of_line(line));
            table.refuse_the_rest();
        }
    }

    fn take<T>(
        &mut self,
        key: &str,
        wanted: &str,
        read: impl FnOnce(&'a DeValue<'a>) -> Option<T>,
    ) -> Option<At<T>> {
        let member = self.members.remove(key)?;
        let place = Place::key(self.name, key).on_line(member.value_line);
        let value = read(member.value);
        if value.is_none() {
            let given = kind_of(member.value);
            self.errors
                .push(&place, format!("takes {wanted}, not {given}"));
        }
        Some(At {
            value: value?,
            place,
        })
    }

    pub(super) fn refuse_the_rest(&mut self) {
        for (key, member) in std::mem::take(&mut self.members) {
            let place = Place::of_line(member.line);
            let message = refusal(self.name, &key, member.value);
            let meant = meant(self.name, &key);
            self.errors.push_misspelt(&place, meant, message);
        }
    }
}

// === impl Lines ===

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let after_breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at + 1);
        Self {
            starts: std::iter::once(0).chain(after_breaks).collect(),
        }
    }

    /// The line, counted from 1.
    pub(super) fn line_of(&self, span: &Range<usize>) -> usize {
        self.starts.partition_point(|start| *start <= span.start)
    }
}

/// A whole number. One that does not fit is out of every range, and is refused as that.
fn integer_of(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    let beyond = if integer.as_str().starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(i64::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(beyond))
}

/// The type of a value, in words. Never the value: it may be the key.
fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
