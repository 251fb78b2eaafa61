//! The story: seven steps through the door, each checked against the ledger and the service's books
//! before the next begins.
//!
//! Promise: a step that does not do what it says is told; it never passes for one that did.

pub mod agent;
mod lost;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout};

use super::answer::{EventLines, Heard, debits_line, entry_line, seconds, state_line};
use super::books::Service;
use super::files::Journal;
use super::stage::Stage;
use crate::cli::CliError;
use crate::cli::client::{Answer, Client, ClientError};
use crate::ledger::entry::State;
use crate::ledger::query::EntryView;
use crate::money::MicroUsd;
use crate::protocol::names::ServiceNames;
use crate::protocol::{Escalated, ServedBy};

pub const CHAT: &str = "/v1/chat/completions";

/// The longest a step may take.
pub const STEP_MAX: Duration = Duration::from_secs(30);

/// The sandbox's pause between two pieces of the stream.
const PIECE_PAUSE_MS: u64 = 30;

/// What the service asks for before the second retry.
const RETRY_AFTER_S: u64 = 1;

/// The steps, in order.
#[derive(Clone, Copy, Debug)]
enum Step {
    JsonCall,
    Stream,
    AgentTurn,
    Retries,
    LostAnswer,
    Escalation,
    Clarification,
}

/// The teller, and what went wrong so far.
#[derive(Debug)]
pub struct Story<'a> {
    pub stage: &'a Stage,
    pub door: Client,
    pub service: Service,
    pub journal: Journal,
    pub names: ServiceNames,
    /// What did not happen as told, over all steps.
    wrong: Vec<String>,
}

// === impl Step ===

impl Step {
    const ALL: [Self; 7] = [
        Self::JsonCall,
        Self::Stream,
        Self::AgentTurn,
        Self::Retries,
        Self::LostAnswer,
        Self::Escalation,
        Self::Clarification,
    ];

    const fn title(self) -> &'static str {
        match self {
            Self::JsonCall => "a JSON call",
            Self::Stream => "a stream, shown as it arrives",
            Self::AgentTurn => "an agent turn with a tool",
            Self::Retries => "a call that needed two retries",
            Self::LostAnswer => "a client that gave up and tried again is billed once",
            Self::Escalation => "an escalation to the frontier model",
            Self::Clarification => "a clarification, which costs nothing",
        }
    }
}

// === impl Story ===

impl<'a> Story<'a> {
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

    /// Plays all steps; returns what went wrong.
    pub async fn tell(&mut self) -> Result<Vec<String>, CliError> {
        for (at, step) in Step::ALL.into_iter().enumerate() {
            let number = format!("step {}/{}", at + 1, Step::ALL.len());
            self.stage.line("")?;
            self.stage
                .heading(format_args!("{number}: {}", step.title()))?;
            let wrong_before = self.wrong.len();
            let ended = timeout(STEP_MAX, self.play(step)).await;
            self.close(&number, wrong_before, ended)?;
        }
        Ok(std::mem::take(&mut self.wrong))
    }

