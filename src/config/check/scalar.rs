//! Checks of single values. A mistake is noted and the default goes on in its stead, so that the
//! search for further mistakes can.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use super::Check;
use crate::config::errors::Place;
use crate::config::file::At;

// === impl Check ===

impl Check<'_> {
    /// A whole number within `range`.
    pub(super) fn number(
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

    pub(super) fn seconds(
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
    pub(super) fn word<T: Copy>(
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
    pub(super) fn each<T>(
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
    pub(super) fn path(&mut self, given: At<String>) -> PathBuf {
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

    pub(super) fn variable(&mut self, name: &str) -> Option<At<String>> {
        let value = self.env.get(name)?;
        match value.to_str() {
            Some(text) => Some(At::named(name, text.to_owned())),
            None => {
                self.refuse(&Place::named(name), "is not valid UTF-8");
                None
            }
        }
    }

    pub(super) fn refuse(&mut self, place: &Place, why: impl Into<String>) {
        self.errors.push(place, why);
    }
}
