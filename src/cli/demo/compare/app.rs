//! An app as its SDK makes it: it gives up when its patience is over, tries again twice after what
//! may pass, and lets its user see an error otherwise. It mints no key.
//!
//! Promise: it knows nothing of bursar; what it sends and when depends on the answers alone.

use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::cli::client::{Client, Response};
use crate::money::MicroUsd;
use crate::protocol::names::{ServiceNames, X_SHOULD_RETRY, X_STAINLESS_RETRY_COUNT};
use crate::protocol::receipt::Receipt;
use crate::protocol::sse::{SseEvent, SseScanner, StreamKind};

/// Retries that SDKs make by themselves.
const RETRIES: u32 = 2;

/// Their pause before a retry, kept short and without jitter, so that both days are equal.
const PAUSE: Duration = Duration::from_millis(100);

/// Largest answer that is read.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// How one call ended for its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallEnd {
    Answered,
    /// A stream that began and broke: SDKs do not retry it.
    BrokeOff,
    Failed,
}

/// One question of a user's.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub prompt: &'a str,
    /// The body's `seed`.
    pub seed: u64,
    /// `X-Service-Session`: which app it is.
    pub session: &'static str,
    pub stream: bool,
    pub patience: Duration,
    /// The user reads so many chunks and closes.
    pub leaves_after: Option<usize>,
}

/// What one case came to for its app.
#[derive(Clone, Debug, Default)]
pub struct Lived {
    tries: u32,
    answered: u32,
    reported: Vec<MicroUsd>,
}

/// How one try ended.
enum Tried {
    Done(CallEnd),
    /// SDKs try again.
    Again,
}

// === impl Call ===

impl Call<'_> {
    pub async fn make(&self, client: &Client, names: &ServiceNames, lived: &mut Lived) -> CallEnd {
        for retry in 0..=RETRIES {
            if retry > 0 {
                sleep(PAUSE).await;
            }
            lived.tries += 1;
            let tried = timeout(self.patience, self.attempt(client, names, retry, lived)).await;
            match tried {
                Ok(Tried::Done(ended)) => {
                    if ended == CallEnd::Answered {
                        lived.answered += 1;
                    }
                    return ended;
                }
                // Out of patience: dropping the try has closed its connection.
                Ok(Tried::Again) | Err(_) => {}
            }
        }
        CallEnd::Failed
    }

    async fn attempt(
        &self,
        client: &Client,
        names: &ServiceNames,
        retry: u32,
        lived: &mut Lived,
    ) -> Tried {
        let body: Value = json!({
            "model": "auto",
            "stream": self.stream,
            "seed": self.seed,
            "messages": [{"role": "user", "content": self.prompt}],
        });
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(X_STAINLESS_RETRY_COUNT, HeaderValue::from(retry));
        headers.insert(&names.session, HeaderValue::from_static(self.session));
        let path = "/v1/chat/completions";
        let sent = client
            .send(Method::POST, path, headers, body.to_string().into())
            .await;
        let Ok(answer) = sent else {
            return Tried::Again;
        };
        if !answer.status().is_success() {
            return if may_pass(&answer) {
                Tried::Again
            } else {
                Tried::Done(CallEnd::Failed)
            };
        }
        let mut receipt = Receipt::from_headers(names, answer.headers());
        if self.stream {
            let ended = self.read_stream(answer, names, &mut receipt).await;
            lived.hear(&receipt);
            return Tried::Done(ended);
        }
        match answer.bytes(ANSWER_BYTES_MAX).await {
            Ok(_) => {
                lived.hear(&receipt);
                Tried::Done(CallEnd::Answered)
            }
            Err(_) => Tried::Again,
        }
    }

    async fn read_stream(
        &self,
        mut answer: Response,
        names: &ServiceNames,
        receipt: &mut Receipt,
    ) -> CallEnd {
        let mut scanner = SseScanner::new(StreamKind::Data);
        let mut chunks = 0;
        loop {
            match answer.chunk().await {
                Ok(Some(chunk)) => {
                    scanner.feed(&chunk, &mut |event| {
                        if let SseEvent::Comment { name, value } = event {
                            *receipt = std::mem::take(receipt).with_comment(names, name, value);
                        }
                    });
                    chunks += 1;
                    if self.leaves_after.is_some_and(|most| chunks >= most) {
                        return CallEnd::BrokeOff;
                    }
                }
                Ok(None) if scanner.is_clean_end() => return CallEnd::Answered,
                Ok(None) | Err(_) => return CallEnd::BrokeOff,
            }
        }
    }
}

/// What SDKs retry, unless the answer forbids it.
fn may_pass(answer: &Response) -> bool {
    match answer.header(X_SHOULD_RETRY.as_str()) {
        Some("false") => false,
        Some("true") => true,
        _ => {
            matches!(answer.status().as_u16(), 408 | 409 | 429) || answer.status().is_server_error()
        }
    }
}

// === impl Lived ===

impl Lived {
    fn hear(&mut self, receipt: &Receipt) {
        let reported = receipt
            .billed
            .value()
            .filter(|reported| !reported.is_zero());
        self.reported.extend(reported);
    }

    /// Requests that the app sent.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Answers that it received whole.
    pub fn answered(&self) -> u32 {
        self.answered
    }

    /// Amounts above 0 that its answers reported.
    pub fn reported(&self) -> &[MicroUsd] {
        &self.reported
    }

    /// The sum that answers reported to the apps, in micro-USD.
    pub fn reported_in_all(&self) -> u64 {
        self.reported.iter().map(|reported| reported.get()).sum()
    }
}