    /// How much went wrong so far.
    pub fn wrong_so_far(&self) -> usize {
        self.wrong.len()
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

    async fn play(&mut self, step: Step) -> Result<(), CliError> {
        match step {
            Step::JsonCall => self.json_call().await,
            Step::Stream => self.stream().await,
            Step::AgentTurn => self.agent_turn().await,
            Step::Retries => self.retries().await,
            Step::LostAnswer => self.lost_answer().await,
            Step::Escalation => self.escalation().await,
            Step::Clarification => self.clarification().await,
        }
    }

    pub async fn json_call(&mut self) -> Result<(), CliError> {
        let heard = self.ask("What is 12 * 34?").await?;
        let entry = self.receipt(&heard).await?;
        self.expect(heard.text().contains("408"), "the answer does not hold 408");
        self.expect(
            heard.receipt.would_have_cost.value() > heard.receipt.billed.value(),
            "the frontier model would not have cost more",
        );
        self.expect(entry.attempts.len() == 1, "it took more than one attempt");
        Ok(())
    }

    pub async fn stream(&mut self) -> Result<(), CliError> {
        let prompt = "Tell me about rivers, bridges and ledgers";
        self.service
            .set_faults(&json!({
                "match": {"path": CHAT, "body_contains": prompt, "stream": true},
                "fault": {"chunk_delay_ms": PIECE_PAUSE_MS},
            }))
            .await?;
        self.stage.fact("asked", prompt)?;
        let body = json!({
            "model": "auto",
            "stream": true,
            "messages": [{"role": "user", "content": prompt}],
        });
        let mut answer = self.post(CHAT, &body).await?;
        let mut heard = Heard::head(&answer, &self.names)?;
        let mut lines = EventLines::default();
        let mut prose = self.stage.begin("answer")?;
        let (mut pieces, mut done, mut first, mut last) = (0, false, None, None);
        while let Some(chunk) = answer.chunk().await? {
            let (more, end) = lines.take(&chunk, &self.names, &mut heard, &mut prose)?;
            if more > 0 {
                let now = Instant::now();
                first = first.or(Some(now));
                last = Some(now);
            }
            pieces += more;
            done |= end;
        }
        prose.end()?;
        let flowed = match (first, last) {
            (Some(first), Some(last)) => last - first,
            _ => Duration::ZERO,
        };
        self.stage.fact(
            "flow",
            format_args!(
                "{pieces} pieces within {} as the service wrote them, then the receipt, then [DONE]",
                seconds(u64::try_from(flowed.as_millis()).unwrap_or(u64::MAX))
            ),
        )?;
        // An answer that was held back comes in one moment.
        let written = Duration::from_millis(PIECE_PAUSE_MS) * u32::saturating_sub(pieces, 1);
        self.expect(
            pieces > 10 && flowed > written / 2,
            "the stream did not flow",
        );
        self.expect(done, "the stream did not end with [DONE]");
        self.receipt(&heard).await?;
        Ok(())
    }

    pub async fn retries(&mut self) -> Result<(), CliError> {
        let prompt = "Summarize: Rivers run. Bridges stay. Ledgers remember what bridges cost.";
        let matches = json!({"path": CHAT, "body_contains": prompt});
        self.service
            .set_faults(&json!([
                {"match": matches, "fault": {"status": 503}},
                {"match": matches, "fault": {"status": 503, "retry_after": RETRY_AFTER_S.to_string()}},
            ]))
            .await?;
        self.stage.fact(
            "service",
            format_args!("is warming: 503, then 503 with Retry-After: {RETRY_AFTER_S}"),
        )?;
        let heard = self.ask(prompt).await?;
        let entry = self.receipt(&heard).await?;
        let statuses: Vec<Option<u16>> = entry
            .attempts
            .iter()
            .map(|attempt| attempt.status)
            .collect();
        self.expect(
            statuses == [Some(503), Some(503), Some(200)],
            "the attempts are not 503, 503, 200",
        );
        self.expect(
            entry
                .attempts
                .last()
                .is_some_and(|last| last.wait_ms >= RETRY_AFTER_S * 1000),
            "Retry-After was not honored",
        );
        self.expect_requests(&entry, 3).await
    }

    pub async fn escalation(&mut self) -> Result<(), CliError> {
        let heard = self
            .ask("hard: why does a ledger that rounds drift from the bank's?")
            .await?;
        let entry = self.receipt(&heard).await?;
        self.expect(
            entry.served_by == Some(ServedBy::Frontier),
            "it was not served by the frontier model",
        );
        self.expect(
            entry.escalated == Escalated::True,
            "the ledger does not say that it was escalated",
        );
        self.expect(
            entry.would_have_cost_micro_usd.is_some(),
            "what the frontier model would have cost is not told",
        );
        Ok(())
    }

    async fn clarification(&mut self) -> Result<(), CliError> {
        let heard = self.ask("What does the attached document say?").await?;
        let entry = self.receipt(&heard).await?;
        self.expect(
            entry.input_required.as_deref() == Some("document"),
            "the ledger does not say which input is required",
        );
        self.expect(
            entry.state
                == State::Settled {
                    billed: MicroUsd::ZERO,
                },
            "it is not settled with 0",
        );
        Ok(())
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
    async fn expect_requests(&mut self, entry: &EntryView, wanted: usize) -> Result<(), CliError> {
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

fn chat(prompt: &str) -> Value {
    json!({"model": "auto", "messages": [{"role": "user", "content": prompt}]})
}

fn shown(duration: Duration) -> String {
    seconds(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
