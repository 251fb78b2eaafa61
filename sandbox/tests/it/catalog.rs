//! The task catalog, its matcher and the frontier roster.

use crate::{
    match_labels::{LABELS, Label, OTHERS, UNSEEN},
    support::*,
};
use bursar_sandbox::Options;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const MATCH: &str = "/v1/tasks/match";
const ROSTER: &str = "/v1/eval/frontier-models";

async fn matched(sandbox: &Sandbox, query: &str) -> Value {
    let reply = sandbox.post(MATCH, &[], &json!({"query": query})).await;
    assert_eq!(reply.status, 200, "{query}: {}", reply.text());
    reply.json()
}

/// What the answer says, in the words of the labels.
fn says(answer: &Value, label: Label) -> bool {
    match label {
        Label::Task(id) => answer["type"] == "task" && answer["chosen"]["task_id"] == id,
        Label::Capability(id) => answer["type"] == "capability" && answer["capability"]["id"] == id,
        Label::Unsupported => answer["type"] == "unsupported",
        Label::None => answer["type"] == "none",
    }
}

/// The descriptions that are not matched with what they ask for.
async fn missed(sandbox: &Sandbox, rows: &[(&str, Label)]) -> Vec<String> {
    let mut missed = Vec::new();
    for (query, label) in rows {
        let answer = matched(sandbox, query).await;
        if !says(&answer, *label) {
            missed.push(format!("{query}: {label:?}, not {answer}"));
        }
    }
    missed
}

// Interface, POST /v1/tasks/match: "a deterministic keyword scorer"
#[tokio::test]
async fn nine_of_ten_descriptions_are_matched_with_what_they_ask_for() {
    let sandbox = Sandbox::start().await;

    for rows in [LABELS, OTHERS] {
        let missed = missed(&sandbox, rows).await;
        let right = rows.len() - missed.len();
        assert!(
            right * 10 >= rows.len() * 9,
            "{right} of {}: {missed:#?}",
            rows.len()
        );
    }
    assert!(LABELS.len() >= 60);
}

#[tokio::test]
async fn three_of_four_descriptions_in_words_not_met_before_are_matched() {
    let sandbox = Sandbox::start().await;

    let missed = missed(&sandbox, UNSEEN).await;

    let right = UNSEEN.len() - missed.len();
    assert!(
        right * 4 >= UNSEEN.len() * 3,
        "{right} of {}: {missed:#?}",
        UNSEEN.len()
    );
}

/// A Task's fields as the table of the interface gives them, examples aside.
fn is_task(task: &Value) {
    for name in ["id", "default_scorer"] {
        assert!(!task[name].as_str().unwrap().is_empty(), "{task}");
    }
    assert!(task["has_blob_input"].is_boolean(), "{task}");
    assert!(task["gold_schema"]["properties"].is_object(), "{task}");
    assert!(task["output_schema"].is_object(), "{task}");
    match task["output_schema_role"].as_str().unwrap() {
        "gold" => assert_eq!(task["output_schema"], task["gold_schema"]),
        "summary" => assert_ne!(task["output_schema"], task["gold_schema"]),
        other => panic!("{other}"),
    }
}

