//! A deploy: from a body to a live endpoint, reported event by event.
//!
//! Interface, POST /v1/endpoints: "a named-event SSE stream" of `progress`, `complete` and `error`. Each
//! stage does something that can fail: the alias is looked up, the name is taken and written down, a
//! probe is made of the task's own example, the model answers it, the answer is checked.
//! Promise: a deploy that ends without `complete` leaves no endpoint, even if a fault cut the stream.
//! The only exception is a client that leaves, which changes nothing.

use crate::{
    catalog::{self, Task},
    clock::Clock,
    endpoints::{
        Endpoints,
        leaderboard::{self, OpenModel},
        record::Endpoint,
    },
    error::ServiceError,
    fault::Fault,
    fields,
    fleet::Fleet,
    inbound::Inbound,
    models::{Lane, Pinned, Served, request::ChatRequest},
    settings::LiveSettings,
    spec,
    sse::writer::EventWriter,
};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Assumed (endpoint-name): the id is used in a path and in `model`, so it is one plain word.
const NAME_CHARS_MAX: usize = 64;
const EXTRA_CHARS_MAX: usize = 200;
/// A million dollars for a request, so that no sum of them leaves what the books can hold.
const AMOUNT_MAX: u64 = 1_000_000_000_000;
/// The model that warms up gets at most this much of a task's example.
const PROBE_CHARS_MAX: usize = 4_000;

/// What of the service a deploy works with.
pub struct DeployParts {
    pub clock: Clock,
    pub endpoints: Arc<Endpoints>,
    pub fleet: Arc<Fleet>,
    /// Cancelled when the service begins to shut down.
    pub closing: CancellationToken,
    pub settings: LiveSettings,
}

/// A deploy whose body was checked and whose name is taken.
pub struct Deploy {
    parts: DeployParts,
    endpoint: Endpoint,
    task: &'static Task,
    candidate: OpenModel,
    /// The address the service was reached at.
    base: String,
}

/// Interface, POST /v1/endpoints, Body. Interface, Errors 400: "unknown task or malformed deploy parameters".
pub fn begin(parts: DeployParts, inbound: &Inbound, base: String) -> Result<Deploy, ServiceError> {
    let Value::Object(mut fields) = fields::json(&inbound.body)? else {
        return Err(malformed("the body must be a JSON object"));
    };
    let task = take_text(&mut fields, "task")?.ok_or_else(|| malformed("task is required"))?;
    let task = catalog::task(&task).ok_or_else(|| malformed("task: no such task"))?;
    let model = take_text(&mut fields, "model")?;
    let asked = model.as_deref().unwrap_or(leaderboard::RECOMMENDED);
    let candidate = leaderboard::resolve(task, asked)
        .ok_or_else(|| malformed("model: no such alias on this task's leaderboard"))?;
    let uid = parts.clock.new_id();
    let name = match take_text(&mut fields, "name")? {
        Some(name) => checked_name(name)?,
        None => generated_name(task, &uid),
    };
    // Interface, Errors 409: "seed or legacy endpoint conflict on deploy". Assumed (deploy-conflict).
    if name == spec::MODEL || is_seed(&name) {
        return Err(ServiceError::EndpointConflict(
            "name: belongs to a seed endpoint of the service".to_owned(),
        )
        .assumed("deploy-conflict"));
    }
    let mut endpoint = Endpoint::deploying(uid, &inbound.org, name, &task.id, parts.clock.now());
    endpoint.model.clone_from(&candidate.alias);
    endpoint.extras = extras(fields)?;
    parts.endpoints.reserve(endpoint.clone())?;
    Ok(Deploy {
        parts,
        endpoint,
        task,
        candidate,
        base,
    })
}

fn malformed(text: &str) -> ServiceError {
    ServiceError::BadRequest(text.to_owned()).assumed("deploy-fields")
}

/// A text that is there and not null; empty is malformed.
fn take_text(fields: &mut Map<String, Value>, name: &str) -> Result<Option<String>, ServiceError> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(malformed(&format!("{name} must be a non-empty string"))),
    }
}

