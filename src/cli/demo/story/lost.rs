//! The step of the lost answer: a client whose patience is shorter than the service's work hangs up
//! and asks again, and its second connection gets the first one's answer.
//!
//! Promise: the first connection is closed before the second request goes out.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::cli::cells::seconds;
use crate::cli::client::{ClientError, Response};
use crate::cli::demo::answer::Heard;
use crate::cli::demo::scene::{CHAT, Scene, chat};
use crate::cli::error::CliError;
use crate::protocol::names::X_STAINLESS_RETRY_COUNT;

/// How long the service takes for the call whose client gives up.
const SLOW_WORK_MS: u64 = 1500;

/// How long that client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// How long it rests before it tries again.
const SDK_PAUSE: Duration = Duration::from_millis(200);

pub async fn lost_answer(scene: &mut Scene<'_>) -> Result<(), CliError> {
    let prompt = "What is 1000 - 58?";
    scene
        .service()
        .set_faults(&json!({
            "match": {"path": CHAT, "body_contains": prompt},
            "fault": {"delay_ms": SLOW_WORK_MS},
        }))
        .await?;
    scene.screen().fact(
        "service",
        format_args!("will take {} for this one", seconds(SLOW_WORK_MS)),
    )?;
    scene.screen().fact("asked", prompt)?;
    let body = chat(prompt);
    let asked_at = Instant::now();
    let gave_up = tokio::select! {
        biased;
        // Dropping this closes its connection.
        _ = post_as_sdk(scene, CHAT, &body, 0) => false,
        given_up = lose_patience(scene) => given_up.map(|()| true)?,
    };
    if !gave_up {
        let early = "the first answer came before the client gave up";
        return Err(CliError::Failed(early.to_owned()));
    }
    scene.screen().fact(
        "client",
        format_args!(
            "gave up after {} and hung up, without a byte of an answer",
            shown(asked_at.elapsed())
        ),
    )?;
    sleep(SDK_PAUSE).await;
    scene.screen().fact(
        "client",
        format_args!(
            "{} later it sends the same request again, as an SDK does",
            shown(SDK_PAUSE)
        ),
    )?;
    let heard = Heard::whole(post_as_sdk(scene, CHAT, &body, 1).await?, scene.names()).await?;
    scene.screen().fact("answer", heard.text())?;
    let entry = scene.receipt(&heard).await?;
    match heard.adopted {
        Some(adopted) => scene
            .screen()
            .fact("bursar", format_args!("X-Bursar-Adopted: {adopted}"))?,
        None => scene.expect(false, "the answer does not say X-Bursar-Adopted"),
    }
    let with_key = scene.journal().all().await?;
    let with_key = with_key
        .iter()
        .filter(|other| other.key == entry.key)
        .count();
    scene.expect(with_key == 1, "the ledger has more than one entry for it");
    scene.expect(entry.state.adds().get() > 0, "nothing was billed");
    scene.expect_requests(&entry, 1).await
}

/// Ends when the client has waited long enough, and the service has the request: on a machine
/// that is busy enough there would be nothing to come back to.
async fn lose_patience(scene: &Scene<'_>) -> Result<(), CliError> {
    sleep(PATIENCE).await;
    while scene.service().has_faults().await? {
        sleep(LOOK_PAUSE).await;
    }
    Ok(())
}

/// With the mark that OpenAI SDKs put on their retries.
async fn post_as_sdk(
    scene: &Scene<'_>,
    path: &str,
    body: &Value,
    retry: u32,
) -> Result<Response, ClientError> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(X_STAINLESS_RETRY_COUNT, HeaderValue::from(retry));
    scene
        .door()
        .send(Method::POST, path, headers, body.to_string().into())
        .await
}

fn shown(duration: Duration) -> String {
    seconds(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}