// Interface, GET /v1/tasks: "Response {tasks: [Task]}."
// Interface, Task: id, default_scorer, has_blob_input, gold_schema, output_schema, output_schema_role
#[tokio::test]
async fn the_catalog_lists_every_task_with_its_fields_and_without_examples() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.get("/v1/tasks?examples_n=2").await;

    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!(body.as_object().unwrap().len(), 1);
    let tasks = body["tasks"].as_array().unwrap();
    assert!(tasks.len() >= 12);
    tasks.iter().for_each(is_task);
    assert!(tasks.iter().all(|task| task.get("examples").is_none()));
    let ids: BTreeSet<&str> = tasks.iter().map(|t| t["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), tasks.len());
    assert_eq!(reply.header("x-sandbox-assumed"), Some("task-catalog"));
}

// Interface, Task: default_scorer, "field-F1 for extraction, nDCG@10 for ranking, WER for transcripts, a
// judge panel for open-ended text"
#[tokio::test]
async fn the_default_scorer_is_the_one_of_the_kind_of_work() {
    let sandbox = Sandbox::start().await;

    for (id, scorer, blob) in [
        ("invoice-extraction", "field_f1", true),
        ("contact-extraction", "field_f1", false),
        ("search-ranking", "ndcg_at_10", false),
        ("speech-transcript", "wer", true),
        ("news-summary", "judge", false),
        ("sentiment", "exact_match", false),
        ("document-questions", "token_f1", true),
    ] {
        let task = sandbox.get(&format!("/v1/tasks/{id}")).await.json();
        assert_eq!(task["default_scorer"], scorer, "{id}");
        assert_eq!(task["has_blob_input"], blob, "{id}");
    }
}

// Interface, GET /v1/tasks/{task_id}: "Response: Task."
#[tokio::test]
async fn one_task_is_the_same_alone_as_in_the_list() {
    let sandbox = Sandbox::start().await;
    let listed = sandbox.get("/v1/tasks").await.json();

    for task in listed["tasks"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let alone = sandbox.get(&format!("/v1/tasks/{id}")).await;
        assert_eq!((alone.status, &alone.json()), (200, task));
    }
}

// Interface, GET /v1/tasks/{task_id}: "404 for an unknown id."
#[tokio::test]
async fn an_unknown_task_is_404_with_a_detail() {
    let sandbox = Sandbox::start().await;

    for id in ["nothing", "Sentiment", "%ff", "%2e%2e", "sentiment%20"] {
        let reply = sandbox.get(&format!("/v1/tasks/{id}?examples_n=1")).await;
        assert_eq!(reply.status, 404, "{id}");
        assert!(reply.json()["detail"].is_string());
    }
}

// Interface, GET /v1/tasks/{task_id}: examples_n, "integer, optional; number of example rows requested when
// available"
// Interface, Task: examples, "present when examples_n was requested"
#[tokio::test]
async fn as_many_examples_come_as_were_asked_for_and_are_there() {
    let sandbox = Sandbox::start().await;
    let examples = async |n: &str| {
        let reply = sandbox
            .get(&format!("/v1/tasks/sentiment?examples_n={n}"))
            .await;
        assert_eq!(reply.status, 200, "{n}");
        reply.json()["examples"].as_array().unwrap().clone()
    };

    let all = examples("1000").await;
    assert!((6..=10).contains(&all.len()));
    assert_eq!(examples("99999999999999999999999").await, all);
    assert_eq!(examples("0").await, Vec::<Value>::new());
    assert_eq!(examples("3").await, all[..3]);
    let plain = sandbox.get("/v1/tasks/sentiment?other=1").await.json();
    assert!(plain.get("examples").is_none());
    // Interface, Row shape: {input: object, expected_output: object}
    for row in &all {
        assert_eq!(row.as_object().unwrap().len(), 2);
        assert!(row["input"].is_object() && row["expected_output"].is_object());
    }
}

#[tokio::test]
async fn a_number_of_examples_that_is_none_is_422_and_named() {
    let sandbox = Sandbox::start().await;

    for n in ["-1", "two", "1.5", "", "1&examples_n=2", "0x3", "%20"] {
        let reply = sandbox
            .get(&format!("/v1/tasks/sentiment?examples_n={n}"))
            .await;
        assert_eq!(reply.status, 422, "{n}");
        assert!(reply.text().contains("examples_n"), "{n}");
    }
}

// Interface, Task: has_blob_input, "true when rows carry documents or images (PDFs, scans)"
#[tokio::test]
async fn the_examples_of_a_blob_task_carry_their_files() {
    let sandbox = Sandbox::start().await;

    for (id, kind) in [
        ("invoice-extraction", "data:application/pdf;base64,"),
        ("receipt-extraction", "data:image/png;base64,"),
        ("speech-transcript", "data:audio/wav;base64,"),
    ] {
        let task = sandbox
            .get(&format!("/v1/tasks/{id}?examples_n=50"))
            .await
            .json();
        let field = task["blob_field"].as_str().unwrap();
        for row in task["examples"].as_array().unwrap() {
            let url = row["input"][field].as_str().unwrap();
            assert!(url.starts_with(kind) && url.len() > 1_000, "{id}");
        }
    }
}

// Interface, Task: examples, "example rows from the task's bundled golden set"
#[tokio::test]
async fn a_golden_recording_is_transcribed_as_its_row_expects() {
    let sandbox = Sandbox::start().await;
    let task = sandbox
        .get("/v1/tasks/speech-transcript?examples_n=2")
        .await
        .json();

    for row in task["examples"].as_array().unwrap() {
        let (_, audio) = row["input"]["audio"]
            .as_str()
            .unwrap()
            .split_once(',')
            .unwrap();
        let body = json!({"audio_base64": audio});
        let heard = sandbox
            .post("/v1/audio/transcriptions", &[], &body)
            .await
            .json();
        assert_eq!(heard["text"], row["expected_output"]["text"]);
        assert!(heard["duration_s"].as_f64().unwrap() > 2.0);
    }
}

// Interface, Task match result: query, type, matched, chosen, candidates, ambiguous, matcher
// Interface, Candidate: task_id (string), score (number in [0,1]), confidence (high, medium, low)
#[tokio::test]
async fn a_match_has_the_fields_of_its_type_and_no_other() {
    let sandbox = Sandbox::start().await;
    let always = [
        "query",
        "type",
        "matched",
        "chosen",
        "candidates",
        "ambiguous",
        "matcher",
    ];

    for (query, label) in LABELS {
        let answer = matched(&sandbox, query).await;
        let names: BTreeSet<&str> = answer
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let mut expected = BTreeSet::from(always);
        if answer["type"] == "capability" {
            expected.insert("capability");
        }
        assert_eq!(names, expected, "{label:?}");
        assert_eq!(answer["query"], *query);
        assert_eq!(answer["matcher"], "keyword");
        let candidates = answer["candidates"].as_array().unwrap();
        assert!(candidates.len() <= 5, "top_k is 5 by default");
        for candidate in candidates {
            assert_eq!(candidate.as_object().unwrap().len(), 3);
            let score = candidate["score"].as_f64().unwrap();
            let confidence = match score {
                0.4..=1.0 => "high",
                0.22..0.4 => "medium",
                0.0..0.22 => "low",
                other => panic!("{other}"),
            };
            assert_eq!(candidate["confidence"], confidence);
            let id = candidate["task_id"].as_str().unwrap();
            assert_eq!(sandbox.get(&format!("/v1/tasks/{id}")).await.status, 200);
        }
        let scores: Vec<f64> = candidates
            .iter()
            .map(|c| c["score"].as_f64().unwrap())
            .collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "ranked: {scores:?}");
        // "chosen: best candidate; null if nothing cleared the bar"; "matched: a high-confidence task was found"
        if answer["type"] == "task" {
            assert_eq!(answer["chosen"], candidates[0]);
            assert_ne!(answer["chosen"]["confidence"], "low");
        } else {
            assert_eq!(answer["chosen"], Value::Null);
        }
        assert_eq!(answer["matched"], answer["chosen"]["confidence"] == "high");
    }
}

