//! A model server of the user's own, called over the OpenAI protocol.
//!
//! Promise: a call ends by its deadline on the sandbox's clock; its answer is bounded and checked for its
//! form; neither the key nor the server's own words reach a log line or a client.

mod reply;
pub mod settings;
mod stream;

pub use reply::{Logprobs, Reply};
pub use stream::{Broken, Deltas, Piece};

use crate::{
    clock::Clock,
    error::ServiceError,
    models::{Draft, Lane, Usage},
    spec,
};
use http::{HeaderValue, StatusCode, header};
use reply::ANSWER_BYTES_MAX;
use reqwest::{
    RequestBuilder,
    multipart::{self, Part},
};
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::load_native_certs;
use serde_json::{Map, Value};
use settings::{Checked, ModelServer, ModelServerError};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait on `/v1` if the server names none. Assumed (remote-failure).
const BUSY_RETRY_AFTER_S: u32 = 5;
const BUSY_RETRY_AFTER_S_MAX: u32 = 600;

#[derive(Debug)]
pub struct Remote {
    /// Role and category or id, for the log.
    name: String,
    client: reqwest::Client,
    base_url: String,
    /// Marked sensitive, so that no `Debug` shows it.
    authorization: Option<HeaderValue>,
    model: String,
    deadline: Duration,
    clock: Clock,
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteError {
    /// The deadline expired.
    Late,
    /// 429 or 503, with the seconds it asks to wait.
    Busy { retry_after_s: Option<u32> },
    /// 400, 413 or 422: it cannot process the request as it is.
    Refused,
    /// The transcript is longer than its own window.
    TooLong,
    /// Anything else: no connection, another status, an answer of no known form.
    Failed,
}

/// What a transcription server heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transcript {
    pub text: String,
    /// As the server reports it, if it does.
    pub language: Option<String>,
}

// === impl RemoteError ===

impl RemoteError {
    /// Assumed (remote-failure): the interface says what the service answers, not why a backend failed.
    pub fn service_error(self, lane: Lane) -> ServiceError {
        match self {
            Self::Late => ServiceError::NoServingPath("no serving path answered in time"),
            Self::Busy { retry_after_s } => ServiceError::BackendUnavailable {
                // Interface, Errors 503: on the agent lane `Retry-After` is 30 seconds.
                retry_after_s: match lane {
                    Lane::Agent => spec::AGENT_WARM_UP_RETRY_AFTER_S,
                    Lane::Inference => retry_after_s
                        .unwrap_or(BUSY_RETRY_AFTER_S)
                        .clamp(1, BUSY_RETRY_AFTER_S_MAX),
                },
            },
            Self::TooLong => ServiceError::BadRequest(
                "the transcript is longer than the window of the model that serves it".to_owned(),
            ),
            // Interface: "an unsupported field returns 400 or 422".
            Self::Refused => ServiceError::BadRequest(
                "the model that serves this request refused it as invalid".to_owned(),
            ),
            Self::Failed => ServiceError::NoServingPath(match lane {
                Lane::Inference => "no serving path could complete the request",
                Lane::Agent => "the turn could not be completed",
            }),
        }
    }
}

// === impl Remote ===

