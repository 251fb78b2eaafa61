//! Part 6: the roster, one prompt for auto and for a vendor's model, and the service's own figures.

use serde_json::json;

use super::document::{figure, is_true, list, number, text};
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::ledger::MicroUsdSum;
use crate::money::MicroUsd;

/// Returns the ids of the frontier models.
pub async fn show_roster(scene: &mut Scene<'_>) -> Result<Vec<String>, CliError> {
    let roster = scene.get("/v1/eval/frontier-models").await?;
    let (mut shown, mut ids) = (Vec::new(), Vec::new());
    for model in list(&roster, "/frontier_models")? {
        let (id, vendor) = (text(model, "/id")?, text(model, "/vendor")?);
        let sees = if is_true(model, "/vision") {
            ", vision"
        } else {
            ""
        };
        shown.push(format!("{id} ({vendor}{sees})"));
        ids.push(id.to_owned());
    }
    scene.stage.fact("models", shown.join(", "))?;
    scene.expect(!shown.is_empty(), "there is no frontier model");
    Ok(ids)
}

pub async fn comparison(scene: &mut Scene<'_>, model: &str) -> Result<(), CliError> {
    let prompt = "Why do rivers bend?";
    let heard = scene.ask(prompt).await?;
    let auto = scene.receipt(&heard).await?.billed_micro_usd;
    let body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
    let got = scene.call("/v1/playground/frontier", &body).await?;
    scene.stage.prose(model, text(&got.body, "/content")?)?;
    let cost = MicroUsd::new(number(&got.body, "/cost_micro_usd")?);
    scene.paid(got.entry, Some(cost)).await?;
    let auto = auto.unwrap_or_default();
    scene
        .stage
        .fact("costs", format_args!("auto {auto}, {model} {cost}"))?;
    scene.expect(auto < cost, "the vendor's model did not cost more");
    Ok(())
}

/// The organization's document beside the books: requests, money.
pub async fn auto_metrics(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let document = scene.get("/v1/auto/metrics").await?;
    let books = scene.service.books().await?;
    let rate = figure(&document, "/success_rate_30d")?;
    let requests = number(&document, "/requests_30d")?;
    scene.stage.fact(
        "30 days",
        format_args!("{requests} requests of inference, {rate:.3} of them served"),
    )?;
    let saved = number(&document, "/savings_vs_frontier_micro_usd_30d")?;
    scene.stage.fact(
        "saved",
        format_args!("{} against the frontier's list price", MicroUsd::new(saved)),
    )?;
    // "billed spend": the interface does not name its key; the sandbox's is this.
    let billed = MicroUsd::new(number(&document, "/billed_micro_usd_30d")?);
    let mut debited = MicroUsdSum::default();
    for debit in &books.debits {
        debited.add(debit.amount);
    }
    scene.stage.fact(
        "billed",
        format_args!("{billed} by the document, {debited} by the books"),
    )?;
    scene.expect(
        MicroUsdSum::from(billed) == debited,
        "the service's document differs from its books",
    );
    Ok(())
}
