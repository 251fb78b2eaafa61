//! The matcher with a reasoner: a model server in a second process decides, or the words do.

use crate::{model_server::*, own_models::sandbox_with, support::*};
use serde_json::{Value, json};

const MATCH: &str = "/v1/tasks/match";
/// The words alone say invoice-extraction.
const QUERY: &str = "read supplier invoices";

/// The match for [`QUERY`] when the reasoner does as the script says.
async fn matched(server: &ModelServer, script: Value) -> Reply {
    // Short only for the one that never answers: on a busy machine another may take a second.
    let more = match script["hang"] == true {
        true => "timeout_s = 1",
        false => "timeout_s = 30",
    };
    let sandbox = sandbox_with(&[server.model("reasoner", more, script)]).await;
    let reply = sandbox
        .post(MATCH, &[], &json!({"query": QUERY, "top_k": 3}))
        .await;
    assert_eq!(sandbox.debits().await, Vec::<i64>::new(), "a match is free");
    reply
}

fn written(kind: &str, id: Value, confidence: &str) -> Value {
    says(
        &json!({"type": kind, "id": id, "confidence": confidence, "reasoning": "It reads like one."})
            .to_string(),
    )
}

// Interface, Task match result: matcher = reason; reasoning; confidence
// Interface, POST /v1/tasks/match: "the reasoning router returns a single chosen match"
#[tokio::test]
async fn a_reasoner_names_a_single_task_and_says_why() {
    let server = ModelServer::start();
    let reply = matched(&server, written("task", json!("resume-extraction"), "high")).await;

    let named = json!({"task_id": "resume-extraction", "score": 0.9, "confidence": "high"});
    assert_eq!(
        reply.json(),
        json!({
            "query": QUERY, "type": "task", "matched": true, "chosen": named, "candidates": [named],
            "reasoning": "It reads like one.", "confidence": "high", "ambiguous": false, "matcher": "reason",
        })
    );
    assert_eq!(reply.header("x-sandbox-assumed"), Some("match-reason"));
}

// Interface, Task match result: matched, "a high-confidence task was found"; chosen, "null if nothing cleared
// the bar"
#[tokio::test]
async fn an_unsure_reasoner_matches_nothing_and_a_very_unsure_one_chooses_nothing() {
    let server = ModelServer::start();
    for (confidence, chosen) in [("medium", true), ("low", false)] {
        let answer = matched(&server, written("task", json!("toxicity"), confidence))
            .await
            .json();
        assert_eq!(answer["matched"], false);
        assert_eq!(answer["chosen"].is_object(), chosen, "{confidence}");
        assert_eq!(answer["confidence"], confidence);
        assert_eq!(answer["candidates"][0]["task_id"], "toxicity");
    }
}

// Interface, Task match result: type
#[tokio::test]
async fn a_reasoner_may_say_capability_unsupported_or_none() {
    let server = ModelServer::start();
    let lane = matched(&server, written("capability", json!("vision"), "high"))
        .await
        .json();
    assert_eq!(
        (&lane["type"], &lane["capability"]["id"]),
        (&json!("capability"), &json!("vision"))
    );
    for kind in ["unsupported", "none"] {
        let answer = matched(&server, written(kind, Value::Null, "high"))
            .await
            .json();
        assert_eq!(answer["type"], kind);
        assert_eq!(
            (&answer["chosen"], &answer["matched"]),
            (&Value::Null, &json!(false))
        );
        assert_eq!(answer["candidates"], json!([]));
        assert!(answer.get("capability").is_none());
    }
}

// Interface, POST /v1/tasks/match: "falls back to a deterministic keyword scorer when the router is unavailable"
#[tokio::test]
async fn the_words_decide_when_the_reasoner_fails_or_names_what_is_not_there() {
    let server = ModelServer::start();
    let alone = Sandbox::start().await;
    let by_words = alone
        .post(MATCH, &[], &json!({"query": QUERY, "top_k": 3}))
        .await
        .json();
    assert_eq!(by_words["matcher"], "keyword");

    for script in [
        json!({"status": 500}),
        json!({"status": 429}),
        json!({"hang": true}),
        says("I think it is about invoices."),
        says("{}"),
        written("task", json!("no-such-task"), "high"),
        written("task", json!("vision"), "high"),
        written("capability", json!("sentiment"), "high"),
        written("task", Value::Null, "high"),
        written("task", json!("sentiment"), "certain"),
    ] {
        assert_eq!(
            matched(&server, script.clone()).await.json(),
            by_words,
            "{script}"
        );
    }
}

#[tokio::test]
async fn the_reasoner_is_shown_the_catalog_and_the_description_and_asked_for_nothing_else() {
    let server = ModelServer::start();
    let script = written("none", Value::Null, "high");
    let sandbox = sandbox_with(&[server.model("reasoner", "", script)]).await;

    sandbox.post(MATCH, &[], &json!({"query": " "})).await;
    assert_eq!(
        server.seen().await.len(),
        0,
        "a refused request reaches no model"
    );
    sandbox.post(MATCH, &[], &json!({"query": QUERY})).await;

    let seen = server.seen().await;
    assert_eq!(seen.len(), 1);
    let messages = &seen[0]["body"]["messages"];
    assert_eq!(messages[1], json!({"role": "user", "content": QUERY}));
    let system = messages[0]["content"].as_str().unwrap();
    let tasks = sandbox.get("/v1/tasks").await.json();
    for task in tasks["tasks"].as_array().unwrap() {
        assert!(system.contains(task["id"].as_str().unwrap()));
    }
    let schema = &seen[0]["body"]["response_format"]["json_schema"]["schema"];
    assert_eq!(
        schema["required"],
        json!(["type", "id", "confidence", "reasoning"])
    );
}
