//! What a set is graded against: a task of the catalog, or the general one.
//!
//! Interface, `POST /v1/eval-sets`: `task_id` "pins a scoring setup". Without one the task is found from the
//! prompt and the rows.
//! Promise: a set is never graded against a task whose gold contract its rows do not meet.

use super::{agreement, media, rows::EvalRow};
use crate::{
    catalog::{
        self, SchemaRole, Task,
        matching::{self, Confidence},
    },
    error::ServiceError,
    fleet::Fleet,
    scoring::Scorer,
};
use serde_json::{Value, json};
use std::{collections::BTreeSet, sync::LazyLock};

/// How many of the matcher's candidates are tried.
const CANDIDATES: usize = 5;

/// How rows are graded that fit no task of the catalog: by what their expected outputs are.
///
/// Assumed (eval-task): the interface shows no task for such rows.
static OWN: LazyLock<[Task; 4]> = LazyLock::new(|| {
    let one = |id: &str, title: &str, description: &str, scorer: Scorer, strategy: &str| Task {
        id: id.to_owned(),
        title: title.to_owned(),
        description: description.to_owned(),
        synonyms: Vec::new(),
        family: "general".to_owned(),
        category: "general-chat".to_owned(),
        default_scorer: scorer.id().to_owned(),
        scoring_strategy: strategy.to_owned(),
        has_blob_input: false,
        blob_field: None,
        gold_schema: json!({"type": "object"}),
        output_schema: json!({"type": "object"}),
        output_schema_role: SchemaRole::Gold,
        examples: Vec::new(),
        benchmarked: Vec::new(),
        instruction: String::new(),
    };
    [
        one(
            "general",
            "Anything else",
            "Rows of open text that no task of the catalog fits; a judge compares answer and expectation.",
            Scorer::Judge,
            "judge",
        ),
        one(
            "general-extraction",
            "Fields of your own",
            "Rows whose expected outputs are values in fields of their own; each value is right or wrong.",
            Scorer::FieldF1,
            "extraction",
        ),
        one(
            "general-classification",
            "Labels of your own",
            "Rows whose expected outputs are one label each, of a list of their own.",
            Scorer::ExactMatch,
            "classification",
        ),
        one(
            "general-answers",
            "Answers from a text",
            "Rows whose expected outputs are short answers to questions about what the rows hold.",
            Scorer::TokenF1,
            "question_answering",
        ),
    ]
});

/// The task of this id, those for rows that fit none of the catalog included.
pub fn by_id(id: &str) -> Option<&'static Task> {
    let own = OWN.iter().find(|task| task.id == id);
    own.or_else(|| catalog::task(id))
}

/// Values have at most so many words; a longer text is open text, which no two writers write alike.
const VALUE_WORDS_MAX: usize = 12;

/// The task for rows that none of the catalog fits.
///
/// Assumed (eval-task): several fields of values, a value that is no text, and a value that the prompt asks to
/// extract are compared field by field; a label that it asks for must be that label; a short text that answers a
/// question is compared by its words; everything else is open text.
pub fn own(prompt: &str, rows: &[EvalRow]) -> &'static Task {
    let shape = ExpectedShape::of(rows);
    let asks = |strategy| agreement::asks_for(prompt, strategy);
    let [open, fields, labels, answers] = &*OWN;
    match shape {
        ExpectedShape::Open => open,
        ExpectedShape::Label | ExpectedShape::Scalar if asks("classification") => labels,
        ExpectedShape::Label | ExpectedShape::Text if asks("extraction") => fields,
        ExpectedShape::Label | ExpectedShape::Text if asks("question_answering") => answers,
        ExpectedShape::Label | ExpectedShape::Text => open,
        ExpectedShape::Scalar | ExpectedShape::Fields => fields,
    }
}

/// What the rows of a set expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ExpectedShape {
    /// One text of at most three words in each row.
    Label,
    /// One text of a few words.
    Text,
    /// One number or truth value.
    Scalar,
    /// Several values, or a list or object of them.
    Fields,
    /// A long text in some row, or no value in any.
    Open,
}

// === impl ExpectedShape ===

impl ExpectedShape {
    /// Of rows that differ, the shape that holds for all of them.
    fn of(rows: &[EvalRow]) -> Self {
        let longest = rows
            .iter()
            .flat_map(|row| row.expected_output.values())
            .map(words_in)
            .max()
            .unwrap_or(0);
        if longest > VALUE_WORDS_MAX {
            return Self::Open;
        }
        let mut names: BTreeSet<&String> = BTreeSet::new();
        let mut kinds = BTreeSet::new();
        for (name, value) in rows.iter().flat_map(|row| &row.expected_output) {
            names.insert(name);
            kinds.insert(match value {
                Value::String(_) => "text",
                Value::Number(_) | Value::Bool(_) => "scalar",
                Value::Null => "nothing",
                Value::Array(_) | Value::Object(_) => "more",
            });
        }
        if kinds.iter().all(|kind| *kind == "nothing") {
            // No value to compare: the judge's rule refuses such rows.
            return Self::Open;
        }
        let is_alone = names.len() == 1 && !kinds.contains("more");
        match is_alone && kinds.contains("text") && !kinds.contains("scalar") {
            true if longest <= agreement::LABEL_WORDS_MAX => Self::Label,
            true => Self::Text,
            false if is_alone => Self::Scalar,
            false => Self::Fields,
        }
    }
}

/// Words of the longest text in a value.
fn words_in(value: &Value) -> usize {
    match value {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(items) => items.iter().map(words_in).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(words_in).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
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
    pub fn misfit(&self, row: &EvalRow) -> Option<String> {
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

    /// Whether a row can be a row of the task's documents: its document is in it, or can still be attached because
    /// it holds nothing beside what such rows hold. A row that brings its text itself is not.
    fn takes_document_of(&self, row: &EvalRow) -> bool {
        let (Some(field), Some(input)) = (&self.task.blob_field, &row.input) else {
            return true;
        };
        let is_known = |name: &String| {
            let mut examples = self.task.examples.iter();
            examples.any(|example| example.input.contains_key(name))
        };
        match input.get(field) {
            Some(document) => media::is_document(document),
            None => input.keys().all(is_known),
        }
    }

    /// Why no answer to a row could be scored, whatever it says.
    pub fn unscorable(&self, row: &EvalRow) -> Option<String> {
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

/// The task that the prompt names and every row fits; one of [`own`] when there is none.
///
/// Assumed (eval-task): of the matcher's candidates that are more than a guess, the first whose gold
/// contract every row meets and whose documents every row has or can still be given.
pub async fn infer(
    fleet: &Fleet,
    prompt: &str,
    rows: &[EvalRow],
) -> Result<&'static Task, ServiceError> {
    let found = matching::matched(fleet, prompt, CANDIDATES).await;
    let candidates = found.chosen.iter().chain(&found.candidates);
    for candidate in candidates.filter(|one| one.confidence != Confidence::Low) {
        if let Some(task) = catalog::task(&candidate.task_id) {
            let contract = Contract::of(task)?;
            let fits =
                |row: &EvalRow| contract.misfit(row).is_none() && contract.takes_document_of(row);
            if rows.iter().all(fits) {
                return Ok(task);
            }
        }
    }
    Ok(own(prompt, rows))
}

#[cfg(test)]
mod tests;
