//! What the interface says about several routes at once, and limits tested on both sides of their edge.
//!
//! A clause like "six routes honour the key" is not held by a test of one route.
//! Promise: each table below names every route that its clause covers, and one neighbouring route that it
//! does not.

use crate::{endpoints::*, eval_support::*, support::*};
use bursar_sandbox::{Options, Settings, Synthesis};
use image::{ImageFormat, Rgba, RgbaImage};
use serde_json::{Value, json};
use std::io::Cursor;

const EDITS: &str = "/v1/images/edits";
const COMPARE: &str = "/v1/playground/frontier";
const SPEAK: &str = "/v1/audio/speech";
const HEAR: &str = "/v1/audio/transcriptions";
const FORM: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=edge");
/// A webm of 0.758 s.
const TONE: &[u8] = include_bytes!("../fixtures/tone.webm");

fn base64_of(bytes: &[u8]) -> String {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    STANDARD.encode(bytes)
}

/// A small red picture and what to do with it.
fn edit_form(prompt: &str) -> Vec<u8> {
    let picture = RgbaImage::from_pixel(16, 16, Rgba([220, 40, 40, 255]));
    let mut png = Cursor::new(Vec::new());
    picture.write_to(&mut png, ImageFormat::Png).unwrap();
    let head =
        "--edge\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n";
    let prompt = format!(
        "\r\n--edge\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\n{prompt}\r\n--edge--\r\n"
    );
    [head.as_bytes(), png.get_ref(), prompt.as_bytes()].concat()
}

fn talk(model: &str, text: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": text}]})
}

/// A request that is served, said with a word of its own.
async fn use_route(sandbox: &Sandbox, path: &str, headers: &[(&str, &str)], word: &str) -> Reply {
    let body = match path {
        CHAT | AGENT => ask(word),
        "/v1/embeddings" => json!({"model": "auto", "input": word}),
        "/v1/rerank" => json!({"model": "auto", "query": word, "documents": ["a river", "a tax"]}),
        "/v1/images/generations" => {
            json!({"prompt": format!("a red circle, {word}"), "size": "64x64"})
        }
        COMPARE => talk("frontier-a", word),
        SPEAK => json!({"text": word}),
        HEAR => json!({"audio_base64": base64_of(TONE), "language": "en"}),
        "/v1/tasks/match" => json!({"query": word}),
        EDITS => {
            let headers: Vec<_> = headers.iter().copied().chain([FORM]).collect();
            return sandbox.post_typed(EDITS, &headers, edit_form(word)).await;
        }
        other => panic!("{other}"),
    };
    sandbox.post(path, headers, &body).await
}

const KEYED: [&str; 6] = [
    CHAT,
    AGENT,
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/images/generations",
    EDITS,
];

/// The voice that is the same on every machine.
fn built_in() -> Options {
    Options {
        settings: Settings {
            synthesis: Synthesis::BuiltIn,
            ..quick().settings
        },
        ..quick()
    }
}

// Interface, Idempotency-Key: "honored on `/v1/chat/completions`, `/agent/v1/chat/completions`, `/v1/embeddings`,
// `/v1/rerank`, `/v1/images/generations`, `/v1/images/edits`": a repeat is billed once, another body is 422.
#[tokio::test]
async fn six_routes_honour_the_key() {
    let sandbox = Sandbox::start().await;
    for (at, path) in KEYED.into_iter().enumerate() {
        let key = format!("key-{at}");
        let headers = [("Idempotency-Key", key.as_str())];

        let first = use_route(&sandbox, path, &headers, "rivers").await;
        let again = use_route(&sandbox, path, &headers, "rivers").await;
        let other = use_route(&sandbox, path, &headers, "lakes").await;

        let statuses = [first.status, again.status, other.status];
        assert_eq!(statuses, [200, 200, 422], "{path}: {}", first.text());
        assert_eq!((first.billed() > 0, again.billed()), (true, 0), "{path}");
        // Interface: the three whose answers are not stored run again; the others are replayed.
        let replayed = !["/v1/embeddings", "/v1/rerank", AGENT].contains(&path);
        let mark = again.header("idempotent-replayed");
        assert_eq!(mark, replayed.then_some("true"), "{path}");
        assert_eq!(sandbox.debits().await.len(), at + 1, "{path}");
    }
}

