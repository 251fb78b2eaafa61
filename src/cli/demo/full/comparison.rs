//! Part 6: the roster, one prompt for auto and for a vendor's model, and the service's own figures.

use serde_json::json;

use super::calls::{figure, is_true, list, number, text};
use super::tour::Tour;
use crate::cli::CliError;
use crate::ledger::MicroUsdSum;
use crate::money::MicroUsd;

// === impl Tour ===

impl Tour<'_> {
    pub(super) async fn show_roster(&mut self) -> Result<(), CliError> {
        let roster = self.get("/v1/eval/frontier-models").await?;
        let mut shown = Vec::new();
        for model in list(&roster, "/frontier_models")? {
            let (id, vendor) = (text(model, "/id")?, text(model, "/vendor")?);
            let sees = if is_true(model, "/vision") {
                ", vision"
            } else {
                ""
            };
            shown.push(format!("{id} ({vendor}{sees})"));
            self.roster.push(id.to_owned());
        }
        self.story.stage.fact("models", shown.join(", "))?;
        self.story
            .expect(!shown.is_empty(), "there is no frontier model");
        Ok(())
    }

    pub(super) async fn comparison(&mut self) -> Result<(), CliError> {
        let model = Self::needs(self.roster.first(), "roster")?;
        let prompt = "Why do rivers bend?";
        let heard = self.story.ask(prompt).await?;
        let auto = self.story.receipt(&heard).await?.billed_micro_usd;
        let body = json!({"model": model, "messages": [{"role": "user", "content": prompt}]});
        let got = self.post("/v1/playground/frontier", &body).await?;
        self.story
            .stage
            .prose(&model, text(&got.body, "/content")?)?;
        let cost = MicroUsd::new(number(&got.body, "/cost_micro_usd")?);
        self.paid(got.entry, Some(cost)).await?;
        let auto = auto.unwrap_or_default();
        self.story
            .stage
            .fact("costs", format_args!("auto {auto}, {model} {cost}"))?;
        self.story
            .expect(auto < cost, "the vendor's model did not cost more");
        Ok(())
    }

    /// The organization's document beside the books: requests, money.
    pub(super) async fn auto_metrics(&mut self) -> Result<(), CliError> {
        let document = self.get("/v1/auto/metrics").await?;
        let books = self.story.service.books().await?;
        let rate = figure(&document, "/success_rate_30d")?;
        let requests = number(&document, "/requests_30d")?;
        self.story.stage.fact(
            "30 days",
            format_args!("{requests} requests of inference, {rate:.3} of them served"),
        )?;
        let saved = number(&document, "/savings_vs_frontier_micro_usd_30d")?;
        self.story.stage.fact(
            "saved",
            format_args!("{} against the frontier's list price", MicroUsd::new(saved)),
        )?;
        // "billed spend": the interface does not name its key; the sandbox's is this.
        let billed = MicroUsd::new(number(&document, "/billed_micro_usd_30d")?);
        let mut debited = MicroUsdSum::default();
        for debit in &books.debits {
            debited.add(debit.amount);
        }
        self.story.stage.fact(
            "billed",
            format_args!("{billed} by the document, {debited} by the books"),
        )?;
        self.story.expect(
            MicroUsdSum::from(billed) == debited,
            "the service's document differs from its books",
        );
        Ok(())
    }
}
