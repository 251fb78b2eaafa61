//! Faults: what a bad day of the service looks like, on demand.
//!
//! A rule says which requests it applies to, to how many of them, and what happens to them. Rules come
//! from the control route or the scenario file, never from a request, so that no client can carry one by
//! mistake.
//! Promise: each fault states whether the work ran; a fault before the work bills nothing, and a fault
//! after it hides a debit that the books show.

use crate::{clock::Clock, connection::CutKind, spec};
use bursar_models::{draft::Draft, tools::ToolCall};
use http::HeaderValue;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{collections::BTreeMap, time::Duration};

const RULES_MAX: usize = 1_000;

/// Which requests, how many, and what.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule {
    #[serde(rename = "match", default)]
    pub matches: RequestPattern,
    /// How many requests it meets; 0 is no end. Default 1.
    #[serde(default = "once")]
    pub times: u32,
    /// How many matching requests pass first. Default 0.
    #[serde(default)]
    pub skip: u32,
    pub fault: Fault,
}

/// A missing condition matches everything.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestPattern {
    pub method: Option<String>,
    /// The exact path; with a trailing `*` its beginning.
    pub path: Option<String>,
    /// The body's `stream`; absent counts as false.
    pub stream: Option<bool>,
    /// A text anywhere in the body.
    pub body_contains: Option<String>,
    /// The turn of a conversation: 1 and how many assistant messages its `messages` hold. A client's repeat
    /// of a turn is the same turn.
    pub turn: Option<u64>,
    pub idempotency_key: Option<String>,
}

/// All at once where they do not exclude each other; empty is no fault.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Fault {
    // --- instead of the work: nothing runs, nothing is billed ---
    /// Answers with this status.
    pub status: Option<u16>,
    pub retry_after: Option<String>,
    pub retry_after_ms: Option<String>,
    pub x_should_retry: Option<String>,
    /// A JSON value, or a text sent as it is. Default `{"detail": …}`.
    pub body: Option<Value>,
    pub content_type: Option<String>,
    /// 503 as a warming backend sends it; `Retry-After: 30` on the agent lane, 5 elsewhere.
    pub warm_up: bool,
    /// 402 as if the balance were empty.
    pub empty_balance: bool,
    /// Closes the connection without reading on: nothing ran.
    pub cut_before_work: bool,

    // --- the work of a chat request, which is billed like any ---
    /// The answer in the place of what a model would write.
    pub answer: Option<FixedAnswer>,

    // --- time, by the sandbox's clock ---
    /// Delay before an instead-of-the-work answer, or length of the work before the head.
    pub delay_ms: u64,
    pub slow_first_chunk_ms: u64,
    pub chunk_delay_ms: u64,
    /// The work waits for `POST /sandbox/release {"hold": name}` before its end and the head.
    pub hold: Option<String>,
    /// A stream waits for the release after this many chunks (name in `hold_chunks_name`).
    pub hold_after_chunks: Option<u64>,
    pub hold_chunks_name: Option<String>,

    // --- the connection ---
    /// The work ran, was debited and stored; the connection ends before the head.
    pub cut_before_head: bool,
    /// The connection ends after n `data:` chunks of a stream (the role chunk counts).
    pub cut_after_chunks: Option<u64>,
    /// The connection ends after n bytes of the body, JSON or stream.
    pub cut_after_bytes: Option<u64>,
    /// All content is sent; the connection ends before the receipt comments.
    pub cut_before_receipt: bool,
    /// The receipt is sent; the connection ends before `[DONE]`.
    pub cut_before_done: bool,
    /// How a cut ends the connection.
    pub cut: CutKind,
    /// The answer has `Connection: close`.
    pub close_after: bool,

    // --- the form of the answer ---
    /// Further copies of each receipt header or comment.
    pub duplicate_receipt: u32,
    /// No receipt at all.
    pub no_receipt: bool,
    /// Text in place of a value; null leaves it out.
    pub receipt: BTreeMap<ReceiptField, Option<String>>,
    /// Receipt comments on an agent stream, which has none by the interface.
    pub agent_stream_receipt: bool,
    /// Lines put before each chunk, each written as `: <text>`.
    pub extra_comments: Vec<String>,
    /// CRLF line ends in a stream.
    pub crlf: bool,
    /// The stream ends cleanly without `data: [DONE]`.
    pub no_done: bool,

    // --- a deploy ---
    /// The stage (`validated`, `allocating`, `loading`, `warming`, `health_check`) that fails.
    pub deploy_fails_at: Option<String>,
}

