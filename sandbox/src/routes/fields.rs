//! The members of a JSON request body, read one by one.
//!
//! Assumed (status-400-or-422): malformed JSON is 400, a missing or mistyped member is 422. Promise: the
//! text of a 422 names the member and says what it must be; a member that is null counts as not there.

use crate::error::ServiceError;
use serde_json::{Map, Value};
use std::{fmt::Display, ops::RangeInclusive};

pub struct Fields(Map<String, Value>);

// === impl Fields ===

impl Fields {
    pub fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
        })?;
        match body {
            Value::Object(members) => Ok(Self(members)),
            _ => Err(ServiceError::invalid("the body must be a JSON object")),
        }
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

pub fn mistyped(name: impl Display, wanted: &str) -> ServiceError {
    ServiceError::invalid(format!("{name} must be {wanted}"))
}

pub fn outside(name: impl Display, range: &RangeInclusive<usize>) -> ServiceError {
    let wanted = format!("a whole number from {} to {}", range.start(), range.end());
    mistyped(name, &wanted)
}
