//! What is stored of evals: sets, documents, runs, answers and results.
//!
//! Promise: plain data; what a client is shown of each is made here.

use super::{media::check_mime, tasks};
use crate::{
    clock::Clock,
    error::ServiceError,
    models::roster::{self, FrontierModel},
    money::MicroUsd,
    spec,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const FIELD_CHARS_MAX: usize = 64;

/// A time as the order of creation; ids of the same millisecond do not sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Created(pub(super) i64);

// === impl Created ===

impl Created {
    pub fn now(clock: &Clock) -> Self {
        Self(i64::try_from(clock.now().as_nanosecond()).unwrap_or(i64::MAX))
    }
}

/// Interface, Eval set: its six fields.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalSet {
    pub id: String,
    pub task_id: String,
    pub name: String,
    pub item_count: usize,
    pub scoring_strategy: String,
    pub prompt: String,
}

/// The set as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredSet {
    pub set: EvalSet,
    pub org: String,
    pub created: Created,
    pub row_bytes: u64,
}

/// A row's input field, and the kind of document that goes there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentPlace {
    /// 0-based row index.
    pub idx: usize,
    pub field_name: String,
    pub mime: String,
}

/// A document that is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    pub org: String,
    pub eval_set_id: String,
    pub place: DocumentPlace,
    pub size: u64,
    pub sha256: String,
    /// Its name in the blob store.
    pub blob: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Queued,
    Running,
    Evaluating,
    Completed,
    Failed,
}

/// A run as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EvalRun {
    pub id: String,
    pub org: String,
    pub eval_set_id: String,
    pub status: RunStatus,
    pub candidate_models: Vec<String>,
    pub error_detail: Option<String>,
    pub cost_micro_usd: MicroUsd,
    pub results: Vec<EvalResult>,
    pub created: Created,
    /// Of the request that started it, for the books.
    pub body_fingerprint: String,
}

/// One candidate's answer to one row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowAnswer {
    pub row: usize,
    pub candidate: usize,
    /// What the model wrote; `None` when the row errored.
    pub text: Option<String>,
    pub cost: MicroUsd,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EvalResult {
    pub model_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub quality_mean: f64,
    pub quality_ci_low: f64,
    pub quality_ci_high: f64,
    pub mean_cost_micro_usd: MicroUsd,
    pub n_succeeded: usize,
    pub error_count: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact_match: Option<f64>,
}

/// A candidate: `auto`, or a model of the roster.
#[derive(Clone, Copy, Debug)]
pub enum Candidate {
    Auto,
    Frontier(&'static FrontierModel),
}

// === impl Candidate ===

impl Candidate {
    pub fn by_id(id: &str) -> Option<Self> {
        if id == spec::MODEL {
            return Some(Self::Auto);
        }
        roster::by_id(id).map(Self::Frontier)
    }

    /// Interface, Eval result: `kind` is `frontier` on vendor baseline rows, unset on `auto` rows.
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Self::Auto => None,
            Self::Frontier(_) => Some("frontier"),
        }
    }
}

// === impl RunStatus ===

impl RunStatus {
    /// Interface, Eval run: "terminal when its status is `completed` or `failed`".
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

// === impl EvalRun ===

impl EvalRun {
    /// The envelope of `GET /v1/eval-runs/{run_id}`.
    pub fn envelope(&self) -> Value {
        json!({
            "run": {
                "id": self.id,
                "eval_set_id": self.eval_set_id,
                "status": self.status,
                "candidate_models": self.candidate_models,
                "error_detail": self.error_detail,
                "cost_micro_usd": self.cost_micro_usd,
            },
            "results": self.results,
        })
    }
}

// === impl Document ===

impl Document {
    /// What a client sees of it. Assumed (eval-documents): the shape is not shown.
    pub fn view(&self) -> Value {
        json!({
            "eval_set_id": self.eval_set_id,
            "idx": self.place.idx,
            "field_name": self.place.field_name,
            "mime": self.place.mime,
            "size": self.size,
            "sha256": self.sha256,
        })
    }
}

// === impl DocumentPlace ===

impl DocumentPlace {
    /// 422 when the set has no such row, its task no such field, or no model reads such a kind.
    pub fn check(&self, set: &EvalSet) -> Result<(), ServiceError> {
        if self.idx >= set.item_count {
            return Err(ServiceError::invalid(format!(
                "idx must be from 0 to {}",
                set.item_count.saturating_sub(1)
            )));
        }
        let task = tasks::by_id(&set.task_id).filter(|task| task.has_blob_input);
        let Some(task) = task else {
            return Err(ServiceError::invalid(
                "field_name: the set's task takes no documents",
            ));
        };
        if self.field_name.chars().count() > FIELD_CHARS_MAX {
            return Err(ServiceError::invalid(format!(
                "field_name must have at most {FIELD_CHARS_MAX} characters"
            )));
        }
        match &task.blob_field {
            Some(field) if *field != self.field_name => Err(ServiceError::invalid(format!(
                "field_name: the blob input field of {} is {field}",
                task.id
            ))),
            _ => check_mime(&self.mime),
        }
    }

    pub fn id(&self, set: &str) -> String {
        format!("{set}/{:06}/{}", self.idx, self.field_name)
    }
}