/// What a chat request is answered with, whatever it asked; no form is checked. One that has neither words
/// nor calls is an answer without content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FixedAnswer {
    pub content: Option<String>,
    pub tool_calls: Vec<FixedCall>,
    /// Default `tool_calls` where there are some, else `stop`.
    pub finish_reason: Option<FixedEnd>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FixedCall {
    pub name: String,
    /// A JSON value, or the arguments' text as it is.
    #[serde(default)]
    pub arguments: Value,
    /// Default: one of its own for each answer.
    #[serde(default)]
    pub id: Option<String>,
}

/// An end that is not the answer's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FixedEnd {
    Length,
    ContentFilter,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptField {
    Billed,
    FrontierWouldHaveCost,
    ServedBy,
    RouteVersion,
    Specialist,
    Escalated,
}

/// The parts of a request that a rule may match.
#[derive(Debug)]
pub struct RequestFacts<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub body: &'a [u8],
    pub idempotency_key: Option<&'a str>,
}

/// The rules in force.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Mutex<Vec<FaultRule>>,
}

/// The names released so far.
#[derive(Debug, Default)]
pub struct Holds {
    released: tokio::sync::watch::Sender<std::collections::BTreeSet<String>>,
}

fn once() -> u32 {
    1
}

// === impl Faults ===

impl Faults {
    pub fn new(rules: Vec<FaultRule>) -> Self {
        Self {
            rules: Mutex::new(rules),
        }
    }

    /// False when there are too many rules already.
    pub fn push(&self, rule: FaultRule) -> bool {
        let mut rules = self.rules.lock();
        let room = rules.len() < RULES_MAX;
        if room {
            rules.push(rule);
        }
        room
    }

    pub fn clear(&self) {
        self.rules.lock().clear();
    }

    pub fn list(&self) -> Vec<FaultRule> {
        self.rules.lock().clone()
    }

    /// The fault of the first rule that meets this request; the rule is used up by one.
    pub fn take(&self, seen: &RequestFacts<'_>) -> Fault {
        let mut rules = self.rules.lock();
        let mut met = None;
        for (at, rule) in rules.iter_mut().enumerate() {
            if !rule.matches.meets(seen) {
                continue;
            }
            if rule.skip > 0 {
                rule.skip -= 1;
                continue;
            }
            let used_up = rule.times == 1;
            rule.times = rule.times.saturating_sub(1);
            met = Some((at, used_up, rule.fault.clone()));
            break;
        }
        match met {
            Some((at, true, fault)) => {
                rules.remove(at);
                fault
            }
            Some((_, false, fault)) => fault,
            None => Fault::default(),
        }
    }
}

// === impl FaultRule ===

impl FaultRule {
    /// What of it cannot work, by its name.
    pub fn check(&self) -> Result<(), &'static str> {
        let fault = &self.fault;
        if fault
            .status
            .is_some_and(|status| !(200..=599).contains(&status))
        {
            return Err("fault.status must be from 200 to 599");
        }
        let fits = |text: &Option<String>| {
            text.as_deref()
                .is_none_or(|text| HeaderValue::from_str(text).is_ok())
        };
        for (text, wrong) in [
            (&fault.retry_after, "fault.retry_after is no header's value"),
            (
                &fault.retry_after_ms,
                "fault.retry_after_ms is no header's value",
            ),
            (
                &fault.x_should_retry,
                "fault.x_should_retry is no header's value",
            ),
            (
                &fault.content_type,
                "fault.content_type is no header's value",
            ),
        ] {
            if !fits(text) {
                return Err(wrong);
            }
        }
        if !fault.receipt.values().all(fits) {
            return Err("fault.receipt: a text is no header's value");
        }
        match &fault.deploy_fails_at {
            Some(stage) if !spec::DEPLOY_STAGES.iter().any(|(name, _)| name == stage) => {
                Err("fault.deploy_fails_at is no stage of a deploy")
            }
            _ => Ok(()),
        }
    }
}

