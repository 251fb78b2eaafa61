//! The work of a run: answer each row by each candidate, debit each answer, then score.
//!
//! Interface, Metering: "Eval runs debit for auto and frontier compute".
//!
//! Assumed (eval-billing): one debit for each answer. It is stored together with the run's new cost before
//! the debit is made, and a run that goes on after a kill debits what the books do not have: an answer is
//! billed once, whenever the process ends.
//! Promise: an answer that failed bills nothing; a run stops between two answers, never within one.

use super::{
    ask::Asker,
    hear,
    records::{Candidate, EvalResult, EvalRun, RowAnswer, RunStatus},
    results::Tally,
    rows::EvalRow,
    stored::{ANSWERS, Evals, RUNS},
    tasks, uploads,
};
use crate::{
    catalog::Task,
    error::ServiceError,
    fault::Fault,
    models::{Lane, Pinned},
    money::MicroUsd,
    scoring::{Scorer, read_answer},
    store::Written,
};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Answers of one run that are under way at the same time.
const AT_ONCE: usize = 4;

/// Why a run ended before its end.
enum Ended {
    /// The sandbox stops; the run goes on at the next start.
    Stopped,
    Failed(String),
    Broken(ServiceError),
}

impl From<ServiceError> for Ended {
    fn from(error: ServiceError) -> Self {
        Self::Broken(error)
    }
}

impl From<crate::store::StoreError> for Ended {
    fn from(error: crate::store::StoreError) -> Self {
        Self::Broken(error.into())
    }
}

/// Sets every run to work that an earlier process left unfinished, and clears what it left behind.
pub fn resume(evals: &Arc<Evals>) -> Result<(), ServiceError> {
    let unfinished = evals.unfinished()?;
    for (id, _) in evals.parts.store.all::<RowAnswer>(ANSWERS)? {
        let run = id.split('/').next().unwrap_or_default();
        if !unfinished.iter().any(|one| one.id == run) {
            evals.parts.store.remove(ANSWERS, &id)?;
        }
    }
    uploads::sweep(evals)?;
    for run in unfinished {
        tracing::info!(run = %run.id, status = ?run.status, "an eval run goes on");
        begin(evals, &run.id, Fault::default());
    }
    Ok(())
}

/// Sets a run to work in the background. `pace` slows it down, for tests of what waits for it.
pub fn begin(evals: &Arc<Evals>, id: &str, pace: Fault) {
    let work = work(Arc::clone(evals), id.to_owned(), pace);
    evals.parts.tasks.spawn(work);
}

async fn work(evals: Arc<Evals>, id: String, pace: Fault) {
    let stop = evals.stopping();
    let slots = Arc::clone(&evals.at_work);
    let slot = tokio::select! {
        biased;
        () = stop.cancelled() => return,
        slot = slots.acquire_owned() => slot,
    };
    let (Ok(_slot), Ok(Some(mut run))) = (slot, evals.parts.store.get::<EvalRun>(RUNS, &id)) else {
        return;
    };
    let ended = match whole(&evals, &mut run, &pace, &stop).await {
        Ok(()) => return,
        Err(ended) => ended,
    };
    match ended {
        Ended::Stopped => {}
        Ended::Failed(detail) => fail(&evals, run, detail, &stop).await,
        Ended::Broken(error) => {
            tracing::error!(%error, run = %run.id, "an eval run broke");
            fail(&evals, run, "internal error".to_owned(), &stop).await;
        }
    }
}

/// What a run needs beside itself.
struct Ground {
    rows: Vec<EvalRow>,
    task: &'static Task,
    asker: Asker,
}

// === impl Ground ===

impl Ground {
    fn of(evals: &Evals, run: &EvalRun) -> Result<Self, ServiceError> {
        let set = evals.set(&run.org, &run.eval_set_id)?;
        let task = tasks::by_id(&set.task_id).ok_or(ServiceError::Internal)?;
        let rows = evals.rows(&set.id)?;
        let asker = Asker::new(evals, &set, task, &rows)?;
        Ok(Self { rows, task, asker })
    }
}