impl Remote {
    pub fn new(
        server: &ModelServer,
        checked: &Checked,
        client: &reqwest::Client,
        default_deadline: Duration,
        clock: &Clock,
    ) -> Result<Self, ModelServerError> {
        let authorization = match &checked.key {
            None => None,
            Some(key) => {
                let mut value = HeaderValue::try_from(format!("Bearer {key}"))
                    .map_err(|_| server.wrong("api_key", "cannot be sent in a header"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let place = checked
            .category
            .map(crate::models::Category::as_str)
            .or(checked.id)
            .unwrap_or("any");
        Ok(Self {
            name: format!("{} {place}", server.role.as_str()),
            client: client.clone(),
            base_url: checked.base_url.as_str().trim_end_matches('/').to_owned(),
            authorization,
            model: server.model.clone(),
            deadline: server
                .timeout_s
                .map_or(default_deadline, Duration::from_secs),
            clock: clock.clone(),
        })
    }

    /// No proxy and no redirect: the key is sent to the configured address and to no other.
    ///
    /// Without `https` the machine's certificates are not loaded, because reading them takes a
    /// while.
    pub fn client(https: bool) -> Result<reqwest::Client, reqwest::Error> {
        let mut client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT);
        if https {
            let mut roots = RootCertStore::empty();
            // One that cannot be read is not trusted: the request that needs it fails and says so.
            roots.add_parsable_certificates(load_native_certs().unwrap_or_default());
            let tls = ClientConfig::builder().with_root_certificates(roots);
            client = client.use_preconfigured_tls(tls.with_no_client_auth());
        }
        client.build()
    }

    /// One whole answer. `body` has no `model` and no `stream`.
    pub async fn complete(&self, body: &Map<String, Value>) -> Result<Reply, RemoteError> {
        let request = self.completion(body, false);
        self.by_deadline(async {
            let response = self.send(request).await?;
            let bytes = self.read(response).await?;
            Reply::read(&bytes).ok_or_else(|| self.failed("an answer of no known form"))
        })
        .await
    }

    /// An answer while it is written. Returns at its first piece of text, or at its end: until then nothing was
    /// sent. `may_call` if a tool was offered.
    pub async fn stream(
        &self,
        body: &Map<String, Value>,
        may_call: bool,
    ) -> Result<Deltas, RemoteError> {
        let request = self.completion(body, true);
        self.by_deadline(async {
            let response = self.send(request).await?;
            let is_stream = response
                .headers()
                .get(header::CONTENT_TYPE)
                .is_some_and(|value| value.as_bytes().starts_with(b"text/event-stream"));
            if !is_stream {
                return Err(self.failed("no stream where one was asked for"));
            }
            Deltas::open(response, may_call, self.deadline, self.clock.clone())
                .await
                .map_err(|broken| self.failed(broken.0))
        })
        .await
    }

    /// The rest of a stream that is not relayed.
    pub async fn whole(&self, mut deltas: Deltas) -> Result<(Draft, Option<Usage>), RemoteError> {
        self.by_deadline(async {
            while deltas
                .next()
                .await
                .map_err(|broken| self.failed(broken.0))?
                .is_some()
            {}
            deltas.finish().map_err(|broken| self.failed(broken.0))
        })
        .await
    }

    /// The words of a recording. Errors as of a completion.
    pub async fn transcribe(
        &self,
        bytes: &[u8],
        file_name: &str,
        language: Option<&str>,
    ) -> Result<Transcript, RemoteError> {
        let file = Part::bytes(bytes.to_vec()).file_name(file_name.to_owned());
        let mut form = multipart::Form::new()
            .text("model", self.model.clone())
            .text("response_format", "json");
        if let Some(language) = language {
            form = form.text("language", language.to_owned());
        }
        let request = self.post("audio/transcriptions");
        let request = request.multipart(form.part("file", file));
        self.by_deadline(async {
            let response = self.send(request).await?;
            let bytes = self.read(response).await?;
            let heard: Value = serde_json::from_slice(&bytes)
                .map_err(|_| self.failed("a transcript of no known form"))?;
            let text = |name| heard.get(name).and_then(Value::as_str).map(str::to_owned);
            Ok(Transcript {
                text: text("text").ok_or_else(|| self.failed("a transcript without a text"))?,
                language: text("language"),
            })
        })
        .await
    }

    /// A request for an answer; `fields` has no `model` and no `stream`.
    fn completion(&self, fields: &Map<String, Value>, stream: bool) -> RequestBuilder {
        let mut body = Map::new();
        body.insert("model".to_owned(), Value::from(self.model.as_str()));
        body.extend(
            fields
                .iter()
                .map(|(name, value)| (name.clone(), value.clone())),
        );
        if stream {
            body.insert("stream".to_owned(), Value::Bool(true));
            body.insert(
                "stream_options".to_owned(),
                serde_json::json!({"include_usage": true}),
            );
        }
        self.post("chat/completions").json(&body)
    }

    fn post(&self, path: &str) -> RequestBuilder {
        let request = self.client.post(format!("{}/{path}", self.base_url));
        match &self.authorization {
            Some(authorization) => request.header(header::AUTHORIZATION, authorization),
            None => request,
        }
    }

    async fn by_deadline<T>(
        &self,
        work: impl Future<Output = Result<T, RemoteError>>,
    ) -> Result<T, RemoteError> {
        tokio::select! {
            done = work => done,
            () = self.clock.sleep(self.deadline) => {
                tracing::warn!(server = %self.name, "the deadline of a model server expired");
                Err(RemoteError::Late)
            }
        }
    }

    /// The answer's head, when it is a success.
    async fn send(&self, request: RequestBuilder) -> Result<reqwest::Response, RemoteError> {
        let response = request.send().await.map_err(|error| {
            let error = error.without_url();
            tracing::warn!(server = %self.name, %error, "a model server cannot be reached");
            RemoteError::Failed
        })?;
        let status = response.status();
        if status == StatusCode::OK {
            return Ok(response);
        }
        tracing::warn!(server = %self.name, status = status.as_u16(), "a model server refused");
        Err(match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => RemoteError::Busy {
                retry_after_s: response
                    .headers()
                    .get(header::RETRY_AFTER)
                    .and_then(|value| value.to_str().ok()?.trim().parse().ok()),
            },
            StatusCode::PAYLOAD_TOO_LARGE => RemoteError::TooLong,
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                match self.read(response).await {
                    Ok(words) if names_window(&words) => RemoteError::TooLong,
                    _ => RemoteError::Refused,
                }
            }
            _ => RemoteError::Failed,
        })
    }

    async fn read(&self, mut response: reqwest::Response) -> Result<Vec<u8>, RemoteError> {
        let mut whole = Vec::new();
        loop {
            match response.chunk().await {
                Ok(None) => return Ok(whole),
                Ok(Some(bytes)) if whole.len() + bytes.len() <= ANSWER_BYTES_MAX => {
                    whole.extend_from_slice(&bytes);
                }
                Ok(Some(_)) => return Err(self.failed("an answer over 32 MiB")),
                Err(_) => return Err(self.failed("an answer that broke off")),
            }
        }
    }

    fn failed(&self, why: &'static str) -> RemoteError {
        tracing::warn!(server = %self.name, why, "a model server failed");
        RemoteError::Failed
    }
}

/// Whether a refusal is about the model's window, in the words of OpenAI's code or of vLLM and Ollama.
fn names_window(words: &[u8]) -> bool {
    let words = String::from_utf8_lossy(words).to_lowercase();
    ["context_length", "context length", "context window"]
        .iter()
        .any(|sign| words.contains(sign))
}
