//! Embeddings: what a text means, in numbers. The route is named in the interface; its shapes are OpenAI's.

use crate::support::*;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

const EMBEDDINGS: &str = "/v1/embeddings";
const GIVEN: &str = include_str!("../meaning/given.tsv");
const HELD_OUT: &str = include_str!("../meaning/held_out.tsv");

fn body(input: Value) -> Value {
    json!({"model": "auto", "input": input})
}

fn vectors(reply: &Reply) -> Vec<Vec<f64>> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let entries = reply.json()["data"].clone();
    entries
        .as_array()
        .unwrap()
        .iter()
        .map(|one| serde_json::from_value(one["embedding"].clone()).unwrap())
        .collect()
}

fn near(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// How many triples have their paraphrase nearer than the other text.
async fn paraphrases_nearer(triples: &str) -> usize {
    let sandbox = Sandbox::start().await;
    let texts: Vec<&str> = triples.lines().flat_map(|line| line.split('\t')).collect();
    assert_eq!(texts.len(), 150);
    let reply = sandbox.post(EMBEDDINGS, &[], &body(json!(texts))).await;
    vectors(&reply)
        .chunks(3)
        .filter(|triple| near(&triple[0], &triple[1]) > near(&triple[0], &triple[2]))
        .count()
}

#[tokio::test]
async fn a_paraphrase_is_nearer_than_a_text_that_only_looks_alike() {
    let right = paraphrases_nearer(GIVEN).await;

    assert!(right >= 45, "{right} of 50");
}

/// Nothing was tuned on these; they gave 40 when they were first measured.
#[tokio::test]
async fn a_paraphrase_that_nothing_was_tuned_on_is_mostly_nearer_too() {
    let right = paraphrases_nearer(HELD_OUT).await;

    assert!(right >= 38, "{right} of 50");
}

// Interface, Route table: "The /v1/embeddings … routes exist"; their shapes are not shown.
#[tokio::test]
async fn the_answer_has_the_shape_of_openai_and_says_that_it_was_assumed() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(EMBEDDINGS, &[], &body(json!(["one text", "two"])))
        .await;

    assert_eq!(reply.header("x-sandbox-assumed"), Some("embeddings"));
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let answer = reply.json();
    assert_eq!(
        (&answer["object"], &answer["model"]),
        (&json!("list"), &json!("auto"))
    );
    assert_eq!(
        answer["usage"],
        json!({"prompt_tokens": 3, "total_tokens": 3})
    );
    for (index, entry) in answer["data"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            (&entry["object"], &entry["index"]),
            (&json!("embedding"), &json!(index))
        );
        assert_eq!(entry["embedding"].as_array().unwrap().len(), 256);
    }
}

#[tokio::test]
async fn equal_texts_have_equal_vectors_of_length_one_whatever_they_came_with() {
    let sandbox = Sandbox::start().await;

    let alone = vectors(
        &sandbox
            .post(EMBEDDINGS, &[], &body(json!("a wide river")))
            .await,
    );
    let among = vectors(
        &sandbox
            .post(EMBEDDINGS, &[], &body(json!(["x", "a wide river"])))
            .await,
    );

    assert_eq!(alone[0], among[1]);
    assert!((near(&alone[0], &alone[0]) - 1.0).abs() < 1e-5);
}

#[tokio::test]
async fn base64_holds_the_same_numbers_as_float() {
    let sandbox = Sandbox::start().await;
    let ask = with(body(json!("a wide river")), "dimensions", json!(64));

    let plain = vectors(&sandbox.post(EMBEDDINGS, &[], &ask).await);
    let ask = with(ask, "encoding_format", json!("base64"));
    let packed = sandbox.post(EMBEDDINGS, &[], &ask).await.json();

    let bytes = STANDARD
        .decode(packed["data"][0]["embedding"].as_str().unwrap())
        .unwrap();
    let numbers: Vec<f32> = bytes
        .chunks(4)
        .map(|four| f32::from_le_bytes(four.try_into().unwrap()))
        .collect();
    assert_eq!(numbers.len(), 64);
    for (number, plain) in numbers.iter().zip(&plain[0]) {
        assert!((f64::from(*number) - plain).abs() < 1e-6);
    }
}

#[tokio::test]
async fn tokens_are_an_input_alone_and_in_arrays() {
    let sandbox = Sandbox::start().await;

    let one = sandbox.post(EMBEDDINGS, &[], &body(json!([5, 6, 7]))).await;
    let two = sandbox
        .post(EMBEDDINGS, &[], &body(json!([[5, 6, 7], [8]])))
        .await;

    assert_eq!(one.json()["usage"]["prompt_tokens"], 3);
    assert_eq!(two.json()["usage"]["prompt_tokens"], 4);
    assert_eq!(vectors(&one)[0], vectors(&two)[0]);
    assert_eq!(vectors(&two).len(), 2);
}