async fn whole(
    evals: &Arc<Evals>,
    run: &mut EvalRun,
    pace: &Fault,
    stop: &CancellationToken,
) -> Result<(), Ended> {
    let ground = Ground::of(evals, run)?;
    answer_all(evals, run, &ground, pace, stop).await?;
    run.status = RunStatus::Evaluating;
    save(evals, run, stop, &[])?;
    if let Some(name) = &pace.hold_chunks_name
        && pace.hold_after_chunks.is_none()
    {
        held(evals, name, stop).await?;
    }
    let results = score_all(evals, run, &ground, Some(stop)).await?;
    if results.iter().all(|result| result.n_succeeded == 0) {
        run.results = results;
        return Err(Ended::Failed("no row could be scored".to_owned()));
    }
    run.results = results;
    run.status = RunStatus::Completed;
    // What it cost is in the books before a client sees it.
    evals.parts.checkpoint.commit().await?;
    end(evals, run, stop)
}

/// Answers what has no answer yet, rows first, so that candidates stay comparable when the money ends.
async fn answer_all(
    evals: &Arc<Evals>,
    run: &mut EvalRun,
    ground: &Ground,
    pace: &Fault,
    stop: &CancellationToken,
) -> Result<(), Ended> {
    run.status = RunStatus::Running;
    save(evals, run, stop, &[])?;
    let done = answers(evals, run)?;
    let in_the_books = evals.parts.books.request_ids(&format!("{}/", run.id));
    for answer in done.values() {
        if !in_the_books.contains(&debit_id(run, answer)) {
            debit(evals, run, answer)?;
        }
    }
    let candidates: Vec<Candidate> = run
        .candidate_models
        .iter()
        .filter_map(|id| Candidate::by_id(id))
        .collect();
    let places: Vec<(usize, usize)> = (0..ground.rows.len())
        .flat_map(|row| (0..candidates.len()).map(move |candidate| (row, candidate)))
        .filter(|place| !done.contains_key(place))
        .collect();
    let total = ground.rows.len().saturating_mul(candidates.len());
    let mut n = u64::try_from(done.len()).unwrap_or(u64::MAX);
    let candidates = &candidates;
    let mut under_way = stream::iter(places)
        .map(|(row, candidate)| answer(evals, ground, row, candidate, candidates))
        .buffered(AT_ONCE);
    loop {
        if stop.is_cancelled() {
            return Err(Ended::Stopped);
        }
        if evals.parts.books.check_balance(&run.org).is_err()
            && n < u64::try_from(total).unwrap_or(u64::MAX)
        {
            // Interface, Metering: an empty balance ends the work; the text says how much was billed.
            return Err(Ended::Failed(format!(
                "the organization's balance is empty after {n} of {total} answers"
            )));
        }
        let next = tokio::select! {
            biased;
            () = stop.cancelled() => return Err(Ended::Stopped),
            next = under_way.next() => next,
        };
        let Some(answer) = next else {
            return Ok(());
        };
        record(evals, run, &answer, stop)?;
        n += 1;
        if pace.chunk_delay_ms > 0 {
            tokio::select! {
                () = stop.cancelled() => return Err(Ended::Stopped),
                () = evals.parts.clock.sleep(Duration::from_millis(pace.chunk_delay_ms)) => {}
            }
        }
        if let (Some(after), Some(name)) = (pace.hold_after_chunks, &pace.hold_chunks_name)
            && after == n
        {
            held(evals, name, stop).await?;
        }
        // A run of thousands must not keep the others waiting.
        tokio::task::yield_now().await;
    }
}

async fn held(evals: &Evals, name: &str, stop: &CancellationToken) -> Result<(), Ended> {
    tokio::select! {
        () = stop.cancelled() => Err(Ended::Stopped),
        () = evals.parts.holds.wait(name) => Ok(()),
    }
}

