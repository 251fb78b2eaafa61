//! What the built-in models can do, measured: every task's golden rows and held-out ones, asked as a run asks.
//!
//! Promise: the floors are what was measured, rounded down; no method was changed for a row that stands in
//! `tests/skill/held_out.json`, so that its figures tell what a new row may expect.

use super::super::*;
use crate::{
    catalog::{self, blob},
    evals::hear,
    models::{Pinned, roster},
    options::Options,
    scoring::{Scorer, grade, read_answer},
    state::State,
};
use std::sync::Arc;

struct Bench {
    state: Arc<State>,
}

impl Bench {
    fn new() -> Self {
        let state = State::new(&Options::default()).unwrap();
        Self { state }
    }

    async fn ask(
        &self,
        task: &Task,
        row: &EvalRow,
        model: Option<&roster::FrontierModel>,
    ) -> Result<String, ServiceError> {
        let asker = Asker {
            prompt: task.instruction.clone(),
            blob_field: task.blob_field.clone(),
            schema: (!is_one_text(&task.gold_schema)).then(|| task.gold_schema.clone()),
            documents: BTreeMap::new(),
        };
        if model.is_none() && hear::is_heard(task) {
            return hear::hear(&self.state.evals, &asker, 0, row)
                .await
                .map(|(text, _)| text);
        }
        let request = asker.request(&self.state.evals, 0, row).await?;
        let draft = match model {
            None => {
                let served = self
                    .state
                    .fleet
                    .serve(&request, Lane::Inference, Pinned::default())
                    .await?;
                assert!(served.missing_input.is_none(), "{}", task.id);
                served.draft
            }
            Some(model) => self.state.fleet.baseline(model, &request).await?.draft,
        };
        Ok(draft.content.unwrap_or_default())
    }

    /// `None` when the row errored.
    async fn scored(
        &self,
        task: &Task,
        row: &EvalRow,
        model: Option<&roster::FrontierModel>,
    ) -> Option<f64> {
        let text = self.ask(task, row, model).await.ok()?;
        let expected = Value::Object(row.expected_output.clone());
        let scorer = Scorer::by_id(&task.default_scorer)?;
        let answer = read_answer(&text, &expected).ok()?;
        let graded = grade(&self.state.fleet, scorer, "", &expected, &answer).await;
        graded.ok().map(|one| one.score)
    }

    /// The mean over the rows; rows that errored count 0, and their number.
    async fn mean(
        &self,
        task: &Task,
        rows: &[EvalRow],
        model: Option<&roster::FrontierModel>,
    ) -> (f64, usize) {
        let mut sum = 0.0;
        let mut errors = 0;
        for row in rows {
            let score = self.scored(task, row, model).await;
            sum += score.unwrap_or(0.0);
            errors += usize::from(score.is_none());
        }
        (sum / rows.len() as f64, errors)
    }
}

fn golden(task: &Task) -> Vec<EvalRow> {
    task.examples
        .iter()
        .map(|row| serde_json::from_value(json!(row)).unwrap())
        .collect()
}

/// The rows of a file by task.
fn held_out() -> BTreeMap<String, Vec<EvalRow>> {
    let mut all: BTreeMap<String, Vec<EvalRow>> =
        serde_json::from_str(include_str!("../../../../tests/skill/held_out.json")).unwrap();
    for row in all.values_mut().flatten() {
        for value in row.input.iter_mut().flat_map(|input| input.values_mut()) {
            if let Some(built) = blob::built(value) {
                *value = Value::String(built.unwrap());
            }
        }
    }
    all
}

/// What a task's rows must score by `auto`: golden, then held out. Measured, and rounded down.
const FLOORS: &[(&str, f64, f64)] = &[
    ("invoice-extraction", 0.97, 0.95),
    ("receipt-extraction", 0.99, 0.99),
    ("contact-extraction", 0.99, 0.85),
    ("resume-extraction", 0.70, 0.85),
    ("sentiment", 0.85, 0.50),
    ("support-intent", 0.95, 0.80),
    ("news-topic", 0.95, 0.80),
    ("toxicity", 0.95, 0.60),
    ("search-ranking", 0.80, 0.90),
    ("product-ranking", 0.95, 0.95),
    ("news-summary", 0.35, 0.50),
    ("meeting-summary", 0.55, 0.60),
    ("speech-transcript", 1.0, 0.0),
    ("document-questions", 0.85, 0.75),
    ("sql-generation", 0.60, 0.80),
    ("python-function", 0.75, 0.55),
    ("translation", 0.70, 0.65),
];

