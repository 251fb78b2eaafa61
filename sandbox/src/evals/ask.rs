//! A row becomes a request: the same words for every candidate.
//!
//! Interface, What the service does: "scores `auto` and optional frontier baselines on the same rows".
//! Promise: candidates are asked alike, at temperature 0; the expected output is never in the request.

use super::{
    records::{Document, EvalSet},
    rows::EvalRow,
    stored::{Evals, failed},
};
use crate::{
    catalog::Task,
    error::ServiceError,
    models::{Lane, request::ChatRequest},
    spec,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// What every row of a run is asked with.
pub struct Asker {
    prompt: String,
    blob_field: Option<String>,
    /// The form of the answer; `None` asks for plain text.
    schema: Option<Value>,
    documents: BTreeMap<usize, Vec<Document>>,
}

// === impl Asker ===

impl Asker {
    pub fn new(
        evals: &Evals,
        set: &EvalSet,
        task: &Task,
        rows: &[EvalRow],
    ) -> Result<Self, ServiceError> {
        let mut by_row: BTreeMap<usize, Vec<Document>> = BTreeMap::new();
        for document in evals.documents_of(&set.id)? {
            by_row.entry(document.place.idx).or_default().push(document);
        }
        let schema = match task.gold_schema.get("properties") {
            Some(_) => task.gold_schema.clone(),
            None => shape_of(rows),
        };
        Ok(Self {
            // One line: what follows the first line is the text to work on.
            prompt: set.prompt.split_whitespace().collect::<Vec<_>>().join(" "),
            blob_field: task.blob_field.clone(),
            schema: (!is_one_text(&schema)).then_some(schema),
            documents: by_row,
        })
    }

    /// The request of one row.
    pub async fn request(
        &self,
        evals: &Evals,
        at: usize,
        row: &EvalRow,
    ) -> Result<ChatRequest, ServiceError> {
        let mut text = self.prompt.clone();
        let input = row.input.as_ref();
        let given = self.text_of(input);
        if !given.is_empty() {
            text.push_str("\n\n");
            text.push_str(&given);
        }
        let mut attached: Vec<Value> = Vec::new();
        for document in self.documents.get(&at).into_iter().flatten() {
            let bytes = bytes_of(evals, document).await?;
            let url = format!(
                "data:{};base64,{}",
                document.place.mime,
                STANDARD.encode(&bytes)
            );
            attached.push(part(&document.place.field_name, &url));
        }
        if attached.is_empty()
            && let Some(field) = &self.blob_field
            && let Some(url) = input.and_then(|input| input.get(field)?.as_str())
        {
            attached.push(part(field, url));
        }
        let content = if attached.is_empty() {
            Value::String(text)
        } else {
            attached.insert(0, json!({"type": "text", "text": text}));
            Value::Array(attached)
        };
        let mut body = json!({
            "model": spec::MODEL,
            "temperature": 0,
            "messages": [{"role": "user", "content": content}],
        });
        if let (Some(schema), Value::Object(body)) = (&self.schema, &mut body) {
            body.insert(
                "response_format".to_owned(),
                json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema}}),
            );
        }
        ChatRequest::parse(body.to_string().as_bytes(), Lane::Inference)
    }

    /// The input as text: a single text as it is, else a line for each field.
    pub fn text_of(&self, input: Option<&Map<String, Value>>) -> String {
        let fields: Vec<(&String, &Value)> = input
            .into_iter()
            .flatten()
            .filter(|(name, _)| self.blob_field.as_ref() != Some(*name))
            .collect();
        if let [(_, Value::String(only))] = fields.as_slice() {
            return only.clone();
        }
        let lines: Vec<String> = fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                other => format!("{name}: {other}"),
            })
            .collect();
        lines.join("\n")
    }

    /// The bytes of a row's document: the attached one, else the one its input carries as a data URL.
    pub async fn recording(
        &self,
        evals: &Evals,
        at: usize,
        row: &EvalRow,
    ) -> Result<Option<Bytes>, ServiceError> {
        if let Some(document) = self.documents.get(&at).and_then(|all| all.first()) {
            return bytes_of(evals, document).await.map(Some);
        }
        let input = row.input.as_ref();
        let url = self
            .blob_field
            .as_ref()
            .and_then(|field| input?.get(field)?.as_str());
        let encoded = url.and_then(|url| url.split_once(";base64,"));
        encoded
            .map(|(_, encoded)| STANDARD.decode(encoded).map(Bytes::from))
            .transpose()
            .map_err(|_| ServiceError::invalid("the row's recording is no base64"))
    }

    pub fn prompt(&self) -> &str {
        &self.prompt
    }
}

async fn bytes_of(evals: &Evals, document: &Document) -> Result<Bytes, ServiceError> {
    let found = evals.blobs.get(&document.blob).await;
    found.map_err(failed)?.ok_or(ServiceError::Internal)
}

/// A document as a part of a message, in OpenAI's shapes.
fn part(field: &str, url: &str) -> Value {
    let mime = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split([';', ',']).next())
        .unwrap_or("");
    let encoded = url
        .split_once(";base64,")
        .map_or("", |(_, encoded)| encoded);
    match mime.split_once('/') {
        Some(("image", _)) => json!({"type": "image_url", "image_url": {"url": url}}),
        Some(("audio", format)) => {
            json!({"type": "input_audio", "input_audio": {"data": encoded, "format": format}})
        }
        _ => json!({"type": "file", "file": {"filename": field, "file_data": url}}),
    }
}

/// One field of free text: asked for as text, which is what it is.
fn is_one_text(schema: &Value) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    let mut fields = properties.values();
    match (fields.next(), fields.next()) {
        (Some(only), None) => {
            only.get("type").and_then(Value::as_str) == Some("string")
                && ["enum", "const", "pattern", "format"]
                    .iter()
                    .all(|limit| only.get(limit).is_none())
        }
        _ => false,
    }
}

/// A schema of what the rows expect, where the task has none of its own: the names and JSON types, and
/// which names every row has.
fn shape_of(rows: &[EvalRow]) -> Value {
    let mut types: BTreeMap<&String, Vec<&'static str>> = BTreeMap::new();
    let mut seen: BTreeMap<&String, usize> = BTreeMap::new();
    for (name, value) in rows.iter().flat_map(|row| &row.expected_output) {
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let kinds = types.entry(name).or_default();
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
        *seen.entry(name).or_default() += 1;
    }
    let required: Vec<&String> = seen
        .iter()
        .filter(|(_, n)| **n == rows.len())
        .map(|(name, _)| *name)
        .collect();
    let properties: Map<String, Value> = types
        .iter()
        .map(|(name, kinds)| {
            let kind = match kinds.as_slice() {
                [one] => json!(one),
                several => json!(several),
            };
            ((*name).clone(), json!({"type": kind}))
        })
        .collect();
    json!({"type": "object", "properties": properties, "required": required})
}

#[cfg(test)]
mod tests;
