//! Whole runs on the catalog's own golden rows, of several kinds of task, against models that differ.

use crate::{eval_support::*, model_server::*, own_models::sandbox_with, support::*};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

/// The golden rows of a task, as a client gets them.
async fn golden(sandbox: &Sandbox, task: &str) -> Vec<Value> {
    let path = format!("/v1/tasks/{task}?examples_n=20");
    let task = sandbox.get(&path).await.json();
    task["examples"].as_array().unwrap().clone()
}

/// The results of a run over a task's golden rows.
async fn results(sandbox: &Sandbox, task: &str, prompt: &str, candidates: &[&str]) -> Vec<Value> {
    let rows = golden(sandbox, task).await;
    let set = set(sandbox, Some(task), prompt, &rows).await;
    let run = start(sandbox, &set, candidates).await;
    let ended = terminal(sandbox, &run).await;
    assert_eq!(ended["run"]["status"], "completed", "{task}: {ended}");
    assert_eq!(ended["run"]["cost_micro_usd"], billed(sandbox, &run).await);
    let results = ended["results"].as_array().unwrap().clone();
    for result in &results {
        let of = |name: &str| result[name].as_u64().unwrap();
        let rows = u64::try_from(rows.len()).unwrap();
        assert_eq!(
            of("n_succeeded") + of("error_count"),
            rows,
            "{task}: {result}"
        );
    }
    results
}

fn quality(result: &Value) -> f64 {
    result["quality_mean"].as_f64().unwrap()
}

// Interface, Evals: "The service scores `auto` and optional frontier baselines on the same rows. It returns
// per-candidate quality with 95% confidence intervals and per-item cost."
#[tokio::test]
async fn on_three_kinds_of_task_the_candidates_score_differently() {
    let sandbox = Sandbox::start().await;
    let story = [
        (
            "invoice-extraction",
            "Read the invoice and give its vendor, dates and line items.",
        ),
        ("sentiment", "Give the label of the text."),
        (
            "meeting-summary",
            "Write the summary, decisions and action items of the meeting.",
        ),
    ];

    for (task, prompt) in story {
        let found = results(&sandbox, task, prompt, &["auto", "frontier-a"]).await;

        assert_ne!(quality(&found[0]), quality(&found[1]), "{task}: {found:?}");
        assert!(quality(&found[0]) > 0.0, "{task}: {found:?}");
        let cost = |at: usize| found[at]["mean_cost_micro_usd"].as_u64().unwrap();
        assert!(0 < cost(0) && cost(0) < cost(1), "{task}: {found:?}");
        // Interface, Eval result: exact_match: "classification runs only; exact-match rate 0-100".
        for result in &found {
            match result["exact_match"].as_f64() {
                Some(rate) => {
                    assert_eq!(task, "sentiment");
                    assert!((rate - 100.0 * quality(result)).abs() < 1e-9, "{result}");
                }
                None => assert_ne!(task, "sentiment"),
            }
        }
    }
}

// Interface, Eval result: what a model is measured at is what it said.
#[tokio::test]
async fn a_model_that_says_one_label_is_right_as_often_as_the_label_is() {
    let server = ModelServer::start();
    let always = server.model(
        "frontier",
        "id = \"frontier-b\"\nprompt_micro_usd_per_million = 1000000\ncompletion_micro_usd_per_million = 2000000",
        says("{\"label\": \"negative\"}"),
    );
    let sandbox = sandbox_with(&[always]).await;
    let rows = golden(&sandbox, "sentiment").await;
    let negative = rows
        .iter()
        .filter(|row| row["expected_output"]["label"] == "negative")
        .count();
    let share = negative as f64 / rows.len() as f64;

    let found = results(
        &sandbox,
        "sentiment",
        "Give the label of the text.",
        &["auto", "frontier-b"],
    )
    .await;

    let baseline = &found[1];
    assert!((quality(baseline) - share).abs() < 1e-9, "{baseline}");
    assert!((baseline["exact_match"].as_f64().unwrap() - 100.0 * share).abs() < 1e-9);
    assert!(baseline["quality_ci_low"].as_f64().unwrap() < share);
    assert!(baseline["quality_ci_high"].as_f64().unwrap() > share);
    // 1000 and 100 tokens by the server's word, at its own price.
    assert_eq!(baseline["mean_cost_micro_usd"], 1_200);
    let seen = server.seen().await;
    assert_eq!(seen.len(), rows.len());
    let asked = seen[0]["body"].to_string();
    assert!(
        asked.contains("json_schema") && !asked.contains("expected_output"),
        "{asked}"
    );
}

