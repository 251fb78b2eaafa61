//! Eval sets: create, find, list, delete, for one organization.
//!
//! Promise: a set that was answered is in the store with all its rows; what a running run reads does not
//! change under it.

use super::{
    Created, DOCUMENTS, ROWS, SETS, agreement, documents,
    rows::{Row, Rows},
    runs, tasks,
};
use crate::{catalog::Task, error::ServiceError, spec, state::State, store::Written};
use serde::{Deserialize, Serialize};

/// Assumed (eval-limits).
const SETS_MAX: usize = 500;
/// Rows and documents of one organization. Assumed (eval-limits).
pub const STORED_BYTES_MAX: u64 = 512 * 1024 * 1024;
const NAME_CHARS_MAX: usize = 200;

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

/// What a client sends to make one.
#[derive(Debug)]
pub struct NewSet {
    pub items: bytes::Bytes,
    pub prompt: String,
    pub task_id: Option<String>,
    pub name: Option<String>,
}

// === impl NewSet ===

impl NewSet {
    /// Checks everything, writes nothing.
    async fn checked(&self, state: &State) -> Result<(Rows, &'static Task), ServiceError> {
        if self.prompt.chars().count() > spec::EVAL_PROMPT_CHARS_MAX {
            return Err(ServiceError::invalid(format!(
                "prompt must have at most {} characters",
                spec::EVAL_PROMPT_CHARS_MAX
            )));
        }
        if self
            .name
            .as_ref()
            .is_some_and(|name| name.chars().count() > NAME_CHARS_MAX)
        {
            return Err(ServiceError::invalid(format!(
                "name must have at most {NAME_CHARS_MAX} characters"
            ))
            .assumed("eval-limits"));
        }
        // Interface, Errors 400: unknown task.
        let pinned = match &self.task_id {
            Some(id) => Some(
                tasks::by_id(id)
                    .ok_or_else(|| ServiceError::BadRequest("unknown task_id".to_owned()))
                    .map_err(|error| error.assumed("eval-task"))?,
            ),
            None => None,
        };
        let rows = Rows::parse(&self.items)?;
        let task = match pinned {
            Some(task) => task,
            None => tasks::infer(state, &self.prompt, &rows.rows).await?,
        };
        let contract = tasks::Contract::of(task)?;
        rows.check(|row| contract.misfit(row).or_else(|| contract.unscorable(row)))
            .map_err(|error| error.assumed("eval-task"))?;
        agreement::check(&self.prompt, &rows.rows, task)
            .map_err(|error| error.assumed("eval-prompt"))?;
        Ok((rows, task))
    }
}

pub async fn create(state: &State, org: &str, new: &NewSet) -> Result<EvalSet, ServiceError> {
    let (rows, task) = new.checked(state).await?;
    let _gate = state.evals.gate.lock();
    let row_bytes = u64::try_from(new.items.len()).unwrap_or(u64::MAX);
    if list(state, org)?.len() >= SETS_MAX {
        return Err(ServiceError::invalid(format!(
            "an organization has at most {SETS_MAX} eval sets; delete one first"
        ))
        .assumed("eval-limits"));
    }
    documents::check_room(state, org, row_bytes)?;
    let item_count = rows.rows.len();
    let set = EvalSet {
        id: format!("es_{}", state.clock.new_id()),
        task_id: task.id.clone(),
        // Interface: the default is a generic label containing the item count.
        name: new.name.clone().unwrap_or_else(|| match item_count {
            1 => "Eval set (1 item)".to_owned(),
            n => format!("Eval set ({n} items)"),
        }),
        item_count,
        scoring_strategy: task.scoring_strategy.clone(),
        prompt: new.prompt.clone(),
    };
    let stored = StoredSet {
        set: set.clone(),
        org: org.to_owned(),
        created: Created::now(state),
        row_bytes,
    };
    state.store.put_all(&[
        Written::new(ROWS, &set.id, &rows.rows)?,
        Written::new(SETS, &set.id, &stored)?,
    ])?;
    Ok(set)
}

/// The organization's sets, oldest first.
pub fn list(state: &State, org: &str) -> Result<Vec<EvalSet>, ServiceError> {
    Ok(stored(state, org)?
        .into_iter()
        .map(|stored| stored.set)
        .collect())
}

/// 404 for an unknown id, and for another organization's.
pub fn find(state: &State, org: &str, id: &str) -> Result<EvalSet, ServiceError> {
    let found: Option<StoredSet> = state.store.get(SETS, id)?;
    found
        .filter(|stored| stored.org == org)
        .map(|stored| stored.set)
        .ok_or_else(|| ServiceError::NotFound("eval set not found".to_owned()))
}

/// Deletes the set with its rows and documents.
///
/// Assumed (eval-set-delete): its runs stay, for they tell what was billed; while one is not terminal the
/// set cannot be deleted or changed: 409.
pub fn delete(state: &State, org: &str, id: &str) -> Result<(), ServiceError> {
    let _gate = state.evals.gate.lock();
    find(state, org, id)?;
    runs::check_idle(state, id)?;
    state.store.remove(SETS, id)?;
    state.store.remove(ROWS, id)?;
    for document in documents::of_set(state, id)? {
        state
            .evals
            .blobs
            .remove(&document.blob)
            .map_err(super::failed)?;
    }
    state.store.remove_prefix(DOCUMENTS, &format!("{id}/"))?;
    Ok(())
}

pub fn rows(state: &State, id: &str) -> Result<Vec<Row>, ServiceError> {
    state
        .store
        .get(ROWS, id)?
        .ok_or_else(|| ServiceError::NotFound("eval set not found".to_owned()))
}

/// The sets of an organization as they are stored, oldest first.
pub fn stored(state: &State, org: &str) -> Result<Vec<StoredSet>, ServiceError> {
    let mut sets: Vec<StoredSet> = state
        .store
        .all::<StoredSet>(SETS)?
        .into_iter()
        .map(|(_, stored)| stored)
        .filter(|stored| stored.org == org)
        .collect();
    sets.sort_by(|a, b| (a.created, &a.set.id).cmp(&(b.created, &b.set.id)));
    Ok(sets)
}
