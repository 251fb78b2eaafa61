//! Values for a JSON Schema, and the check that they conform.
//!
//! Both models fill a schema from what their [`PromptReader`] finds in the prompt. The specialist reads types,
//! properties, items, enums and constants; the frontier model also reads references, combinations, formats,
//! patterns and ranges. So a demanding schema really fails the specialist's check and really escalates.
//! Promise: nothing is called conformant but by the `jsonschema` crate.

use super::{
    facts,
    form::{self, type_of},
    pattern,
    reader::PromptReader,
    rng::Rng,
    skill::Skill,
    text,
};
use serde_json::{Map, Value, json};

const DEPTH_MAX: u32 = 16;
/// Schemas visited for one value: a schema that names itself often must not branch for ever.
const STEPS_MAX: u32 = 20_000;
const ITEMS_DEFAULT: usize = 2;
/// Entries that are made where a schema asks for more.
const ITEMS_MAX: usize = 1_000;
/// Characters of a string that is made where a schema asks for more.
const LENGTH_MAX: usize = 100_000;

/// Whether the value conforms; `Err` when the schema itself is none.
pub fn conforms(schema: &Value, value: &Value) -> Result<bool, InvalidSchema> {
    let validator = jsonschema::options()
        .should_validate_formats(true)
        .build(schema)
        .map_err(|_| InvalidSchema)?;
    Ok(validator.is_valid(value))
}

/// Whether the schema can be used at all.
pub fn usable(schema: &Value) -> bool {
    jsonschema::options().build(schema).is_ok()
}

#[derive(Debug)]
pub struct InvalidSchema;

/// A value made for the schema from what the reader finds in its prompt.
pub fn fill(schema: &Value, reader: &PromptReader<'_>, rng: &mut Rng) -> Value {
    let mut filler = Filler {
        root: schema,
        reader,
        whole: reader.skills.has(Skill::WholeSchema),
        rng,
        numbers: facts::numbers(reader.all).into_iter(),
        steps: 0,
    };
    filler.value(schema, "", 0)
}

struct Filler<'a> {
    root: &'a Value,
    reader: &'a PromptReader<'a>,
    /// All of a schema is read, not only its plain part.
    whole: bool,
    rng: &'a mut Rng,
    /// Those of the prompt that stand in no field yet.
    numbers: std::vec::IntoIter<f64>,
    steps: u32,
}

// === impl Filler ===

