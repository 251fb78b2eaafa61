//! `POST /sandbox/score`: the scorers, to see which score a run would give an answer.
//!
//! Not part of the interface. The scorers are also compared with other programs' through this route.
//! Promise: its result is a run's result for the same rows: the same functions, nothing besides.
//!
//! ```json
//! {"scorer": "token_f1", "seed": 7, "rows": [{"expected": {"answer": "in 1998"}, "answer": "1998"}]}
//! {"scorer": "judge", "prompt": "Summarize", "rows": [{"expected": {"summary": "..."}, "answer": "..."}]}
//! {"scores": [0.5, 1.0, 0.75], "seed": 7}
//! ```
//!
//! An `answer` that is a text is read as a model's answer; any other value is the answer itself.

use crate::{
    error::{RouteResult, ServiceError},
    scoring::{Graded, Interval, Scorer, exact_match_rate, grade, interval, read_answer},
    state::State,
};
use axum::{Json, extract::State as Shared, response::IntoResponse};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const ROWS_MAX: usize = 1_000;
const SCORES_MAX: usize = 10_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    /// Needed for `rows`.
    scorer: Option<String>,
    rows: Option<Vec<RowToScore>>,
    /// Instead of rows: scores whose interval is requested.
    scores: Option<Vec<f64>>,
    /// What the model was asked; a judge model sees it.
    #[serde(default)]
    prompt: String,
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowToScore {
    expected: Value,
    answer: Value,
}

pub async fn score(Shared(state): Shared<Arc<State>>, body: Bytes) -> RouteResult {
    let request: Request =
        serde_json::from_slice(&body).map_err(|error| ServiceError::invalid(error.to_string()))?;
    let seed = request.seed;
    let document = match (request.scorer, request.rows, request.scores) {
        (Some(scorer), Some(rows), None) => {
            scored(&state, &scorer, &request.prompt, rows, seed).await?
        }
        (None, None, Some(scores)) => {
            bounded("scores", scores.len(), SCORES_MAX)?;
            for (at, score) in scores.iter().enumerate() {
                if !(0.0..=1.0).contains(score) {
                    return Err(ServiceError::invalid(format!(
                        "scores[{at}] must be a number from 0 to 1"
                    )));
                }
            }
            json!({ "interval": shown(of_scores(scores, seed).await?) })
        }
        _ => {
            return Err(ServiceError::invalid("either scorer and rows, or scores"));
        }
    };
    Ok(Json(document).into_response())
}

async fn scored(
    state: &State,
    scorer: &str,
    prompt: &str,
    rows: Vec<RowToScore>,
    seed: u64,
) -> Result<Value, ServiceError> {
    let scorer = Scorer::by_id(scorer).ok_or_else(|| {
        let ids = Scorer::ALL.map(Scorer::id).join(", ");
        ServiceError::invalid(format!("scorer: one of {ids}"))
    })?;
    bounded("rows", rows.len(), ROWS_MAX)?;
    let mut scores = Vec::new();
    let mut rows_shown = Vec::new();
    for row in rows {
        let answer = match &row.answer {
            Value::String(text) => read_answer(text, &row.expected),
            answer => Ok(answer.clone()),
        };
        let graded = match answer {
            Ok(answer) => grade(&state.fleet, scorer, prompt, &row.expected, &answer).await,
            Err(reason) => Err(reason),
        };
        rows_shown.push(match graded {
            Ok(Graded { score, by }) => {
                scores.push(score);
                json!({"score": score, "by": by.id()})
            }
            Err(reason) => json!({ "error": reason.to_string() }),
        });
    }
    let mut document = json!({
        "scorer": scorer.id(),
        "n_succeeded": scores.len(),
        "error_count": rows_shown.len() - scores.len(),
        "rows": rows_shown,
    });
    let rate = exact_match_rate(&scores).filter(|_| scorer == Scorer::ExactMatch);
    let interval = of_scores(scores, seed).await?;
    if let Some(fields) = document.as_object_mut() {
        fields.insert("interval".to_owned(), shown(interval));
        fields.extend(rate.map(|rate| ("exact_match".to_owned(), json!(rate))));
    }
    Ok(document)
}

/// Resampling takes a second for many scores, so it does not run on a thread that serves.
async fn of_scores(scores: Vec<f64>, seed: u64) -> Result<Interval, ServiceError> {
    tokio::task::spawn_blocking(move || interval(&scores, seed))
        .await
        .map_err(|_| ServiceError::Internal)
}

fn bounded(name: &str, count: usize, most: usize) -> Result<(), ServiceError> {
    if count > most {
        return Err(ServiceError::invalid(format!("{name}: {most} at most")));
    }
    Ok(())
}

fn shown(interval: Interval) -> Value {
    json!({"mean": interval.mean, "low": interval.low, "high": interval.high})
}
