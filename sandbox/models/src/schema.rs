//! Values for a JSON Schema, and the check that they conform.
//!
//! Both models fill a schema from what their [`Reader`] finds in the prompt. The specialist reads types,
//! properties, items, enums and constants; the frontier model also reads references, combinations, formats,
//! patterns and ranges. So a demanding schema really fails the specialist's check and really escalates.
//! Promise: nothing is called conformant but by the `jsonschema` crate.

use super::{
    facts,
    form::{self, type_of},
    reader::Reader,
    rng::Rng,
    skill::Pass,
};
use serde_json::{Map, Value, json};

const DEPTH_MAX: u32 = 16;
/// Schemas visited for one value: a schema that names itself often must not branch for ever.
const STEPS_MAX: u32 = 20_000;
const ITEMS_DEFAULT: u64 = 2;
/// Entries that are made where a schema asks for more.
const ITEMS_MAX: u64 = 1_000;

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
pub fn fill(schema: &Value, reader: &Reader<'_>, rng: &mut Rng) -> Value {
    let mut filler = Filler {
        root: schema,
        reader,
        text: reader.all,
        whole: reader.skills.has(Pass::WholeSchema),
        rng,
        numbers: facts::numbers(reader.all),
        numbers_used: 0,
        steps: 0,
    };
    filler.value(schema, "", 0)
}

struct Filler<'a> {
    root: &'a Value,
    reader: &'a Reader<'a>,
    text: &'a str,
    /// All of a schema is read, not only its plain part.
    whole: bool,
    rng: &'a mut Rng,
    numbers: Vec<f64>,
    numbers_used: usize,
    steps: u32,
}

// === impl Filler ===

