//! `POST /v1/embeddings`: the route exists in the interface; its shapes are not shown.
//!
//! Assumed (embeddings): OpenAI's shapes, any model name, and the limits below; `X-Service-Billed` on the
//! answer.
//! Promise: equal inputs give equal vectors, of length one, in the order of the inputs.

use super::keyed::Job;
use crate::{
    error::{RouteResult, ServiceError},
    fields::{Fields, mistyped},
    inbound::Inbound,
    models::tokens,
    money::Price,
    purchase::{Keeps, Rules, purchase},
    state::State,
};
use axum::{Extension, extract::State as Shared};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bursar_models::embedding;
use serde_json::{Value, json};
use std::sync::Arc;

const PRICE: Price = Price {
    prompt_per_million: 20_000,
    completion_per_million: 0,
};
const DIMENSIONS_DEFAULT: usize = 256;
const DIMENSIONS_MAX: usize = 4_096;
const INPUTS_MAX: usize = 2_048;
const TOKENS_PER_INPUT_MAX: u64 = 8_192;
const TOKENS_MAX: u64 = 300_000;

struct EmbeddingsRequest {
    model: String,
    inputs: Vec<Input>,
    tokens: u64,
    dimensions: usize,
    as_base64: bool,
}

enum Input {
    Text(String),
    Tokens(Vec<u64>),
}

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let form = async {
        let wanted = EmbeddingsRequest::parse(&inbound.body)?;
        let job = Job {
            price: PRICE.cost(wanted.tokens, 0).ok_or(ServiceError::Internal)?,
            keeps: Keeps::Nothing,
            assumed: "embeddings",
            work: move || Ok(wanted.answer()),
        };
        Ok(job.order(inbound.fingerprint()))
    };
    purchase(&state, inbound.clone(), Rules::Inference, form).await
}

// === impl EmbeddingsRequest ===

impl EmbeddingsRequest {
    fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        let fields = Fields::parse(body)?;
        let model = fields.required_text("model")?.to_owned();
        let inputs = inputs(fields.required("input")?)?;
        let mut tokens = 0_u64;
        for (at, input) in inputs.iter().enumerate() {
            let here = input.tokens();
            if here == 0 || input.is_blank() {
                return Err(ServiceError::invalid(format!("input {at} is empty")));
            }
            if here > TOKENS_PER_INPUT_MAX {
                return Err(ServiceError::invalid(format!(
                    "input {at} is over {TOKENS_PER_INPUT_MAX} tokens"
                )));
            }
            tokens = tokens.saturating_add(here);
        }
        if tokens > TOKENS_MAX {
            return Err(ServiceError::invalid(format!(
                "input is over {TOKENS_MAX} tokens in all"
            )));
        }
        let dimensions = fields
            .whole("dimensions", 1..=DIMENSIONS_MAX)?
            .unwrap_or(DIMENSIONS_DEFAULT);
        let as_base64 = match fields.text("encoding_format")? {
            Some("base64") => true,
            Some("float") | None => false,
            Some(_) => return Err(mistyped("encoding_format", "float or base64")),
        };
        fields.text("user")?;
        Ok(Self {
            model,
            inputs,
            tokens,
            dimensions,
            as_base64,
        })
    }

    fn answer(&self) -> Value {
        let entries: Vec<Value> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(index, input)| {
                let vector = match input {
                    Input::Text(text) => embedding::of_text(text, self.dimensions),
                    Input::Tokens(tokens) => embedding::of_tokens(tokens, self.dimensions),
                };
                json!({"object": "embedding", "index": index, "embedding": self.show(&vector)})
            })
            .collect();
        json!({
            "object": "list",
            "data": entries,
            "model": self.model,
            "usage": {"prompt_tokens": self.tokens, "total_tokens": self.tokens},
        })
    }

    fn show(&self, vector: &[f32]) -> Value {
        if self.as_base64 {
            let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
            Value::String(STANDARD.encode(bytes))
        } else {
            json!(vector)
        }
    }
}

// === impl Input ===

impl Input {
    fn tokens(&self) -> u64 {
        match self {
            Self::Text(text) => tokens::count(text),
            Self::Tokens(tokens) => tokens.len() as u64,
        }
    }

    fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.trim().is_empty())
    }
}

/// One text, several texts, the tokens of one input, or of several.
fn inputs(value: &Value) -> Result<Vec<Input>, ServiceError> {
    let items = match value {
        Value::String(text) => return Ok(vec![Input::Text(text.clone())]),
        Value::Array(items) if !items.is_empty() => items,
        Value::Array(_) => return Err(ServiceError::invalid("input is empty")),
        _ => return Err(not_an_input()),
    };
    if items.iter().all(Value::is_u64) {
        return Ok(vec![Input::Tokens(numbers(items)?)]);
    }
    if items.len() > INPUTS_MAX {
        return Err(ServiceError::invalid(format!(
            "input has over {INPUTS_MAX} entries"
        )));
    }
    let texts = items.iter().all(Value::is_string);
    items
        .iter()
        .map(|item| match item {
            Value::String(text) if texts => Ok(Input::Text(text.clone())),
            Value::Array(tokens) if !texts => numbers(tokens).map(Input::Tokens),
            _ => Err(not_an_input()),
        })
        .collect()
}

fn numbers(items: &[Value]) -> Result<Vec<u64>, ServiceError> {
    items
        .iter()
        .map(|item| item.as_u64().ok_or_else(not_an_input))
        .collect()
}

fn not_an_input() -> ServiceError {
    mistyped(
        "input",
        "a text, an array of texts, an array of token numbers, or an array of such arrays",
    )
}

#[cfg(test)]
mod tests;