// === impl RequestPattern ===

impl RequestPattern {
    fn meets(&self, seen: &RequestFacts<'_>) -> bool {
        let path = self
            .path
            .as_deref()
            .is_none_or(|wanted| match wanted.strip_suffix('*') {
                Some(beginning) => seen.path.starts_with(beginning),
                None => seen.path == wanted,
            });
        path && self
            .method
            .as_deref()
            .is_none_or(|wanted| wanted.eq_ignore_ascii_case(seen.method))
            && self
                .idempotency_key
                .as_deref()
                .is_none_or(|wanted| seen.idempotency_key == Some(wanted))
            && self
                .body_contains
                .as_deref()
                .is_none_or(|wanted| String::from_utf8_lossy(seen.body).contains(wanted))
            && self
                .stream
                .is_none_or(|wanted| wanted == asks_for_stream(seen.body))
            && self
                .turn
                .is_none_or(|wanted| turn(seen.body) == Some(wanted))
    }
}

/// 1 and how many assistant messages the body's conversation holds; `None` of a body without one.
fn turn(body: &[u8]) -> Option<u64> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let messages = body.get("messages")?.as_array()?;
    let assistant = Some(&Value::from("assistant"));
    let said = messages
        .iter()
        .filter(|message| message.get("role") == assistant);
    u64::try_from(said.count()).ok()?.checked_add(1)
}

/// Whether the body asks for a stream.
pub fn asks_for_stream(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|body| body.get("stream")?.as_bool())
        .unwrap_or(false)
}

// === impl Fault ===

impl Fault {
    /// The time of the work before the head: as long as the fault demands, by the sandbox's clock.
    pub async fn work(&self, clock: &Clock, holds: &Holds) {
        if self.delay_ms > 0 {
            clock.sleep(Duration::from_millis(self.delay_ms)).await;
        }
        if let Some(name) = &self.hold {
            holds.wait(name).await;
        }
    }

    /// The members that are set, for the request log.
    pub fn summary(&self) -> Value {
        let (mine, none) = (
            serde_json::to_value(self),
            serde_json::to_value(Self::default()),
        );
        match (mine, none) {
            (Ok(Value::Object(mut mine)), Ok(none)) => {
                mine.retain(|name, value| none.get(name) != Some(value));
                Value::Object(mine)
            }
            _ => Value::Null,
        }
    }

    /// The value that a receipt field gets; `None` leaves it out.
    pub fn receipt_value(&self, field: ReceiptField, value: String) -> Option<String> {
        if self.no_receipt {
            return None;
        }
        match self.receipt.get(&field) {
            Some(text) => text.clone(),
            None => Some(value),
        }
    }
}

// === impl FixedAnswer ===

impl FixedAnswer {
    /// As if a model had written it; `run` tells the calls of two answers apart.
    pub fn draft(&self, run: u64) -> Draft {
        let calls = self.tool_calls.iter().enumerate();
        let calls = calls.map(|(at, call)| ToolCall {
            id: call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_fixed_{run}_{at}")),
            name: call.name.clone(),
            arguments: match &call.arguments {
                Value::String(text) => text.clone(),
                Value::Null => "{}".to_owned(),
                value => value.to_string(),
            },
        });
        Draft {
            content: self.content.clone(),
            tool_calls: calls.collect(),
            cut_by_length: self.finish_reason == Some(FixedEnd::Length),
            filtered: self.finish_reason == Some(FixedEnd::ContentFilter),
            logprobs: None,
        }
    }
}

// === impl Holds ===

impl Holds {
    pub fn release(&self, name: String) {
        self.released.send_modify(|released| {
            released.insert(name);
        });
    }

    pub async fn wait(&self, name: &str) {
        let mut released = self.released.subscribe();
        // The sender lives in `self`, so this cannot fail while we are here.
        let _ = released.wait_for(|released| released.contains(name)).await;
    }
}

#[cfg(test)]
mod tests;
