//! Every choice of the sandbox is announced on the answers it shapes, or listed here with the reason why it
//! shapes none.

use crate::{endpoints::*, eval_support::*, model_server::*, own_models::sandbox_with, support::*};
use bursar_sandbox::{Options, assumptions};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const AMOUNT: &str = "the numbers of an answer, not its shape";
const WHO: &str = "which model answers, which no answer shows beyond the interface's own headers";
const WHEN: &str = "when a request runs, waits or counts; its answer is an ordinary one";
const NO_READER: &str = "there is no head any more, or no client to read it";
const WITHIN: &str = "a part of answers that bear the mark of their route";

/// Those that no answer is marked with.
const INTERNAL: &[(&str, &str)] = &[
    ("aborted-stream", NO_READER),
    ("key-after-failure", WHEN),
    ("replay-window-start", WHEN),
    (
        "replay-request-id",
        "the interface names x-request-id for diagnostics alone",
    ),
    ("duplicate-waits-in-flight", WHEN),
    ("unstored-duplicate-waits", WHEN),
    ("stored-size-unit", WHEN),
    ("limited-routes", WHEN),
    ("order-of-checks", WHEN),
    ("error-receipt", "what no error has"),
    (
        "endpoint-model",
        "its answers are marked endpoint-inference",
    ),
    ("max-completion-tokens", AMOUNT),
    ("built-in-logprobs", AMOUNT),
    ("one-waiter-runs", WHEN),
    ("query-string", WHEN),
    ("free-repeat-empty-balance", WHEN),
    ("negative-balance", WHEN),
    ("tokenizer", AMOUNT),
    ("prices", AMOUNT),
    ("plan", WHO),
    ("judge", WHO),
    ("judge-model", WHO),
    ("agent-confidence", WHO),
    ("specialist-deadline", WHO),
    ("specialist-window", WHO),
    ("auto-frontier", WHO),
    ("checked-streams", WHEN),
    ("broken-relay", NO_READER),
    ("tool-rule", WHO),
    ("pin-escalations", WHO),
    ("deploy-abandoned", NO_READER),
    ("deploy-cut", NO_READER),
    ("endpoint-billing", AMOUNT),
    ("endpoint-quality", WITHIN),
    ("eval-billing", AMOUNT),
    ("eval-transcription", WHO),
    ("eval-run-pace", "what a fault does, which no service has"),
    ("speech-prices", AMOUNT),
    ("scorer-ids", WITHIN),
    ("answer-text", AMOUNT),
    ("field-f1", AMOUNT),
    ("ndcg-gain", AMOUNT),
    ("wer-words", AMOUNT),
    ("judge-overlap", AMOUNT),
    ("confidence-interval", AMOUNT),
    (
        "stored-images",
        "its 503 is marked, and takes 512 MB of pictures to see",
    ),
];

#[derive(Default)]
struct Seen(BTreeSet<String>);

impl Seen {
    fn see(&mut self, reply: &Reply) {
        assert_ne!(reply.status, 0);
        let marks = reply.header("x-sandbox-assumed").unwrap_or_default();
        self.0
            .extend(marks.split(',').map(|id| id.trim().to_owned()));
    }

    async fn post(&mut self, sandbox: &Sandbox, path: &str, body: &Value) -> Reply {
        let reply = sandbox.post(path, &[], body).await;
        self.see(&reply);
        reply
    }

    async fn get(&mut self, sandbox: &Sandbox, path: &str) -> Reply {
        let reply = sandbox.get(path).await;
        self.see(&reply);
        reply
    }
}