// Interface, Evals: `auto` is scored on the rows of every task; none is without an answer of its form.
#[tokio::test]
async fn auto_answers_every_row_of_every_task_and_has_skill_at_it() {
    let bench = Bench::new();
    let mut held_out = held_out();
    assert_eq!(FLOORS.len(), catalog::tasks().len());
    let mut below = Vec::new();
    for (id, golden_floor, held_out_floor) in FLOORS {
        let task = catalog::task(id).unwrap();
        let (on_golden, errors) = bench.mean(task, &golden(task), None).await;
        assert_eq!(errors, 0, "{id}");
        let others = held_out.remove(*id);
        let on_others = match &others {
            Some(rows) => bench.mean(task, rows, None).await,
            None => (0.0, 0),
        };
        println!("{id} {on_golden:.3} {:.3}", on_others.0);
        assert_eq!(on_others.1, 0, "{id}");
        if on_golden < *golden_floor || on_others.0 < *held_out_floor {
            below.push((id, on_golden, on_others.0));
        }
    }
    assert_eq!(below, []);
    assert!(held_out.is_empty());
}

// Interface, Evals: "scores `auto` and optional frontier baselines on the same rows".
#[tokio::test]
async fn models_of_the_roster_have_strengths_of_their_own_that_stay() {
    let bench = Bench::new();
    let mut seen = std::collections::BTreeSet::new();
    for id in [
        "frontier-a",
        "frontier-b",
        "frontier-c",
        "frontier-d",
        "frontier-e",
        "frontier-f",
    ] {
        let model = roster::by_id(id);
        let mut means = Vec::new();
        for task in ["sentiment", "product-ranking", "sql-generation"] {
            let task = catalog::task(task).unwrap();
            let rows = golden(task);
            let (mean, errors) = bench.mean(task, &rows, model).await;
            assert_eq!(errors, 0);
            means.push(format!("{mean:.3}"));
        }
        println!("{id} {means:?}");
        seen.insert(means);
    }
    assert!(seen.len() >= 4, "{seen:?}");

    let task = catalog::task("sentiment").unwrap();
    let rows = golden(task);
    let once = bench.mean(task, &rows, roster::by_id("frontier-d")).await;
    let again = bench.mean(task, &rows, roster::by_id("frontier-d")).await;
    let (auto, _) = bench.mean(task, &rows, None).await;
    assert_eq!(once, again);
    assert!(once.0 > auto, "the frontier is better at what is hard");
}

// An answer follows its input: what is asked of another text is another answer.
#[tokio::test]
async fn a_changed_row_has_a_changed_answer() {
    let bench = Bench::new();
    let rows = [
        (
            "contact-extraction",
            json!({"text": "Call Imke Duarte of Larch Metals on 555-0177."}),
            r#"{"name":"Imke Duarte","company":"Larch Metals","email":null,"phone":"555-0177"}"#,
        ),
        (
            "contact-extraction",
            json!({"text": "Call Rolf Akande of Larch Metals on 555-0178."}),
            r#"{"name":"Rolf Akande","company":"Larch Metals","email":null,"phone":"555-0178"}"#,
        ),
        (
            "sentiment",
            json!({"text": "I love it."}),
            r#"{"label":"positive"}"#,
        ),
        (
            "sentiment",
            json!({"text": "I do not love it."}),
            r#"{"label":"negative"}"#,
        ),
    ];
    for (id, input, expected) in rows {
        let row = serde_json::from_value(json!({"input": input, "expected_output": {}})).unwrap();
        let answer = bench
            .ask(catalog::task(id).unwrap(), &row, None)
            .await
            .unwrap();
        assert_eq!(answer, expected);
    }
}
