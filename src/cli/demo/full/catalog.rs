//! Part 3: the catalog, the task that fits a description, and that task done on one of its golden rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::document::{is_true, list, text};
use super::inference::ask_structured;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;

/// Golden rows that are asked for.
const EXAMPLES: usize = 6;

pub async fn task_list(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let document = scene.get("/v1/tasks").await?;
    let tasks = list(&document, "/tasks")?;
    let mut scorers: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        *scorers.entry(text(task, "/default_scorer")?).or_default() += 1;
    }
    let scorers: Vec<String> = scorers
        .iter()
        .map(|(scorer, count)| format!("{count} by {scorer}"))
        .collect();
    scene.stage.fact(
        "tasks",
        format_args!("{}, scored {}", tasks.len(), scorers.join(", ")),
    )?;
    scene.expect(!tasks.is_empty(), "there is no task");
    Ok(())
}

/// Returns the task that was chosen, with its golden rows.
pub async fn task_match(scene: &mut Scene<'_>) -> Result<Value, CliError> {
    let query = "is a customer's review positive, negative or neutral";
    scene.stage.fact("query", query)?;
    let body = json!({"query": query});
    let matched = scene.call("/v1/tasks/match", &body).await?.body;
    let id = text(&matched, "/chosen/task_id")?.to_owned();
    scene.stage.fact(
        "match",
        format_args!(
            "{} {id}, confidence {}, by {}",
            text(&matched, "/type")?,
            text(&matched, "/chosen/confidence")?,
            text(&matched, "/matcher")?
        ),
    )?;
    scene.expect(
        text(&matched, "/type")? == "task" && is_true(&matched, "/matched"),
        "no task was matched",
    );
    let path = format!("/v1/tasks/{id}?examples_n={EXAMPLES}");
    let task = scene.get(&path).await?;
    scene.stage.fact(
        "task",
        format_args!(
            "{} Scorer: {}.",
            text(&task, "/description")?,
            text(&task, "/default_scorer")?
        ),
    )?;
    Ok(task)
}

/// The task on its first golden row.
pub async fn task_call(scene: &mut Scene<'_>, task: &Value) -> Result<(), CliError> {
    let row = list(task, "/examples")?.first().cloned();
    let row = row.ok_or_else(|| CliError::Failed("the task has no golden row".to_owned()))?;
    let input = text(&row, "/input/text")?;
    scene.stage.fact("row", input)?;
    let prompt = format!("{}\n\n{input}", text(task, "/description")?);
    let name = text(task, "/id")?;
    let schema = task.get("gold_schema").unwrap_or(&Value::Null);
    let heard = ask_structured(scene, &prompt, name, schema).await?;
    let answer: Value = serde_json::from_str(heard.text())?;
    let gold = row.get("expected_output").unwrap_or(&Value::Null);
    let verdict = if answer == *gold {
        "the same"
    } else {
        "the model says otherwise"
    };
    scene
        .stage
        .fact("gold", format_args!("{gold}: {verdict}"))?;
    scene.receipt(&heard).await?;
    let keys = |value: &Value| {
        let object = value.as_object();
        object.map(|object| object.keys().cloned().collect::<Vec<_>>())
    };
    scene.expect(
        keys(&answer).is_some() && keys(&answer) == keys(gold),
        "the answer does not have the fields of the task",
    );
    Ok(())
}