/// One row by one candidate. A row that errors, or whose answer cannot be scored, is an answer without text.
async fn answer(
    evals: &Evals,
    ground: &Ground,
    row: usize,
    candidate: usize,
    candidates: &[Candidate],
) -> RowAnswer {
    let asked = ask(evals, ground, row, candidates.get(candidate)).await;
    let scored = match asked {
        Ok((text, cost)) => check_scorable(ground, row, &text)
            .await
            .map(|()| (text, cost)),
        Err(error) => Err(error),
    };
    let (text, cost) = match scored {
        Ok((text, cost)) => (Some(text), cost),
        Err(error) => {
            tracing::debug!(%error, row, candidate, "a row errored");
            (None, MicroUsd::ZERO)
        }
    };
    RowAnswer {
        row,
        candidate,
        text,
        cost,
    }
}

/// Before the debit, for a row that errors is free. Assumed (eval-billing).
async fn check_scorable(ground: &Ground, at: usize, text: &str) -> Result<(), ServiceError> {
    let (Some(row), Some(scorer)) = (
        ground.rows.get(at),
        Scorer::by_id(&ground.task.default_scorer),
    ) else {
        return Err(ServiceError::Internal);
    };
    let expected = Value::Object(row.expected_output.clone());
    let text = text.to_owned();
    let scored = tokio::task::spawn_blocking(move || {
        let read = read_answer(&text, &expected)?;
        scorer.score(&expected, &read)
    });
    match scored.await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(unscored)) => Err(ServiceError::invalid(unscored.to_string())),
        Err(_) => Err(ServiceError::Internal),
    }
}

async fn ask(
    evals: &Evals,
    ground: &Ground,
    at: usize,
    candidate: Option<&Candidate>,
) -> Result<(String, MicroUsd), ServiceError> {
    let (Some(row), Some(candidate)) = (ground.rows.get(at), candidate) else {
        return Err(ServiceError::Internal);
    };
    if matches!(candidate, Candidate::Auto) && hear::is_heard(ground.task) {
        return hear::hear(evals, &ground.asker, at, row).await;
    }
    let request = ground.asker.request(evals, at, row).await?;
    let (draft, cost) = match candidate {
        Candidate::Auto => {
            let served = evals
                .parts
                .fleet
                .serve(&request, Lane::Inference, Pinned::default())
                .await?;
            if served.missing_input.is_some() {
                return Err(ServiceError::invalid("the row lacks an input"));
            }
            (served.draft, served.price)
        }
        Candidate::Frontier(model) => {
            let answer = evals.parts.fleet.baseline(model, &request).await?;
            (answer.draft, answer.cost)
        }
    };
    let text = draft.content.ok_or(ServiceError::Internal)?;
    Ok((text, cost))
}

/// Writes the run, and what belongs to it, unless it was stopped: a reset must not be written over.
fn save(
    evals: &Evals,
    run: &EvalRun,
    stop: &CancellationToken,
    more: &[Written],
) -> Result<(), Ended> {
    let _gate = evals.gate.lock();
    if stop.is_cancelled() {
        return Err(Ended::Stopped);
    }
    let mut documents = vec![Written::new(RUNS, &run.id, run)?];
    documents.extend_from_slice(more);
    Ok(evals.parts.store.put_all(&documents)?)
}

/// Stores the answer with the run's new cost, then debits it.
fn record(
    evals: &Evals,
    run: &mut EvalRun,
    answer: &RowAnswer,
    stop: &CancellationToken,
) -> Result<(), Ended> {
    run.cost_micro_usd = run
        .cost_micro_usd
        .checked_add(answer.cost)
        .ok_or(ServiceError::Internal)?;
    let id = format!("{}/{:06}/{:02}", run.id, answer.row, answer.candidate);
    save(evals, run, stop, &[Written::new(ANSWERS, &id, answer)?])?;
    Ok(debit(evals, run, answer)?)
}

