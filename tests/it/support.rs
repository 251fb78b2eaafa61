//! The set-up of the tests: bursar in this process on port 0, the sandbox over HTTP, a scripted raw
//! origin, and a client that speaks bytes.
//!
//! Promise: nothing here knows a rule of bursar's; tests state them.

pub mod bursar;
pub mod daemon;
pub mod origin;
pub mod pgbouncer;
pub mod postgres;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub mod rig;
pub mod sandbox;
pub mod source;
pub mod wire;

pub use bursar::Bursar;
pub use origin::{Origin, Step};
pub use sandbox::Sandbox;
pub use wire::{Answer, Wire};

use std::future::Future;
use std::time::Duration;

/// The organization's key in tests: found nowhere but upstream.
pub const KEY: &str = "sk-org-0123456789abcdef";

/// Polls until `probe` returns a value; panics after ten seconds. Never a fixed sleep.
pub async fn eventually<T, F: Future<Output = Option<T>>>(
    what: &str,
    probe: impl FnMut() -> F,
) -> T {
    within(Duration::from_secs(10), what, probe).await
}

/// The same with a patience of the test's own.
pub async fn within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    what: &str,
    mut probe: impl FnMut() -> F,
) -> T {
    let deadline = tokio::time::Instant::now() + patience;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "waited in vain: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A chat request's body.
pub fn chat(prompt: &str) -> String {
    serde_json::json!({
        "model": "auto",
        "messages": [{"role": "user", "content": prompt}],
    })
    .to_string()
}

/// The same as a stream.
pub fn chat_stream(prompt: &str) -> String {
    serde_json::json!({
        "model": "auto",
        "stream": true,
        "messages": [{"role": "user", "content": prompt}],
    })
    .to_string()
}

/// The same for the routes of Responses, as a stream.
pub fn responses_stream(prompt: &str) -> String {
    serde_json::json!({"model": "auto", "stream": true, "input": prompt}).to_string()
}

/// The same for Messages, as a stream.
pub fn messages_stream(prompt: &str) -> String {
    serde_json::json!({
        "model": "auto",
        "stream": true,
        "max_tokens": 50,
        "messages": [{"role": "user", "content": prompt}],
    })
    .to_string()
}
