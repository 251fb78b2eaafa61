//! Calls that are no chat completion: how they are made, read, and held against ledger and books.
//!
//! Promise: an answer that is no success, or lacks what the step reads of it, fails the step with the
//! service's own words.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;

use super::tour::Tour;
use crate::cli::CliError;
use crate::cli::client::Answer;
use crate::cli::demo::answer::seconds;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;
use crate::protocol::names::X_BURSAR_ENTRY;
use crate::protocol::receipt::Receipt;

/// Largest answer that is read, in bytes: a recording or a picture.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// How much of a service's error is shown, in characters.
const ERROR_CHARS: usize = 200;

/// An answer and what its head tells.
#[derive(Debug)]
pub struct Got {
    pub entry: Option<EntryId>,
    pub receipt: Receipt,
    pub body: Value,
}

// === impl Tour ===

impl Tour<'_> {
    /// A free read.
    pub async fn get(&self, path: &str) -> Result<Value, CliError> {
        let answer = self.story.door.get(path).await?;
        Ok(self.read(path, answer).await?.body)
    }

    pub async fn post(&self, path: &str, body: &Value) -> Result<Got, CliError> {
        let answer = self.story.post(path, body).await?;
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
        let door = &self.story.door;
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
            receipt: Receipt::from_headers(&self.story.names, &answer.headers),
            body: match status {
                StatusCode::NO_CONTENT => Value::Null,
                _ => answer.json(ANSWER_BYTES_MAX).await?,
            },
        })
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
        let entry = self.story.journal.ended(id).await?;
        self.settled(&entry, told).await?;
        Ok(entry)
    }

    /// The same of an entry that was read.
    pub async fn settled(
        &mut self,
        entry: &EntryView,
        told: Option<MicroUsd>,
    ) -> Result<(), CliError> {
        let books = self.story.service.books().await?;
        let debits: Vec<MicroUsd> = books.debits_of(entry).map(|debit| debit.amount).collect();
        self.story.beside(entry, &debits)?;
        if entry.state == State::Unreported {
            let sound = entry.audio_ms.map(seconds);
            let sound = sound.map(|sound| format!(", for {sound} of sound"));
            self.story.stage.fact(
                "",
                format_args!(
                    "the service does not tell the price{}; bursar does not guess it",
                    sound.unwrap_or_default()
                ),
            )?;
            return Ok(());
        }
        let debited: u64 = debits.iter().map(|amount| amount.get()).sum();
        self.story.expect(
            told.is_some() && entry.billed_micro_usd == told,
            "ledger and answer differ in the amount",
        );
        self.story.expect(
            entry.billed_micro_usd == Some(MicroUsd::new(debited)),
            "the service's books differ from the ledger",
        );
        Ok(())
    }

    /// What an earlier step should have left.
    pub fn needs<T: Clone>(what: Option<&T>, name: &str) -> Result<T, CliError> {
        what.cloned()
            .ok_or_else(|| CliError::Failed(format!("an earlier step left no {name}")))
    }
}

/// A text of an answer, by its JSON pointer.
pub fn text<'a>(body: &'a Value, at: &str) -> Result<&'a str, CliError> {
    member(body, at)?.as_str().ok_or_else(|| lacks(body, at))
}

/// A natural number of an answer.
pub fn number(body: &Value, at: &str) -> Result<u64, CliError> {
    member(body, at)?.as_u64().ok_or_else(|| lacks(body, at))
}

/// A number that counts nothing exact: a score, a rate.
pub fn figure(body: &Value, at: &str) -> Result<f64, CliError> {
    member(body, at)?.as_f64().ok_or_else(|| lacks(body, at))
}

/// Absent is no.
pub fn is_true(body: &Value, at: &str) -> bool {
    body.pointer(at).and_then(Value::as_bool) == Some(true)
}

pub fn list<'a>(body: &'a Value, at: &str) -> Result<&'a [Value], CliError> {
    let list = member(body, at)?.as_array();
    list.map(Vec::as_slice).ok_or_else(|| lacks(body, at))
}

fn member<'a>(body: &'a Value, at: &str) -> Result<&'a Value, CliError> {
    body.pointer(at).ok_or_else(|| lacks(body, at))
}

fn lacks(body: &Value, at: &str) -> CliError {
    let body: String = body.to_string().chars().take(ERROR_CHARS).collect();
    CliError::Failed(format!("the answer has no {at} as it should be: {body}"))
}
