//! Part 3: the catalog, the task that fits a description, and that task done on one of its golden rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::calls::{is_true, list, text};
use super::tour::Tour;
use crate::cli::CliError;

/// Golden rows that are asked for.
const EXAMPLES: usize = 6;

// === impl Tour ===

impl Tour<'_> {
    pub(super) async fn task_list(&mut self) -> Result<(), CliError> {
        let document = self.get("/v1/tasks").await?;
        let tasks = list(&document, "/tasks")?;
        let mut scorers: BTreeMap<&str, usize> = BTreeMap::new();
        for task in tasks {
            *scorers.entry(text(task, "/default_scorer")?).or_default() += 1;
        }
        let scorers: Vec<String> = scorers
            .iter()
            .map(|(scorer, count)| format!("{count} by {scorer}"))
            .collect();
        self.story.stage.fact(
            "tasks",
            format_args!("{}, scored {}", tasks.len(), scorers.join(", ")),
        )?;
        self.story.expect(!tasks.is_empty(), "there is no task");
        Ok(())
    }

    pub(super) async fn task_match(&mut self) -> Result<(), CliError> {
        let query = "is a customer's review positive, negative or neutral";
        self.story.stage.fact("query", query)?;
        let body = json!({"query": query});
        let matched = self.post("/v1/tasks/match", &body).await?.body;
        let id = text(&matched, "/chosen/task_id")?.to_owned();
        self.story.stage.fact(
            "match",
            format_args!(
                "{} {id}, confidence {}, by {}",
                text(&matched, "/type")?,
                text(&matched, "/chosen/confidence")?,
                text(&matched, "/matcher")?
            ),
        )?;
        self.story.expect(
            text(&matched, "/type")? == "task" && is_true(&matched, "/matched"),
            "no task was matched",
        );
        let path = format!("/v1/tasks/{id}?examples_n={EXAMPLES}");
        let task = self.get(&path).await?;
        self.story.stage.fact(
            "task",
            format_args!(
                "{} Scorer: {}.",
                text(&task, "/description")?,
                text(&task, "/default_scorer")?
            ),
        )?;
        self.task = Some(task);
        Ok(())
    }

    /// The task on its first golden row.
    pub(super) async fn task_call(&mut self) -> Result<(), CliError> {
        let task = Self::needs(self.task.as_ref(), "task")?;
        let row = list(&task, "/examples")?.first().cloned();
        let row = row.ok_or_else(|| CliError::Failed("the task has no golden row".to_owned()))?;
        let input = text(&row, "/input/text")?;
        self.story.stage.fact("row", input)?;
        let prompt = format!("{}\n\n{input}", text(&task, "/description")?);
        let name = text(&task, "/id")?;
        let schema = task.get("gold_schema").unwrap_or(&Value::Null);
        let heard = self.ask_structured(&prompt, name, schema).await?;
        let answer: Value = serde_json::from_str(heard.text())?;
        let gold = row.get("expected_output").unwrap_or(&Value::Null);
        let verdict = if answer == *gold {
            "the same"
        } else {
            "the model says otherwise"
        };
        self.story
            .stage
            .fact("gold", format_args!("{gold}: {verdict}"))?;
        self.story.receipt(&heard).await?;
        let keys = |value: &Value| {
            let object = value.as_object();
            object.map(|object| object.keys().cloned().collect::<Vec<_>>())
        };
        self.story.expect(
            keys(&answer).is_some() && keys(&answer) == keys(gold),
            "the answer does not have the fields of the task",
        );
        Ok(())
    }
}