// Interface, Task match result: capability, "present when type = capability; keys id, label, category,
// category_id, desc"
#[tokio::test]
async fn a_capability_has_its_five_keys() {
    let sandbox = Sandbox::start().await;

    let answer = matched(&sandbox, "text to speech for an audiobook").await;

    assert_eq!(answer["type"], "capability");
    let keys: Vec<&String> = answer["capability"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["id", "label", "category", "category_id", "desc"]);
    assert_eq!(answer["capability"]["id"], "speech-synthesis");
}

// Interface, Task match result: ambiguous, "true when the top two scores are close"
#[tokio::test]
async fn a_description_between_two_tasks_is_ambiguous_and_a_plain_one_is_not() {
    let sandbox = Sandbox::start().await;

    let between = matched(&sandbox, "sentiment or toxicity").await;
    let plain = matched(&sandbox, "toxicity").await;

    let top = &between["candidates"];
    assert_eq!(between["ambiguous"], true, "{between}");
    assert!(top[1]["score"].as_f64().unwrap() >= 0.85 * top[0]["score"].as_f64().unwrap());
    assert_eq!(plain["ambiguous"], false);
    assert_eq!(plain["chosen"]["task_id"], "toxicity");
    let nothing = matched(&sandbox, "asdf").await;
    assert_eq!(
        (&nothing["type"], &nothing["ambiguous"]),
        (&json!("none"), &json!(false))
    );
}

