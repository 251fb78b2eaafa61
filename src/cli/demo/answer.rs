//! An answer as an app gets it, and the line that describes it and its entry.

use http::StatusCode;
use serde_json::Value;

use super::screen::Prose;
use crate::cli::cells::seconds;
use crate::cli::client;
use crate::cli::error::CliError;
use crate::ledger::entry::{EntryId, State};
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;
use crate::protocol::names::{ServiceNames, X_BURSAR_ADOPTED, X_BURSAR_ENTRY};
use crate::protocol::receipt::Receipt;
use crate::protocol::{Escalated, Reported, ServedBy};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What the app has in its hands.
#[derive(Debug)]
pub struct Heard {
    pub status: StatusCode,
    pub entry: Option<EntryId>,
    pub adopted: Option<EntryId>,
    pub receipt: Receipt,
    /// The message of the first choice; of a stream, what its pieces come to.
    pub message: Value,
}

/// Takes a stream apart: comment lines and data lines, in any chunking.
#[derive(Debug, Default)]
pub struct EventLines {
    unread: Vec<u8>,
}

// === impl Heard ===

impl Heard {
    /// Reads a JSON answer. What is no success, or no completion, is an error with its text.
    pub async fn whole(answer: client::Response, names: &ServiceNames) -> Result<Self, CliError> {
        let mut heard = Self::head(&answer, names)?;
        let body: Value = answer.json(ANSWER_BYTES_MAX).await?;
        heard.message = body
            .pointer("/choices/0/message")
            .cloned()
            .ok_or_else(|| CliError::Failed(format!("not a chat completion: {body}")))?;
        Ok(heard)
    }

    /// What the head of an answer reports.
    pub fn head(answer: &client::Response, names: &ServiceNames) -> Result<Self, CliError> {
        let status = answer.status();
        if !status.is_success() {
            let code = answer.header("x-bursar-error").unwrap_or("the service");
            return Err(CliError::Failed(format!("answered {status} ({code})")));
        }
        let id = |name: &str| answer.header(name).and_then(|text| text.parse().ok());
        Ok(Self {
            status,
            entry: id(X_BURSAR_ENTRY.as_str()),
            adopted: id(X_BURSAR_ADOPTED.as_str()),
            receipt: Receipt::from_headers(names, answer.headers()),
            message: Value::Null,
        })
    }

    pub fn text(&self) -> &str {
        self.message
            .get("content")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    /// `200, billed $0.000012, frontier would have cost $0.000195, served by specialist (coding)`.
    pub fn line(&self) -> String {
        let receipt = &self.receipt;
        let mut parts = vec![self.status.as_u16().to_string()];
        parts.push(match receipt.billed {
            Reported::Value(billed) => format!("billed {billed}"),
            Reported::Malformed => "billed: not readable".to_owned(),
            Reported::Absent => "billed: not reported".to_owned(),
        });
        if let Some(estimate) = receipt.would_have_cost.value() {
            parts.push(format!("frontier would have cost {estimate}"));
        }
        let specialist = receipt.specialist.as_deref();
        if receipt.escalated == Escalated::True {
            parts.extend(served(receipt.served_by, None));
            parts.push(format!(
                "escalated from {}",
                specialist.unwrap_or("a specialist")
            ));
        } else {
            parts.extend(served(receipt.served_by, specialist));
        }
        if let Some(input) = &receipt.input_required {
            parts.push(format!("input required: {input}"));
        }
        parts.join(", ")
    }
}

/// `0199…: settled $0.000012, served by specialist, 3 attempts (503, 503, 200) after waits of …`.
pub fn entry_line(entry: &EntryView) -> String {
    format!("{}: {}", entry.id, state_line(entry))
}

/// The same without the entry's name.
pub fn state_line(entry: &EntryView) -> String {
    let state = match entry.state {
        State::InDoubt { reason } => format!("in doubt ({reason})"),
        state => state.word().to_string(),
    };
    let mut parts = vec![match entry.billed_micro_usd {
        Some(billed) => format!("{state} {billed}"),
        None => format!("{state}, amount not known"),
    }];
    parts.extend(served(entry.served_by, None));
    parts.push(attempts(entry));
    parts.join(", ")
}

fn served(by: Option<ServedBy>, specialist: Option<&str>) -> Option<String> {
    match (by?, specialist) {
        (ServedBy::None, _) => Some("served by no model".to_owned()),
        (by, Some(category)) => Some(format!("served by {by} ({category})")),
        (by, None) => Some(format!("served by {by}")),
    }
}

fn attempts(entry: &EntryView) -> String {
    match entry.attempts.as_slice() {
        [] => return "no attempt".to_owned(),
        [_] => return "1 attempt".to_owned(),
        _ => {}
    }
    let statuses: Vec<String> = entry
        .attempts
        .iter()
        .map(|attempt| match attempt.status {
            Some(status) => status.to_string(),
            None => attempt.cause.as_deref().unwrap_or("no answer").to_owned(),
        })
        .collect();
    let waits: Vec<String> = entry
        .attempts
        .iter()
        .skip(1)
        .map(|attempt| seconds(attempt.wait_ms))
        .collect();
    format!(
        "{} attempts ({}) after waits of {}",
        statuses.len(),
        statuses.join(", "),
        waits.join(" and ")
    )
}

/// `one debit of $0.000012`, `no debit`, `2 debits of $0.000024`.
pub fn debits_line(amounts: &[MicroUsd]) -> String {
    match amounts {
        [] => "no debit".to_owned(),
        [one] => format!("one debit of {one}"),
        several => {
            let sum = several.iter().map(|amount| amount.get()).sum();
            format!("{} debits of {} in all", several.len(), MicroUsd::new(sum))
        }
    }
}

// === impl EventLines ===

impl EventLines {
    /// Takes a chunk: comments go into the receipt, pieces of text to the reader. Returns how many
    /// pieces there were, and whether the end mark came.
    pub fn take(
        &mut self,
        chunk: &[u8],
        names: &ServiceNames,
        heard: &mut Heard,
        prose: &mut Prose,
    ) -> Result<(u32, bool), CliError> {
        self.unread.extend_from_slice(chunk);
        let mut pieces = 0;
        let mut done = false;
        while let Some(end) = memchr::memchr(b'\n', &self.unread) {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = line.trim_ascii_end();
            if let Some(comment) = line.strip_prefix(b": ") {
                let space = memchr::memchr(b' ', comment).unwrap_or(comment.len());
                let (name, value) = comment.split_at(space);
                let receipt = std::mem::take(&mut heard.receipt);
                heard.receipt = receipt.with_comment(names, name, value.trim_ascii_start());
            } else if line == b"data: [DONE]" {
                done = true;
            } else if let Some(data) = line.strip_prefix(b"data: ") {
                let data: Value = serde_json::from_slice(data)?;
                let piece = data.pointer("/choices/0/delta/content");
                if let Some(piece) = piece.and_then(Value::as_str) {
                    prose.piece(piece)?;
                    pieces += 1;
                }
            }
        }
        Ok((pieces, done))
    }
}
