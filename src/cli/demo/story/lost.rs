//! The step of the lost answer: a client whose patience is shorter than the service's work hangs up
//! and asks again, and its second connection gets the first one's answer.
//!
//! Promise: the first connection is closed before the second request goes out.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{CHAT, Story, chat, shown};
use crate::cli::CliError;
use crate::cli::client::{Answer, ClientError};
use crate::cli::demo::answer::{Heard, seconds};
use crate::protocol::names::X_STAINLESS_RETRY_COUNT;

/// How long the service takes for the call whose client gives up.
const SLOW_WORK_MS: u64 = 1500;

/// How long that client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(500);

const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// How long it rests before it tries again.
const SDK_PAUSE: Duration = Duration::from_millis(200);

// === impl Story ===

impl Story<'_> {
    pub(super) async fn lost_answer(&mut self) -> Result<(), CliError> {
        let prompt = "What is 1000 - 58?";
        self.service
            .set_faults(&json!({
                "match": {"path": CHAT, "body_contains": prompt},
                "fault": {"delay_ms": SLOW_WORK_MS},
            }))
            .await?;
        self.stage.fact(
            "service",
            format_args!("will take {} for this one", seconds(SLOW_WORK_MS)),
        )?;
        self.stage.fact("asked", prompt)?;
        let body = chat(prompt);
        let asked_at = Instant::now();
        let gave_up = tokio::select! {
            biased;
            // Dropping this closes its connection.
            _ = self.post_as_sdk(CHAT, &body, 0) => false,
            given_up = self.lose_patience() => given_up.map(|()| true)?,
        };
        if !gave_up {
            let early = "the first answer came before the client gave up";
            return Err(CliError::Failed(early.to_owned()));
        }
        self.stage.fact(
            "client",
            format_args!(
                "gave up after {} and hung up, without a byte of an answer",
                shown(asked_at.elapsed())
            ),
        )?;
        sleep(SDK_PAUSE).await;
        self.stage.fact(
            "client",
            format_args!(
                "{} later it sends the same request again, as an SDK does",
                shown(SDK_PAUSE)
            ),
        )?;
        let heard = Heard::whole(self.post_as_sdk(CHAT, &body, 1).await?, &self.names).await?;
        self.stage.prose("answer", heard.text())?;
        let entry = self.receipt(&heard).await?;
        match heard.adopted {
            Some(adopted) => self
                .stage
                .fact("bursar", format_args!("X-Bursar-Adopted: {adopted}"))?,
            None => self.expect(false, "the answer does not say X-Bursar-Adopted"),
        }
        let with_key = self.journal.all().await?;
        let with_key = with_key
            .iter()
            .filter(|other| other.key == entry.key)
            .count();
        self.expect(with_key == 1, "the ledger has more than one entry for it");
        self.expect(entry.state.adds().get() > 0, "nothing was billed");
        self.expect_requests(&entry, 1).await
    }

    /// Ends when the client has waited long enough, and the service has the request: on a machine
    /// that is busy enough there would be nothing to come back to.
    async fn lose_patience(&self) -> Result<(), CliError> {
        sleep(PATIENCE).await;
        while self.service.has_faults().await? {
            sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// With the mark that OpenAI SDKs put on their retries.
    async fn post_as_sdk(
        &self,
        path: &str,
        body: &Value,
        retry: u32,
    ) -> Result<Answer, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(X_STAINLESS_RETRY_COUNT, HeaderValue::from(retry));
        self.door
            .send(Method::POST, path, headers, body.to_string().into())
            .await
    }
}
