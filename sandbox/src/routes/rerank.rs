//! `POST /v1/rerank`: the route exists in the interface; its shapes are not shown.
//!
//! Assumed (rerank): the shape that rerank services share, `{model, query, documents, top_n,
//! return_documents}` to `{id, model, results, usage}`, and the limits below; `X-Service-Billed` on the
//! answer. Promise: results are in order of falling score, equals by index; the score is computed from the
//! texts.

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
use bursar_models::embedding::ranking;
use serde_json::{Value, json};
use std::sync::Arc;

const PRICE: Price = Price {
    prompt_per_million: 20_000,
    completion_per_million: 0,
};
const DOCUMENTS_MAX: usize = 1_000;
const QUERY_TOKENS_MAX: u64 = 2_048;
const DOCUMENT_TOKENS_MAX: u64 = 8_192;
/// The query counts once for each document.
const TOKENS_MAX: u64 = 1_000_000;

struct RerankRequest {
    model: String,
    query: String,
    documents: Vec<String>,
    tokens: u64,
    top_n: usize,
    return_documents: bool,
}

pub async fn create(
    Shared(state): Shared<Arc<State>>,
    Extension(inbound): Extension<Inbound>,
) -> RouteResult {
    let form = async {
        let wanted = RerankRequest::parse(&inbound.body)?;
        let id = format!("rerank-{}", state.clock.new_id());
        let job = Job {
            price: PRICE.cost(wanted.tokens, 0).ok_or(ServiceError::Internal)?,
            keeps: Keeps::Nothing,
            assumed: "rerank",
            work: move || Ok(wanted.answer(&id)),
        };
        Ok(job.order(inbound.fingerprint()))
    };
    purchase(&state, inbound.clone(), Rules::Inference, form).await
}

// === impl RerankRequest ===

impl RerankRequest {
    fn parse(body: &[u8]) -> Result<Self, ServiceError> {
        let fields = Fields::parse(body)?;
        let model = fields.required_text("model")?.to_owned();
        let query = fields.required_text("query")?.to_owned();
        if query.trim().is_empty() {
            return Err(ServiceError::invalid("query is empty"));
        }
        let query_tokens = tokens::count(&query);
        if query_tokens > QUERY_TOKENS_MAX {
            return Err(ServiceError::invalid(format!(
                "query is over {QUERY_TOKENS_MAX} tokens"
            )));
        }
        let documents = documents(fields.required("documents")?)?;
        let mut tokens = 0_u64;
        for (at, document) in documents.iter().enumerate() {
            let here = tokens::count(document);
            if here > DOCUMENT_TOKENS_MAX {
                return Err(ServiceError::invalid(format!(
                    "documents {at} is over {DOCUMENT_TOKENS_MAX} tokens"
                )));
            }
            tokens = tokens.saturating_add(here).saturating_add(query_tokens);
        }
        if tokens > TOKENS_MAX {
            return Err(ServiceError::invalid(format!(
                "documents are over {TOKENS_MAX} tokens in all, with the query once for each"
            )));
        }
        let top_n = fields
            .whole("top_n", 1..=usize::MAX)?
            .unwrap_or(documents.len());
        Ok(Self {
            model,
            query,
            tokens,
            top_n,
            return_documents: fields.yes_or_no("return_documents")?.unwrap_or(false),
            documents,
        })
    }

    fn answer(&self, id: &str) -> Value {
        let results: Vec<Value> = ranking::rank(&self.query, &self.documents)
            .into_iter()
            .take(self.top_n)
            .map(|ranked| {
                let text = self.documents.get(ranked.index);
                if self.return_documents {
                    json!({"index": ranked.index, "relevance_score": ranked.score, "document": {"text": text}})
                } else {
                    json!({"index": ranked.index, "relevance_score": ranked.score})
                }
            })
            .collect();
        json!({
            "id": id,
            "model": self.model,
            "results": results,
            "usage": {"prompt_tokens": self.tokens, "total_tokens": self.tokens},
        })
    }
}

/// Each a text, or an object with a `text`.
fn documents(value: &Value) -> Result<Vec<String>, ServiceError> {
    let wanted = "an array of texts or of objects with a text";
    let items = value
        .as_array()
        .ok_or_else(|| mistyped("documents", wanted))?;
    if items.is_empty() {
        return Err(ServiceError::invalid("documents is empty"));
    }
    if items.len() > DOCUMENTS_MAX {
        return Err(ServiceError::invalid(format!(
            "documents has over {DOCUMENTS_MAX} entries"
        )));
    }
    items
        .iter()
        .map(|item| {
            item.as_str()
                .or_else(|| item.get("text")?.as_str())
                .map(str::to_owned)
                .ok_or_else(|| mistyped("documents", wanted))
        })
        .collect()
}