fn debit(evals: &Evals, run: &EvalRun, answer: &RowAnswer) -> Result<(), ServiceError> {
    let id = debit_id(run, answer);
    evals
        .parts
        .billing
        .charge_answer(&run.org, id, &run.body_fingerprint, answer.cost)
}

/// What the books know an answer's debit by: run, row and model.
fn debit_id(run: &EvalRun, answer: &RowAnswer) -> String {
    let model = run
        .candidate_models
        .get(answer.candidate)
        .map_or("", String::as_str);
    format!("{}/{}/{model}", run.id, answer.row)
}

/// The answers of a run so far, by row and candidate.
fn answers(
    evals: &Evals,
    run: &EvalRun,
) -> Result<BTreeMap<(usize, usize), RowAnswer>, ServiceError> {
    let stored = evals
        .parts
        .store
        .with_prefix::<RowAnswer>(ANSWERS, &format!("{}/", run.id))?;
    Ok(stored
        .into_iter()
        .map(|(_, answer)| ((answer.row, answer.candidate), answer))
        .collect())
}

/// Scores what was answered. `stop` is `None` for a run that failed: it ends now, with what it has.
async fn score_all(
    evals: &Evals,
    run: &EvalRun,
    ground: &Ground,
    stop: Option<&CancellationToken>,
) -> Result<Vec<EvalResult>, Ended> {
    let mut tallies: Vec<Tally> = run
        .candidate_models
        .iter()
        .map(|_| Tally::default())
        .collect();
    for answer in answers(evals, run)?.values() {
        if stop.is_some_and(CancellationToken::is_cancelled) {
            return Err(Ended::Stopped);
        }
        if let (Some(tally), Some(row)) = (
            tallies.get_mut(answer.candidate),
            ground.rows.get(answer.row),
        ) {
            tally
                .add(&evals.parts.fleet, &ground.asker, ground.task, row, answer)
                .await?;
        }
        tokio::task::yield_now().await;
    }
    let ids = run.candidate_models.clone();
    // Thousands of resamples of thousands of scores: not on a thread that serves requests.
    let results = tokio::task::spawn_blocking(move || {
        ids.iter()
            .zip(&tallies)
            .map(|(id, tally)| {
                let candidate = Candidate::by_id(id).ok_or(ServiceError::Internal)?;
                tally.result(id, candidate)
            })
            .collect::<Result<Vec<EvalResult>, ServiceError>>()
    })
    .await
    .map_err(|_| ServiceError::Internal)?;
    Ok(results?)
}

/// Interface, Eval run: "A failed run carries `error_detail`"; "Results are populated once the run is
/// terminal", so those of a failed run are of what was answered.
async fn fail(evals: &Evals, mut run: EvalRun, detail: String, stop: &CancellationToken) {
    if run.results.is_empty()
        && let Ok(ground) = Ground::of(evals, &run)
        && let Ok(results) = score_all(evals, &run, &ground, None).await
    {
        run.results = results;
    }
    run.status = RunStatus::Failed;
    run.error_detail = Some(detail);
    let ended = match evals.parts.checkpoint.commit().await {
        Ok(()) => end(evals, &run, stop),
        Err(error) => Err(error.into()),
    };
    match ended {
        Err(Ended::Broken(error)) => {
            tracing::error!(%error, run = %run.id, "a failed eval run could not be stored");
        }
        Ok(()) | Err(Ended::Stopped | Ended::Failed(_)) => {}
    }
}

/// Stores a terminal run; its answers are not needed any more.
fn end(evals: &Evals, run: &EvalRun, stop: &CancellationToken) -> Result<(), Ended> {
    save(evals, run, stop, &[])?;
    Ok(evals
        .parts
        .store
        .remove_prefix(ANSWERS, &format!("{}/", run.id))?)
}
