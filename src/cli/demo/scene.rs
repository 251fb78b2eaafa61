//! A scene of a story: the door that the calls go through, the ledger and the service's books that each
//! answer is compared with, and the stage that shows all of it.
//!
//! Promise: what does not hold is kept, step by step, until the story ends.

use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::error::Elapsed;

use super::answer::{Heard, debits_line, entry_line, seconds, state_line};
use super::books::Service;
use super::files::Journal;
use super::stage::Stage;
use crate::cli::client::{Answer, Client, ClientError};
use crate::cli::error::CliError;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;
use crate::protocol::names::{ServiceNames, X_BURSAR_ENTRY};
use crate::protocol::receipt::Receipt;

pub const CHAT: &str = "/v1/chat/completions";

/// The longest a step may take.
pub const STEP_MAX: Duration = Duration::from_secs(30);

/// Largest answer that is read, in bytes: a recording or a picture.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// How much of a service's error is shown, in characters.
pub const ERROR_CHARS: usize = 200;

/// What a step plays with, and what went wrong so far.
#[derive(Debug)]
pub struct Scene<'a> {
    pub stage: &'a Stage,
    pub door: Client,
    pub service: Service,
    pub journal: Journal,
    pub names: ServiceNames,
    /// What did not happen as told, over all steps.
    wrong: Vec<String>,
}

/// An answer and what its head tells.
#[derive(Debug)]
pub struct Got {
    pub entry: Option<EntryId>,
    pub receipt: Receipt,
    pub body: Value,
}

// === impl Scene ===

impl<'a> Scene<'a> {
    pub fn new(
        stage: &'a Stage,
        door: Client,
        service: Service,
        journal: Journal,
        names: ServiceNames,
    ) -> Self {
        Self {
            stage,
            door,
            service,
            journal,
            names,
            wrong: Vec::new(),
        }
    }

    /// How much went wrong so far.
    pub fn wrong_so_far(&self) -> usize {
        self.wrong.len()
    }

    /// What went wrong in all steps.
    pub fn take_wrong(&mut self) -> Vec<String> {
        std::mem::take(&mut self.wrong)
    }

    /// Ends a step: what went wrong in it is told, and kept under its number. Returns that.
    pub fn close(
        &mut self,
        number: &str,
        wrong_before: usize,
        ended: Result<Result<(), CliError>, Elapsed>,
    ) -> Result<Vec<String>, CliError> {
        match ended {
            Ok(Ok(())) => {}
            // Nobody reads on.
            Ok(Err(error @ (CliError::ReaderGone | CliError::Output(_)))) => return Err(error),
            Ok(Err(error)) => self.wrong.push(error.to_string()),
            Err(_) => self
                .wrong
                .push(format!("no end within {} s", STEP_MAX.as_secs())),
        }
        let mut closed = Vec::new();
        for what in self.wrong.iter_mut().skip(wrong_before) {
            self.stage.bad("WRONG", &what)?;
            closed.push(what.clone());
            *what = format!("{number}: {what}");
        }
        Ok(closed)
    }

    /// One chat call, answered with JSON.
    pub async fn ask(&self, prompt: &str) -> Result<Heard, CliError> {
        self.stage.fact("asked", prompt)?;
        let heard = Heard::whole(self.post(CHAT, &chat(prompt)).await?, &self.names).await?;
        self.stage.prose("answer", heard.text())?;
        Ok(heard)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Answer, ClientError> {
        self.door.post_json(path, body.to_string()).await
    }

    /// A free read.
    pub async fn get(&self, path: &str) -> Result<Value, CliError> {
        let answer = self.door.get(path).await?;
        Ok(self.read(path, answer).await?.body)
    }

    pub async fn call(&self, path: &str, body: &Value) -> Result<Got, CliError> {
        let answer = self.post(path, body).await?;
        self.read(path, answer).await
    }

    /// A body that is no JSON, or none.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        content_type: Option<&str>,
        body: impl Into<Bytes>,
    ) -> Result<Got, CliError> {
        let mut headers = HeaderMap::new();
        if let Some(content_type) = content_type {
            let value = HeaderValue::from_str(content_type)
                .map_err(|error| CliError::Failed(error.to_string()))?;
            headers.insert(CONTENT_TYPE, value);
        }
        let door = &self.door;
        let answer = door.send(method, path, headers, body.into()).await?;
        self.read(path, answer).await
    }