impl Filler<'_> {
    fn value(&mut self, schema: &Value, field: &str, depth: u32) -> Value {
        if self.is_too_deep(depth) {
            return Value::Null;
        }
        let merged;
        let schema = if self.whole {
            merged = self.resolved(schema, depth);
            &merged
        } else {
            schema
        };
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(choices) = schema.get("enum").and_then(Value::as_array) {
            return self.choice(choices);
        }
        let kind = type_of(schema);
        // A field that may be null is null where the prompt says nothing of it.
        if is_nullable(schema) && kind == "string" {
            return self
                .reader
                .string(field, schema)
                .map_or(Value::Null, Value::String);
        }
        if is_nullable(schema) && matches!(kind, "integer" | "number") {
            let found = self.reader.amount(field).and_then(form::number);
            return found.unwrap_or(Value::Null);
        }
        match kind {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, field, depth),
            "integer" => self.number(schema, field, true),
            "number" => self.number(schema, field, false),
            "boolean" => Value::Bool(self.boolean(field)),
            "null" => Value::Null,
            _ => Value::String(self.string(schema, field)),
        }
    }

    /// Counts a visit of a schema.
    fn is_too_deep(&mut self, depth: u32) -> bool {
        self.steps += 1;
        depth > DEPTH_MAX || self.steps > STEPS_MAX
    }

    /// The schema with its reference followed and its combinations folded in.
    fn resolved(&mut self, schema: &Value, depth: u32) -> Value {
        let Value::Object(mut merged) = schema.clone() else {
            return schema.clone();
        };
        if self.is_too_deep(depth) {
            return schema.clone();
        }
        let reference = merged.remove("$ref");
        let target = reference.and_then(|to| self.root.pointer(to.as_str()?.strip_prefix('#')?));
        let mut parts: Vec<Value> = target.into_iter().cloned().collect();
        for (combined, most) in [("allOf", usize::MAX), ("anyOf", 1), ("oneOf", 1)] {
            if let Some(Value::Array(branches)) = merged.remove(combined) {
                parts.extend(branches.into_iter().take(most));
            }
        }
        for part in parts {
            merge(&mut merged, self.resolved(&part, depth + 1));
        }
        Value::Object(merged)
    }

    /// The choice that fits, else one that the prompt names, else any.
    fn choice(&mut self, choices: &[Value]) -> Value {
        let text = self.reader.all.to_lowercase();
        let is_named = |one: &&Value| {
            one.as_str()
                .is_some_and(|name| text.contains(&name.to_lowercase()))
        };
        let chosen = self.reader.label(choices);
        let chosen = chosen.or_else(|| choices.iter().find(is_named).cloned());
        let chosen = chosen.or_else(|| self.rng.choose(choices).cloned());
        chosen.unwrap_or(Value::Null)
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let others = schema
            .get("additionalProperties")
            .filter(|one| one.is_object());
        if let (None, Some(others)) = (properties, others)
            && matches!(type_of(others), "number" | "integer")
            && let Some(grades) = self.reader.grades(others)
        {
            return Value::Object(grades);
        }
        let required = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let required: Vec<&str> = required.filter_map(Value::as_str).collect();
        let mut object = Map::new();
        for (name, property) in properties.into_iter().flatten() {
            // Optional fields stop at a depth, so that a schema that holds itself ends.
            if required.contains(&name.as_str()) || depth < 3 {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(name.to_owned(), json!(self.string(&json!({}), name)));
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, field: &str, depth: u32) -> Value {
        let any = json!({"type": "string"});
        let items = schema.get("items").unwrap_or(&any);
        let least = bound(schema, "minItems").unwrap_or(0).min(ITEMS_MAX);
        let most = bound(schema, "maxItems").unwrap_or(ITEMS_MAX);
        let stand = || {
            let stand = matches(items, self.reader.all)
                .into_iter()
                .map(Value::String);
            Some(stand.collect::<Vec<_>>()).filter(|stand| !stand.is_empty())
        };
        let found = self.reader.list(field, items).or_else(stand);
        let wanted = if found.is_some() {
            least
        } else {
            ITEMS_DEFAULT.max(least).min(most)
        };
        let mut array = found.unwrap_or_default();
        array.truncate(most);
        for entry in array.iter_mut().filter_map(Value::as_object_mut) {
            self.complete(entry, items, depth + 2);
        }
        let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
        for at in array.len()..wanted {
            let mut value = self.value(items, field, depth + 1);
            if let Value::String(text) = &mut value
                && is_set
                && array.iter().any(|one| one.as_str() == Some(text.as_str()))
            {
                text.push_str(&format!(" {}", at + 1));
            }
            array.push(value);
        }
        Value::Array(array)
    }

    /// What an entry of a list lacks is filled as if it stood alone.
    fn complete(&mut self, entry: &mut Map<String, Value>, schema: &Value, depth: u32) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let lacks = entry.get(name).is_none_or(Value::is_null);
            if lacks && !is_nullable(property) {
                entry.insert(name.clone(), self.value(property, name, depth));
            }
        }
    }

    fn boolean(&mut self, field: &str) -> bool {
        let text = self.reader.all.to_lowercase();
        let name = field.to_lowercase().replace('_', " ");
        !text.contains(&format!("not {name}")) && !text.contains("no ") && self.rng.below(4) > 0
    }

    /// A number of the text, moved into the schema's bounds.
    fn number(&mut self, schema: &Value, field: &str, integer: bool) -> Value {
        let found = self.reader.amount(field).or_else(|| self.numbers.next());
        let any = || f64::from(u32::try_from(1 + self.rng.below(100)).unwrap_or(1));
        let mut number = found.unwrap_or_else(any);
        if integer {
            number = number.trunc();
        }
        if self.whole {
            let edge = |name: &str| schema.get(name).and_then(Value::as_f64);
            let inside = if integer { 1.0 } else { 0.5 };
            let least = edge("minimum").or_else(|| Some(edge("exclusiveMinimum")? + inside));
            let most = edge("maximum").or_else(|| Some(edge("exclusiveMaximum")? - inside));
            let least = least.unwrap_or(f64::MIN);
            number = number.max(least).min(most.unwrap_or(f64::MAX));
            if let Some(step) = edge("multipleOf").filter(|step| *step > 0.0) {
                number -= number.rem_euclid(step);
                number += if number < least { step } else { 0.0 };
            }
        }
        form::number(number).unwrap_or(Value::Null)
    }

    fn string(&mut self, schema: &Value, field: &str) -> String {
        let text = self.reader.all;
        let found = self.reader.string(field, schema);
        let found = found.or_else(|| form::likely(field, text));
        let fitting = found.clone().filter(|text| fits(schema, text));
        // What stands in the text in the form asked for needs no skill to be read.
        let stands = || matches(schema, text).into_iter().next();
        if let Some(fitting) = fitting.or_else(stands) {
            return fitting;
        }
        if self.whole
            && let Some(made) = self.example(schema)
        {
            return made;
        }
        let mut text = found.unwrap_or_else(|| self.any_word());
        if self.whole {
            let most = bound(schema, "maxLength").unwrap_or(usize::MAX);
            let least = bound(schema, "minLength").unwrap_or(0).min(LENGTH_MAX);
            let more = least.saturating_sub(text.chars().count());
            text = text
                .chars()
                .chain(std::iter::repeat_n('x', more))
                .take(most)
                .collect();
        }
        text
    }

    /// A string of the pattern or the format that a schema asks for.
    fn example(&mut self, schema: &Value) -> Option<String> {
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            return Some(pattern::example(pattern, self.rng));
        }
        let example = match schema.get("format").and_then(Value::as_str)? {
            "date" => "2026-01-15",
            "date-time" => "2026-01-15T09:30:00Z",
            "time" => "09:30:00Z",
            "email" => "someone@example.org",
            "uri" | "url" | "iri" => "https://example.org/",
            "ipv4" => "192.0.2.7",
            "ipv6" => "2001:db8::7",
            "hostname" => "example.org",
            "uuid" => {
                let (a, b) = (self.rng.number(), self.rng.number());
                return Some(uuid::Uuid::from_u64_pair(a, b).to_string());
            }
            _ => return None,
        };
        Some(example.to_owned())
    }

    fn any_word(&mut self) -> String {
        let subject = text::subject_words(self.reader.all);
        let word = self.rng.choose(&subject).cloned();
        word.unwrap_or_else(|| "unknown".to_owned())
    }
}

