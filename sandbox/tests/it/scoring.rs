//! `POST /sandbox/score`: what a run would say of an answer.

use super::{
    model_server::{ModelServer, says},
    own_models::sandbox_with,
    support::Sandbox,
};
use serde_json::{Value, json};

async fn scored(sandbox: &Sandbox, scorer: &str, rows: Value) -> Value {
    let body = json!({"scorer": scorer, "rows": rows, "seed": 7});
    sandbox.control("score", body).await
}

// Interface, Eval result: n_succeeded, rows that scored cleanly; error_count, rows that errored.
#[tokio::test]
async fn rows_are_scored_one_by_one_and_what_cannot_be_read_is_an_error_and_no_zero() {
    let sandbox = Sandbox::start().await;
    let expected = json!({"total": 12.5, "date": "2026-11-21"});

    let report = scored(
        &sandbox,
        "field_f1",
        json!([
            {"expected": expected, "answer": "```json\n{\"total\": \"12.50\", \"date\": \"21 Nov 2026\"}\n```"},
            {"expected": expected, "answer": {"total": 12.5}},
            {"expected": expected, "answer": "I cannot read this."},
        ]),
    )
    .await;

    assert_eq!(report["rows"][0], json!({"score": 1.0, "by": "rule"}));
    assert_eq!(report["rows"][1]["score"], json!(2.0 / 3.0));
    assert_eq!(
        report["rows"][2]["error"],
        "there is no JSON object in the answer"
    );
    assert_eq!(
        (&report["n_succeeded"], &report["error_count"]),
        (&json!(2), &json!(1))
    );
    // The mean is of the rows that have a score.
    let mean = report["interval"]["mean"].as_f64().unwrap();
    assert!((mean - 5.0 / 6.0).abs() < 1e-12, "{report}");
    sandbox.stop().await;
}

// Interface, Eval result: exact_match, classification runs only; exact-match rate 0-100.
#[tokio::test]
async fn the_exact_match_rate_is_reported_for_exact_match_alone() {
    let sandbox = Sandbox::start().await;
    let rows = json!([
        {"expected": {"label": "spam"}, "answer": "Spam."},
        {"expected": {"label": "spam"}, "answer": "ham"},
    ]);

    let exact = scored(&sandbox, "exact_match", rows.clone()).await;
    let other = scored(&sandbox, "field_f1", rows).await;

    assert_eq!(exact["exact_match"], json!(50.0));
    assert_eq!(other.get("exact_match"), None);
    sandbox.stop().await;
}

#[tokio::test]
async fn open_text_without_a_judge_model_is_graded_by_overlap_and_says_so() {
    let sandbox = Sandbox::start().await;
    let rows = json!([{"expected": {"summary": "x y z"}, "answer": "y z x"}]);

    let report = scored(&sandbox, "judge", rows).await;

    assert_eq!(report["rows"][0]["by"], "overlap");
    assert_eq!(
        report["rows"][0]["score"],
        json!(f64::midpoint(2.0 / 3.0, 1.0))
    );
    sandbox.stop().await;
}

// Interface, Task: default_scorer, for example a judge panel for open-ended text.
#[tokio::test]
async fn a_configured_judge_grades_open_text_and_its_unusable_word_leaves_it_to_the_overlap() {
    let server = ModelServer::start();
    let expected = json!({"summary": "x y z"});
    for (verdict, score, by) in [
        ("0.25", 0.25, "model"),
        ("1", 1.0, "model"),
        ("no idea", f64::midpoint(2.0 / 3.0, 1.0), "overlap"),
        ("7", f64::midpoint(2.0 / 3.0, 1.0), "overlap"),
    ] {
        let before = server.seen().await.len();
        let sandbox = sandbox_with(&[server.model("judge", "", says(verdict))]).await;
        let row = json!({"expected": expected, "answer": "y z x"});

        let body = json!({"scorer": "judge", "prompt": "Shorten it.", "rows": [row]});
        let document = sandbox.control("score", body).await;
        scored(&sandbox, "token_f1", json!([row])).await;

        assert_eq!(
            document["rows"][0],
            json!({"score": score, "by": by}),
            "{verdict}"
        );
        // Asked once, and by no other scorer.
        let seen = server.seen().await;
        assert_eq!(seen.len(), before + 1);
        let asked = seen[before]["body"]["messages"].to_string();
        for part in ["Shorten it.", "x y z", "y z x"] {
            assert!(asked.contains(part), "{asked}");
        }
        sandbox.stop().await;
    }
}

// Interface, Eval result: quality_ci_low and quality_ci_high, 95% CI bounds.
#[tokio::test]
async fn the_interval_of_given_scores_is_the_same_for_the_same_seed() {
    let sandbox = Sandbox::start().await;
    let scores: Vec<f64> = (0..30).map(|at| f64::from(at % 7) / 6.0).collect();
    let body = json!({"scores": scores, "seed": 3});

    let one = sandbox.control("score", body.clone()).await;
    let two = sandbox.control("score", body).await;

    assert_eq!(one, two);
    let read = |name: &str| one["interval"][name].as_f64().unwrap();
    assert!(0.0 < read("low") && read("low") < read("mean") && read("mean") < read("high"));
    sandbox.stop().await;
}

#[tokio::test]
async fn a_wrong_request_is_refused_with_its_mistake_named() {
    let sandbox = Sandbox::start().await;
    let row = json!({"expected": {"a": 1}, "answer": {"a": 1}});
    let many: Vec<&Value> = std::iter::repeat_n(&row, 1_001).collect();
    let cases = [
        (
            json!({"scorer": "bleu", "rows": []}),
            "scorer: one of field_f1",
        ),
        (json!({"scorer": "wer", "rows": many}), "rows: 1000 at most"),
        (
            json!({"scores": vec![0.5; 10_001]}),
            "scores: 10000 at most",
        ),
        (
            json!({"scorer": "wer"}),
            "either scorer and rows, or scores",
        ),
        (json!({"rows": []}), "either scorer and rows, or scores"),
        (
            json!({"scores": [1], "rows": []}),
            "either scorer and rows, or scores",
        ),
        (json!({"scores": ["x"]}), "invalid type"),
        (
            json!({"scores": [0.5, 7]}),
            "scores[1] must be a number from 0 to 1",
        ),
        (json!({"scores": [-0.01]}), "scores[0] must be"),
        (json!({"scores": [1.000001, 0]}), "scores[0] must be"),
        (json!({"row": []}), "unknown field `row`"),
        (
            json!({"scorer": "wer", "rows": [{"expected": {}}]}),
            "missing field `answer`",
        ),
    ];
    for (body, mistake) in cases {
        let reply = sandbox.post("/sandbox/score", &[], &body).await;
        assert_eq!(reply.status, 422, "{body}");
        assert!(reply.text().contains(mistake), "{body}: {}", reply.text());
    }
    sandbox.stop().await;
}
