//! Tool calls that come in pieces.
//!
//! Servers differ: the id and the name come once or in each piece, arguments as text or as an object, the
//! index not at all. Promise: a call is whole or absent; a call without a name is absent.

use super::super::reply;
use crate::models::ToolCall;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// More than any turn makes: beyond it a stream is a mistake of the server.
const CALLS_MAX: usize = 512;

#[derive(Debug, Default)]
pub struct Calls(BTreeMap<u64, Pieces>);

#[derive(Debug, Default)]
struct Pieces {
    id: String,
    name: String,
    arguments: String,
}

// === impl Calls ===

impl Calls {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One piece of `delta.tool_calls`; false when it cannot be one.
    pub fn add(&mut self, piece: &Value) -> bool {
        let after_the_last = || {
            self.0
                .last_key_value()
                .map_or(0, |(at, _)| at.saturating_add(1))
        };
        let at = match piece.get("index") {
            // A server without an index sends each call whole.
            None | Some(Value::Null) => after_the_last(),
            Some(index) => match index.as_u64() {
                Some(index) => index,
                None => return false,
            },
        };
        if self.0.len() >= CALLS_MAX && !self.0.contains_key(&at) {
            return false;
        }
        let call = self.0.entry(at).or_default();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
        let (id, function) = (text(piece.get("id")), piece.get("function"));
        let name = text(function.and_then(|function| function.get("name")));
        if call.id.is_empty() {
            call.id = id;
        }
        if call.name.is_empty() {
            call.name = name;
        }
        match function.and_then(|function| function.get("arguments")) {
            None | Some(Value::Null) => {}
            Some(Value::String(more)) => call.arguments.push_str(more),
            Some(object @ Value::Object(_)) => call.arguments.push_str(&object.to_string()),
            Some(_) => return false,
        }
        true
    }

    /// The calls in their order; `None` when one has no name.
    pub fn whole(self) -> Option<Vec<ToolCall>> {
        let calls = self.0.into_values().enumerate();
        let whole = calls.map(|(at, call)| {
            // A function without parameters, as some servers call it.
            let arguments = match call.arguments.is_empty() {
                true => "{}".to_owned(),
                false => call.arguments,
            };
            let function = json!({"name": call.name, "arguments": arguments});
            let call = json!({"id": call.id, "function": function});
            reply::tool_call(&call, at).filter(|call| !call.name.is_empty())
        });
        whole.collect()
    }
}

#[cfg(test)]
mod tests;