fn fits(schema: &Value, text: &str) -> bool {
    let limits = ["pattern", "format", "minLength", "maxLength"];
    if limits.iter().all(|limit| schema.get(limit).is_none()) {
        return true;
    }
    conforms(schema, &json!(text)).unwrap_or(false)
}

/// The parts of a text, each whole words, that a schema's `pattern` describes.
pub fn matches(schema: &Value, text: &str) -> Vec<String> {
    let pattern = schema.get("pattern").and_then(Value::as_str);
    // One that any word fits says nothing of where it stands.
    let says_nothing = || ["word", "Word"].iter().any(|any| fits(schema, any));
    let Some(pattern) = pattern.filter(|_| !says_nothing()) else {
        return Vec::new();
    };
    let bare = pattern.trim_start_matches('^').trim_end_matches('$');
    let regex = regex::RegexBuilder::new(&format!(r"(?:^|[^\w-])({bare})(?:[^\w-]|$)"))
        .size_limit(1 << 20)
        .multi_line(true)
        .build();
    let Ok(regex) = regex else {
        return Vec::new();
    };
    let found = regex
        .captures_iter(text)
        .map(|caps| text::group(&caps, 1).to_owned());
    found.filter(|part| fits(schema, part)).take(64).collect()
}

fn bound(schema: &Value, name: &str) -> Option<usize> {
    usize::try_from(schema.get(name)?.as_u64()?).ok()
}

/// Whether null is a value of the schema's type.
fn is_nullable(schema: &Value) -> bool {
    let types = schema.get("type").and_then(Value::as_array);
    types.is_some_and(|types| types.iter().any(|one| one == "null"))
}

/// Adds what `from` says to `to`; properties and required fields are united, `to` wins elsewhere.
fn merge(to: &mut Map<String, Value>, from: Value) {
    let Value::Object(from) = from else { return };
    for (name, value) in from {
        match (to.get_mut(&name), value) {
            (Some(Value::Object(mine)), Value::Object(theirs)) => {
                for (name, value) in theirs {
                    mine.entry(name).or_insert(value);
                }
            }
            (Some(Value::Array(mine)), Value::Array(theirs)) if name == "required" => {
                mine.extend(theirs)
            }
            (Some(_), _) => {}
            (None, value) => {
                to.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests;
