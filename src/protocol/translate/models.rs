//! The list of models, and one of them, as an app asks for it: with the names of the configuration, by id, or in
//! the form of Messages.
//!
//! Promise: what is said of a model is what the service says of it; a size that it did not tell is left out.

use serde_json::{Map, Value, json};

use super::{Unrendered, messages};
use crate::protocol::Dialect;

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// One model. `None`: the list.
    pub id: Option<String>,
    /// [`Dialect::Messages`], or any other: OpenAI's form.
    pub dialect: Dialect,
    /// Names to list behind the service's own, each with the model that is sent for it.
    pub aliases: Vec<(String, String)>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoModel {
    /// The list has none of that id.
    Unknown,
    Unrendered(Unrendered),
}

// === impl Asked ===

impl Asked {
    /// The answer, made of the service's list.
    pub fn answer(&self, list: &[u8]) -> Result<Vec<u8>, NoModel> {
        let unfit = || {
            NoModel::Unrendered(Unrendered::new(
                "The service's list of models has no `data`.",
            ))
        };
        let mut list: Map<String, Value> = serde_json::from_slice(list).map_err(|_| unfit())?;
        let Some(Value::Array(models)) = list.get_mut("data") else {
            return Err(unfit());
        };
        self.add_aliases(models);
        let of_id = |id: &str| models.iter().find(|model| id_of(model) == Some(id));
        let found = match self.id.as_deref().map(of_id) {
            Some(None) => return Err(NoModel::Unknown),
            Some(Some(model)) => Some(alone(model)),
            None => None,
        };
        let list = Value::Object(list).to_string().into_bytes();
        match (self.dialect, found) {
            (Dialect::Messages, _) => {
                let id = self.id.as_deref();
                let answer = match id {
                    Some(id) => messages::models::one(&list, id),
                    None => messages::models::list(&list),
                };
                answer.ok_or_else(unfit)
            }
            (_, Some(model)) => Ok(model.to_string().into_bytes()),
            (_, None) => Ok(list),
        }
    }

    /// An alias is the model that is sent for it, under another name.
    fn add_aliases(&self, models: &mut Vec<Value>) {
        for (name, target) in &self.aliases {
            if models
                .iter()
                .any(|model| id_of(model) == Some(name.as_str()))
            {
                continue;
            }
            let target = models
                .iter()
                .find(|model| id_of(model) == Some(target.as_str()));
            let mut model = match target {
                Some(model) => model.clone(),
                None => json!({ "id": name, "object": "model" }),
            };
            if let Some(id) = model.get_mut("id") {
                *id = Value::from(name.as_str());
            }
            models.push(model);
        }
    }
}

fn id_of(model: &Value) -> Option<&str> {
    model.get("id")?.as_str()
}

/// A model outside of a list says what it is.
fn alone(model: &Value) -> Value {
    let mut model = model.clone();
    if let Some(members) = model.as_object_mut()
        && !members.contains_key("object")
    {
        members.insert("object".to_owned(), Value::from("model"));
    }
    model
}

#[cfg(test)]
mod tests;