// Interface, Errors 422: validation failure.
#[tokio::test]
async fn what_is_wrong_with_a_request_is_named() {
    let sandbox = Sandbox::start().await;
    let wide = "word ".repeat(8_193);
    let many = vec!["x"; 2_049];
    let in_all = vec!["word ".repeat(8_000); 38];
    let rows = [
        (json!({"input": "x"}), "model"),
        (json!({"model": 7, "input": "x"}), "model"),
        (json!({"model": "auto"}), "input"),
        (body(Value::Null), "input"),
        (body(json!("")), "input"),
        (body(json!(" \n")), "input"),
        (body(json!([])), "input"),
        (body(json!(["x", ""])), "input 1"),
        (body(json!([[1], []])), "input 1"),
        (body(json!(["x", [1]])), "input"),
        (body(json!([1, -1])), "input"),
        (body(json!({"text": "x"})), "input"),
        (body(json!(wide)), "8192 tokens"),
        (body(json!(many)), "2048 entries"),
        (body(json!(in_all)), "300000 tokens"),
        (with(body(json!("x")), "dimensions", json!(0)), "dimensions"),
        (
            with(body(json!("x")), "dimensions", json!(4097)),
            "dimensions",
        ),
        (
            with(body(json!("x")), "dimensions", json!("8")),
            "dimensions",
        ),
        (
            with(body(json!("x")), "encoding_format", json!("int8")),
            "encoding_format",
        ),
        (
            with(body(json!("x")), "encoding_format", json!(1)),
            "encoding_format",
        ),
        (with(body(json!("x")), "user", json!(1)), "user"),
        (json!(["x"]), "object"),
    ];
    for (ask, named) in rows {
        let reply = sandbox.post(EMBEDDINGS, &[], &ask).await;
        let shown: String = ask.to_string().chars().take(80).collect();
        assert_eq!(reply.status, 422, "{shown}");
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(named), "{shown}: {detail}");
    }
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Errors 400: malformed JSON.
#[tokio::test]
async fn a_body_that_is_no_json_is_refused() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .send("POST", EMBEDDINGS, &[], Some(b"{\"model\"".to_vec()))
        .await;

    assert_eq!(reply.status, 400);
}

// Interface, Metering rules: "Inference is debited against the organization balance."
#[tokio::test]
async fn tokens_are_billed_and_the_receipt_says_what_was_debited() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(EMBEDDINGS, &[], &body(json!("word ".repeat(1_000).trim())))
        .await;

    // 1,000 tokens at 20,000 micro-USD per million.
    assert_eq!(reply.json()["usage"]["total_tokens"], 1_000);
    assert_eq!(reply.billed(), 20);
    assert_eq!(sandbox.debits().await, [20]);
}

// Interface, Errors 402: "organization balance empty (inference, …)".
#[tokio::test]
async fn an_empty_balance_is_402_and_bills_nothing() {
    let sandbox = Sandbox::start().await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let reply = sandbox.post(EMBEDDINGS, &[], &body(json!("x"))).await;

    assert_eq!(reply.status, 402);
    assert_eq!(sandbox.debits().await, [] as [i64; 0]);
}

// Interface, Idempotency-Key: "Responses that are not stored (…, a repeat runs again and is not billed a
// second time): /v1/embeddings".
#[tokio::test]
async fn a_repeat_runs_again_unbilled_and_another_body_is_422() {
    let sandbox = Sandbox::start().await;
    let key = [("Idempotency-Key", "k")];

    let first = sandbox.post(EMBEDDINGS, &key, &body(json!("river"))).await;
    let again = sandbox.post(EMBEDDINGS, &key, &body(json!("river"))).await;
    let other = sandbox.post(EMBEDDINGS, &key, &body(json!("lake"))).await;

    assert!(first.billed() > 0);
    assert_eq!((again.status, again.billed()), (200, 0));
    assert_eq!(again.header("idempotent-replayed"), None);
    assert_eq!(other.status, 422);
    assert_eq!(sandbox.debits().await, [first.billed()]);
}

// Interface, Limits: "concurrency | 8 requests in flight | inference".
#[tokio::test]
async fn the_ceilings_on_inference_hold_here() {
    let sandbox = Sandbox::start().await;
    sandbox.control("limits", json!({"in_flight": 0})).await;

    let full = sandbox.post(EMBEDDINGS, &[], &body(json!("x"))).await;
    sandbox
        .control("limits", json!({"in_flight": 8, "per_minute": 1}))
        .await;
    let first = sandbox.post(EMBEDDINGS, &[], &body(json!("x"))).await;
    let second = sandbox.post(EMBEDDINGS, &[], &body(json!("x"))).await;

    assert_eq!((full.status, full.header("retry-after")), (429, Some("5")));
    assert_eq!(first.status, 200);
    assert_eq!(
        (second.status, second.header("retry-after")),
        (429, Some("15"))
    );
}
