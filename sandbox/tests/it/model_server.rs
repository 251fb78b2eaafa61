//! A model server in a process of its own, that speaks the OpenAI protocol.
//!
//! It is this very test binary, started once more: real HTTP on port 0. The requested model's name is a
//! [`script`] in JSON and decides what the server does. Promise: it ends with the test that started it.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures_util::stream;
use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
};
use tokio::{io::AsyncReadExt, sync::Notify};

pub struct ModelServer {
    child: Child,
    pub base_url: String,
    origin: String,
    client: reqwest::Client,
}

// === impl ModelServer ===

impl ModelServer {
    pub fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("model_server::the_second_process")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .find_map(|line| Some(line.unwrap().split_once("serving on ")?.1.to_owned()))
            .expect("the process prints its address");
        // What it prints later must have a reader, or it would die of a broken pipe.
        std::thread::spawn(move || lines.for_each(drop));
        Self {
            child,
            base_url: format!("http://{address}/v1"),
            origin: format!("http://{address}"),
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
        }
    }

    /// A `[[model]]` of this server that does as the script says.
    pub fn model(&self, role: &str, more: &str, script: Value) -> String {
        format!(
            "[[model]]\nrole = \"{role}\"\nbase_url = \"{}\"\nmodel = '{script}'\n{more}\n",
            self.base_url
        )
    }

    /// The requests so far, in order: `path`, `authorization`, `content_type`, `body`.
    pub async fn seen(&self) -> Vec<Value> {
        let url = format!("{}/seen", self.origin);
        let reply = self.client.get(url).send().await.unwrap();
        reply.json().await.unwrap()
    }

    /// Waits until so many requests have come.
    pub async fn until_seen(&self, n: usize) {
        crate::support::within(async {
            while self.seen().await.len() < n {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Lets a stream that is held go on.
    pub async fn release(&self) {
        let url = format!("{}/release", self.origin);
        self.client.post(url).send().await.unwrap();
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One that says this text.
pub fn says(text: &str) -> Value {
    json!({"say": text})
}

#[derive(Clone, Default)]
struct Shared {
    seen: Arc<Mutex<Vec<Value>>>,
    go_on: Arc<Notify>,
}

#[test]
#[ignore = "the body of the second process; it ends with its standard input"]
fn the_second_process() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let router = Router::new()
            .route("/v1/chat/completions", post(chat))
            .route("/v1/audio/transcriptions", post(transcribe))
            .route("/seen", get(seen))
            .route("/release", post(release))
            .with_state(Shared::default());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("serving on {}", listener.local_addr().unwrap());
        let end = async {
            let mut rest = Vec::new();
            let _ = tokio::io::stdin().read_to_end(&mut rest).await;
        };
        tokio::select! {
            served = async { axum::serve(listener, router).await } => served.unwrap(),
            () = end => {}
        }
    });
}

async fn seen(State(shared): State<Shared>) -> axum::Json<Value> {
    axum::Json(Value::Array(shared.seen.lock().unwrap().clone()))
}

async fn release(State(shared): State<Shared>) {
    shared.go_on.notify_one();
}

impl Shared {
    fn note(&self, uri: &Uri, headers: &HeaderMap, body: Value) {
        let header = |name| headers.get(name).and_then(|value| value.to_str().ok());
        self.seen.lock().unwrap().push(json!({
            "path": uri.path(),
            "authorization": header("authorization"),
            "content_type": header("content-type"),
            "body": body,
        }));
    }
}

async fn transcribe(
    State(shared): State<Shared>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    shared.note(&uri, &headers, json!(String::from_utf8_lossy(&body)));
    axum::Json(json!({"text": format!("{} bytes came", body.len())})).into_response()
}

/// Obeys the script: `say`, `tool_calls`, `finish`, `usage`, `logprobs`; `status`, `headers` and `words`; `hang`; in a
/// stream `hold_after`, `hang_after`, `break_after` and `error_after` so many chunks, and `no_done`.
async fn chat(State(shared): State<Shared>, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap();
    shared.note(&uri, &headers, body.clone());
    let script: Value = serde_json::from_str(body["model"].as_str().unwrap()).unwrap();
    if script["hang"] == true {
        std::future::pending::<()>().await;
    }
    if let Some(status) = script["status"].as_u64() {
        let status = StatusCode::from_u16(u16::try_from(status).unwrap()).unwrap();
        let words = script["words"].as_str().unwrap_or("");
        let words = format!("a word of the server's own: secret-model-name {words}");
        let mut refused = (status, words).into_response();
        for (name, value) in script["headers"].as_object().into_iter().flatten() {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            let value = value.as_str().unwrap().parse().unwrap();
            refused.headers_mut().insert(name, value);
        }
        return refused;
    }
    let finish = script.get("finish").cloned().unwrap_or(json!("stop"));
    let usage = match script.get("usage") {
        Some(usage) => usage.clone(),
        None => json!({"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}),
    };
    if body["stream"] == true {
        return streamed(&shared, &script, &finish, &usage);
    }
    let mut message = json!({"role": "assistant", "content": script["say"]});
    if let Some(calls) = script.get("tool_calls") {
        message["tool_calls"] = calls.clone();
    }
    axum::Json(json!({
        "id": "theirs", "object": "chat.completion", "created": 1, "model": "secret-model-name",
        "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": script["logprobs"]}],
        "usage": usage,
    }))
    .into_response()
}

fn streamed(shared: &Shared, script: &Value, finish: &Value, usage: &Value) -> Response {
    let chunk = |delta: Value, finish: &Value| {
        json!({"id": "theirs", "model": "secret-model-name",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut chunks = vec![chunk(
        json!({"role": "assistant", "content": ""}),
        &Value::Null,
    )];
    let said = script["say"].as_str().unwrap_or("");
    let words = said.split_inclusive(' ');
    chunks.extend(words.map(|word| chunk(json!({"content": word}), &Value::Null)));
    // A call comes in pieces: its name, then its arguments in two.
    for (index, call) in (0_u64..).zip(script["tool_calls"].as_array().into_iter().flatten()) {
        let arguments = call["function"]["arguments"].as_str().unwrap_or("");
        let (first, second) = arguments.split_at(arguments.len() / 2);
        let named = json!({"index": index, "id": call["id"], "type": "function",
            "function": {"name": call["function"]["name"], "arguments": ""}});
        let piece = |text: &str| json!({"index": index, "function": {"arguments": text}});
        for piece in [named, piece(first), piece(second)] {
            chunks.push(chunk(json!({"tool_calls": [piece]}), &Value::Null));
        }
    }
    chunks.push(chunk(json!({}), finish));
    chunks.push(json!({"choices": [], "usage": usage}));
    let mut lines: Vec<String> = chunks
        .iter()
        .map(|c| format!("data: {c}\r\n\r\n"))
        .collect();
    lines.insert(1, ": a comment\r\n\r\n".to_owned());
    if script["no_done"] != true {
        lines.push("data: [DONE]\r\n\r\n".to_owned());
    }
    if let Some(at) = script["error_after"].as_u64() {
        let error = "data: {\"error\": {\"message\": \"out of memory\"}}\r\n\r\n";
        lines.insert(usize::try_from(at).unwrap(), error.to_owned());
    }
    let at = |name: &str| script[name].as_u64();
    let (hold, hang, cut) = (at("hold_after"), at("hang_after"), at("break_after"));
    let go_on = Arc::clone(&shared.go_on);
    let numbered = (0_u64..).zip(lines);
    let body = stream::unfold(numbered.into_iter(), move |mut lines| {
        let go_on = Arc::clone(&go_on);
        async move {
            let (n, line) = lines.next()?;
            if hold == Some(n) {
                go_on.notified().await;
            }
            if hang == Some(n) {
                std::future::pending::<()>().await;
            }
            if cut == Some(n) {
                // Lets what was written before leave first.
                for _ in 0..10 {
                    tokio::task::yield_now().await;
                }
                return Some((Err(std::io::Error::other("cut")), lines));
            }
            Some((Ok(line), lines))
        }
    });
    let mut response = Response::new(Body::from_stream(body));
    let kind = "text/event-stream".parse().unwrap();
    response.headers_mut().insert("content-type", kind);
    response
}
