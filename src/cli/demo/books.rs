//! The sandbox's control route: its books, its request log, its faults. This is the other side's
//! truth; bursar never sees it.

use std::collections::HashMap;
use std::net::SocketAddr;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::cli::client::{Client, Response};
use crate::cli::error::CliError;
use crate::config::ListenAddr;
use crate::money::MicroUsd;

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The way to the service's operator.
#[derive(Clone, Debug)]
pub struct Service {
    client: Client,
}

/// `GET /sandbox/books`, as far as it is read.
#[derive(Clone, Debug, Deserialize)]
pub struct ServiceBooks {
    pub debits: Vec<Debit>,
}

/// Money that left the balance.
#[derive(Clone, Debug, Deserialize)]
pub struct Debit {
    pub key: Option<String>,
    pub route: String,
    pub request_id: String,
    #[serde(rename = "amount_micro_usd")]
    pub amount: MicroUsd,
}

#[derive(Debug, Deserialize)]
struct RequestLog {
    requests: Vec<LoggedRequest>,
}

#[derive(Debug, Deserialize)]
struct Faults {
    rules: Vec<Value>,
}

/// A request that came in, as far as it is read.
#[derive(Clone, Debug, Deserialize)]
struct LoggedRequest {
    request_id: String,
    idempotency_key: Option<String>,
    session: Option<String>,
}

// === impl Service ===

impl Service {
    pub fn new(address: SocketAddr) -> Self {
        Self {
            client: Client::new(ListenAddr::Tcp(address)),
        }
    }

    pub async fn books(&self) -> Result<ServiceBooks, CliError> {
        read(self.client.get("/sandbox/books").await?).await
    }

    /// Every request that came in.
    async fn received(&self) -> Result<Vec<LoggedRequest>, CliError> {
        let log: RequestLog = read(self.client.get("/sandbox/requests").await?).await?;
        Ok(log.requests)
    }

    /// How many requests with this Idempotency-Key came in.
    pub async fn requests_with(&self, key: &str) -> Result<usize, CliError> {
        let received = self.received().await?;
        let with_key = received
            .iter()
            .filter(|received| received.idempotency_key.as_deref() == Some(key));
        Ok(with_key.count())
    }

    /// The `X-Service-Session` of each request that had one, by request id.
    pub async fn sessions(&self) -> Result<HashMap<String, String>, CliError> {
        let requests = self.received().await?.into_iter();
        Ok(requests
            .filter_map(|received| Some((received.request_id, received.session?)))
            .collect())
    }

    /// Whether a fault rule has not met its requests yet.
    pub async fn has_faults(&self) -> Result<bool, CliError> {
        let left: Faults = read(self.client.get("/sandbox/faults").await?).await?;
        Ok(!left.rules.is_empty())
    }

    /// Sets fault rules; a rule that is used up goes by itself.
    pub async fn set_faults(&self, rules: &Value) -> Result<(), CliError> {
        let body = Bytes::from(rules.to_string());
        let _: Value = read(self.client.post_json("/sandbox/faults", body).await?).await?;
        Ok(())
    }
}

async fn read<T: DeserializeOwned>(answer: Response) -> Result<T, CliError> {
    let status = answer.status();
    if !status.is_success() {
        let text = answer.text(ANSWER_BYTES_MAX).await?;
        return Err(CliError::Failed(format!(
            "the sandbox said {status}: {text}"
        )));
    }
    Ok(answer.json(ANSWER_BYTES_MAX).await?)
}
