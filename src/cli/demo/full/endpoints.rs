//! Part 7, the rest: a call to the endpoint, its metrics, its states, its end. Calls to an endpoint are
//! billed, and the interface tells no price in their answers.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::calls::{figure, number, text};
use super::deploys::ENDPOINTS;
use super::tour::Tour;
use crate::cli::CliError;
use crate::cli::demo::answer::Heard;
use crate::cli::demo::story::CHAT;
use crate::ledger::entry::State;
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;

/// How long the endpoint takes to be live again. The service asks for whole seconds.
const WARM_UP_MS: u64 = 400;

// === impl Tour ===

impl Tour<'_> {
    pub(super) async fn endpoint_call(&mut self) -> Result<(), CliError> {
        let contact = "Extract the email: write to Ana Silva, ana@example.org";
        let (heard, _) = self.ask_endpoint(contact).await?;
        self.story.expect(
            heard.text().contains("ana@example.org"),
            "the answer does not hold the address",
        );
        Ok(())
    }

    /// A call by the endpoint's id, and its entry.
    async fn ask_endpoint(&mut self, prompt: &str) -> Result<(Heard, EntryView), CliError> {
        let id = Self::needs(self.endpoint.as_ref(), "endpoint")?;
        self.story.stage.fact("asked", prompt)?;
        let body = json!({"model": id, "messages": [{"role": "user", "content": prompt}]});
        let answer = self.story.post(CHAT, &body).await?;
        let heard = Heard::whole(answer, &self.story.names).await?;
        self.story.stage.prose("answer", heard.text())?;
        let entry = self.paid(heard.entry, None).await?;
        self.story.expect(
            entry.state == State::Unreported && entry.usage.total_tokens.is_some(),
            "the ledger has a price for it, or no tokens",
        );
        Ok((heard, entry))
    }

    pub(super) async fn endpoint_metrics(&mut self) -> Result<(), CliError> {
        let activity = self.metric("activity").await?;
        let requests = number(&activity, "/requests")?;
        let tokens = number(&activity, "/total_tokens")?;
        let stage = self.story.stage;
        stage.fact(
            "activity",
            format_args!("{requests} request, {tokens} tokens"),
        )?;
        let performance = self.metric("performance").await?;
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
        for (metric, member) in [("uptime", "availability"), ("quality", "score")] {
            let figure = figure(&self.metric(metric).await?, &format!("/{member}"))?;
            stage.fact(metric, format_args!("{member} {figure:.3}"))?;
        }
        let cost = self.metric("cost").await?;
        let spend = MicroUsd::new(number(&cost, "/spend_micro_usd")?);
        let debited = self.debited_to_endpoint().await?;
        stage.fact(
            "cost",
            format_args!("{spend} by the endpoint, {debited} by the books"),
        )?;
        self.story.expect(
            requests == 1 && spend == debited && !spend.is_zero(),
            "the endpoint's own figures are not those of its one request",
        );
        Ok(())
    }

    async fn metric(&self, name: &str) -> Result<Value, CliError> {
        let id = Self::needs(self.endpoint.as_ref(), "endpoint")?;
        self.get(&format!("{ENDPOINTS}/{id}/{name}")).await
    }

    /// What the books have of the entries that name the endpoint as their model.
    async fn debited_to_endpoint(&self) -> Result<MicroUsd, CliError> {
        let entries = self.story.journal.all().await?;
        let books = self.story.service.books().await?;
        let of_endpoint = entries
            .iter()
            .filter(|entry| entry.model.is_some() && entry.model == self.endpoint);
        let debits = of_endpoint.flat_map(|entry| books.debits_of(entry));
        Ok(MicroUsd::new(debits.map(|debit| debit.amount.get()).sum()))
    }

    pub(super) async fn warm_up(&mut self) -> Result<(), CliError> {
        let id = Self::needs(self.endpoint.as_ref(), "endpoint")?;
        let settings = json!({ "endpoint_warm_up_ms": WARM_UP_MS });
        self.story.service.set(&settings).await?;
        let mut states = Vec::new();
        for order in ["stop", "start"] {
            let path = format!("{ENDPOINTS}/{id}/{order}");
            let endpoint = self.send(Method::POST, &path, None, Vec::new()).await?.body;
            states.push(text(&endpoint, "/status")?.to_owned());
        }
        self.story.stage.fact("status", states.join(", then "))?;
        let contact = "Extract the email: write to Bo Lind, bo@example.org";
        let (_, entry) = self.ask_endpoint(contact).await?;
        let attempts = entry.attempts.iter();
        let statuses: Vec<Option<u16>> = attempts.map(|attempt| attempt.status).collect();
        self.story.expect(
            states == ["stopped", "starting"] && statuses == [Some(503), Some(200)],
            "bursar did not wait out the warm-up",
        );
        Ok(())
    }

    pub(super) async fn delete(&mut self) -> Result<(), CliError> {
        let id = Self::needs(self.endpoint.as_ref(), "endpoint")?;
        let path = format!("{ENDPOINTS}/{id}");
        self.send(Method::DELETE, &path, None, Vec::new()).await?;
        let gone = self.story.door.get(&path).await?.status;
        let left = self.get(ENDPOINTS).await?;
        let left = left.as_array().map(Vec::len);
        self.story
            .stage
            .fact("then", format_args!("reading it answers {gone}"))?;
        self.story.expect(
            gone == StatusCode::NOT_FOUND && left == Some(0),
            "the endpoint is still there",
        );
        Ok(())
    }
}