// Interface, Idempotency-Key: the other routes are not named; "The audio routes ignore it".
#[tokio::test]
async fn routes_beside_the_six_take_no_notice_of_a_key() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let key = [("Idempotency-Key", "one for all")];
    for path in [COMPARE, SPEAK, HEAR, "/v1/tasks/match"] {
        for word in ["rivers", "rivers", "lakes"] {
            let reply = use_route(&sandbox, path, &key, word).await;
            assert_eq!(reply.status, 200, "{path} {word}: {}", reply.text());
            assert_eq!(reply.header("idempotent-replayed"), None, "{path}");
        }
    }
    // Three comparisons, three texts spoken, three recordings heard.
    assert_eq!(sandbox.debits().await.len(), 9);
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    let body = json!({"eval_set_id": set, "candidate_model_ids": ["auto"]});
    assert_eq!(sandbox.post(RUNS, &key, &body).await.status, 200);
    let deployed = json!({"task": "contact-extraction"});
    assert_eq!(
        sandbox.post("/v1/endpoints", &key, &deployed).await.status,
        200
    );
}

// Interface, Errors 402: "organization balance empty (inference, eval runs, frontier comparison, speech)";
// Metering: "Task catalog reads (list, retrieve, match) are free."
#[tokio::test]
async fn an_empty_balance_stops_every_metered_route_and_no_free_one() {
    let sandbox = Sandbox::start_with(built_in()).await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    named(&sandbox, "mine").await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    for path in KEYED.into_iter().chain([COMPARE, SPEAK, HEAR]) {
        let reply = use_route(&sandbox, path, &[], "rivers").await;
        assert_eq!(reply.status, 402, "{path}: {}", reply.text());
        assert!(
            reply.json()["detail"].is_string() || path == AGENT,
            "{path}"
        );
    }
    assert_eq!(post_run(&sandbox, &set, &["auto"]).await.status, 402);
    let direct = sandbox
        .post(
            "/v1/endpoints/mine/chat/completions",
            &[],
            &talk("mine", "x"),
        )
        .await;
    assert_eq!(direct.status, 402);
    assert_eq!(sandbox.books().await["debits_made"], 0);

    assert_eq!(
        use_route(&sandbox, "/v1/tasks/match", &[], "x")
            .await
            .status,
        200
    );
    for path in [
        "/v1/models",
        "/agent/v1/models",
        "/v1/tasks",
        "/v1/tasks/sentiment",
        "/v1/auto/metrics",
        "/v1/eval/frontier-models",
        "/v1/eval-sets",
        &format!("/v1/eval-sets/{set}"),
        "/v1/endpoints",
        "/v1/endpoints/mine",
        "/v1/endpoints/mine/cost",
    ] {
        assert_eq!(sandbox.get(path).await.status, 200, "{path}");
    }
}

// Interface, POST /v1/playground/frontier: "`messages` (array of 1 to 40 entries)".
#[tokio::test]
async fn one_to_forty_messages_are_compared() {
    let sandbox = Sandbox::start().await;
    for (n, status) in [(0, 422), (1, 200), (40, 200), (41, 422)] {
        let messages = vec![json!({"role": "user", "content": "x"}); n];
        let body = json!({"model": "frontier-a", "messages": messages});
        let reply = sandbox.post(COMPARE, &[], &body).await;
        assert_eq!(reply.status, status, "{n}: {}", reply.text());
    }
    let none = sandbox
        .post(COMPARE, &[], &json!({"model": "frontier-a"}))
        .await;
    assert_eq!(none.status, 422);
    assert_eq!(sandbox.debits().await.len(), 2);
}

// Interface, POST /v1/playground/frontier: "Response: `{model, content, cost_micro_usd, latency_ms}`".
#[tokio::test]
async fn a_comparison_has_four_fields_and_its_latency_is_by_the_clock() {
    let sandbox = Sandbox::start().await;
    sandbox.fault(json!({"hold": "slow"})).await;
    let body = talk("frontier-c", "Tell me about rivers.");
    let waiting = sandbox.post(COMPARE, &[], &body);
    let released = async {
        sandbox
            .until("requests", |log| log["requests"][0]["path"] == COMPARE)
            .await;
        sandbox.control("clock", json!({"advance_ms": 1_500})).await;
        sandbox.control("release", json!({"hold": "slow"})).await;
    };

    let (reply, ()) = tokio::join!(waiting, released);

    let answer = reply.json();
    let names: Vec<&String> = answer.as_object().unwrap().keys().collect();
    assert_eq!(names, ["model", "content", "cost_micro_usd", "latency_ms"]);
    assert_eq!(answer["model"], "frontier-c");
    assert!(!answer["content"].as_str().unwrap().is_empty());
    let latency_ms = answer["latency_ms"].as_u64().unwrap();
    assert!((1_500..11_500).contains(&latency_ms), "{latency_ms}");
    assert_eq!(
        sandbox.debits().await,
        [answer["cost_micro_usd"].as_i64().unwrap()]
    );
}