// Interface, POST /v1/tasks/match: "top_k (integer, default 5; candidates returned by the keyword fallback)"
#[tokio::test]
async fn at_most_top_k_candidates_come_the_best_ones() {
    let sandbox = Sandbox::start().await;
    let query = "read text and documents, then label, rank, summarize or translate articles";
    let ask = async |top_k: u64| {
        let body = json!({"query": query, "top_k": top_k, "unknown": true});
        sandbox.post(MATCH, &[], &body).await.json()
    };

    let many = ask(50).await;
    let all = many["candidates"].as_array().unwrap();
    assert!(all.len() > 5, "{many}");
    for top_k in [1, 3] {
        let few = ask(top_k).await;
        let kept = usize::try_from(top_k).unwrap();
        assert_eq!(few["candidates"].as_array().unwrap()[..], all[..kept]);
        assert_eq!(few["chosen"], many["chosen"]);
    }
    assert_eq!(
        matched(&sandbox, query).await["candidates"]
            .as_array()
            .unwrap()[..],
        all[..5]
    );
}

// Interface, POST /v1/tasks/match: "query (string, required, non-empty and not whitespace-only)"
// Interface, Errors: 400, malformed JSON; 422, validation failure
#[tokio::test]
async fn a_match_without_a_description_is_refused_by_the_name_of_the_field() {
    let sandbox = Sandbox::start().await;

    for (body, field) in [
        (json!({}), "query"),
        (json!({"query": ""}), "query"),
        (json!({"query": " \t\n\u{a0}"}), "query"),
        (json!({"query": null}), "query"),
        (json!({"query": ["a"]}), "query"),
        (json!({"query": "x".repeat(4_001)}), "query"),
        (json!({"query": "invoices", "top_k": 0}), "top_k"),
        (json!({"query": "invoices", "top_k": -1}), "top_k"),
        (json!({"query": "invoices", "top_k": 51}), "top_k"),
        (json!({"query": "invoices", "top_k": 2.5}), "top_k"),
        (json!({"query": "invoices", "top_k": "5"}), "top_k"),
        (json!({"query": "invoices", "top_k": true}), "top_k"),
        (json!(["query"]), "object"),
    ] {
        let reply = sandbox.post(MATCH, &[], &body).await;
        assert_eq!(reply.status, 422, "{field}");
        assert!(reply.json()["detail"].as_str().unwrap().contains(field));
    }
    for broken in [&b"{"[..], b"", b"\xff"] {
        let reply = sandbox
            .send("POST", MATCH, &[], Some(broken.to_vec()))
            .await;
        assert_eq!(reply.status, 400);
    }
    let longest = json!({"query": "\u{e9}".repeat(4_000)});
    assert_eq!(sandbox.post(MATCH, &[], &longest).await.status, 200);
}

// Interface, POST /v1/tasks/match: "a deterministic keyword scorer"
#[tokio::test]
async fn the_same_description_is_matched_alike_by_every_sandbox() {
    let (one, other) = (
        Sandbox::start().await,
        Sandbox::start_with(Options {
            seed: 99,
            ..Options::default()
        })
        .await,
    );

    for (query, _) in LABELS {
        let answer = matched(&one, query).await;
        assert_eq!(answer, matched(&other, query).await);
        assert_eq!(answer, matched(&one, query).await);
    }
}

// Interface, Metering rules: "Task catalog reads (list, retrieve, match) are free."
// Interface, Limits: concurrency and rate apply to inference
#[tokio::test]
async fn the_catalog_is_free_for_an_empty_balance_and_under_no_inference_limit() {
    let sandbox = Sandbox::start_with(Options {
        balance_micro_usd: 0,
        in_flight_max: 0,
        per_minute_max: 0,
        ..Options::default()
    })
    .await;

    for path in ["/v1/tasks", "/v1/tasks/sentiment?examples_n=2", ROSTER] {
        let reply = sandbox.get(path).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("x-service-billed"), None);
    }
    matched(&sandbox, "read invoices").await;
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 429);
}

// Interface, Authentication: "A missing or invalid key returns 401. A key that is authenticated but not
// allowed returns 403."
#[tokio::test]
async fn every_route_of_the_catalog_needs_an_allowed_key() {
    let sandbox = Sandbox::start_with(Options {
        forbidden_keys: vec!["no-entry".to_owned()],
        ..Options::default()
    })
    .await;

    for (method, path) in [
        ("GET", "/v1/tasks"),
        ("GET", "/v1/tasks/sentiment"),
        ("GET", "/v1/tasks/nothing"),
        ("POST", MATCH),
        ("GET", ROSTER),
    ] {
        for (key, status) in [("", 401), ("Bearer wrong", 401), ("Bearer no-entry", 403)] {
            let body = (method == "POST").then(|| b"{}".to_vec());
            let reply = sandbox
                .send(method, path, &[("Authorization", key)], body)
                .await;
            assert_eq!(reply.status, status, "{method} {path} {key}");
        }
    }
}

