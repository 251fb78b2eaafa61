//! The members of a JSON request body, read one by one.
//!
//! Assumed (status-400-or-422): malformed JSON is 400, a missing or mistyped member is 422.
//! Promise: the text of a 422 names the member and says what it must be; a null member counts as missing; an
//! unknown member is ignored.

use crate::error::ServiceError;
use serde_json::{Map, Value};
use std::{fmt::Display, ops::RangeInclusive};

pub struct Fields(Map<String, Value>);

// === impl Fields ===

impl Fields {
    pub fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        match json(body)? {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ServiceError::invalid("the body must be a JSON object")),
        }
    }

    pub fn members(&self) -> &Map<String, Value> {
        &self.0
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn required(&self, name: &str) -> Result<&Value, ServiceError> {
        self.get(name)
            .ok_or_else(|| ServiceError::invalid(format!("{name} is required")))
    }

    pub fn text(&self, name: &str) -> Result<Option<&str>, ServiceError> {
        self.get(name)
            .map(|value| value.as_str().ok_or_else(|| mistyped(name, "a string")))
            .transpose()
    }

    pub fn required_text(&self, name: &str) -> Result<&str, ServiceError> {
        self.required(name)?
            .as_str()
            .ok_or_else(|| mistyped(name, "a string"))
    }

    /// A text that must be there and say something.
    pub fn name(&self, name: &str) -> Result<String, ServiceError> {
        match self.required(name)? {
            Value::String(text) if !text.is_empty() => Ok(text.clone()),
            _ => Err(mistyped(name, "a non-empty string")),
        }
    }

    pub fn texts(&self, name: &str) -> Result<Vec<String>, ServiceError> {
        let items = self.required(name)?.as_array();
        items
            .and_then(|items| {
                items
                    .iter()
                    .map(|one| one.as_str().map(str::to_owned))
                    .collect()
            })
            .ok_or_else(|| mistyped(name, "an array of strings"))
    }

    /// A whole number without an upper bound of its own.
    pub fn count(&self, name: &str) -> Result<Option<u64>, ServiceError> {
        self.get(name)
            .map(|value| {
                value
                    .as_u64()
                    .ok_or_else(|| mistyped(name, "an integer from 0"))
            })
            .transpose()
    }

    pub fn required_count(&self, name: &str) -> Result<u64, ServiceError> {
        self.required(name)?;
        Ok(self.count(name)?.unwrap_or_default())
    }

    pub fn yes_or_no(&self, name: &str) -> Result<Option<bool>, ServiceError> {
        self.get(name)
            .map(|value| {
                value
                    .as_bool()
                    .ok_or_else(|| mistyped(name, "true or false"))
            })
            .transpose()
    }

    pub fn whole(
        &self,
        name: &str,
        range: RangeInclusive<usize>,
    ) -> Result<Option<usize>, ServiceError> {
        self.get(name)
            .map(|value| {
                value
                    .as_u64()
                    .and_then(|number| usize::try_from(number).ok())
                    .filter(|number| range.contains(number))
                    .ok_or_else(|| outside(name, &range))
            })
            .transpose()
    }
}

/// Any JSON text.
pub fn json(body: &[u8]) -> Result<Value, ServiceError> {
    serde_json::from_slice(body).map_err(|error| {
        ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
    })
}

pub fn mistyped(name: impl Display, wanted: &str) -> ServiceError {
    ServiceError::invalid(format!("{name} must be {wanted}"))
}

pub fn outside(name: impl Display, range: &RangeInclusive<usize>) -> ServiceError {
    let wanted = format!("a whole number from {} to {}", range.start(), range.end());
    mistyped(name, &wanted)
}
