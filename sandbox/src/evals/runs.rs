//! Eval runs: start, state, and what is kept of them.
//!
//! Interface, Eval run status: `queued`, `running`, `evaluating`, then `completed` or `failed`.
//! Promise: a run that was answered is in the store; `cost_micro_usd` is the sum of its debits at any
//! instant; a terminal run does not change.

use super::{ANSWERS, Created, RUNS, documents, results::EvalResult, sets, tasks};
use crate::{
    error::ServiceError,
    models::roster::{self, FrontierModel},
    money::MicroUsd,
    spec,
    state::State,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Runs of one organization that are not terminal. Assumed (eval-limits).
const UNFINISHED_MAX: usize = 50;
/// Terminal runs that are kept for one organization. Assumed (eval-limits).
const TERMINAL_MAX: usize = 1_000;
/// Row numbers an error tells.
const TOLD_MAX: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Queued,
    Running,
    Evaluating,
    Completed,
    Failed,
}

/// A run as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    pub org: String,
    pub eval_set_id: String,
    pub status: Status,
    pub candidate_models: Vec<String>,
    pub error_detail: Option<String>,
    pub cost_micro_usd: MicroUsd,
    pub results: Vec<EvalResult>,
    pub(super) created: Created,
    /// Of the request that started it, for the books.
    pub(super) body_fingerprint: String,
}

/// What a client asks for.
#[derive(Debug)]
pub struct Wanted {
    pub eval_set_id: String,
    pub candidate_models: Vec<String>,
    pub body_fingerprint: String,
}

// === impl Status ===

impl Status {
    /// Interface, Eval run: "terminal when its status is `completed` or `failed`".
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

// === impl Run ===

impl Run {
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

    pub(super) fn save(&self, state: &State) -> Result<(), ServiceError> {
        Ok(state.store.put(RUNS, &self.id, self)?)
    }
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

/// Checks everything and puts the run into the queue; the caller sets it to work.
pub fn create(state: &State, org: &str, wanted: Wanted) -> Result<Run, ServiceError> {
    let set = sets::find(state, org, &wanted.eval_set_id)?;
    check_candidates(&set, &wanted.candidate_models)
        .and_then(|()| check_documents(state, &set))
        .map_err(|error| error.assumed("eval-candidates"))?;
    // Interface: "an insufficient balance returns 402 before any work is billed".
    state.books.check_balance(org)?;
    let _gate = state.evals.gate.lock();
    // The set may have gone meanwhile.
    sets::find(state, org, &set.id)?;
    make_room(state, org)?;
    let run = Run {
        id: format!("run_{}", state.clock.new_id()),
        org: org.to_owned(),
        eval_set_id: set.id,
        status: Status::Queued,
        candidate_models: wanted.candidate_models,
        error_detail: None,
        cost_micro_usd: MicroUsd::ZERO,
        results: Vec::new(),
        created: Created::now(state),
        body_fingerprint: wanted.body_fingerprint,
    };
    run.save(state)?;
    Ok(run)
}

/// 404 for an unknown id, and for another organization's.
pub fn find(state: &State, org: &str, id: &str) -> Result<Run, ServiceError> {
    let found: Option<Run> = state.store.get(RUNS, id)?;
    found
        .filter(|run| run.org == org)
        .ok_or_else(|| ServiceError::NotFound("eval run not found".to_owned()))
}

/// Runs that are not terminal, oldest first.
pub fn unfinished(state: &State) -> Result<Vec<Run>, ServiceError> {
    let mut runs = all(state)?;
    runs.retain(|run| !run.status.is_terminal());
    Ok(runs)
}

/// 409 while a run of the set is not terminal: what it reads must not change under it.
pub fn check_idle(state: &State, set: &str) -> Result<(), ServiceError> {
    match unfinished(state)?.iter().any(|run| run.eval_set_id == set) {
        false => Ok(()),
        true => Err(ServiceError::SetInUse),
    }
}

fn all(state: &State) -> Result<Vec<Run>, ServiceError> {
    let stored = state.store.all::<Run>(RUNS)?;
    let mut runs: Vec<Run> = stored.into_iter().map(|(_, run)| run).collect();
    runs.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
    Ok(runs)
}

/// 429 over the runs that may be unfinished; forgets the oldest terminal one over those that are kept.
fn make_room(state: &State, org: &str) -> Result<(), ServiceError> {
    let mut terminal = Vec::new();
    let mut unfinished = 0;
    for run in all(state)?.into_iter().filter(|run| run.org == org) {
        if run.status.is_terminal() {
            terminal.push(run.id);
        } else {
            unfinished += 1;
        }
    }
    if unfinished >= UNFINISHED_MAX {
        return Err(ServiceError::TooManyOpen(format!(
            "an organization has at most {UNFINISHED_MAX} unfinished eval runs; wait for one to end"
        )));
    }
    let over = (terminal.len() + 1).saturating_sub(TERMINAL_MAX);
    for id in terminal.iter().take(over) {
        state.store.remove(RUNS, id)?;
        state.store.remove_prefix(ANSWERS, &format!("{id}/"))?;
    }
    Ok(())
}

/// Interface, `POST /v1/eval-runs`: "`auto` plus zero or more frontier ids".
///
/// Assumed (eval-candidates): `auto` must be there, in any place; an id that is not in the roster is 400;
/// a model that stands twice, or cannot see what the task's rows carry, is 422.
fn check_candidates(set: &sets::EvalSet, ids: &[String]) -> Result<(), ServiceError> {
    let sees = tasks::by_id(&set.task_id).is_some_and(|task| task.has_blob_input);
    for (at, id) in ids.iter().enumerate() {
        let candidate = Candidate::by_id(id).ok_or_else(|| {
            ServiceError::BadRequest(format!("candidate_model_ids[{at}]: unknown model"))
        })?;
        if ids.iter().take(at).any(|other| other == id) {
            return Err(ServiceError::invalid(format!(
                "candidate_model_ids[{at}]: {id} stands twice"
            )));
        }
        // Interface, Task: "only vision-capable frontier models can run such tasks".
        if let Candidate::Frontier(model) = candidate
            && sees
            && !model.vision
        {
            return Err(ServiceError::invalid(format!(
                "candidate_model_ids[{at}]: {id} is not vision-capable, and the rows of {} carry documents",
                set.task_id
            )));
        }
    }
    if !ids.iter().any(|id| id == spec::MODEL) {
        return Err(ServiceError::invalid("candidate_model_ids must hold auto"));
    }
    Ok(())
}

fn check_documents(state: &State, set: &sets::EvalSet) -> Result<(), ServiceError> {
    let Some(task) = tasks::by_id(&set.task_id) else {
        return Err(ServiceError::BadRequest("unknown task_id".to_owned()));
    };
    let rows = sets::rows(state, &set.id)?;
    let missing = documents::missing(state, set, task, &rows)?;
    if missing.is_empty() {
        return Ok(());
    }
    let told: Vec<String> = missing
        .iter()
        .take(TOLD_MAX)
        .map(usize::to_string)
        .collect();
    let more = match missing.len().saturating_sub(TOLD_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(ServiceError::invalid(format!(
        "eval_set_id: no document is attached to row {}{more}",
        told.join(", ")
    )))
}
