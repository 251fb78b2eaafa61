//! Part 4, its runs: one that is asked about until it ends, and twice more; and one that nobody asks
//! about, whose price bursar asks for itself.
//!
//! Promise: a run's cost is in the ledger once, however often it is read, and is the sum of its debits.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::document::{figure, is_true, list, number, text};
use super::recordings::create_set;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;

const RUNS: &str = "/v1/eval-runs";

/// Longest time for a run, and for bursar to ask for one: it does three seconds after the start.
const RUN_MAX: Duration = Duration::from_secs(20);

const LOOK_PAUSE: Duration = Duration::from_millis(25);

pub async fn eval_run(scene: &mut Scene<'_>, set: &str) -> Result<(), CliError> {
    let baseline = baseline(scene, "speech-transcript").await?;
    let (entry, run) = start_run(scene, set, &["auto", &baseline]).await?;
    let envelope = ended_run(scene, &run).await?;
    show_results(scene, &envelope)?;
    let cost = MicroUsd::new(number(&envelope, "/run/cost_micro_usd")?);
    let known = priced(scene, entry).await?;
    scene.settled(&known, Some(cost)).await?;

    for _ in 0..2 {
        ended_run(scene, &run).await?;
    }
    let again = scene.journal.ended(entry).await?;
    scene.expect(
        again.seq == known.seq && again.billed_micro_usd == Some(cost),
        "reading the run again changed its entry",
    );
    scene.stage.fact(
        "once",
        format_args!("read twice more; the ledger still has {cost} for it"),
    )
}

/// Returns the entry and the id of the run that nobody asks about.
pub async fn forgotten_run(
    scene: &mut Scene<'_>,
    task: &Value,
) -> Result<(EntryId, String), CliError> {
    let rows = list(task, "/examples")?.to_vec();
    let id = text(task, "/id")?.to_owned();
    let prompt = "Say whether the text is positive, negative or neutral.";
    let set = create_set(scene, Some(&id), prompt, &rows).await?;
    let (entry, run) = start_run(scene, &set, &["auto"]).await?;
    scene.stage.fact(
        "app",
        "starts the run and goes away: it will not ask what became of it",
    )?;
    Ok((entry, run))
}

/// Looks at the ledger only.
pub async fn forgotten_run_is_known(
    scene: &mut Scene<'_>,
    entry: EntryId,
    run: &str,
) -> Result<(), CliError> {
    let known = priced(scene, entry).await?;
    let path = format!("{RUNS}/{run}");
    let received = scene.service.received().await?;
    let asked = received
        .iter()
        .filter(|one| one.method == Method::GET.as_str() && one.path == path)
        .count();
    scene.stage.fact(
        "service",
        format_args!("was asked for the run; requests, all of bursar's own: {asked}"),
    )?;
    scene.expect(asked > 0, "nobody asked for the run");
    // Nothing of the answer reached this side: the ledger is compared with the books.
    scene.settled(&known, known.billed_micro_usd).await
}

/// A vendor's model that was benchmarked on the task.
async fn baseline(scene: &Scene<'_>, task: &str) -> Result<String, CliError> {
    let path = format!("/v1/eval/frontier-models?task={task}");
    let roster = scene.get(&path).await?;
    let mut models = list(&roster, "/frontier_models")?.iter();
    let found = models.find(|model| is_true(model, "/benchmarked"));
    let found = found.ok_or_else(|| CliError::Failed("no model was benchmarked".to_owned()))?;
    Ok(text(found, "/id")?.to_owned())
}

/// The entry and the id of a new run.
async fn start_run(
    scene: &mut Scene<'_>,
    set: &str,
    candidates: &[&str],
) -> Result<(EntryId, String), CliError> {
    let body = json!({"eval_set_id": set, "candidate_model_ids": candidates});
    let got = scene.call(RUNS, &body).await?;
    let run = text(&got.body, "/run_id")?.to_owned();
    scene.stage.fact(
        "run",
        format_args!(
            "{run}, {}: {}",
            text(&got.body, "/status")?,
            candidates.join(" and ")
        ),
    )?;
    let entry = got
        .entry
        .ok_or_else(|| CliError::Failed("the answer has no X-Bursar-Entry".to_owned()))?;
    Ok((entry, run))
}

/// The envelope of a run that is over.
async fn ended_run(scene: &Scene<'_>, run: &str) -> Result<Value, CliError> {
    let until = Instant::now() + RUN_MAX;
    loop {
        let envelope = scene.get(&format!("{RUNS}/{run}")).await?;
        match text(&envelope, "/run/status")? {
            "completed" => return Ok(envelope),
            "failed" => {
                let why = text(&envelope, "/run/error_detail")?;
                return Err(CliError::Failed(format!("the run failed: {why}")));
            }
            status if Instant::now() >= until => {
                let late = format!("the run is still {status}");
                return Err(CliError::Failed(late));
            }
            _ => sleep(LOOK_PAUSE).await,
        }
    }
}

/// A run's entry once its price is known.
async fn priced(scene: &Scene<'_>, id: EntryId) -> Result<EntryView, CliError> {
    let until = Instant::now() + RUN_MAX;
    loop {
        let entry = scene.journal.ended(id).await?;
        if matches!(entry.state, State::Reconciled { .. }) {
            return Ok(entry);
        }
        if Instant::now() >= until {
            let state = entry.state.word();
            return Err(CliError::Failed(format!("the run's entry is {state}")));
        }
        sleep(LOOK_PAUSE).await;
    }
}

fn show_results(scene: &mut Scene<'_>, envelope: &Value) -> Result<(), CliError> {
    let rows = list(envelope, "/results")?;
    for row in rows {
        let [mean, low, high] =
            ["mean", "ci_low", "ci_high"].map(|name| figure(row, &format!("/quality_{name}")));
        let (mean, low, high) = (mean?, low?, high?);
        let per_row = MicroUsd::new(number(row, "/mean_cost_micro_usd")?);
        scene.stage.fact(
            "result",
            format_args!(
                "{}: {mean:.3} ({low:.3} to {high:.3}), {per_row} a row",
                text(row, "/model_id")?
            ),
        )?;
        scene.expect(
            number(row, "/error_count")? == 0 && low <= mean && mean <= high,
            "rows were not scored",
        );
    }
    scene.expect(rows.len() == 2, "not one result for each candidate");
    Ok(())
}
