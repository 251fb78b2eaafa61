//! Part 7, the rest: a call to the endpoint, its metrics, its states, its end. Calls to an endpoint are
//! billed, and the interface tells no price in their answers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::deploys::ENDPOINTS;
use super::document::{figure, number, text};
use crate::cli::demo::answer::Heard;
use crate::cli::demo::scene::{CHAT, Scene};
use crate::cli::error::CliError;
use crate::ledger::entry::State;
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;

/// How long the endpoint takes to be live again. The service asks for whole seconds.
const WARM_UP_MS: u64 = 400;

pub async fn endpoint_call(scene: &mut Scene<'_>, id: &str) -> Result<(), CliError> {
    let contact = "Extract the email: write to Ana Silva, ana@example.org";
    let (heard, _) = ask_endpoint(scene, id, contact).await?;
    scene.expect(
        heard.text().contains("ana@example.org"),
        "the answer does not hold the address",
    );
    Ok(())
}

/// A call by the endpoint's id, and its entry.
async fn ask_endpoint(
    scene: &mut Scene<'_>,
    id: &str,
    prompt: &str,
) -> Result<(Heard, EntryView), CliError> {
    scene.stage.fact("asked", prompt)?;
    let body = json!({"model": id, "messages": [{"role": "user", "content": prompt}]});
    let answer = scene.post(CHAT, &body).await?;
    let heard = Heard::whole(answer, &scene.names).await?;
    scene.stage.prose("answer", heard.text())?;
    let entry = scene.paid(heard.entry, None).await?;
    scene.expect(
        entry.state == State::Unreported && entry.usage.total_tokens.is_some(),
        "the ledger has a price for it, or no tokens",
    );
    Ok((heard, entry))
}

pub async fn endpoint_metrics(scene: &mut Scene<'_>, id: &str) -> Result<(), CliError> {
    let activity = metric(scene, id, "activity").await?;
    let requests = number(&activity, "/requests")?;
    let tokens = number(&activity, "/total_tokens")?;
    let stage = scene.stage;
    stage.fact(
        "activity",
        format_args!("{requests} request, {tokens} tokens"),
    )?;
    let performance = metric(scene, id, "performance").await?;
    let percentile = |name: &str| number(&performance, &format!("/{name}_ms"));
    stage.fact(
        "speed",
        format_args!(
            "p50 {} ms, p95 {} ms, p99 {} ms",
            percentile("p50")?,
            percentile("p95")?,
            percentile("p99")?
        ),
    )?;
    for (name, member) in [("uptime", "availability"), ("quality", "score")] {
        let figure = figure(&metric(scene, id, name).await?, &format!("/{member}"))?;
        stage.fact(name, format_args!("{member} {figure:.3}"))?;
    }
    let cost = metric(scene, id, "cost").await?;
    let spend = MicroUsd::new(number(&cost, "/spend_micro_usd")?);
    let debited = debited_to_endpoint(scene, id).await?;
    stage.fact(
        "cost",
        format_args!("{spend} by the endpoint, {debited} by the books"),
    )?;
    scene.expect(
        requests == 1 && spend == debited && !spend.is_zero(),
        "the endpoint's own figures are not those of its one request",
    );
    Ok(())
}

async fn metric(scene: &Scene<'_>, id: &str, name: &str) -> Result<Value, CliError> {
    scene.get(&format!("{ENDPOINTS}/{id}/{name}")).await
}

/// What the books have of the entries that name the endpoint as their model.
async fn debited_to_endpoint(scene: &Scene<'_>, id: &str) -> Result<MicroUsd, CliError> {
    let entries = scene.journal.all().await?;
    let books = scene.service.books().await?;
    let of_endpoint = entries
        .iter()
        .filter(|entry| entry.model.as_deref() == Some(id));
    let debits = of_endpoint.flat_map(|entry| books.debits_of(entry));
    Ok(MicroUsd::new(debits.map(|debit| debit.amount.get()).sum()))
}

pub async fn warm_up(scene: &mut Scene<'_>, id: &str) -> Result<(), CliError> {
    let settings = json!({ "endpoint_warm_up_ms": WARM_UP_MS });
    scene.service.set(&settings).await?;
    let mut states = Vec::new();
    for order in ["stop", "start"] {
        let path = format!("{ENDPOINTS}/{id}/{order}");
        let endpoint = scene
            .send(Method::POST, &path, None, Vec::new())
            .await?
            .body;
        states.push(text(&endpoint, "/status")?.to_owned());
    }
    scene.stage.fact("status", states.join(", then "))?;
    let contact = "Extract the email: write to Bo Lind, bo@example.org";
    let (_, entry) = ask_endpoint(scene, id, contact).await?;
    let attempts = entry.attempts.iter();
    let statuses: Vec<Option<u16>> = attempts.map(|attempt| attempt.status).collect();
    scene.expect(
        states == ["stopped", "starting"] && statuses == [Some(503), Some(200)],
        "bursar did not wait out the warm-up",
    );
    Ok(())
}

pub async fn delete(scene: &mut Scene<'_>, id: &str) -> Result<(), CliError> {
    let path = format!("{ENDPOINTS}/{id}");
    scene.send(Method::DELETE, &path, None, Vec::new()).await?;
    let gone = scene.door.get(&path).await?.status;
    let left = scene.get(ENDPOINTS).await?;
    let left = left.as_array().map(Vec::len);
    scene
        .stage
        .fact("then", format_args!("reading it answers {gone}"))?;
    scene.expect(
        gone == StatusCode::NOT_FOUND && left == Some(0),
        "the endpoint is still there",
    );
    Ok(())
}