fn checked_name(name: String) -> Result<String, ServiceError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let begins_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_CHARS_MAX && name.chars().all(plain) {
        Ok(name)
    } else {
        Err(malformed(
            "name must be 1 to 64 letters, digits, '-', '_' or '.', the first a letter or digit",
        )
        .assumed("endpoint-name"))
    }
}

fn generated_name(task: &Task, uid: &str) -> String {
    // The end of the id: its beginning is the time, the same for two deploys of one moment.
    let end: String = uid.chars().skip(uid.len().saturating_sub(8)).collect();
    let task: String = task
        .id
        .chars()
        .take(NAME_CHARS_MAX - end.len() - 1)
        .collect();
    format!("{task}-{end}")
}

/// The service's own endpoint of each alias bears the alias as its name.
fn is_seed(name: &str) -> bool {
    catalog::tasks()
        .iter()
        .flat_map(leaderboard::board)
        .any(|one| one.alias == name)
}

/// Interface: "passed to the backend: …; no hardware field exists". Assumed (deploy-fields): any other
/// field is malformed, so that a misspelt price or a hardware wish is not ignored.
fn extras(fields: Map<String, Value>) -> Result<Map<String, Value>, ServiceError> {
    let mut extras = Map::new();
    for (name, value) in fields {
        if value.is_null() {
            continue;
        }
        let fits = match name.as_str() {
            "cost_per_request_micro_usd" | "frontier_cost_per_request_micro_usd" => {
                value.as_u64().is_some_and(|n| n <= AMOUNT_MAX)
            }
            "region" | "provider" | "run_mode" | "taskDisplay" => is_short_text(&value),
            "quality" => value.is_number() || is_short_text(&value),
            _ => {
                let name: String = name.chars().take(64).collect();
                return Err(malformed(&format!("unsupported field: {name}")));
            }
        };
        if !fits {
            return Err(malformed(&format!("{name}: not a usable value")));
        }
        extras.insert(name, value);
    }
    Ok(extras)
}

fn is_short_text(value: &Value) -> bool {
    value
        .as_str()
        .is_some_and(|text| text.chars().count() <= EXTRA_CHARS_MAX)
}

// === impl Deploy ===

impl Deploy {
    /// Runs the stages and writes an event for each; its end is `complete` or `error`.
    pub async fn run(self, fault: Fault, mut writer: EventWriter) {
        // A shutdown must not wait for a long deploy: it fails, as one that a restart cut.
        let outcome = tokio::select! {
            outcome = self.stages(&fault, &mut writer) => outcome,
            () = self.parts.closing.cancelled() => Err(Failure {
                stage: None,
                message: "the service is shutting down".to_owned(),
                unheard: None,
            }),
        };
        let last = match outcome {
            Ok(complete) => complete,
            Err(failure) => {
                if let Err(error) = self.parts.endpoints.abandon(&self.endpoint) {
                    tracing::error!(%error, "a failed deploy's record stayed");
                }
                let error = json!({"message": failure.message, "stage": failure.stage});
                let error = event("error", &error);
                failure.unheard.unwrap_or(error)
            }
        };
        if fault.cut_before_done {
            writer.cut().await;
        }
        if !fault.no_done {
            writer.event(&last).await;
        }
    }

