//! A scene of a story: the door that the calls go through, the ledger and the service's books that each
//! answer is compared with, and the screen that shows all of it.
//!
//! Promise: what does not hold is kept, step by step, until the story ends.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::error::Elapsed;

use super::answer::{Heard, debits_line, entry_line};
use super::books::Service;
use super::files::LedgerFiles;
use super::screen::Screen;
use super::world::World;
use crate::cli::cells::counted;
use crate::cli::client::{Client, ClientError, Response};
use crate::cli::error::CliError;
use crate::config::ListenAddr;
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;
use crate::protocol::names::ServiceNames;

pub const CHAT: &str = "/v1/chat/completions";

/// The longest a step may take.
pub const STEP_MAX: Duration = Duration::from_secs(30);

/// What a step plays with, and what went wrong so far.
#[derive(Debug)]
pub struct Scene<'a> {
    screen: &'a Screen,
    door: Client,
    service: Service,
    journal: LedgerFiles,
    names: ServiceNames,
    wrong: Vec<String>,
    /// How many of them are of earlier steps.
    wrong_before: usize,
}

// === impl Scene ===

impl<'a> Scene<'a> {
    pub fn new(screen: &'a Screen, world: &World) -> Self {
        Self {
            screen,
            door: Client::new(ListenAddr::Tcp(world.places.door)),
            service: world.service(),
            journal: world.journal.clone(),
            names: world.names.clone(),
            wrong: Vec::new(),
            wrong_before: 0,
        }
    }

    pub fn screen(&self) -> &'a Screen {
        self.screen
    }

    /// Goes through the door.
    pub fn door(&self) -> &Client {
        &self.door
    }

    pub fn service(&self) -> &Service {
        &self.service
    }

    pub fn journal(&self) -> &LedgerFiles {
        &self.journal
    }

    pub fn names(&self) -> &ServiceNames {
        &self.names
    }

    /// What did not happen as announced, over all steps.
    pub fn into_wrong(self) -> Vec<String> {
        self.wrong
    }

    /// Ends a step: prints what went wrong in it, and keeps that under the step's number.
    pub fn close(
        &mut self,
        number: &str,
        ended: Result<Result<(), CliError>, Elapsed>,
    ) -> Result<(), CliError> {
        match ended {
            Ok(Ok(())) => {}
            // Standard output has no reader any more.
            Ok(Err(error @ (CliError::ReaderGone | CliError::Output(_)))) => return Err(error),
            Ok(Err(error)) => self.wrong.push(error.to_string()),
            Err(_) => self
                .wrong
                .push(format!("no end within {} s", STEP_MAX.as_secs())),
        }
        for what in self.wrong.iter_mut().skip(self.wrong_before) {
            self.screen.bad("WRONG", &what)?;
            *what = format!("{number}: {what}");
        }
        self.wrong_before = self.wrong.len();
        Ok(())
    }

    /// One chat call, answered with JSON.
    pub async fn ask(&self, prompt: &str) -> Result<Heard, CliError> {
        self.screen.fact("asked", prompt)?;
        let heard = Heard::whole(self.post(CHAT, &chat(prompt)).await?, &self.names).await?;
        self.screen.fact("answer", heard.text())?;
        Ok(heard)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Response, ClientError> {
        self.door.post_json(path, body.to_string()).await
    }

    /// Shows what the answer says, what the ledger has, and what the books have, and compares.
    pub async fn receipt(&mut self, heard: &Heard) -> Result<EntryView, CliError> {
        self.screen.fact("receipt", heard.line())?;
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

        let reported = heard.receipt.billed.value();
        self.expect(reported.is_some(), "the answer reports no amount");
        self.expect(
            entry.billed_micro_usd == reported,
            "ledger and answer differ in the amount",
        );
        let debited: Vec<MicroUsd> = reported
            .filter(|reported| !reported.is_zero())
            .into_iter()
            .collect();
        self.expect(
            debits == debited,
            "the service's books differ from the answer",
        );
        self.expect(
            entry.served_by == heard.receipt.served_by,
            "ledger and answer differ in the model that served",
        );
        Ok(entry)
    }

    /// Shows an entry, and what the books have of it.
    pub fn beside(&self, entry: &EntryView, debits: &[MicroUsd]) -> Result<(), CliError> {
        self.screen.fact("ledger", entry_line(entry))?;
        self.screen.fact("books", debits_line(debits))
    }

    /// How often the service was asked under the entry's key.
    pub async fn expect_requests(
        &mut self,
        entry: &EntryView,
        wanted: usize,
    ) -> Result<(), CliError> {
        let key = entry.key.as_deref().unwrap_or_default();
        let count = self.service.requests_with(key).await?;
        let requests = counted(count, "request", "requests");
        self.screen.fact(
            "service",
            format_args!("got {requests} under this call's Idempotency-Key"),
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
