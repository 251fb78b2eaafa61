//! `GET /v1/eval/frontier-models`: the frontier models an eval run can be compared with.
//!
//! Promise: an eval run accepts every id here; for a document task, only models that can read images
//! are listed.

use crate::{
    error::{RouteResult, ServiceError, assumed_json},
    evals::tasks,
    models::roster::{FrontierModel, roster},
};
use axum::extract::Query;
use http::Uri;
use serde_json::{Value, json};

/// Interface: "With task, each entry is annotated with benchmarked and the roster is vision-filtered for
/// document tasks. Without it the full roster returns, unannotated."
pub async fn list(uri: Uri) -> RouteResult {
    let Query(pairs) = Query::<Vec<(String, String)>>::try_from_uri(&uri)
        .map_err(|_| ServiceError::invalid("the query string cannot be read"))?;
    let named = pairs.iter().find(|(name, _)| name == "task");
    let models: Vec<Value> = match named {
        None => roster().iter().map(shown).collect(),
        Some((_, id)) => {
            // Interface, Errors 404: "task … id not found".
            let task = tasks::by_id(id)
                .ok_or_else(|| ServiceError::NotFound("unknown task".to_owned()))?;
            task.frontier_models()
                .map(|model| {
                    let mut entry = shown(model);
                    if let Some(fields) = entry.as_object_mut() {
                        let benchmarked = task.benchmarked.iter().any(|id| id == model.id);
                        fields.insert("benchmarked".to_owned(), json!(benchmarked));
                    }
                    entry
                })
                .collect()
        }
    };
    let marks: &[_] = match named {
        None => &["frontier-ids"],
        Some(_) => &["frontier-ids", "benchmarked"],
    };
    Ok(assumed_json(json!({ "frontier_models": models }), marks))
}

fn shown(model: &FrontierModel) -> Value {
    json!({"id": model.id, "vendor": model.vendor, "vision": model.vision})
}
