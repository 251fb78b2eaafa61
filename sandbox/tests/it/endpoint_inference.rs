//! Inference on endpoints, and what their metrics make of it.

use crate::{endpoints::*, support::*};
use bursar_sandbox::{Options, Settings};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

const URL: &str = "/v1/endpoints/mine/chat/completions";

async fn with_endpoint(options: Options, more: Value) -> Sandbox {
    let sandbox = Sandbox::start_with(options).await;
    let mut body = json!({"task": TASK, "name": "mine"});
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    deploy(&sandbox, body).await;
    sandbox
}

async fn live() -> Sandbox {
    with_endpoint(quick(), json!({})).await
}

fn to_mine(text: &str) -> Value {
    with(ask(text), "model", json!("mine"))
}

async fn metric(sandbox: &Sandbox, name: &str) -> Value {
    let reply = sandbox
        .get(&format!("/v1/endpoints/mine/{name}?x=1&x=2"))
        .await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("x-sandbox-assumed"), Some("endpoint-metrics"));
    reply.json()
}

fn receipt_headers(reply: &Reply) -> Vec<&str> {
    let names = reply.headers.iter().map(|(name, _)| name.as_str());
    names
        .filter(|name| name.to_lowercase().starts_with("x-service-"))
        .collect()
}

// Interface, Resources, Endpoint: "url | OpenAI-compatible inference URL", "id | used as the model id for inference"
#[tokio::test]
async fn an_endpoint_answers_at_its_url_and_by_its_id() {
    let sandbox = live().await;
    let mut expected = Vec::new();
    for path in [URL, CHAT] {
        let reply = sandbox
            .post(path, &[], &to_mine("Extract the email: a@example.org"))
            .await;

        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(reply.json()["model"], "mine");
        assert!(reply.content().contains("a@example.org"));
        assert_eq!(
            reply.header("x-sandbox-assumed"),
            Some("endpoint-inference")
        );
        // Assumed (prices, endpoint-billing): extraction's rate, 150,000 and 450,000 per million.
        let tokens = |name: &str| reply.json()["usage"][name].as_i64().unwrap();
        let micro = tokens("prompt_tokens") * 150_000 + tokens("completion_tokens") * 450_000;
        expected.push((micro + 999_999) / 1_000_000);
    }
    assert_eq!(sandbox.debits().await, expected);
    let books = sandbox.books().await;
    assert_eq!(books["debits"][0]["route"], URL);
}

// Interface, POST /v1/chat/completions, Response headers: "direct model calls carry none of them"
#[tokio::test]
async fn an_answer_of_an_endpoint_carries_no_receipt() {
    let sandbox = live().await;
    for path in [URL, CHAT] {
        let whole = sandbox.post(path, &[], &to_mine("hard: rivers")).await;
        assert_eq!((whole.status, receipt_headers(&whole)), (200, vec![]));
        let body = with(to_mine("rivers"), "stream", json!(true));
        let streamed = sandbox.post(path, &[], &body).await;
        assert_eq!(receipt_headers(&streamed), Vec::<&str>::new());
        assert_eq!(streamed.comments(), Vec::<String>::new());
    }
}