impl Filler<'_> {
    fn value(&mut self, schema: &Value, field: &str, depth: u32) -> Value {
        self.steps += 1;
        if depth > DEPTH_MAX || self.steps > STEPS_MAX {
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
        if is_nullable(schema)
            && let Some(found) = self.found_or_null(schema, field)
        {
            return found;
        }
        match type_of(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, field, depth),
            "integer" => self.number(schema, field, true),
            "number" => self.number(schema, field, false),
            "boolean" => Value::Bool(self.boolean(field)),
            "null" => Value::Null,
            _ => Value::String(self.string(schema, field)),
        }
    }

    /// The schema with its reference followed and its combinations folded in.
    fn resolved(&mut self, schema: &Value, depth: u32) -> Value {
        let mut merged = match schema {
            Value::Object(map) => map.clone(),
            _ => return schema.clone(),
        };
        self.steps += 1;
        if depth > DEPTH_MAX || self.steps > STEPS_MAX {
            return schema.clone();
        }
        if let Some(Value::String(reference)) = merged.remove("$ref")
            && let Some(target) = reference
                .strip_prefix('#')
                .and_then(|at| self.root.pointer(at))
                .cloned()
        {
            merge(&mut merged, &self.resolved(&target, depth + 1));
        }
        if let Some(Value::Array(all)) = merged.remove("allOf") {
            for one in &all {
                let one = self.resolved(one, depth + 1);
                merge(&mut merged, &one);
            }
        }
        for either in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = merged.remove(either)
                && let Some(branch) = branches.first()
            {
                let branch = self.resolved(branch, depth + 1);
                merge(&mut merged, &branch);
            }
        }
        Value::Object(merged)
    }

    /// What the prompt says of a field that may be null; null when it says nothing.
    fn found_or_null(&self, schema: &Value, field: &str) -> Option<Value> {
        match type_of(schema) {
            "string" => {
                let found = self.reader.string(field, schema);
                Some(found.map_or(Value::Null, Value::String))
            }
            "integer" | "number" => {
                let found = self.reader.amount(field).and_then(form::number);
                Some(found.unwrap_or(Value::Null))
            }
            _ => None,
        }
    }

    /// The choice that fits, else one that the prompt names, else any.
    fn choice(&mut self, choices: &[Value]) -> Value {
        let text = self.text.to_lowercase();
        let is_named = |one: &&Value| {
            let name = one.as_str().filter(|name| !name.is_empty());
            name.is_some_and(|name| text.contains(&name.to_lowercase()))
        };
        let chosen = self.reader.label(choices);
        let chosen = chosen.or_else(|| choices.iter().find(is_named).cloned());
        chosen
            .or_else(|| self.rng.choose(choices).cloned())
            .unwrap_or(Value::Null)
    }

    fn object(&mut self, schema: &Value, depth: u32) -> Value {
        let mut object = Map::new();
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let others = schema
            .get("additionalProperties")
            .filter(|one| one.is_object());
        if let (None, Some(others)) = (schema.get("properties"), others)
            && matches!(type_of(others), "number" | "integer")
            && let Some(grades) = self.reader.grades(others)
        {
            return Value::Object(grades);
        }
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                // Optional fields stop at a depth, so that a schema that holds itself ends.
                if required.contains(&name.as_str()) || depth < 3 {
                    object.insert(name.clone(), self.value(property, name, depth + 1));
                }
            }
        }
        for name in required {
            if !object.contains_key(name) {
                object.insert(
                    name.to_owned(),
                    Value::String(self.string(&json!({}), name)),
                );
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, field: &str, depth: u32) -> Value {
        let any = json!({"type": "string"});
        let items = schema.get("items").unwrap_or(&any);
        let at_least = bound(schema, "minItems").unwrap_or(0);
        let at_most = bound(schema, "maxItems").unwrap_or(u64::MAX);
        let stand = || {
            let stand = matches(items, self.text).into_iter().map(Value::String);
            Some(stand.collect::<Vec<_>>()).filter(|stand| !stand.is_empty())
        };
        if let Some(found) = self.reader.list(field, items).or_else(stand) {
            return self.listed(found, items, field, (at_least, at_most), depth);
        }
        let n = ITEMS_DEFAULT.max(at_least).min(at_most).min(ITEMS_MAX);
        let unique = schema.get("uniqueItems").and_then(Value::as_bool) == Some(true);
        let mut array: Vec<Value> = Vec::new();
        for at in 0..n {
            let mut value = self.value(items, field, depth + 1);
            if unique
                && array.contains(&value)
                && let Value::String(text) = &mut value
            {
                text.push_str(&format!(" {}", at + 1));
            }
            array.push(value);
        }
        Value::Array(array)
    }

    /// A list that was read; what an entry lacks is filled as if it stood alone.
    fn listed(
        &mut self,
        mut found: Vec<Value>,
        items: &Value,
        field: &str,
        (at_least, at_most): (u64, u64),
        depth: u32,
    ) -> Value {
        found.truncate(usize::try_from(at_most).unwrap_or(usize::MAX));
        let properties = items.get("properties").and_then(Value::as_object);
        for entry in &mut found {
            let (Some(properties), Value::Object(entry)) = (properties, entry) else {
                continue;
            };
            for (name, property) in properties {
                let lacks = entry.get(name).is_none_or(Value::is_null);
                if lacks && !is_nullable(property) {
                    entry.insert(name.clone(), self.value(property, name, depth + 2));
                }
            }
        }
        for _ in (found.len() as u64)..at_least.min(ITEMS_MAX) {
            let more = self.value(items, field, depth + 1);
            found.push(more);
        }
        Value::Array(found)
    }

    fn boolean(&mut self, field: &str) -> bool {
        let text = self.text.to_lowercase();
        let name = field.to_lowercase().replace('_', " ");
        !text.contains(&format!("not {name}")) && !text.contains("no ") && self.rng.below(4) > 0
    }

    fn next_number(&mut self) -> f64 {
        let number = self.numbers.get(self.numbers_used).copied();
        self.numbers_used += 1;
        number.unwrap_or_else(|| f64::from(u32::try_from(1 + self.rng.below(100)).unwrap_or(1)))
    }

    /// A number of the text, moved into the schema's bounds.
    fn number(&mut self, schema: &Value, field: &str, integer: bool) -> Value {
        let found = self.reader.amount(field);
        let mut number = found.unwrap_or_else(|| self.next_number());
        if integer {
            number = number.trunc();
        }
        if self.whole {
            let edge = |name: &str| schema.get(name).and_then(Value::as_f64);
            let inside = if integer { 1.0 } else { 0.5 };
            let least = edge("minimum").or_else(|| Some(edge("exclusiveMinimum")? + inside));
            let most = edge("maximum").or_else(|| Some(edge("exclusiveMaximum")? - inside));
            number = number
                .max(least.unwrap_or(f64::MIN))
                .min(most.unwrap_or(f64::MAX));
            if let Some(step) = edge("multipleOf").filter(|step| *step > 0.0) {
                number -= number.rem_euclid(step);
                if least.is_some_and(|least| number < least) {
                    number += step;
                }
            }
        }
        form::number(number).unwrap_or(Value::Null)
    }

    fn string(&mut self, schema: &Value, field: &str) -> String {
        let found = self.reader.string(field, schema);
        let found = found.or_else(|| form::likely(field, self.text));
        // What stands in the text in the form asked for needs no skill to be read.
        if let Some(stands) = matches(schema, self.text).into_iter().next()
            && found.as_ref().is_none_or(|text| !fits(schema, text))
        {
            return stands;
        }
        if !self.whole {
            return found.unwrap_or_else(|| self.any_word());
        }
        if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
            return found
                .filter(|text| fits(schema, text))
                .unwrap_or_else(|| super::pattern::example(pattern, self.rng));
        }
        let format = schema.get("format").and_then(Value::as_str);
        let example = match format.unwrap_or("") {
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
                return uuid::Uuid::from_u64_pair(a, b).to_string();
            }
            _ => "",
        };
        if !example.is_empty() {
            let fitting = found.filter(|text| fits(schema, text));
            return fitting.unwrap_or_else(|| example.to_owned());
        }
        let mut text = found.unwrap_or_else(|| self.any_word());
        if let Some(most) = bound(schema, "maxLength") {
            text = text
                .chars()
                .take(usize::try_from(most).unwrap_or(usize::MAX))
                .collect();
        }
        let least = bound(schema, "minLength").unwrap_or(0).min(100_000);
        while (text.chars().count() as u64) < least {
            text.push('x');
        }
        text
    }

    fn any_word(&mut self) -> String {
        let subject = super::prompt::subject_words(self.text);
        self.rng
            .choose(&subject)
            .cloned()
            .unwrap_or_else(|| "unknown".to_owned())
    }
}

