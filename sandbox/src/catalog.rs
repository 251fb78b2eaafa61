//! The task catalog: what a task is, and every task there is.
//!
//! Interface, What the service does: "Task catalog: scoring definitions (task ids, default scorer, row
//! schema)". Each task is a file in `catalog/`, so that its golden set can be read and discussed without
//! reading code; documents and recordings are built from the text in it.
//! Promise: every golden row conforms to its task's schemas, and the order of the tasks is that of the list
//! here.

pub mod blob;
mod found;
mod keyword;
mod lanes;
pub mod matching;
mod reason;
mod words;

use crate::models::roster::{self, FrontierModel};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// One scoring definition.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// The task id; also the subtask id a deploy names.
    pub id: String,
    pub title: String,
    /// One sentence on input and output.
    pub description: String,
    /// Other words for it, as people ask for it; read by the matcher alone.
    pub synonyms: Vec<String>,
    /// First half of an endpoint's public alias, `{family}-{rank}`.
    pub family: String,
    /// The router's category that serves it, as `X-Service-Specialist` shows it.
    pub category: String,
    /// `field_f1`, `ndcg_at_10`, `wer`, `exact_match`, `token_f1` or `judge`.
    pub default_scorer: String,
    /// How an eval set is scored: `extraction`, `classification`, `ranking`, `summarization`,
    /// `transcription`, `question_answering`, `generation`.
    pub scoring_strategy: String,
    pub has_blob_input: bool,
    /// The input field that holds the blob, as a data URL (`data:application/pdf;base64,...`).
    pub blob_field: Option<String>,
    /// JSON Schema (2020-12) of `expected_output`.
    pub gold_schema: Value,
    /// The same schema when the role is gold; field name to plain words when it is summary.
    #[serde(default)]
    pub output_schema: Value,
    pub output_schema_role: SchemaRole,
    /// The bundled golden set.
    pub examples: Vec<GoldenRow>,
    /// Ids of the frontier models that were benchmarked on it.
    pub benchmarked: Vec<String>,
    /// The instruction that a model gets for a row, unless the set has a better one.
    pub instruction: String,
}

/// What `output_schema` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SchemaRole {
    Gold,
    Summary,
}

/// Interface, Eval set: "Row shape: {input: object, expected_output: object}".
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldenRow {
    pub input: Map<String, Value>,
    pub expected_output: Map<String, Value>,
}

macro_rules! files {
    ($($id:literal),* $(,)?) => {
        &[$(($id, include_str!(concat!("../catalog/", $id, ".json")))),*]
    };
}

/// The files, in the order of the catalog.
const FILES: &[(&str, &str)] = files![
    "invoice-extraction",
    "receipt-extraction",
    "contact-extraction",
    "resume-extraction",
    "sentiment",
    "support-intent",
    "news-topic",
    "toxicity",
    "search-ranking",
    "product-ranking",
    "news-summary",
    "meeting-summary",
    "speech-transcript",
    "document-questions",
    "sql-generation",
    "python-function",
    "translation",
];

static TASKS: LazyLock<Vec<Task>> = LazyLock::new(|| {
    let read = |(id, text): &(&str, &str)| {
        Task::read(text)
            .inspect_err(
                |error| tracing::error!(%error, id, "a task of the catalog cannot be read"),
            )
            .ok()
    };
    FILES.iter().filter_map(read).collect()
});

/// Every task, in the order of the catalog.
pub fn tasks() -> &'static [Task] {
    &TASKS
}

pub fn task(id: &str) -> Option<&'static Task> {
    TASKS.iter().find(|task| task.id == id)
}

// === impl Task ===

impl Task {
    fn read(text: &str) -> Result<Self, String> {
        let mut task: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if task.output_schema_role == SchemaRole::Gold {
            // Interface, Task: "the shape of expected_output when output_schema_role is gold".
            task.output_schema = task.gold_schema.clone();
        }
        for row in &mut task.examples {
            for (_, value) in &mut row.input {
                if let Some(built) = blob::built(value) {
                    *value = Value::String(built?);
                }
            }
        }
        Ok(task)
    }

    /// The frontier models that can run it, in the order of the roster.
    ///
    /// Interface, Task: "only vision-capable frontier models can run such tasks".
    pub(crate) fn frontier_models(&self) -> impl Iterator<Item = &'static FrontierModel> {
        let sees = |model: &&FrontierModel| model.vision || !self.has_blob_input;
        roster::roster().iter().filter(sees)
    }

    /// The Task resource, with at most that many examples if any were requested.
    pub fn shown(&self, examples_n: Option<usize>) -> Value {
        // Assumed (task-catalog): title, description, scoring_strategy and blob_field are added.
        let mut shown = json!({
            "id": self.id,
            "title": self.title,
            "description": self.description,
            "default_scorer": self.default_scorer,
            "scoring_strategy": self.scoring_strategy,
            "has_blob_input": self.has_blob_input,
            "gold_schema": self.gold_schema,
            "output_schema": self.output_schema,
            "output_schema_role": self.output_schema_role,
        });
        if let Some(fields) = shown.as_object_mut() {
            if let Some(field) = &self.blob_field {
                fields.insert("blob_field".to_owned(), json!(field));
            }
            // Interface, Task: "present when examples_n was requested".
            if let Some(n) = examples_n {
                let some: Vec<&GoldenRow> = self.examples.iter().take(n).collect();
                fields.insert("examples".to_owned(), json!(some));
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests;
