//! Eval runs: start, rules, and what is kept of them.
//!
//! Interface, Eval run status: `queued`, `running`, `evaluating`, then `completed` or `failed`.
//! Promise: a run that was answered is in the store; `cost_micro_usd` is the sum of its debits at any
//! instant; a terminal run does not change.

use super::{
    documents,
    records::{Candidate, Created, EvalRun, EvalSet, RunStatus},
    stored::{ANSWERS, Evals, RUNS},
    tasks,
};
use crate::{error::ServiceError, money::MicroUsd, spec};

/// Runs of one organization that are not terminal. Assumed (eval-limits).
const UNFINISHED_MAX: usize = 50;
/// Terminal runs that are kept for one organization. Assumed (eval-limits).
const TERMINAL_MAX: usize = 1_000;
/// Row numbers in an error.
const SHOWN_MAX: usize = 10;

/// What a client asks for.
#[derive(Debug)]
pub struct NewRun {
    pub eval_set_id: String,
    pub candidate_models: Vec<String>,
    pub body_fingerprint: String,
}

/// Checks everything and puts the run into the queue; the caller sets it to work.
pub fn create(evals: &Evals, org: &str, wanted: NewRun) -> Result<EvalRun, ServiceError> {
    let set = evals.set(org, &wanted.eval_set_id)?;
    check_candidates(&set, &wanted.candidate_models)
        .and_then(|()| check_documents(evals, &set))
        .map_err(|error| error.assumed("eval-candidates"))?;
    // Interface: "an insufficient balance returns 402 before any work is billed".
    evals.parts.books.check_balance(org)?;
    let _gate = evals.gate.lock();
    // The set may have gone meanwhile.
    evals.set(org, &set.id)?;
    make_room(evals, org)?;
    let run = EvalRun {
        id: format!("run_{}", evals.parts.clock.new_id()),
        org: org.to_owned(),
        eval_set_id: set.id,
        status: RunStatus::Queued,
        candidate_models: wanted.candidate_models,
        error_detail: None,
        cost_micro_usd: MicroUsd::ZERO,
        results: Vec::new(),
        created: Created::now(&evals.parts.clock),
        body_fingerprint: wanted.body_fingerprint,
    };
    evals.parts.store.put(RUNS, &run.id, &run)?;
    Ok(run)
}

/// 429 over the runs that may be unfinished; forgets the oldest terminal one over those that are kept.
fn make_room(evals: &Evals, org: &str) -> Result<(), ServiceError> {
    let mut terminal = Vec::new();
    let mut unfinished = 0;
    for run in evals.runs()?.into_iter().filter(|run| run.org == org) {
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
        evals.parts.store.remove(RUNS, id)?;
        evals
            .parts
            .store
            .remove_prefix(ANSWERS, &format!("{id}/"))?;
    }
    Ok(())
}

/// Interface, `POST /v1/eval-runs`: "`auto` plus zero or more frontier ids".
///
/// Assumed (eval-candidates): `auto` must be there, in any place; an id that is not in the roster is 400;
/// a model that is listed twice, or cannot see what the task's rows carry, is 422.
fn check_candidates(set: &EvalSet, ids: &[String]) -> Result<(), ServiceError> {
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

fn check_documents(evals: &Evals, set: &EvalSet) -> Result<(), ServiceError> {
    let Some(task) = tasks::by_id(&set.task_id) else {
        return Err(ServiceError::BadRequest("unknown task_id".to_owned()));
    };
    let rows = evals.rows(&set.id)?;
    let missing = documents::missing(evals, set, task, &rows)?;
    if missing.is_empty() {
        return Ok(());
    }
    let shown: Vec<String> = missing
        .iter()
        .take(SHOWN_MAX)
        .map(usize::to_string)
        .collect();
    let more = match missing.len().saturating_sub(SHOWN_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Err(ServiceError::invalid(format!(
        "eval_set_id: no document is attached to row {}{more}",
        shown.join(", ")
    )))
}
