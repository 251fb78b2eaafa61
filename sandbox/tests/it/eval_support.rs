//! Making sets and runs through the wire.

use crate::support::*;
use serde_json::{Value, json};

pub const SETS: &str = "/v1/eval-sets";
pub const RUNS: &str = "/v1/eval-runs";
const BOUNDARY: &str = "----b0undary";

/// A `multipart/form-data` body.
#[derive(Clone, Default)]
pub struct Form(Vec<u8>);

// === impl Form ===

impl Form {
    pub fn field(mut self, name: &str, text: &str) -> Self {
        self.part(&format!("name=\"{name}\""), text.as_bytes());
        self
    }

    pub fn file(mut self, name: &str, bytes: &[u8]) -> Self {
        self.part(&format!("name=\"{name}\"; filename=\"f\""), bytes);
        self
    }

    fn part(&mut self, disposition: &str, bytes: &[u8]) {
        let head = format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
        self.0.extend(head.as_bytes());
        self.0.extend(bytes);
        self.0.extend(b"\r\n");
    }

    pub async fn post(&self, sandbox: &Sandbox, path: &str, key: &str) -> Reply {
        let mut body = self.0.clone();
        body.extend(format!("--{BOUNDARY}--\r\n").as_bytes());
        let content_type = format!("multipart/form-data; boundary={BOUNDARY}");
        let authorization = format!("Bearer {key}");
        let headers = [
            ("Content-Type", content_type.as_str()),
            ("Authorization", authorization.as_str()),
        ];
        sandbox.send("POST", path, &headers, Some(body)).await
    }
}

pub fn jsonl(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Posts a set of the first organization.
pub async fn post_set(
    sandbox: &Sandbox,
    task: Option<&str>,
    prompt: &str,
    rows: &[Value],
) -> Reply {
    let mut form = Form::default()
        .file("items", jsonl(rows).as_bytes())
        .field("prompt", prompt);
    if let Some(task) = task {
        form = form.field("task_id", task);
    }
    form.post(sandbox, SETS, "sandbox-key").await
}

/// The id of a new set.
pub async fn set(sandbox: &Sandbox, task: Option<&str>, prompt: &str, rows: &[Value]) -> String {
    let reply = post_set(sandbox, task, prompt, rows).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["eval_set"]["id"].as_str().unwrap().to_owned()
}

pub async fn post_run(sandbox: &Sandbox, set: &str, candidates: &[&str]) -> Reply {
    let body = json!({"eval_set_id": set, "candidate_model_ids": candidates});
    sandbox.post(RUNS, &[], &body).await
}

/// The id of a new run.
pub async fn start(sandbox: &Sandbox, set: &str, candidates: &[&str]) -> String {
    let reply = post_run(sandbox, set, candidates).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()["run_id"].as_str().unwrap().to_owned()
}

/// The envelope of a run when it is as wanted.
pub async fn when(sandbox: &Sandbox, run: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    within(async {
        loop {
            let envelope = sandbox.get(&format!("{RUNS}/{run}")).await.json();
            if wanted(&envelope["run"]) {
                return envelope;
            }
            tokio::task::yield_now().await;
        }
    })
    .await
}

pub async fn terminal(sandbox: &Sandbox, run: &str) -> Value {
    when(sandbox, run, |run| {
        run["status"] == "completed" || run["status"] == "failed"
    })
    .await
}

/// What the books say that a run cost, and by which ids.
pub async fn debits_of(sandbox: &Sandbox, run: &str) -> Vec<(String, i64)> {
    let books = sandbox.books().await;
    let debits = books["debits"].as_array().unwrap();
    debits
        .iter()
        .map(|debit| {
            let id = debit["request_id"].as_str().unwrap().to_owned();
            (id, debit["amount_micro_usd"].as_i64().unwrap())
        })
        .filter(|(id, _)| id.starts_with(&format!("{run}/")))
        .collect()
}

pub async fn billed(sandbox: &Sandbox, run: &str) -> i64 {
    debits_of(sandbox, run).await.iter().map(|(_, n)| n).sum()
}

/// So many rows about messages and their replies; no task of the catalog fits them.
pub fn replies(n: usize) -> Vec<Value> {
    (0..n)
        .map(|at| {
            json!({
                "input": {"message": format!("Order {at} came late and the box was open.")},
                "expected_output": {"reply": format!("We are sorry that order {at} came late and will send it again.")},
            })
        })
        .collect()
}

pub const REPLY: &str = "Write a polite reply to the message.";