    /// Does the work and returns the event that announces the live endpoint.
    async fn stages(
        &self,
        fault: &Fault,
        writer: &mut EventWriter,
    ) -> Result<[String; 2], Failure> {
        let mut probe = None;
        let mut answer = None;
        for (stage, pct) in spec::DEPLOY_STAGES {
            let progress = json!({"stage": stage, "pct": pct});
            let progress = event("progress", &progress);
            let is_cut = writer.cuts(&progress);
            writer.event(&progress).await;
            if is_cut {
                return Err(Failure::unheard(None));
            }
            let stage_ms = self.parts.settings.get().endpoint_stage_ms;
            let pause = Duration::from_millis(stage_ms);
            self.parts.clock.sleep(pause).await;
            let failed = |message: String| Failure {
                stage: Some(stage),
                message,
                unheard: None,
            };
            if fault.deploy_fails_at.as_deref() == Some(stage) {
                return Err(failed("fault: this stage failed".to_owned()));
            }
            match *stage {
                "loading" => probe = Some(self.probe().map_err(|error| failed(error.to_string()))?),
                "warming" => {
                    if let Some(request) = &probe {
                        let fleet = &self.parts.fleet;
                        let served = fleet.serve(request, Lane::Agent, self.pinned()).await;
                        let served =
                            served.map_err(|error| failed(format!("the probe failed: {error}")))?;
                        answer = Some(served);
                    }
                }
                "health_check" => {
                    self.check(answer.as_ref()).map_err(failed)?;
                }
                // Done before the stream began: the alias is known, the name is taken.
                _ => {}
            }
        }
        self.go_live(fault, writer)
    }

    /// Interface, Endpoint status: a deploy fails when its stream "ends without `complete`". So a fault that
    /// keeps `complete` back is known before the endpoint is shown as live.
    fn go_live(&self, fault: &Fault, writer: &EventWriter) -> Result<[String; 2], Failure> {
        let now = self.parts.clock.now();
        let live = self.endpoint.clone().into_live(now);
        let complete = event("complete", &json!({"endpoint": live.view(now, &self.base)}));
        if fault.no_done || fault.cut_before_done || writer.cuts(&complete) {
            return Err(Failure::unheard(Some(complete)));
        }
        let failed = |message: String| Failure {
            stage: None,
            message,
            unheard: None,
        };
        let endpoints = &self.parts.endpoints;
        match endpoints.amend(&self.endpoint, |one| one.into_live(now)) {
            Ok(Some(_)) => Ok(complete),
            Ok(None) => Err(failed(
                "the endpoint was deleted while it was being deployed".to_owned(),
            )),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    fn pinned(&self) -> Pinned {
        Pinned {
            category: Some(leaderboard::category(&self.task.category)),
            frontier: false,
        }
    }

    /// The task's instruction with its first example, as a request like any other.
    fn probe(&self) -> Result<ChatRequest, ServiceError> {
        let input = self
            .task
            .examples
            .first()
            .map(|row| Value::Object(row.input.clone()).to_string())
            .unwrap_or_default();
        let input: String = input.chars().take(PROBE_CHARS_MAX).collect();
        let body = json!({
            "model": spec::MODEL,
            "temperature": 0,
            "max_tokens": 256,
            "messages": [
                {"role": "system", "content": self.task.instruction},
                {"role": "user", "content": input},
            ],
        });
        ChatRequest::parse(body.to_string().as_bytes(), Lane::Agent)
    }

    /// Whether the model answered, and within its window. The probe bills nothing.
    fn check(&self, served: Option<&Served>) -> Result<(), String> {
        let served = served.ok_or_else(|| "the model was not asked".to_owned())?;
        let said_something = served
            .draft
            .content
            .as_deref()
            .is_some_and(|text| !text.trim().is_empty());
        if !said_something || served.usage.completion_tokens == 0 {
            return Err("the model answered nothing".to_owned());
        }
        if served.usage.prompt_tokens > self.candidate.context_tokens {
            return Err("the task's example is over the model's context window".to_owned());
        }
        Ok(())
    }
}

struct Failure {
    stage: Option<&'static str>,
    message: String,
    /// The event that a fault cuts, in the place of `error`.
    unheard: Option<[String; 2]>,
}

// === impl Failure ===

impl Failure {
    /// A fault ends the stream before its `complete` is whole.
    fn unheard(event: Option<[String; 2]>) -> Self {
        Self {
            stage: None,
            message: "fault: the stream ends without complete".to_owned(),
            unheard: event,
        }
    }
}

/// The lines of a named event.
fn event(name: &str, payload: &Value) -> [String; 2] {
    [format!("event: {name}"), format!("data: {payload}")]
}

#[cfg(test)]
mod tests;