#[tokio::test]
async fn a_fault_strikes_the_catalog_as_any_route() {
    let sandbox = Sandbox::start().await;
    sandbox
        .fault(json!({"status": 503, "retry_after": "2"}))
        .await;

    let struck = sandbox
        .post(MATCH, &[], &json!({"query": "read invoices"}))
        .await;

    assert_eq!(
        (struck.status, struck.header("retry-after")),
        (503, Some("2"))
    );
}

// Interface, GET /v1/eval/frontier-models: "Without it the full roster returns, unannotated."
// Interface, Frontier model: id, vendor, vision
#[tokio::test]
async fn the_full_roster_says_what_can_see_and_nothing_of_benchmarks() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.get(ROSTER).await;

    let body = reply.json();
    let models = body["frontier_models"].as_array().unwrap();
    assert!(models.len() >= 4);
    for model in models {
        let keys: Vec<&String> = model.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["id", "vendor", "vision"]);
        assert!(model["id"].is_string() && model["vendor"].is_string());
    }
    // A label is of the vendor, not of the model: some vendor has two of them.
    let values_of = |name: &str| -> BTreeSet<&str> {
        let names = models.iter().map(|model| model[name].as_str().unwrap());
        names.collect()
    };
    assert_eq!(values_of("id").len(), models.len());
    assert!((2..models.len()).contains(&values_of("vendor").len()));
    for vision in [true, false] {
        assert!(models.iter().any(|model| model["vision"] == vision));
    }
    assert_eq!(reply.header("x-sandbox-assumed"), Some("frontier-ids"));
}

// Interface, GET /v1/eval/frontier-models: "With task, each entry is annotated with benchmarked and the
// roster is vision-filtered for document tasks."
#[tokio::test]
async fn the_roster_of_a_task_is_annotated_and_for_documents_holds_what_can_see() {
    let sandbox = Sandbox::start().await;
    let full = sandbox.get(ROSTER).await.json();
    let full = full["frontier_models"].as_array().unwrap();
    let tasks = sandbox.get("/v1/tasks").await.json();

    let mut said = BTreeSet::new();
    for task in tasks["tasks"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let roster = sandbox.get(&format!("{ROSTER}?task={id}")).await.json();
        let roster = roster["frontier_models"].as_array().unwrap();
        let blob = task["has_blob_input"] == true;
        let expected: Vec<&Value> = full
            .iter()
            .filter(|model| !blob || model["vision"] == true)
            .map(|model| &model["id"])
            .collect();
        assert_eq!(
            roster.iter().map(|m| &m["id"]).collect::<Vec<_>>(),
            expected,
            "{id}"
        );
        said.extend(
            roster
                .iter()
                .map(|model| model["benchmarked"].as_bool().unwrap()),
        );
        assert!(
            roster.iter().any(|model| model["benchmarked"] == true),
            "{id}"
        );
    }
    assert_eq!(said.len(), 2, "both occur");
}

// Interface, Errors: 404, "eval set, run, task or endpoint id not found"
#[tokio::test]
async fn the_roster_of_an_unknown_task_is_404() {
    let sandbox = Sandbox::start().await;

    for task in ["nothing", "", "%ff"] {
        let reply = sandbox.get(&format!("{ROSTER}?task={task}")).await;
        assert_eq!(reply.status, 404, "{task}");
        assert!(reply.json()["detail"].is_string());
    }
}

// Interface, Frontier baseline selection: explicit ids come from the roster
#[tokio::test]
async fn the_comparisons_models_stand_in_the_roster() {
    let sandbox = Sandbox::start().await;
    let roster = sandbox.get(ROSTER).await.json();
    let mut served = 0;

    for model in roster["frontier_models"].as_array().unwrap() {
        let body =
            json!({"model": model["id"], "messages": [{"role": "user", "content": "rivers"}]});
        let reply = sandbox.post("/v1/playground/frontier", &[], &body).await;
        served += u32::from(reply.status == 200);
    }

    assert_eq!(
        served, 4,
        "Interface: one of four allowed frontier vendor ids"
    );
}
