//! The sandbox over HTTP, in this process, on port 0.

use std::net::SocketAddr;

use bursar_sandbox::Options;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use super::KEY;

/// A running sandbox. Dropping it stops it.
pub struct Sandbox {
    pub address: SocketAddr,
    client: reqwest::Client,
    _stop: oneshot::Sender<()>,
}

impl Sandbox {
    pub async fn start() -> Self {
        Self::with(Options::default()).await
    }

    /// With options of the test's own; the key is always the tests' key.
    pub async fn with(mut options: Options) -> Self {
        options.api_key = KEY.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(bursar_sandbox::serve(listener, options, async {
            stopped.await.ok();
        }));
        Self {
            address,
            client: reqwest::Client::new(),
            _stop: stop,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The books: `{"balance_micro_usd", "debits": […]}`.
    pub async fn books(&self) -> Value {
        self.get("/sandbox/books").await
    }

    /// What was debited in all, in micro-USD.
    pub async fn debited(&self) -> u64 {
        self.debits()
            .await
            .iter()
            .map(|debit| debit["amount_micro_usd"].as_u64().expect("an amount"))
            .sum()
    }

    pub async fn debits(&self) -> Vec<Value> {
        self.books().await["debits"]
            .as_array()
            .expect("debits")
            .clone()
    }

    pub async fn get(&self, path: &str) -> Value {
        let url = format!("{}{path}", self.url());
        let answer = self.client.get(url).send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
        answer.json().await.expect("JSON")
    }

    /// A control call that has to succeed.
    pub async fn control(&self, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.url());
        let answer = self
            .client
            .post(url)
            .json(&body)
            .send()
            .await
            .expect("an answer");
        let status = answer.status();
        let text = answer.text().await.expect("a text");
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).unwrap_or(Value::Null)
    }
}
