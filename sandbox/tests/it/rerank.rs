//! Rerank: which documents fit a query best. The route is named in the interface; its shape is the common one.

use crate::support::*;
use serde_json::{Value, json};

const RERANK: &str = "/v1/rerank";
const LISTS: &str = include_str!("../meaning/rerank.tsv");
const HARD_LISTS: &str = include_str!("../meaning/rerank_hard.tsv");

fn body(query: &str, documents: Value) -> Value {
    json!({"model": "auto", "query": query, "documents": documents})
}

fn order(reply: &Reply) -> Vec<u64> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let results = reply.json()["results"].clone();
    results
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["index"].as_u64().unwrap())
        .collect()
}

/// The queries whose right document did not come first. A line is a query, the right one, and others.
async fn missed(lists: &str) -> Vec<&str> {
    let sandbox = Sandbox::start().await;
    let mut missed = Vec::new();
    for (at, line) in lists.lines().enumerate() {
        let columns: Vec<&str> = line.split('\t').collect();
        let (query, mut documents) = (columns[0], columns[1..].to_vec());
        // The right one stands at another place in each list.
        let place = at % documents.len();
        documents.rotate_right(place);
        let ask = body(query, json!(documents));
        if order(&sandbox.post(RERANK, &[], &ask).await)[0] != place as u64 {
            missed.push(query);
        }
    }
    assert_eq!(lists.lines().count(), 30);
    missed
}

#[tokio::test]
async fn the_document_that_answers_the_query_comes_first() {
    let missed = missed(LISTS).await;

    assert!(missed.len() <= 3, "{missed:?}");
}

/// Every wrong document repeats words of the query and the right one avoids them. No lexicon gets these
/// right; 11 of 30 was the figure when they were first measured, where chance gives 7.
#[tokio::test]
async fn lists_made_to_mislead_are_solved_a_little_better_than_by_chance() {
    let missed = missed(HARD_LISTS).await;

    assert!(missed.len() <= 21, "{missed:?}");
}

// Interface, Route table: "The … /v1/rerank … routes exist"; its shapes are not shown.
#[tokio::test]
async fn the_answer_has_the_common_shape_and_says_that_it_was_assumed() {
    let sandbox = Sandbox::start().await;
    let ask = body("river", json!(["tax law", {"text": "a wide river"}]));

    let reply = sandbox
        .post(RERANK, &[], &with(ask, "return_documents", json!(true)))
        .await;

    assert_eq!(reply.header("x-sandbox-assumed"), Some("rerank"));
    let answer = reply.json();
    assert!(answer["id"].as_str().unwrap().starts_with("rerank-"));
    assert_eq!(answer["model"], "auto");
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 2);
    assert_eq!(results[0]["index"], 1);
    assert_eq!(results[0]["document"], json!({"text": "a wide river"}));
    let scores: Vec<f64> = results
        .iter()
        .map(|one| one["relevance_score"].as_f64().unwrap())
        .collect();
    assert!(scores[0] > scores[1]);
    assert!(
        scores.iter().all(|score| (0.0..=1.0).contains(score)),
        "{scores:?}"
    );
}

#[tokio::test]
async fn documents_come_back_only_when_asked_for_and_top_n_cuts_the_list() {
    let sandbox = Sandbox::start().await;
    let ask = body("river", json!(["a river", "tax law", "the river bank"]));

    let plain = sandbox.post(RERANK, &[], &ask).await;
    let two = sandbox
        .post(RERANK, &[], &with(ask.clone(), "top_n", json!(2)))
        .await;
    let more = sandbox
        .post(RERANK, &[], &with(ask, "top_n", json!(50)))
        .await;

    assert_eq!(plain.json()["results"][0].get("document"), None);
    assert_eq!(order(&two), order(&plain)[..2]);
    assert_eq!(order(&more), order(&plain));
}

#[tokio::test]
async fn equal_documents_stand_by_index_and_the_same_request_gives_the_same_scores() {
    let sandbox = Sandbox::start().await;
    let ask = body("river", json!(["tax law", "a river", "a river", "a river"]));

    let first = sandbox.post(RERANK, &[], &ask).await;
    let again = sandbox.post(RERANK, &[], &ask).await;

    assert_eq!(order(&first), [1, 2, 3, 0]);
    assert_eq!(first.json()["results"], again.json()["results"]);
}

