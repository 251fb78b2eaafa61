//! What flows, and what is sent or bought once: deploys, uploads, pictures, embeddings, rerank, and
//! inference on endpoints. Against the sandbox's own routes; a raw origin where timing matters.

mod deploy;
mod documents;
mod endpoints;
mod keyed;
mod old_clients;
mod pictures;
mod uploads;

use bursar::ledger::entry::{InDoubt, State};
use bursar::money::MicroUsd;
use bursar_sandbox::{Options, Settings};
use serde_json::{Value, json};

use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Sandbox, eventually};

const ENDPOINTS: &str = "/v1/endpoints";
const EDITS: &str = "/v1/images/edits";
const SETS: &str = "/v1/eval-sets";
const TRANSCRIPTIONS: &str = "/v1/audio/transcriptions";

/// A form whose boundary is always the same, so that its repeat is the same request.
const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=edge");

const fn settled(micro_usd: u64) -> State {
    State::Settled {
        billed: MicroUsd::new(micro_usd),
    }
}

const fn in_doubt(reason: InDoubt) -> State {
    State::InDoubt { reason }
}

/// The sandbox without pauses in its deploys, and bursar before it.
async fn stage() -> (Sandbox, Bursar) {
    stage_with("").await
}

async fn stage_with(lines: &str) -> (Sandbox, Bursar) {
    let options = Options {
        settings: Settings {
            endpoint_stage_ms: 0,
            endpoint_warm_up_ms: 1_000,
            ..Settings::default()
        },
        ..Options::default()
    };
    let sandbox = Sandbox::with(options).await;
    let bursar = Bursar::with(&sandbox.url(), lines).await;
    (sandbox, bursar)
}

async fn fault(sandbox: &Sandbox, path: &str, fault: Value) {
    let rule = json!({"match": {"path": path}, "fault": fault});
    sandbox.control("/sandbox/faults", rule).await;
}

async fn release(sandbox: &Sandbox, hold: &str) {
    let release = json!({"hold": hold});
    sandbox.control("/sandbox/release", release).await;
}

/// What the sandbox received of a method and path, in order.
async fn received(sandbox: &Sandbox, method: &str, path: &str) -> Vec<Value> {
    let log = sandbox.get("/sandbox/requests").await;
    let all = log["requests"].as_array().expect("a log").clone();
    all.into_iter()
        .filter(|line| line["method"] == method && line["path"] == path)
        .collect()
}

async fn amounts(sandbox: &Sandbox) -> Vec<u64> {
    let debits = sandbox.debits().await;
    let amount = |debit: &Value| debit["amount_micro_usd"].as_u64().expect("an amount");
    debits.iter().map(amount).collect()
}

async fn ask(bursar: &Bursar, path: &str, headers: &[(&str, &str)], body: &Value) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request("POST", path, headers, &body.to_string()))
        .await;
    wire.answer().await
}

/// A request without a body.
async fn bare(bursar: &Bursar, method: &str, path: &str) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(request(method, path, &[], "")).await;
    wire.answer().await
}

/// The head of a request with a body of that many bytes.
fn head(path: &str, headers: &[(&str, &str)], length: usize) -> String {
    let mut head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}Content-Length: {length}\r\n\r\n")
}

async fn send_bytes(bursar: &Bursar, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut wire = bursar.connect().await;
    wire.send(head(path, headers, body.len())).await;
    wire.send(body).await;
    wire.answer().await
}

/// A `multipart/form-data` body: names with texts, and with files.
fn form(texts: &[(&str, &str)], files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut part = |disposition: &str, bytes: &[u8]| {
        let head = format!("--edge\r\nContent-Disposition: form-data; {disposition}\r\n\r\n");
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    };
    for (name, text) in texts {
        part(&format!("name=\"{name}\""), text.as_bytes());
    }
    for (name, bytes) in files {
        part(&format!("name=\"{name}\"; filename=\"f\""), bytes);
    }
    body.extend_from_slice(b"--edge--\r\n");
    body
}

/// Waits until bursar has counted that many apps that left.
async fn left(bursar: &Bursar, count: u32) {
    eventually("the app's leaving to be noticed", || async {
        let counted = bursar.metric("bursar_client_disconnects_total", "");
        (counted >= f64::from(count)).then_some(())
    })
    .await;
}

async fn reached(origin: &Origin, count: usize) {
    eventually("the service to receive", || async {
        (origin.received().len() >= count).then_some(())
    })
    .await;
}