// Interface, Eval result: error_count: "rows that errored"; Metering: "A request or turn that fails bills nothing".
#[tokio::test]
async fn an_answer_that_cannot_be_scored_is_an_error_of_its_row_and_free() {
    let server = ModelServer::start();
    let vague = server.model("frontier", "id = \"frontier-b\"", says("I am not sure."));
    let sandbox = sandbox_with(&[vague]).await;

    let found = results(
        &sandbox,
        "contact-extraction",
        "Extract the contact from the text.",
        &["auto", "frontier-b"],
    )
    .await;

    assert_eq!(found[0]["error_count"], 0);
    assert_eq!(
        (&found[1]["n_succeeded"], &found[1]["mean_cost_micro_usd"]),
        (&json!(0), &json!(0))
    );
    assert!(!server.seen().await.is_empty());
    let books = sandbox.books().await;
    let debits = books["debits"].as_array().unwrap();
    let of_the_vague = debits.iter().filter(|debit| {
        debit["request_id"]
            .as_str()
            .unwrap()
            .ends_with("/frontier-b")
    });
    let billed: i64 = of_the_vague
        .map(|debit| debit["amount_micro_usd"].as_i64().unwrap())
        .sum();
    assert_eq!(billed, 0);
}

#[tokio::test]
async fn a_vendor_that_fails_is_an_error_of_its_rows_and_of_no_others() {
    let server = ModelServer::start();
    let broken = server.model("frontier", "id = \"frontier-b\"", json!({"status": 500}));
    let sandbox = sandbox_with(&[broken]).await;

    let found = results(
        &sandbox,
        "sentiment",
        "Give the label of the text.",
        &["auto", "frontier-b"],
    )
    .await;

    assert_eq!(found[0]["error_count"], 0);
    assert_eq!(
        (
            &found[1]["n_succeeded"],
            &found[1]["mean_cost_micro_usd"],
            &found[1]["quality_ci_high"]
        ),
        (&json!(0), &json!(0), &json!(1.0))
    );
}

// Interface, Task, default_scorer: "a judge panel for open-ended text".
#[tokio::test]
async fn a_configured_judge_grades_open_text() {
    let server = ModelServer::start();
    let judge = server.model("judge", "", says("0.75"));
    let sandbox = sandbox_with(&[judge]).await;

    let found = results(
        &sandbox,
        "news-summary",
        "Summarize the article in one sentence.",
        &["auto"],
    )
    .await;

    assert!((quality(&found[0]) - 0.75).abs() < 1e-9, "{found:?}");
}

// Interface, Task, default_scorer: "WER for transcripts"; Metering: "Speech routes bill per minute of audio".
#[tokio::test]
async fn recordings_are_heard_by_auto_and_scored_word_by_word() {
    let sandbox = Sandbox::start().await;
    let said = ["The door is open", "The lamp is lit"];
    let mut wavs = Vec::new();
    for text in said {
        let spoken = sandbox
            .post("/v1/audio/speech", &[], &json!({"text": text}))
            .await
            .json();
        wavs.push(spoken["audio_base64"].as_str().unwrap().to_owned());
    }
    // One recording in its row, one attached to it; of the second, one word of four is expected otherwise.
    let rows = [
        json!({
            "input": {"audio": format!("data:audio/wav;base64,{}", wavs[0])},
            "expected_output": {"text": said[0]},
        }),
        json!({"expected_output": {"text": "The lamp is out"}}),
    ];
    let set = set(
        &sandbox,
        Some("speech-transcript"),
        "Transcribe the audio.",
        &rows,
    )
    .await;
    let form = Form::default()
        .file("file", &STANDARD.decode(&wavs[1]).unwrap())
        .field("idx", "1")
        .field("field_name", "audio")
        .field("mime", "audio/wav");
    let attached = form
        .post(
            &sandbox,
            &format!("{SETS}/{set}/attach-blob"),
            "sandbox-key",
        )
        .await;
    assert_eq!(attached.status, 200, "{}", attached.text());

    let run = start(&sandbox, &set, &["auto"]).await;
    let ended = terminal(&sandbox, &run).await;

    // 1 and 1 - 1/4.
    assert_eq!(quality(&ended["results"][0]), 0.875, "{ended}");
    assert_eq!(ended["run"]["cost_micro_usd"], billed(&sandbox, &run).await);
    assert!(ended["results"][0]["mean_cost_micro_usd"].as_u64().unwrap() > 0);
}

// Interface, Evals: every task of the catalog can be run on its own golden rows.
#[tokio::test]
async fn every_task_of_the_catalog_runs_on_its_golden_rows() {
    let sandbox = Sandbox::start().await;
    let tasks = sandbox.get("/v1/tasks").await.json();
    for task in tasks["tasks"].as_array().unwrap() {
        let id = task["id"].as_str().unwrap();
        let prompt = task["title"].as_str().unwrap();

        let found = results(&sandbox, id, prompt, &["auto", "frontier-a"]).await;

        assert_eq!(found.len(), 2, "{id}");
        for result in &found {
            assert_eq!(result["error_count"], 0, "{id}: {result}");
            assert!(quality(result) > 0.3, "{id}: {result}");
        }
        // The golden recordings are spoken by the built-in voice, so auto reads what was said.
        let heard = id == "speech-transcript";
        assert!(!heard || quality(&found[0]) == 1.0, "{id}: {found:?}");
    }
}
