//! What a set is graded against: a task of the catalog, or the general one.
//!
//! Interface, `POST /v1/eval-sets`: `task_id` "pins a scoring setup". Without one the task is found from the
//! prompt and the rows.
//! Promise: a set is never graded against a task whose gold contract its rows do not meet.

use super::rows::Row;
use crate::{
    catalog::{
        self, SchemaRole, Task,
        matching::{self, Confidence},
    },
    error::ServiceError,
    scoring::Scorer,
    state::State,
};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// How many of the matcher's candidates are tried.
const CANDIDATES: usize = 5;

/// Graded by the judge: whatever the rows expect.
///
/// Assumed (eval-task): the interface shows no task for rows that fit none of the catalog.
static GENERAL: LazyLock<Task> = LazyLock::new(|| Task {
    id: "general".to_owned(),
    title: "Anything else".to_owned(),
    description: "Rows that no task of the catalog fits; a judge compares answer and expectation."
        .to_owned(),
    synonyms: Vec::new(),
    family: "general".to_owned(),
    category: "general-chat".to_owned(),
    default_scorer: "judge".to_owned(),
    scoring_strategy: "judge".to_owned(),
    has_blob_input: false,
    blob_field: None,
    gold_schema: json!({"type": "object"}),
    output_schema: json!({"type": "object"}),
    output_schema_role: SchemaRole::Gold,
    examples: Vec::new(),
    benchmarked: Vec::new(),
    instruction: String::new(),
});

/// The task of this id, the general one included.
pub fn by_id(id: &str) -> Option<&'static Task> {
    if id == GENERAL.id {
        return Some(&GENERAL);
    }
    catalog::task(id)
}

pub fn general() -> &'static Task {
    &GENERAL
}

/// A task's demands on a row, ready to be asked many times.
pub struct Contract {
    task: &'static Task,
    validator: jsonschema::Validator,
}

// === impl Contract ===

impl Contract {
    pub fn of(task: &'static Task) -> Result<Self, ServiceError> {
        let validator = jsonschema::options()
            .should_validate_formats(true)
            .build(&task.gold_schema)
            .map_err(|error| {
                tracing::error!(%error, task = %task.id, "a task's schema cannot be used");
                ServiceError::Internal
            })?;
        Ok(Self { task, validator })
    }

    /// What is wrong with a row for the task.
    pub fn misfit(&self, row: &Row) -> Option<String> {
        if row.input.is_none() && !self.task.has_blob_input {
            return Some("input is missing".to_owned());
        }
        let expected = Value::Object(row.expected_output.clone());
        let error = self.validator.iter_errors(&expected).next()?;
        let at = error.instance_path.to_string();
        let at: String = at.chars().take(64).collect();
        Some(format!(
            "expected_output{at} does not meet the schema of {}",
            self.task.id
        ))
    }

    /// Why no answer to a row could be scored, whatever it says.
    pub fn unscorable(&self, row: &Row) -> Option<String> {
        let expected = Value::Object(row.expected_output.clone());
        let scorer = Scorer::by_id(&self.task.default_scorer)?;
        let answer = match scorer {
            Scorer::NdcgAt10 => expected.clone(),
            // Every other scorer takes an answer in which nothing is said.
            _ => json!({}),
        };
        let unscored = scorer.score(&expected, &answer).err()?;
        Some(format!("expected_output cannot be scored: {unscored}"))
    }
}

/// The task that the prompt names and every row fits; the general one when there is none.
///
/// Assumed (eval-task): of the matcher's candidates that are more than a guess, the first whose gold
/// contract every row meets.
pub async fn infer(
    state: &State,
    prompt: &str,
    rows: &[Row],
) -> Result<&'static Task, ServiceError> {
    let found = matching::matched(&state.fleet, prompt, CANDIDATES).await;
    let candidates = found.chosen.iter().chain(&found.candidates);
    for candidate in candidates.filter(|one| one.confidence != Confidence::Low) {
        if let Some(task) = catalog::task(&candidate.task_id) {
            let contract = Contract::of(task)?;
            if rows.iter().all(|row| contract.misfit(row).is_none()) {
                return Ok(task);
            }
        }
    }
    Ok(general())
}

/// The words a task goes by.
pub fn words_of(task: &Task) -> String {
    format!(
        "{} {} {} {}",
        task.id.replace('-', " "),
        task.title,
        task.scoring_strategy.replace('_', " "),
        task.synonyms.join(" ")
    )
}
