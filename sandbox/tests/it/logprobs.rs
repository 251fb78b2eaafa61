//! `logprobs` and `top_logprobs` of the built-in models, on every route that takes a chat request.

use crate::{endpoints::*, support::*};
use serde_json::{Value, json};

/// The tokens and how many alternatives each has, after a look at their shape.
fn read(logprobs: &Value) -> (String, Vec<usize>) {
    assert_eq!(logprobs["refusal"], Value::Null);
    let tokens = logprobs["content"].as_array().unwrap();
    let mut counts = Vec::new();
    let mut joined = String::new();
    for one in tokens {
        let token = one["token"].as_str().unwrap();
        let alternatives = one["top_logprobs"].as_array().unwrap();
        for one in std::iter::once(one).chain(alternatives) {
            let text = one["token"].as_str().unwrap();
            assert_eq!(one["bytes"], json!(text.as_bytes()));
            assert!(one["logprob"].as_f64().unwrap() < 0.0, "{one}");
        }
        counts.push(alternatives.len());
        joined.push_str(token);
    }
    (joined, counts)
}

fn asked(model: &str, top: Option<u64>) -> Value {
    let mut body = with(ask("What is 12 + 30?"), "logprobs", json!(true));
    body["model"] = json!(model);
    body["temperature"] = json!(0);
    if let Some(top) = top {
        body["top_logprobs"] = json!(top);
    }
    body
}

// Interface, POST /v1/chat/completions: "other OpenAI body fields … forwarded unchanged"; POST
// /agent/v1/chat/completions: "logprobs, top_logprobs, …: forwarded unchanged". Assumed (built-in-logprobs).
#[tokio::test]
async fn logprobs_that_are_asked_for_are_given_on_both_lanes_and_on_an_endpoint() {
    let sandbox = Sandbox::start_with(quick()).await;
    deploy(&sandbox, json!({"task": "sentiment", "name": "mine"})).await;

    for (path, model) in [(CHAT, "auto"), (AGENT, "auto"), (CHAT, "mine")] {
        for top in [None, Some(0), Some(3), Some(20)] {
            let name = format!("{path} {model} {top:?}");
            let body = asked(model, top);
            let wanted = usize::try_from(top.unwrap_or(0)).unwrap();

            let reply = sandbox.post(path, &[], &body).await;
            assert_eq!(reply.status, 200, "{name}: {}", reply.text());
            let (text, counts) = read(&reply.json()["choices"][0]["logprobs"]);
            assert_eq!(text, reply.content(), "{name}");
            assert_eq!(
                counts.len() as u64,
                reply.json()["usage"]["completion_tokens"].as_u64().unwrap(),
                "{name}: one for each token that is billed"
            );
            assert!(counts.iter().all(|count| *count == wanted), "{name}");
            let again = sandbox.post(path, &[], &body).await;
            let choice = |reply: &Reply| reply.json()["choices"][0].clone();
            assert_eq!(choice(&again), choice(&reply), "{name}: the same again");

            let stream = with(body, "stream", json!(true));
            let streamed = sandbox.post(path, &[], &stream).await;
            let mut joined = String::new();
            for chunk in streamed.chunks() {
                let choice = &chunk["choices"][0];
                let said = choice["delta"]["content"].as_str().unwrap_or("");
                if said.is_empty() {
                    assert_eq!(choice["logprobs"], Value::Null, "{name}: {chunk}");
                    continue;
                }
                let (token, counts) = read(&choice["logprobs"]);
                assert_eq!((token.as_str(), counts), (said, vec![wanted]), "{name}");
                joined.push_str(said);
            }
            assert_eq!(joined, text, "{name}: streamed");
        }
    }
    sandbox.stop().await;
}

#[tokio::test]
async fn what_is_not_asked_for_is_not_there_and_a_tool_call_has_no_words() {
    let sandbox = Sandbox::start().await;
    let tool = json!([{"type": "function", "function": {"name": "rivers"}}]);
    let call = with(
        with(asked("auto", Some(2)), "tools", tool),
        "tool_choice",
        json!("required"),
    );
    let off = with(ask("What is 12 + 30?"), "logprobs", json!(false));

    for path in [CHAT, AGENT] {
        for body in [ask("What is 12 + 30?"), off.clone(), call.clone()] {
            let reply = sandbox.post(path, &[], &body).await;
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            assert_eq!(reply.json()["choices"][0]["logprobs"], Value::Null);
        }
    }
    sandbox.stop().await;
}

// Interface, Errors 422: "validation failure".
#[tokio::test]
async fn logprobs_that_cannot_be_given_are_422_with_the_reason() {
    let sandbox = Sandbox::start().await;
    let rows = [
        (json!({"logprobs": "yes"}), "logprobs must be a boolean"),
        (json!({"logprobs": 5}), "logprobs must be a boolean"),
        (
            json!({"logprobs": true, "top_logprobs": 21}),
            "top_logprobs must be an integer from 0 to 20",
        ),
        (
            json!({"logprobs": true, "top_logprobs": -1}),
            "top_logprobs must be an integer from 0 to 20",
        ),
        (
            json!({"logprobs": true, "top_logprobs": 1.5}),
            "top_logprobs must be an integer from 0 to 20",
        ),
        (
            json!({"top_logprobs": 2}),
            "top_logprobs needs logprobs to be true",
        ),
        (
            json!({"logprobs": false, "top_logprobs": 2}),
            "top_logprobs needs logprobs to be true",
        ),
    ];
    for (fields, detail) in rows {
        for path in [CHAT, AGENT] {
            let mut body = ask("Good morning");
            body.as_object_mut()
                .unwrap()
                .extend(fields.as_object().unwrap().clone());
            let reply = sandbox.post(path, &[], &body).await;
            assert_eq!(reply.status, 422, "{path} {fields}");
            assert_eq!(reply.json(), json!({"detail": detail}), "{path} {fields}");
        }
    }
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    sandbox.stop().await;
}