async fn chats(seen: &mut Seen) {
    let sandbox = Sandbox::start_with(Options {
        forbidden_keys: vec!["known".to_owned()],
        ..Options::default()
    })
    .await;
    let tool = json!([{"type": "function", "function": {"name": "rivers"}}]);
    for body in [
        with(
            with(ask("rivers"), "tools", tool),
            "tool_choice",
            json!("required"),
        ),
        ask("Describe this image"),
        ask_stream("Describe this image"),
        with(ask("x"), "odd", json!(1)),
        with(ask("x"), "n", json!(2)),
        with(ask("x"), "messages", json!(1)),
        ask(&"a ".repeat(131_073)),
    ] {
        seen.post(&sandbox, CHAT, &body).await;
    }
    let key = [("Idempotency-Key", "k")];
    for _ in 0..2 {
        seen.see(&sandbox.post(AGENT, &key, &ask("rivers")).await);
    }
    seen.post(&sandbox, AGENT, &with(ask("x"), "n", json!(2)))
        .await;
    for path in ["/v1/models", "/agent/v1/models", "/v2", "/v1/auto/metrics"] {
        seen.get(&sandbox, path).await;
    }
    let odd = [("Idempotency-Key", "ü")];
    seen.see(&sandbox.post(CHAT, &odd, &ask("x")).await);
    let known = [("Authorization", "Bearer known")];
    seen.see(&sandbox.post(CHAT, &known, &ask("x")).await);
    let over = [("Content-Length", "99999999"), ("Expect", "100-continue")];
    seen.see(&sandbox.send("POST", CHAT, &over, None).await);

    sandbox.fault(json!({"hold": "first"})).await;
    let held = [("Idempotency-Key", "held")];
    let body = ask("lakes");
    let (_, late) = tokio::join!(sandbox.post(CHAT, &held, &body), async {
        sandbox.until_in_flight(1).await;
        let (late, ()) = tokio::join!(sandbox.post(CHAT, &held, &body), async {
            sandbox.until_in_flight(2).await;
            sandbox.control("clock", json!({"advance_s": 541})).await;
        });
        sandbox.control("release", json!({"hold": "first"})).await;
        late
    });
    seen.see(&late);
    sandbox.control("limits", json!({"per_minute": 0})).await;
    seen.post(&sandbox, CHAT, &ask("x")).await;
}

async fn others(seen: &mut Seen) {
    let sandbox = Sandbox::start().await;
    let image = json!({"model": "auto", "prompt": "a red circle", "size": "16x16"});
    let rerank = json!({"model": "auto", "query": "a", "documents": ["b"]});
    let speech = json!({"text": "Good morning"});
    let comparison = with(ask("x"), "model", json!("frontier-a"));
    for (path, body) in [
        ("/v1/embeddings", &json!({"model": "auto", "input": "x"})),
        ("/v1/rerank", &rerank),
        ("/v1/images/generations", &image),
        ("/v1/playground/frontier", &comparison),
        ("/v1/audio/transcriptions", &json!({"audio_base64": "AAAA"})),
        (
            "/v1/tasks/match",
            &json!({"query": "draw a picture from a prompt"}),
        ),
        (
            "/v1/tasks/match",
            &json!({"query": "extract contacts", "top_k": 51}),
        ),
    ] {
        seen.post(&sandbox, path, body).await;
    }
    let said = seen
        .post(&sandbox, "/v1/audio/speech", &speech)
        .await
        .json();
    let heard = json!({"audio_base64": said["audio_base64"]});
    seen.post(&sandbox, "/v1/audio/transcriptions", &heard)
        .await;
    let roster = format!("/v1/eval/frontier-models?task={TASK}");
    for path in ["/v1/tasks", &roster] {
        seen.get(&sandbox, path).await;
    }
    let server = ModelServer::start();
    let sure = says(
        &json!({"type": "task", "id": "toxicity", "confidence": "high", "reasoning": "So."})
            .to_string(),
    );
    let sandbox = sandbox_with(&[
        server.model("reasoner", "", sure),
        server.model("specialist", "", json!({"status": 503})),
    ])
    .await;
    seen.post(&sandbox, "/v1/tasks/match", &json!({"query": "rude words"}))
        .await;
    seen.post(&sandbox, CHAT, &ask("rivers")).await;
}