fn fits(schema: &Value, text: &str) -> bool {
    conforms(schema, &json!(text)).unwrap_or(false)
}

/// The parts of a text, each whole words, that a schema's `pattern` describes.
pub fn matches(schema: &Value, text: &str) -> Vec<String> {
    let Some(pattern) = schema.get("pattern").and_then(Value::as_str) else {
        return Vec::new();
    };
    let bare = pattern.trim_start_matches('^').trim_end_matches('$');
    // One that any word fits says nothing of where it stands.
    if ["word", "Word"].iter().any(|any| fits(schema, any)) {
        return Vec::new();
    }
    let regex = regex::RegexBuilder::new(&format!(r"(?:^|[^\w-])({bare})(?:[^\w-]|$)"))
        .size_limit(1 << 20)
        .multi_line(true)
        .build();
    let Ok(regex) = regex else {
        return Vec::new();
    };
    let found = regex.captures_iter(text).filter_map(|caps| caps.get(1));
    found
        .map(|part| part.as_str().to_owned())
        .filter(|part| fits(schema, part))
        .take(64)
        .collect()
}

fn bound(schema: &Value, name: &str) -> Option<u64> {
    schema.get(name).and_then(Value::as_u64)
}

/// Whether null is a value of the schema's type.
fn is_nullable(schema: &Value) -> bool {
    schema
        .get("type")
        .and_then(Value::as_array)
        .is_some_and(|types| types.iter().any(|one| one == "null"))
}

/// Adds what `from` says to `to`; properties and required fields are united, `to` wins elsewhere.
fn merge(to: &mut Map<String, Value>, from: &Value) {
    let Some(from) = from.as_object() else { return };
    for (name, value) in from {
        match (to.get_mut(name), value) {
            (Some(Value::Object(mine)), Value::Object(theirs)) => {
                for (name, value) in theirs {
                    mine.entry(name.clone()).or_insert_with(|| value.clone());
                }
            }
            (Some(Value::Array(mine)), Value::Array(theirs)) if name == "required" => {
                mine.extend(theirs.iter().cloned());
            }
            (Some(_), _) => {}
            (None, _) => {
                to.insert(name.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests;
