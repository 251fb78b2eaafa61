//! The list of models in the dialect's form.
//!
//! Promise: a size is said where the service says it. The dialect wants a name to show and a day: the name is the id, and
//! an unknown day is the first of 1970, as the dialect has it.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;

#[derive(Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    data: Vec<Model<'a>>,
}

#[derive(Deserialize)]
struct Model<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    #[serde(borrow, default)]
    created: Option<&'a RawValue>,
    #[serde(borrow, default)]
    context_window: Option<&'a RawValue>,
}

/// The dialect's list of what the service's list says. `None`: it is no list of models.
pub fn list(service_list: &[u8]) -> Option<Vec<u8>> {
    let List { data } = serde_json::from_slice(service_list).ok()?;
    let mut out = b"{\"data\":[".to_vec();
    for (index, model) in data.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        model.push(&mut out)?;
    }
    let id = |model: Option<&Model<'_>>| {
        model.map_or("null".to_owned(), |model| model.id.get().to_owned())
    };
    let (first, last) = (id(data.first()), id(data.last()));
    json::push(&mut out, &["],\"has_more\":false,\"first_id\":", &first]);
    json::push(&mut out, &[",\"last_id\":", &last, "}"]);
    Some(out)
}

/// The one model of the service's list that has this id. `None`: there is none.
pub fn one(service_list: &[u8], id: &str) -> Option<Vec<u8>> {
    let List { data } = serde_json::from_slice(service_list).ok()?;
    let is_it = |model: &&Model<'_>| json::text(model.id).as_deref() == Some(id);
    let mut out = Vec::new();
    data.iter().find(is_it)?.push(&mut out)?;
    Some(out)
}

// === impl Model ===

impl Model<'_> {
    /// `None`: its id is no text.
    fn push(&self, out: &mut Vec<u8>) -> Option<()> {
        let id = json::inside(self.id)?;
        json::push(out, &["{\"type\":\"model\",\"id\":\"", id, "\","]);
        json::push(out, &["\"display_name\":\"", id, "\",\"created_at\":\""]);
        let created = self.created.and_then(|created| created.get().parse().ok());
        let created = created.and_then(|created| Timestamp::from_second(created).ok());
        let created = created.unwrap_or(Timestamp::UNIX_EPOCH).to_string();
        json::push(out, &[&created, "\""]);
        let window = self.context_window.map(RawValue::get);
        let window = window.filter(|window| window.parse::<u64>().is_ok());
        if let Some(window) = window {
            json::push(out, &[",\"max_input_tokens\":", window]);
        }
        out.push(b'}');
        Some(())
    }
}

#[cfg(test)]
mod tests;
