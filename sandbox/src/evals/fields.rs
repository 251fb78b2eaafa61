//! The members of a JSON body.
//!
//! Promise: what is wrong is told by the name of its field: malformed JSON 400, a missing or mistyped field
//! 422; a member that the interface does not name is ignored.

use crate::error::ServiceError;
use serde_json::{Map, Value};

pub struct Fields(Map<String, Value>);

// === impl Fields ===

impl Fields {
    pub fn read(body: &[u8]) -> Result<Self, ServiceError> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
        })?;
        match body {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ServiceError::invalid("the body must be a JSON object")),
        }
    }

    pub fn text(&self, name: &str) -> Result<String, ServiceError> {
        match self.present(name) {
            Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
            Some(_) => Err(ServiceError::invalid(format!(
                "{name} must be a non-empty string"
            ))),
            None => Err(ServiceError::invalid(format!("{name} is required"))),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>, ServiceError> {
        let texts = match self.present(name) {
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>(),
            Some(_) => None,
            None => return Err(ServiceError::invalid(format!("{name} is required"))),
        };
        texts.ok_or_else(|| ServiceError::invalid(format!("{name} must be an array of strings")))
    }

    pub fn whole(&self, name: &str) -> Result<u64, ServiceError> {
        self.whole_or_none(name)?
            .ok_or_else(|| ServiceError::invalid(format!("{name} is required")))
    }

    /// Absent and null are none.
    pub fn whole_or_none(&self, name: &str) -> Result<Option<u64>, ServiceError> {
        match self.present(name) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(n) => Ok(Some(n)),
                None => Err(ServiceError::invalid(format!(
                    "{name} must be an integer from 0"
                ))),
            },
        }
    }

    fn present(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }
}
