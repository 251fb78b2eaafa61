//! Part 7, its beginning: a deploy, whose named events are shown as they arrive.
//!
//! Promise: a stream that ends without `complete`, or that was held back, fails the step.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::document::{number, text};
use crate::cli::demo::answer::seconds;
use crate::cli::demo::scene::Scene;
use crate::cli::error::CliError;
use crate::ledger::entry::State;
use crate::protocol::names::X_BURSAR_ENTRY;

pub const ENDPOINTS: &str = "/v1/endpoints";

const TASK: &str = "contact-extraction";
const NAME: &str = "contacts";

/// How long each stage takes in the sandbox.
const STAGE_MS: u64 = 60;

/// Takes a stream of named events apart, in any chunking.
#[derive(Debug, Default)]
struct Events {
    unread: Vec<u8>,
    name: String,
}

/// Returns the endpoint's id.
pub async fn deploy(scene: &mut Scene<'_>) -> Result<String, CliError> {
    let settings = json!({ "endpoint_stage_ms": STAGE_MS });
    scene.service.set(&settings).await?;
    scene
        .stage
        .fact("deploy", format_args!("{NAME}, for {TASK}"))?;
    let body = json!({"task": TASK, "name": NAME});
    let mut answer = scene.post(ENDPOINTS, &body).await?;
    if !answer.status.is_success() {
        let status = answer.status;
        return Err(CliError::Failed(format!("the deploy answered {status}")));
    }
    let entry = answer.header(X_BURSAR_ENTRY.as_str());
    let entry = entry.and_then(|text| text.parse().ok());
    let mut events = Events::default();
    let mut prose = scene.stage.begin("progress")?;
    let (mut stages, mut endpoint, mut first, mut last) = (0, None, None, None);
    while let Some(chunk) = answer.chunk().await? {
        for (name, event) in events.take(&chunk)? {
            let now = Instant::now();
            first = first.or(Some(now));
            last = Some(now);
            match name.as_str() {
                "progress" => {
                    let (stage, pct) = (text(&event, "/stage")?, number(&event, "/pct")?);
                    if stages > 0 {
                        prose.piece(",")?;
                    }
                    prose.piece(&format!(" {stage} {pct} %"))?;
                    stages += 1;
                }
                "complete" => endpoint = event.get("endpoint").cloned(),
                other => {
                    let what = format!("the deploy ended with {other}: {event}");
                    return Err(CliError::Failed(what));
                }
            }
        }
    }
    prose.end()?;
    let endpoint = endpoint
        .ok_or_else(|| CliError::Failed("the stream ended without `complete`".to_owned()))?;
    let flowed = match (first, last) {
        (Some(first), Some(last)) => last - first,
        _ => Duration::ZERO,
    };
    scene.stage.fact(
        "complete",
        format_args!(
            "{} is {}, model {}; the events came over {}",
            text(&endpoint, "/id")?,
            text(&endpoint, "/status")?,
            text(&endpoint, "/model")?,
            seconds(u64::try_from(flowed.as_millis()).unwrap_or(u64::MAX))
        ),
    )?;
    // Held back, they would come in one moment.
    let written = Duration::from_millis(STAGE_MS) * u32::saturating_sub(stages, 1);
    scene.expect(
        stages > 1 && flowed > written / 2,
        "the events did not come one by one",
    );
    let is_live = text(&endpoint, "/status")? == "live";
    scene.expect(is_live, "the endpoint is not live");
    let id = text(&endpoint, "/id")?.to_owned();
    let entry = scene.paid(entry, None).await?;
    scene.expect(
        entry.state == State::Unreported,
        "the ledger has a price for the deploy",
    );
    Ok(id)
}

// === impl Events ===

impl Events {
    /// The events that a chunk completes.
    fn take(&mut self, chunk: &[u8]) -> Result<Vec<(String, Value)>, CliError> {
        self.unread.extend_from_slice(chunk);
        let mut events = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', &self.unread) {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = line.trim_ascii_end();
            if let Some(name) = line.strip_prefix(b"event: ") {
                self.name = String::from_utf8_lossy(name).into_owned();
            } else if let Some(event) = line.strip_prefix(b"data: ") {
                events.push((
                    std::mem::take(&mut self.name),
                    serde_json::from_slice(event)?,
                ));
            }
        }
        Ok(events)
    }
}
