//! The fields of an entry's document, for people.

use jiff::tz::TimeZone;
use serde_json::Value;

use crate::calendar;
use crate::money::MicroUsd;

pub fn list<'a>(document: &'a Value, name: &str) -> &'a [Value] {
    let list = document.get(name).and_then(Value::as_array);
    list.map(Vec::as_slice).unwrap_or_default()
}

pub fn text<'a>(entry: &'a Value, name: &str) -> Option<&'a str> {
    entry.get(name).and_then(Value::as_str)
}

pub fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name).and_then(Value::as_u64)
}

pub fn amount(entry: &Value, name: &str) -> Option<String> {
    number(entry, name).map(|amount| MicroUsd::new(amount).to_string())
}

pub fn time(entry: &Value, name: &str, zone: &TimeZone) -> String {
    number(entry, name).map_or_else(|| "?".to_owned(), |at_ms| calendar::shown(at_ms, zone))
}