// Interface, Limits: rate, 120 requests per minute (429, `Retry-After: 15`), inference; nothing served or billed.
#[tokio::test]
async fn the_121st_request_of_a_minute_is_429_and_no_other_kind_of_request_counts() {
    let sandbox = Sandbox::start().await;
    for n in 0..120 {
        let reply = use_route(&sandbox, "/v1/embeddings", &[], "a").await;
        assert_eq!(reply.status, 200, "{n}");
        assert_eq!(sandbox.get("/v1/models").await.status, 200);
    }

    for path in KEYED {
        let over = use_route(&sandbox, path, &[], "rivers").await;
        let refusal = (over.status, over.header("retry-after"));
        assert_eq!(refusal, (429, Some("15")), "{path}");
        assert_eq!(over.header("x-service-billed"), None, "{path}");
    }

    assert_eq!(sandbox.debits().await.len(), 120);
    assert_eq!(sandbox.get("/v1/tasks").await.status, 200);
    sandbox.control("clock", json!({"advance_s": 60})).await;
    assert_eq!(use_route(&sandbox, CHAT, &[], "rivers").await.status, 200);
}

// Interface, Limits: concurrency, 8 requests in flight per serving instance (429, `Retry-After: 5`), inference.
#[tokio::test]
async fn the_ceiling_on_requests_at_once_is_one_for_all_six_routes_of_inference() {
    let sandbox = Sandbox::start().await;
    sandbox.control("limits", json!({"in_flight": 0})).await;

    for path in KEYED {
        let over = use_route(&sandbox, path, &[], "rivers").await;
        let refusal = (over.status, over.header("retry-after"));
        assert_eq!(refusal, (429, Some("5")), "{path}");
    }

    assert!(sandbox.debits().await.is_empty());
    assert_eq!(
        use_route(&sandbox, COMPARE, &[], "rivers").await.status,
        200
    );
}

// Interface, Limits: request body size, 30 MB (413). Assumed (megabyte): 30 x 1,048,576 bytes, and not one more.
#[tokio::test]
async fn a_body_of_30_mb_is_read_and_one_byte_more_is_not() {
    const MOST: usize = 30 * 1024 * 1024;
    let sandbox = Sandbox::start().await;
    let body = json!({"query": "flag abusive comments"}).to_string();
    let mut body = body.into_bytes();
    body.resize(MOST, b' ');

    let taken = sandbox
        .send("POST", "/v1/tasks/match", &[], Some(body))
        .await;
    let over = (MOST + 1).to_string();
    let announced = [
        ("Content-Length", over.as_str()),
        ("Expect", "100-continue"),
    ];
    let refused = sandbox
        .send("POST", "/v1/tasks/match", &announced, None)
        .await;

    assert_eq!(
        (taken.status, refused.status),
        (200, 413),
        "{}",
        taken.text()
    );
}

// Interface, X-Service-Route-Version: "(and the matching SSE comment on streams) is a deploy stamp of the serving
// revision".
#[tokio::test]
async fn one_revision_stamps_every_answer_whole_or_streamed() {
    let sandbox = Sandbox::start().await;
    let plain = sandbox.post(CHAT, &[], &ask("rivers")).await;
    let stamp = plain.header("x-service-route-version").unwrap();
    assert!(!stamp.is_empty());

    for text in ["lakes", "hard: seas"] {
        let whole = sandbox.post(CHAT, &[], &ask(text)).await;
        let streamed = sandbox.post(CHAT, &[], &ask_stream(text)).await;
        assert_eq!(whole.header("x-service-route-version"), Some(stamp));
        let comment = streamed.comment("service-route-version");
        assert_eq!(comment.as_deref(), Some(stamp));
    }
}