// Interface, Errors 422: validation failure.
#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let sandbox = Sandbox::start().await;
    let good = body("river", json!(["a river"]));
    let wide = "word ".repeat(8_193);
    let query = "word ".repeat(2_000);
    let rows = [
        (with(good.clone(), "model", Value::Null), "model"),
        (with(good.clone(), "query", Value::Null), "query"),
        (with(good.clone(), "query", json!(1)), "query"),
        (body(" ", json!(["x"])), "query"),
        (body(&wide, json!(["x"])), "2048 tokens"),
        (body("x", Value::Null), "documents"),
        (body("x", json!("x")), "documents"),
        (body("x", json!([])), "documents"),
        (body("x", json!(["x", 1])), "documents"),
        (body("x", json!([{"title": "x"}])), "documents"),
        (body("x", json!(vec!["x"; 1_001])), "1000 entries"),
        (
            body("x", json!(["x", wide])),
            "documents 1 is over 8192 tokens",
        ),
        (body(&query, json!(vec!["x"; 600])), "1000000 tokens"),
        (with(good.clone(), "top_n", json!(0)), "top_n"),
        (with(good.clone(), "top_n", json!(1.5)), "top_n"),
        (
            with(good, "return_documents", json!("yes")),
            "return_documents",
        ),
    ];
    for (ask, named) in rows {
        let reply = sandbox.post(RERANK, &[], &ask).await;
        let shown: String = ask.to_string().chars().take(80).collect();
        assert_eq!(reply.status, 422, "{shown}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{shown}: {detail}");
    }
    let broken = sandbox.send("POST", RERANK, &[], Some(b"[".to_vec())).await;
    assert_eq!(broken.status, 400);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Metering rules: "Inference is debited against the organization balance."
#[tokio::test]
async fn the_query_is_billed_once_for_each_document_it_is_read_with() {
    let sandbox = Sandbox::start().await;
    let document = "word ".repeat(480).trim().to_owned();

    let reply = sandbox
        .post(
            RERANK,
            &[],
            &body("word ".repeat(20).trim(), json!([document, document])),
        )
        .await;

    assert_eq!(reply.json()["usage"]["total_tokens"], 1_000);
    assert_eq!(reply.billed(), 20);
    assert_eq!(sandbox.debits().await, [20]);
}

// Interface, GET /v1/auto/metrics: "requests and success rate over 30 days".
#[tokio::test]
async fn the_rollup_counts_rerank_and_pictures() {
    let sandbox = Sandbox::start().await;
    sandbox.post(RERANK, &[], &body("x", json!(["x"]))).await;
    let picture = json!({"prompt": "a star", "size": "32x32"});
    sandbox.post("/v1/images/generations", &[], &picture).await;
    sandbox.post(RERANK, &[], &body("x", json!([]))).await;

    let metrics = sandbox.get("/v1/auto/metrics").await.json();

    assert_eq!(metrics["requests_30d"], 3);
}

// Interface, Errors 402: "organization balance empty (inference, …)".
#[tokio::test]
async fn an_empty_balance_is_402_and_bills_nothing() {
    let sandbox = Sandbox::start().await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let reply = sandbox.post(RERANK, &[], &body("x", json!(["x"]))).await;

    assert_eq!(reply.status, 402);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Idempotency-Key: "Responses that are not stored (…, a repeat runs again and is not billed a
// second time): …, /v1/rerank".
#[tokio::test]
async fn a_repeat_runs_again_unbilled_and_another_body_or_endpoint_is_422() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];
    let ask = body("river", json!(["a river", "tax law"]));

    let first = sandbox.post(RERANK, &key, &ask).await;
    let again = sandbox.post(RERANK, &key, &ask).await;
    let other = sandbox
        .post(RERANK, &key, &with(ask.clone(), "top_n", json!(1)))
        .await;
    let elsewhere = sandbox.post("/v1/embeddings", &key, &ask).await;

    assert!(first.billed() > 0);
    assert_eq!((again.status, again.billed()), (200, 0));
    assert_eq!(again.header("idempotent-replayed"), None);
    assert_eq!((other.status, elsewhere.status), (422, 422));
    assert_eq!(sandbox.debits().await, [first.billed()]);
}

// Interface, Limits: "concurrency | 8 requests in flight | inference"; "rate | 120 requests per minute".
#[tokio::test]
async fn the_ceilings_on_inference_hold_here() {
    let sandbox = Sandbox::start().await;
    let ask = body("x", json!(["x"]));
    sandbox.control("limits", json!({"in_flight": 0})).await;

    let full = sandbox.post(RERANK, &[], &ask).await;
    sandbox
        .control("limits", json!({"in_flight": 8, "per_minute": 1}))
        .await;
    let first = sandbox.post(RERANK, &[], &ask).await;
    let second = sandbox.post(RERANK, &[], &ask).await;

    assert_eq!((full.status, full.header("retry-after")), (429, Some("5")));
    assert_eq!(first.status, 200);
    assert_eq!(
        (second.status, second.header("retry-after")),
        (429, Some("15"))
    );
}
