//! Eval sets: create, find, list, delete, for one organization.
//!
//! Promise: a set that was answered is in the store with all its rows; what a running run reads does not
//! change under it.

use super::{
    agreement,
    records::{Created, EvalSet, StoredSet},
    rows::Rows,
    stored::{DOCUMENTS, Evals, ROWS, SETS, failed},
    tasks,
};
use crate::{catalog::Task, error::ServiceError, spec, store::Written};

/// Assumed (eval-limits).
const SETS_MAX: usize = 500;
const NAME_CHARS_MAX: usize = 200;

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
    async fn checked(&self, evals: &Evals) -> Result<(Rows, &'static Task), ServiceError> {
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
            None => tasks::infer(&evals.parts.fleet, &self.prompt, &rows.rows).await?,
        };
        let contract = tasks::Contract::of(task)?;
        rows.check(|row| contract.misfit(row).or_else(|| contract.unscorable(row)))
            .map_err(|error| error.assumed("eval-task"))?;
        agreement::check(&self.prompt, &rows.rows, task)
            .map_err(|error| error.assumed("eval-prompt"))?;
        Ok((rows, task))
    }
}

pub async fn create(evals: &Evals, org: &str, new: &NewSet) -> Result<EvalSet, ServiceError> {
    let (rows, task) = new.checked(evals).await?;
    let _gate = evals.gate.lock();
    let row_bytes = u64::try_from(new.items.len()).unwrap_or(u64::MAX);
    if list(evals, org)?.len() >= SETS_MAX {
        return Err(ServiceError::invalid(format!(
            "an organization has at most {SETS_MAX} eval sets; delete one first"
        ))
        .assumed("eval-limits"));
    }
    evals.check_room(org, row_bytes)?;
    let item_count = rows.rows.len();
    let set = EvalSet {
        id: format!("es_{}", evals.parts.clock.new_id()),
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
        created: Created::now(&evals.parts.clock),
        row_bytes,
    };
    evals.parts.store.put_all(&[
        Written::new(ROWS, &set.id, &rows.rows)?,
        Written::new(SETS, &set.id, &stored)?,
    ])?;
    Ok(set)
}

/// The organization's sets, oldest first.
pub fn list(evals: &Evals, org: &str) -> Result<Vec<EvalSet>, ServiceError> {
    Ok(evals
        .stored_sets(org)?
        .into_iter()
        .map(|stored| stored.set)
        .collect())
}

/// Deletes the set with its rows and documents.
///
/// Assumed (eval-set-delete): its runs stay, for they show what was billed; while one is not terminal the
/// set cannot be deleted or changed: 409.
pub fn delete(evals: &Evals, org: &str, id: &str) -> Result<(), ServiceError> {
    let _gate = evals.gate.lock();
    evals.set(org, id)?;
    evals.check_idle(id)?;
    evals.parts.store.remove(SETS, id)?;
    evals.parts.store.remove(ROWS, id)?;
    for document in evals.documents_of(id)? {
        evals.blobs.remove(&document.blob).map_err(failed)?;
    }
    evals
        .parts
        .store
        .remove_prefix(DOCUMENTS, &format!("{id}/"))?;
    Ok(())
}