// Interface, Auto metrics document: requests, success rate and billed spend. Assumed (auto-metrics): speech counts.
#[tokio::test]
async fn speech_made_and_heard_is_in_the_organizations_document() {
    let sandbox = Sandbox::start_with(built_in()).await;
    for path in [SPEAK, HEAR] {
        assert_eq!(use_route(&sandbox, path, &[], "rivers").await.status, 200);
    }
    let broken = json!({"audio_base64": "AAAA"});
    assert_eq!(sandbox.post(HEAR, &[], &broken).await.status, 422);

    let document = sandbox.get("/v1/auto/metrics").await.json();

    assert_eq!(document["requests_30d"], 3);
    assert_eq!(document["success_rate_30d"], 2.0 / 3.0);
    let debits = sandbox.debits().await;
    assert_eq!(debits.len(), 2);
    assert_eq!(document["billed_micro_usd_30d"], debits.iter().sum::<i64>());
    let hours = document["hourly_7d"].as_array().unwrap();
    let errors = |hour: &Value| hour["errors"].as_u64().unwrap();
    assert_eq!(hours.iter().map(errors).sum::<u64>(), 1);
}

// Interface, POST /v1/endpoints: `model` "no, default `recommended`"; `recommended` is "the task's curated pick, else
// the leaderboard's top open model".
#[tokio::test]
async fn a_deploy_without_a_model_takes_the_recommended_one_of_its_task() {
    let sandbox = Sandbox::start_with(quick()).await;
    for (task, rank) in [("contact-extraction", "-1"), ("sentiment", "-2")] {
        let left_out = deploy(&sandbox, json!({"task": task})).await;
        let asked = deploy(&sandbox, json!({"task": task, "model": "recommended"})).await;
        assert_eq!(left_out["model"], asked["model"]);
        let alias = asked["model"].as_str().unwrap();
        assert!(alias.ends_with(rank), "{task}: {alias}");
    }
}

// Interface, Eval result: exact_match, "classification runs only; exact-match rate 0-100".
#[tokio::test]
async fn a_classification_run_reports_its_exact_matches_from_0_to_100() {
    let sandbox = Sandbox::start().await;
    let row = |label: &str| {
        json!({
            "input": {"text": "I love this lamp, it is wonderful and works great."},
            "expected_output": {"label": label},
        })
    };
    // Whatever is answered, the last row and the first cannot both be right.
    let rows = [
        row("positive"),
        row("positive"),
        row("positive"),
        row("negative"),
    ];
    let prompt = "Give the label of the text.";
    let set = set(&sandbox, Some("sentiment"), prompt, &rows).await;

    let run = start(&sandbox, &set, &["auto", "frontier-a"]).await;
    let ended = terminal(&sandbox, &run).await;

    let results = ended["results"].as_array().unwrap();
    let rates: Vec<f64> = results
        .iter()
        .map(|result| {
            let rate = result["exact_match"].as_f64().unwrap();
            let mean = result["quality_mean"].as_f64().unwrap();
            assert!((rate - 100.0 * mean).abs() < 1e-9, "{result}");
            rate
        })
        .collect();
    assert!(
        rates.iter().all(|rate| (0.0..=75.0).contains(rate)),
        "{ended}"
    );
    assert!(rates.iter().any(|rate| *rate > 1.0), "{ended}");
}

// Interface, Events: "Endpoint deploy: named events"; Streaming responses use `text/event-stream`.
#[tokio::test]
async fn every_stream_says_that_it_is_one() {
    let sandbox = Sandbox::start_with(quick()).await;
    let deployed = sandbox
        .post(
            "/v1/endpoints",
            &[],
            &json!({"task": "contact-extraction", "name": "mine"}),
        )
        .await;
    let direct = with(ask_stream("rivers"), "model", json!("mine"));
    let at_url = sandbox
        .post("/v1/endpoints/mine/chat/completions", &[], &direct)
        .await;
    let chat = sandbox.post(CHAT, &[], &ask_stream("rivers")).await;
    let turn = sandbox.post(AGENT, &[], &ask_stream("rivers")).await;

    for reply in [deployed, at_url, chat, turn] {
        let kind = reply.header("content-type").unwrap_or_default();
        assert!(kind.starts_with("text/event-stream"), "{kind}");
        assert_eq!((reply.status, reply.complete), (200, true));
    }
}