async fn endpoints(seen: &mut Seen) {
    let sandbox = Sandbox::start_with(quick()).await;
    let mine = json!({"task": TASK, "name": "mine"});
    seen.post(&sandbox, ENDPOINTS, &mine).await;
    let alias = seen.get(&sandbox, "/v1/endpoints/mine").await.json()["model"].clone();
    let third = alias.as_str().unwrap().replace("-1", "-3");
    deploy(
        &sandbox,
        json!({"task": TASK, "name": "small", "model": third}),
    )
    .await;
    for body in [
        mine,
        json!({"task": TASK, "name": "a b"}),
        json!({"task": TASK, "gpus": 8}),
    ] {
        seen.post(&sandbox, ENDPOINTS, &body).await;
    }
    let long = with(ask(&"a ".repeat(9_000)), "model", json!("small"));
    seen.post(&sandbox, CHAT, &long).await;
    seen.post(&sandbox, CHAT, &with(ask("x"), "model", json!("small")))
        .await;
    seen.get(&sandbox, "/v1/endpoints/mine/cost").await;
    seen.see(&turn(&sandbox, "mine", "stop").await);
    seen.post(&sandbox, CHAT, &with(ask("x"), "model", json!("mine")))
        .await;
    for n in 2..100 {
        named(&sandbox, &format!("e{n}")).await;
    }
    let one_more = json!({"task": TASK, "name": "one-more"});
    seen.post(&sandbox, ENDPOINTS, &one_more).await;
}

async fn evals(seen: &mut Seen) {
    let sandbox = Sandbox::start().await;
    let rows = jsonl(&replies(2));
    let form = || Form::default().field("prompt", REPLY);
    let items = || form().file("items", rows.as_bytes());
    let long = "n".repeat(201);
    for form in [
        items(),
        items().field("task_id", "none"),
        items().field("name", &long),
        items().field("prompt", REPLY),
        form().file("items", b"[]"),
        Form::default()
            .field("prompt", "Zebra quartz volcano.")
            .file("items", rows.as_bytes()),
    ] {
        seen.see(&form.post(&sandbox, SETS, "sandbox-key").await);
    }
    let set = set(&sandbox, None, REPLY, &replies(2)).await;
    seen.see(&post_run(&sandbox, &set, &["nobody"]).await);
    let paused = json!({"match": {"path": RUNS}, "fault": {"hold_chunks_name": "all"}});
    sandbox.control("faults", paused).await;
    let run = start(&sandbox, &set, &["auto"]).await;
    let path = format!("{RUNS}/{run}");
    seen.get(&sandbox, &path).await;
    sandbox.control("release", json!({"hold": "all"})).await;
    terminal(&sandbox, &run).await;
    seen.get(&sandbox, &path).await;
    seen.see(&sandbox.send("PUT", "/storage/x", &[], None).await);
    let path = format!("{SETS}/{set}");
    seen.see(&sandbox.send("DELETE", &path, &[], None).await);
}

// An answer whose shape rests on a choice names it; openapi.json promises it of every answer.
#[tokio::test]
async fn every_choice_marks_an_answer_or_has_a_reason_not_to() {
    let mut seen = Seen::default();
    chats(&mut seen).await;
    others(&mut seen).await;
    endpoints(&mut seen).await;
    evals(&mut seen).await;
    seen.0.remove("");

    let ids: BTreeSet<String> = assumptions().iter().map(|one| one.id.to_owned()).collect();
    let internal: BTreeSet<String> = INTERNAL.iter().map(|(id, _)| (*id).to_owned()).collect();
    let strange: Vec<_> = seen
        .0
        .union(&internal)
        .filter(|id| !ids.contains(*id))
        .collect();
    assert!(strange.is_empty(), "no such assumption: {strange:?}");
    let both: Vec<_> = seen.0.intersection(&internal).collect();
    assert!(both.is_empty(), "listed as internal, and marked: {both:?}");
    let covered: BTreeSet<String> = seen.0.union(&internal).cloned().collect();
    let silent: Vec<_> = ids.difference(&covered).collect();
    assert!(silent.is_empty(), "marked by no answer: {silent:?}");
}