// Interface, Route table: "Deploy-endpoint model-id question"
#[tokio::test]
async fn the_id_as_model_can_be_switched_off_and_is_unknown_elsewhere() {
    let sandbox = live().await;
    let other = [("Authorization", "Bearer second-key")];
    assert_eq!(sandbox.post(CHAT, &other, &to_mine("x")).await.status, 404);
    assert_eq!(sandbox.post(AGENT, &[], &to_mine("x")).await.status, 400);
    let unknown = with(ask("x"), "model", json!("nobody"));
    assert_eq!(sandbox.post(CHAT, &[], &unknown).await.status, 404);

    sandbox
        .control("settings", json!({"endpoint_model": false}))
        .await;

    assert_eq!(sandbox.post(CHAT, &[], &to_mine("x")).await.status, 404);
    assert_eq!(sandbox.post(URL, &[], &to_mine("x")).await.status, 200);
    let models = sandbox.get("/v1/models").await.json();
    assert_eq!(models["data"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_wrong_request_to_an_endpoint_is_answered_as_on_the_chat_route() {
    let sandbox = live().await;
    let rows = [
        ("{".to_owned(), 400),
        ("[]".to_owned(), 422),
        (json!({"messages": []}).to_string(), 422),
        (json!({"model": 5}).to_string(), 404),
        (json!({"model": null, "messages": []}).to_string(), 422),
        (ask("x").to_string(), 404),
        (json!({"model": "mine"}).to_string(), 422),
        (with(to_mine("x"), "odd", json!(1)).to_string(), 422),
        (with(to_mine("x"), "n", json!(2)).to_string(), 400),
    ];
    for (body, status) in rows {
        let reply = sandbox
            .send("POST", URL, &[], Some(body.clone().into_bytes()))
            .await;
        assert_eq!(reply.status, status, "{body}: {}", reply.text());
    }
    assert!(sandbox.debits().await.is_empty());
    let activity = metric(&sandbox, "activity").await;
    assert_eq!(activity["requests"], 0, "none of them reached the endpoint");
}

// Interface, Other endpoint routes: "While an endpoint is stopped or cold, inference against it returns 503."
#[tokio::test]
async fn a_stopped_or_cold_endpoint_is_503_and_bills_nothing() {
    let options = Options {
        settings: Settings {
            endpoint_warm_up_ms: 90_000,
            ..quick().settings
        },
        ..quick()
    };
    let sandbox = with_endpoint(options, json!({})).await;
    let key = [("Idempotency-Key", "k")];
    let turn = async |to: &str| {
        let path = format!("/v1/endpoints/mine/{to}");
        assert_eq!(
            sandbox
                .send("POST", &path, &[], Some(Vec::new()))
                .await
                .status,
            200
        );
    };

    turn("stop").await;
    for path in [URL, CHAT] {
        let reply = sandbox.post(path, &key, &to_mine("x")).await;
        // A proxy or an SDK that waits for a time named here would wait in vain.
        assert_eq!((reply.status, reply.header("retry-after")), (503, None));
        assert_eq!(reply.header("x-sandbox-assumed"), Some("endpoint-cold"));
    }
    turn("start").await;
    let cold = sandbox.post(CHAT, &key, &to_mine("x")).await;
    assert_eq!(cold.status, 503);
    let wait_s: u64 = cold.header("retry-after").unwrap().parse().unwrap();
    assert!((80..=90).contains(&wait_s), "{wait_s}");
    assert!(sandbox.debits().await.is_empty());
    sandbox.control("clock", json!({"advance_s": wait_s})).await;
    // Interface, Idempotency-Key: "a retried 503 is never pinned".
    assert_eq!(sandbox.post(CHAT, &key, &to_mine("x")).await.status, 200);

    let activity = metric(&sandbox, "activity").await;
    assert_eq!(activity["errors_by_status"], json!({"503": 3}));
    let uptime = metric(&sandbox, "uptime").await;
    assert!(
        (90.0..95.0).contains(&uptime["starting_s"].as_f64().unwrap()),
        "{uptime}"
    );
    assert!(uptime["availability"].as_f64().unwrap() < 0.5);
}

// Interface, Idempotency-Key: "It is honored on `/v1/chat/completions`"
#[tokio::test]
async fn a_key_on_the_chat_route_replays_an_endpoints_answer_without_a_receipt() {
    let sandbox = live().await;
    let key = [("Idempotency-Key", "k")];
    let first = sandbox.post(CHAT, &key, &to_mine("rivers")).await;
    sandbox
        .send("POST", "/v1/endpoints/mine/stop", &[], Some(Vec::new()))
        .await;

    let again = sandbox.post(CHAT, &key, &to_mine("rivers")).await;

    assert_eq!((again.status, &again.body), (200, &first.body));
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(receipt_headers(&again), Vec::<&str>::new());
    assert_eq!(sandbox.debits().await.len(), 1);
    assert_eq!(
        sandbox.post(CHAT, &key, &to_mine("lakes")).await.status,
        422
    );
    assert_eq!(metric(&sandbox, "activity").await["requests"], 1);
}

// Interface, Idempotency-Key: the routes it is honored on do not name an endpoint's url.
#[tokio::test]
async fn a_key_replays_the_answer_of_an_endpoint_that_is_gone_and_never_one_of_its_successor() {
    let sandbox = live().await;
    let key = [("Idempotency-Key", "k")];
    let remove = async || {
        let gone = sandbox
            .send("DELETE", "/v1/endpoints/mine", &[], None)
            .await;
        assert_eq!(gone.status, 204);
    };
    let first = sandbox.post(CHAT, &key, &to_mine("rivers")).await;
    let debits = sandbox.debits().await;

    remove().await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;
    let replay = sandbox.post(CHAT, &key, &to_mine("rivers")).await;
    assert_eq!(replay.header("idempotent-replayed"), Some("true"));
    assert!((replay.status, &replay.body) == (200, &first.body));
    assert_eq!(receipt_headers(&replay), Vec::<&str>::new());
    assert_eq!(sandbox.debits().await, debits);
    let other = sandbox.post(CHAT, &key, &to_mine("lakes")).await;
    let fresh = [("Idempotency-Key", "fresh")];
    let unknown = sandbox.post(CHAT, &fresh, &to_mine("rivers")).await;
    assert_eq!((other.status, unknown.status), (404, 404));

    sandbox
        .control("balance", json!({"micro_usd": 9_000_000}))
        .await;
    deploy(&sandbox, json!({"task": "sentiment", "name": "mine"})).await;
    let successor = sandbox.post(CHAT, &key, &to_mine("rivers")).await;
    assert_eq!(
        (successor.status, successor.header("idempotent-replayed")),
        (422, None)
    );
    assert_eq!(
        sandbox.post(CHAT, &fresh, &to_mine("rivers")).await.status,
        200
    );
}

// Interface, Idempotency-Key: not stored, "a repeat runs again": no endpoint is left to run it.
#[tokio::test]
async fn a_streamed_repeat_to_an_endpoint_that_is_gone_is_404() {
    let sandbox = live().await;
    let key = [("Idempotency-Key", "k")];
    let body = with(to_mine("rivers"), "stream", json!(true));
    assert_eq!(sandbox.post(CHAT, &key, &body).await.status, 200);
    sandbox
        .send("DELETE", "/v1/endpoints/mine", &[], None)
        .await;

    let repeat = sandbox.post(CHAT, &key, &body).await;

    assert_eq!(repeat.status, 404, "{}", repeat.text());
    assert!(repeat.json()["detail"].is_string());
}

#[tokio::test]
async fn a_repeat_to_an_endpoint_that_is_gone_is_404_whatever_the_balance() {
    let sandbox = live().await;
    sandbox
        .control("settings", json!({"bill_aborted_stream": false}))
        .await;
    sandbox
        .fault(json!({"hold_after_chunks": 2, "hold_chunks_name": "s"}))
        .await;
    let key = [("Idempotency-Key", "k")];
    let body = with(to_mine("rivers"), "stream", json!(true));
    let bytes = Some(body.to_string().into());
    let mut socket = sandbox.open("POST", CHAT, &key, bytes).await;
    within(socket.read_exact(&mut [0; 10])).await.unwrap();
    drop(socket);
    sandbox.control("release", json!({"hold": "s"})).await;
    sandbox.until_in_flight(0).await;
    let gone = sandbox
        .send("DELETE", "/v1/endpoints/mine", &[], None)
        .await;
    assert_eq!(gone.status, 204);
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let repeat = sandbox.post(CHAT, &key, &body).await;

    assert_eq!((repeat.status, sandbox.debits().await.len()), (404, 0));
}

#[tokio::test]
async fn a_key_at_the_url_is_ignored() {
    let sandbox = live().await;
    let key = [("Idempotency-Key", "k")];
    for text in ["rivers", "rivers", "lakes"] {
        assert_eq!(sandbox.post(URL, &key, &to_mine(text)).await.status, 200);
    }
    assert_eq!(sandbox.debits().await.len(), 3);
}

#[tokio::test]
async fn a_streamed_answer_is_chunks_of_the_endpoint_and_billed_once() {
    let sandbox = live().await;
    let body = with(
        to_mine("Extract the email: a@example.org"),
        "stream",
        json!(true),
    );
    let body = with(body, "stream_options", json!({"include_usage": true}));

    let reply = sandbox.post(URL, &[], &body).await;

    assert!(reply.complete);
    assert_eq!(reply.data().last().unwrap(), "[DONE]");
    assert!(reply.streamed_content().contains("a@example.org"));
    let chunks = reply.chunks();
    assert!(chunks.iter().all(|chunk| chunk["model"] == "mine"));
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant"})
    );
    let last = chunks.last().unwrap();
    assert!(last["usage"]["total_tokens"].as_u64().unwrap() > 0);
    let debits = sandbox.debits().await;
    assert_eq!(metric(&sandbox, "cost").await["spend_micro_usd"], debits[0]);
    assert_eq!(debits.len(), 1);

    sandbox.fault(json!({"cut_after_chunks": 3})).await;
    let cut = sandbox.post(URL, &[], &body).await;
    assert!(!cut.complete);
    assert_eq!(cut.chunks().len(), 3);
    sandbox
        .until("books", |books| books["debits_made"] == 2)
        .await;
    sandbox
        .control("settings", json!({"bill_aborted_stream": false}))
        .await;
    sandbox.fault(json!({"cut_after_chunks": 3})).await;
    assert!(!sandbox.post(URL, &[], &body).await.complete);
    sandbox.until_in_flight(0).await;
    assert_eq!(sandbox.debits().await.len(), 2);
}

// Interface, POST /v1/endpoints: `cost_per_request_micro_usd`, `frontier_cost_per_request_micro_usd`
#[tokio::test]
async fn a_price_per_request_goes_before_the_rate() {
    let prices =
        json!({"cost_per_request_micro_usd": 7, "frontier_cost_per_request_micro_usd": 100});
    let sandbox = with_endpoint(quick(), prices).await;
    for _ in 0..3 {
        assert_eq!(sandbox.post(URL, &[], &to_mine("rivers")).await.status, 200);
    }

    let cost = metric(&sandbox, "cost").await;

    assert_eq!(sandbox.debits().await, [7, 7, 7]);
    assert_eq!(cost["spend_micro_usd"], 21);
    assert_eq!(cost["frontier_baseline_micro_usd"], 300);
    assert_eq!(cost["savings_micro_usd"], 279);
    let month = sandbox.get("/v1/auto/metrics").await.json();
    assert_eq!(month["requests_30d"], 3);
    assert_eq!(month["billed_micro_usd_30d"], 21);
    assert_eq!(month["savings_vs_frontier_micro_usd_30d"], 279);
}

// Interface, Errors 402 and Limits: inference
#[tokio::test]
async fn an_endpoint_has_the_ceilings_and_the_balance_of_inference() {
    let sandbox = live().await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;
    assert_eq!(sandbox.post(URL, &[], &to_mine("x")).await.status, 402);
    // Nothing else of an endpoint needs a balance.
    named(&sandbox, "second").await;
    sandbox
        .control("balance", json!({"micro_usd": 1_000}))
        .await;
    sandbox.control("limits", json!({"in_flight": 0})).await;
    let busy = sandbox.post(URL, &[], &to_mine("x")).await;
    assert_eq!((busy.status, busy.header("retry-after")), (429, Some("5")));
    sandbox
        .control("limits", json!({"in_flight": 8, "per_minute": 0}))
        .await;
    let fast = sandbox.post(CHAT, &[], &to_mine("x")).await;
    assert_eq!((fast.status, fast.header("retry-after")), (429, Some("15")));
    assert_eq!(sandbox.get("/v1/endpoints/mine").await.status, 200);
}

#[tokio::test]
async fn a_lower_rank_costs_less_and_takes_less_text() {
    let sandbox = live().await;
    let first = sandbox.get("/v1/endpoints/mine").await.json()["model"].clone();
    let third = first.as_str().unwrap().replace("-1", "-3");
    deploy(
        &sandbox,
        json!({"task": TASK, "name": "small", "model": third}),
    )
    .await;
    let long = "word ".repeat(8_300);
    for (id, text, status) in [
        ("mine", "rivers", 200),
        ("small", "rivers", 200),
        ("mine", &*long, 200),
        ("small", &*long, 400),
    ] {
        let body = with(ask(text), "model", json!(id));
        assert_eq!(sandbox.post(CHAT, &[], &body).await.status, status, "{id}");
    }
    let debits = sandbox.debits().await;
    assert!(debits[1] < debits[0], "{debits:?}");
}

// Interface, Other endpoint routes: the metrics, of requests that were really served
#[tokio::test]
async fn the_metrics_are_those_of_what_was_served() {
    let sandbox = live().await;
    assert_eq!(metric(&sandbox, "quality").await["score"], Value::Null);
    assert_eq!(metric(&sandbox, "performance").await["p50_ms"], Value::Null);
    let mut tokens = 0;
    for (text, hold) in [("rivers", "a"), ("lakes", "b"), ("hard: seas", "c")] {
        sandbox.fault(json!({"hold": hold})).await;
        let body = to_mine(text);
        let waiting = sandbox.post(URL, &[], &body);
        let released = async {
            sandbox.until_in_flight(1).await;
            sandbox.control("clock", json!({"advance_s": 20})).await;
            sandbox.control("release", json!({"hold": hold})).await;
        };
        let (reply, ()) = tokio::join!(waiting, released);
        tokens += reply.json()["usage"]["total_tokens"].as_u64().unwrap();
    }
    sandbox
        .until("limits", |limits| limits["in_flight"] == 0)
        .await;
    sandbox.fault(json!({"status": 503})).await;
    assert_eq!(sandbox.post(URL, &[], &to_mine("x")).await.status, 503);

    let performance = metric(&sandbox, "performance").await;
    assert_eq!(performance["requests"], 3);
    for name in ["p50_ms", "p95_ms", "p99_ms"] {
        let took_ms = performance[name].as_u64().unwrap();
        assert!((20_000..25_000).contains(&took_ms), "{name}: {took_ms}");
    }
    let activity = metric(&sandbox, "activity").await;
    assert_eq!(
        (&activity["succeeded"], &activity["total_tokens"]),
        (&json!(3), &json!(tokens))
    );
    assert_eq!(
        activity["requests"], 3,
        "a fault in the place of the work reached no endpoint"
    );
    let cost = metric(&sandbox, "cost").await;
    assert_eq!(
        cost["spend_micro_usd"],
        sandbox.debits().await.iter().sum::<i64>()
    );
    // Two answers held the bar, the third was escalated.
    let quality = metric(&sandbox, "quality").await;
    assert_eq!(quality["judged"], 3);
    let score = quality["score"].as_f64().unwrap();
    assert!((score - 2.0 / 3.0).abs() < 1e-6, "{score}");
    let uptime = metric(&sandbox, "uptime").await;
    assert_eq!(uptime["availability"], 1.0);
    assert!(uptime["live_s"].as_f64().unwrap() >= 60.0);
    // A day later the window is empty, and a longer one is not.
    sandbox
        .control("clock", json!({"advance_s": 26 * 3_600}))
        .await;
    assert_eq!(metric(&sandbox, "activity").await["requests"], 0);
    let week = sandbox
        .get("/v1/endpoints/mine/activity?window=7d")
        .await
        .json();
    assert_eq!(week["requests"], 3);
}

// Interface, X-Service-Input-Required: a clarification is "billed 0"
#[tokio::test]
async fn a_clarification_of_an_endpoint_is_free_and_not_judged() {
    let sandbox = live().await;
    let reply = sandbox
        .post(URL, &[], &to_mine("Read the attached document"))
        .await;

    assert_eq!((reply.status, receipt_headers(&reply)), (200, vec![]));
    assert!(sandbox.debits().await.is_empty());
    assert_eq!(metric(&sandbox, "quality").await["judged"], 0);
}
