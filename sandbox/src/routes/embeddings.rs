//! `POST /v1/embeddings`: the route exists in the interface; its shapes are not shown.
//!
//! Assumed (embeddings): OpenAI's shapes; any model name; `X-Service-Billed` on the answer.
//! The vectors are real in a small way: words are hashed into dimensions, so texts that share words lie
//! closer. Promise: equal texts give equal vectors, of length one.

use crate::{
    billing,
    error::{ServiceError, mark_assumed},
    front::Inbound,
    idempotency::{Begin, WhileRunning},
    models::tokens,
    money::Price,
    receipt, spec,
    state::State,
};
use axum::{
    Extension, Json,
    extract::State as Shared,
    response::{IntoResponse, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

const PRICE: Price = Price {
    prompt_per_million: 20_000,
    completion_per_million: 0,
};
const DIMENSIONS_DEFAULT: usize = 256;
const DIMENSIONS_MAX: usize = 4_096;
const INPUTS_MAX: usize = 2_048;

struct Wanted {
    model: String,
    texts: Vec<String>,
    dimensions: usize,
    as_base64: bool,
}

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> Result<Response, ServiceError> {
    let _slot = state.limits.admit()?;
    let wanted = Wanted::parse(&inbound.body)?;
    let fingerprint = inbound.fingerprint();
    let begin = state
        .keys
        .begin(inbound.key.clone(), fingerprint.clone(), WhileRunning::Wait)
        .await?;
    let run = match begin {
        Begin::Replay(stored) => return Ok(stored.to_replay()),
        Begin::Run(run) => run,
    };
    billing::check_balance(&state, &inbound, &run)?;
    let prompt_tokens: u64 = wanted.texts.iter().map(|text| tokens::count(text)).sum();
    let price = PRICE.cost(prompt_tokens, 0).ok_or(ServiceError::Internal)?;
    let data: Vec<Value> = wanted
        .texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let vector = embed(text, wanted.dimensions);
            json!({"object": "embedding", "index": index, "embedding": wanted.show(&vector)})
        })
        .collect();
    inbound.fault.work(&state.clock, &state.holds).await;
    let charged = billing::charge(&state, &inbound, &run, &fingerprint, price, false)?;
    // Interface: /v1/embeddings responses are not stored.
    run.bind();
    let mut response = Json(json!({
        "object": "list",
        "data": data,
        "model": wanted.model,
        "usage": {"prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens},
    }))
    .into_response();
    receipt::set(
        response.headers_mut(),
        spec::BILLED,
        &charged.shown.to_string(),
    );
    mark_assumed(&mut response, "embeddings");
    if charged.free_repeat {
        mark_assumed(&mut response, "repeat-billed");
    }
    Ok(response)
}

// === impl Wanted ===

impl Wanted {
    fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        let body: Value = serde_json::from_slice(body).map_err(|error| {
            ServiceError::MalformedJson(format!("line {} column {}", error.line(), error.column()))
        })?;
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .ok_or_else(|| ServiceError::invalid("model is required"))?;
        let one = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            // Token numbers, as some clients send them.
            Value::Array(numbers) if !numbers.is_empty() => numbers
                .iter()
                .map(|n| n.as_u64().map(|n| format!("{n} ")))
                .collect(),
            _ => None,
        };
        let texts: Option<Vec<String>> = match body.get("input") {
            Some(Value::Array(items)) if items.iter().all(Value::is_u64) && !items.is_empty() => {
                one(&Value::Array(items.clone())).map(|text| vec![text])
            }
            Some(Value::Array(items)) if !items.is_empty() && items.len() <= INPUTS_MAX => {
                items.iter().map(one).collect()
            }
            Some(Value::String(text)) => Some(vec![text.clone()]),
            _ => None,
        };
        let texts = texts
            .ok_or_else(|| ServiceError::invalid("input must be a text or an array of texts"))?;
        let dimensions = match body.get("dimensions").filter(|value| !value.is_null()) {
            None => DIMENSIONS_DEFAULT,
            Some(value) => value
                .as_u64()
                .and_then(|n| usize::try_from(n).ok())
                .filter(|n| (1..=DIMENSIONS_MAX).contains(n))
                .ok_or_else(|| ServiceError::invalid("dimensions must be from 1 to 4096"))?,
        };
        let as_base64 = match body.get("encoding_format").and_then(Value::as_str) {
            Some("base64") => true,
            Some("float") | None => false,
            Some(_) => {
                return Err(ServiceError::invalid(
                    "encoding_format must be float or base64",
                ));
            }
        };
        Ok(Self {
            model: model.to_owned(),
            texts,
            dimensions,
            as_base64,
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

/// Feature hashing: each word adds one to a dimension or takes one from it.
fn embed(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0_f32; dimensions];
    for word in text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
    {
        let digest = Sha256::digest(word.to_lowercase().as_bytes());
        let number = digest
            .iter()
            .take(7)
            .fold(0_usize, |sum, byte| (sum << 8) | usize::from(*byte));
        let sign = if digest.last().is_some_and(|byte| byte & 1 == 1) {
            1.0
        } else {
            -1.0
        };
        if let Some(x) = number
            .checked_rem(dimensions)
            .and_then(|at| vector.get_mut(at))
        {
            *x += sign;
        }
    }
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
    vector
}