    async fn read(&self, path: &str, answer: Answer) -> Result<Got, CliError> {
        let status = answer.status;
        if !status.is_success() {
            let text = answer.text(ANSWER_BYTES_MAX).await?;
            let text: String = text.chars().take(ERROR_CHARS).collect();
            return Err(CliError::Failed(format!(
                "{path} answered {status}: {text}"
            )));
        }
        let entry = answer.header(X_BURSAR_ENTRY.as_str());
        Ok(Got {
            entry: entry.and_then(|text| text.parse().ok()),
            receipt: Receipt::from_headers(&self.names, &answer.headers),
            body: match status {
                StatusCode::NO_CONTENT => Value::Null,
                _ => answer.json(ANSWER_BYTES_MAX).await?,
            },
        })
    }

    /// Shows what the answer told, what the ledger has, and what the books have, and compares.
    pub async fn receipt(&mut self, heard: &Heard) -> Result<EntryView, CliError> {
        self.stage.fact("receipt", heard.line())?;
        let id = heard
            .entry
            .ok_or_else(|| CliError::Failed("the answer has no X-Bursar-Entry".to_owned()))?;
        let entry = self.journal.ended(id).await?;
        let books = self.service.books().await?;
        let debits: Vec<MicroUsd> = books
            .debits
            .iter()
            .filter(|debit| debit.key.is_some() && debit.key == entry.key)
            .map(|debit| debit.amount)
            .collect();
        self.beside(&entry, &debits)?;

        let told = heard.receipt.billed.value();
        self.expect(told.is_some(), "the answer tells no amount");
        self.expect(
            entry.billed_micro_usd == told,
            "ledger and answer differ in the amount",
        );
        let debited: Vec<MicroUsd> = told.filter(|told| !told.is_zero()).into_iter().collect();
        self.expect(
            debits == debited,
            "the service's books differ from the answer",
        );
        self.expect(
            entry.served_by == heard.receipt.served_by,
            "ledger and answer differ in who served",
        );
        Ok(entry)
    }

    /// Shows the entry of an answer that costs something beside the books, and compares. `told` is the
    /// amount in the answer, where the interface has one.
    pub async fn paid(
        &mut self,
        entry: Option<EntryId>,
        told: Option<MicroUsd>,
    ) -> Result<EntryView, CliError> {
        let id =
            entry.ok_or_else(|| CliError::Failed("the answer has no X-Bursar-Entry".to_owned()))?;
        let entry = self.journal.ended(id).await?;
        self.settled(&entry, told).await?;
        Ok(entry)
    }

    /// The same of an entry that was read.
    pub async fn settled(
        &mut self,
        entry: &EntryView,
        told: Option<MicroUsd>,
    ) -> Result<(), CliError> {
        let books = self.service.books().await?;
        let debits: Vec<MicroUsd> = books.debits_of(entry).map(|debit| debit.amount).collect();
        self.beside(entry, &debits)?;
        if entry.state == State::Unreported {
            let sound = entry.audio_ms.map(seconds);
            let sound = sound.map(|sound| format!(", for {sound} of sound"));
            self.stage.fact(
                "",
                format_args!(
                    "the service does not tell the price{}; bursar does not guess it",
                    sound.unwrap_or_default()
                ),
            )?;
            return Ok(());
        }
        let debited: u64 = debits.iter().map(|amount| amount.get()).sum();
        self.expect(
            told.is_some() && entry.billed_micro_usd == told,
            "ledger and answer differ in the amount",
        );
        self.expect(
            entry.billed_micro_usd == Some(MicroUsd::new(debited)),
            "the service's books differ from the ledger",
        );
        Ok(())
    }

    /// Shows an entry, and what the books have of it.
    pub fn beside(&self, entry: &EntryView, debits: &[MicroUsd]) -> Result<(), CliError> {
        let debits = debits_line(debits);
        if self.stage.is_brief() {
            let ledger = state_line(entry);
            return self
                .stage
                .fact("ledger", format_args!("{ledger}; books: {debits}"));
        }
        self.stage.fact("ledger", entry_line(entry))?;
        self.stage.fact("books", debits)
    }

    /// How often the service was asked under the entry's key.
    pub async fn expect_requests(
        &mut self,
        entry: &EntryView,
        wanted: usize,
    ) -> Result<(), CliError> {
        let key = entry.key.as_deref().unwrap_or_default();
        let count = self.service.requests_with(key).await?;
        let requests = if count == 1 { "request" } else { "requests" };
        self.stage.fact(
            "service",
            format_args!("got {count} {requests} under this call's Idempotency-Key"),
        )?;
        self.expect(
            count == wanted,
            "that is not the number of requests expected",
        );
        Ok(())
    }

    pub fn expect(&mut self, holds: bool, otherwise: &str) {
        if !holds {
            self.wrong.push(otherwise.to_owned());
        }
    }
}

/// The body of a chat call.
pub fn chat(prompt: &str) -> Value {
    json!({"model": "auto", "messages": [{"role": "user", "content": prompt}]})
}
