//! What the service says of a request that it refuses: `{"detail": "…"}`, or `{"detail": [{"loc": […], "type": "…",
//! "msg": "…"}]}` where a request has not the form that is asked for.
//!
//! Promise: of a list only `loc`, `type` and `msg` are read, never `input` or `ctx`, which repeat the request; as many
//! elements of a list are kept as are shown, however many came.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::field;

/// Most elements of a list: findings, and steps to the place of one.
const ELEMENTS_MAX: usize = 16;

/// The first elements of a list.
struct Elements<'a>(Vec<&'a RawValue>);

struct ElementsVisitor;

/// One thing that is wrong with a request.
#[derive(Default)]
struct Finding {
    /// `body.messages.0`
    place: String,
    kind: String,
    message: String,
}

/// The words of a refusal. `None`: the body has none, or is no JSON object.
pub fn detail(body: &[u8]) -> Option<String> {
    let detail = field::read_object::<Option<&RawValue>>(body, &["detail"], |found, _, value| {
        *found = Some(value);
    })??;
    let words = match field::text(detail) {
        Some(words) => words,
        None => {
            let findings: Vec<String> = elements(detail).map(finding).collect();
            findings.join("; ")
        }
    };
    (!words.trim().is_empty()).then_some(words)
}

/// Of what is no list, none.
fn elements(list: &RawValue) -> impl Iterator<Item = &RawValue> {
    let list: Option<Elements<'_>> = serde_json::from_str(list.get()).ok();
    list.into_iter().flat_map(|elements| elements.0)
}

/// `body.messages: Field required (missing)`.
fn finding(element: &RawValue) -> String {
    let wanted = ["loc", "type", "msg"];
    let found =
        field::read_object::<Finding>(element.get().as_bytes(), &wanted, |found, key, value| {
            match key {
                "loc" => found.place = place(value),
                "type" => found.kind = field::text(value).unwrap_or_default(),
                _ => found.message = field::text(value).unwrap_or_default(),
            }
        });
    let Finding {
        place,
        kind,
        message,
    } = found.unwrap_or_default();
    let kind = match kind.as_str() {
        "" => kind,
        kind => format!("({kind})"),
    };
    let parts = [place, message, kind].into_iter();
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

/// Steps are names and numbers.
fn place(loc: &RawValue) -> String {
    let step = |step: &RawValue| match field::text(step) {
        Some(name) => name,
        None => step
            .get()
            .parse::<i64>()
            .map_or_else(|_| String::new(), |number| number.to_string()),
    };
    let steps: Vec<String> = elements(loc).map(step).collect();
    steps.join(".")
}

// === impl Elements ===

impl<'de: 'a, 'a> Deserialize<'de> for Elements<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(ElementsVisitor).map(Elements)
    }
}

impl<'de> Visitor<'de> for ElementsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < ELEMENTS_MAX {
            match list.next_element()? {
                Some(element) => kept.push(element),
                None => return Ok(kept),
            }
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(kept)
    }
}

#[cfg(test)]
mod tests;
