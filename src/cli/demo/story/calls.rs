//! The chat calls of the story: one answered with JSON, a stream, one that needs retries, one that the
//! frontier model serves, one that is asked back.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use crate::cli::cells::seconds;
use crate::cli::demo::answer::{EventLines, Heard};
use crate::cli::demo::scene::{CHAT, Scene};
use crate::cli::error::CliError;
use crate::ledger::entry::State;
use crate::money::MicroUsd;
use crate::protocol::{Escalated, ServedBy};

/// The sandbox's pause between two pieces of the stream.
const PIECE_PAUSE_MS: u64 = 30;

/// What the service asks for before the second retry.
const RETRY_AFTER_S: u64 = 1;

pub async fn json_call(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let heard = scene.ask("What is 12 * 34?").await?;
    let entry = scene.receipt(&heard).await?;
    scene.expect(heard.text().contains("408"), "the answer does not hold 408");
    scene.expect(
        heard.receipt.would_have_cost.value() > heard.receipt.billed.value(),
        "the frontier model would not have cost more",
    );
    scene.expect(entry.attempts.len() == 1, "it took more than one attempt");
    Ok(())
}

pub async fn stream(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let prompt = "Tell me about rivers, bridges and ledgers";
    scene
        .service()
        .set_faults(&json!({
            "match": {"path": CHAT, "body_contains": prompt, "stream": true},
            "fault": {"chunk_delay_ms": PIECE_PAUSE_MS},
        }))
        .await?;
    scene.screen().fact("asked", prompt)?;
    let body = json!({
        "model": "auto",
        "stream": true,
        "messages": [{"role": "user", "content": prompt}],
    });
    let mut answer = scene.post(CHAT, &body).await?;
    let mut heard = Heard::head(&answer, scene.names())?;
    let mut lines = EventLines::default();
    let mut prose = scene.screen().begin("answer")?;
    let (mut pieces, mut done, mut first, mut last) = (0, false, None, None);
    while let Some(chunk) = answer.chunk().await? {
        let (more, end) = lines.take(&chunk, scene.names(), &mut heard, &mut prose)?;
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
    scene.screen().fact(
        "flow",
        format_args!(
            "{pieces} pieces within {} as the service wrote them, then the receipt, then [DONE]",
            seconds(u64::try_from(flowed.as_millis()).unwrap_or(u64::MAX))
        ),
    )?;
    // An answer that was held back comes in one moment.
    let written = Duration::from_millis(PIECE_PAUSE_MS) * u32::saturating_sub(pieces, 1);
    scene.expect(
        pieces > 10 && flowed > written / 2,
        "the stream did not flow",
    );
    scene.expect(done, "the stream did not end with [DONE]");
    scene.receipt(&heard).await?;
    Ok(())
}

pub async fn retries(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let prompt = "Summarize: Rivers run. Bridges stay. Ledgers remember what bridges cost.";
    let matches = json!({"path": CHAT, "body_contains": prompt});
    scene
        .service()
        .set_faults(&json!([
            {"match": matches, "fault": {"status": 503}},
            {"match": matches, "fault": {"status": 503, "retry_after": RETRY_AFTER_S.to_string()}},
        ]))
        .await?;
    scene.screen().fact(
        "service",
        format_args!("is warming: 503, then 503 with Retry-After: {RETRY_AFTER_S}"),
    )?;
    let heard = scene.ask(prompt).await?;
    let entry = scene.receipt(&heard).await?;
    let statuses: Vec<Option<u16>> = entry
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    scene.expect(
        statuses == [Some(503), Some(503), Some(200)],
        "the attempts are not 503, 503, 200",
    );
    scene.expect(
        entry
            .attempts
            .last()
            .is_some_and(|last| last.wait_ms >= RETRY_AFTER_S * 1000),
        "Retry-After was not honored",
    );
    scene.expect_requests(&entry, 3).await
}

pub async fn escalation(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let heard = scene
        .ask("hard: why does a ledger that rounds drift from the bank's?")
        .await?;
    let entry = scene.receipt(&heard).await?;
    scene.expect(
        entry.served_by == Some(ServedBy::Frontier),
        "it was not served by the frontier model",
    );
    scene.expect(
        entry.escalated == Escalated::True,
        "the ledger does not say that it was escalated",
    );
    scene.expect(
        entry.would_have_cost_micro_usd.is_some(),
        "what the frontier model would have cost is not reported",
    );
    Ok(())
}

pub async fn clarification(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let heard = scene.ask("What does the attached document say?").await?;
    let entry = scene.receipt(&heard).await?;
    scene.expect(
        entry.input_required.as_deref() == Some("document"),
        "the ledger does not say which input is required",
    );
    scene.expect(
        entry.state
            == State::Settled {
                billed: MicroUsd::ZERO,
            },
        "it is not settled with 0",
    );
    Ok(())
}
