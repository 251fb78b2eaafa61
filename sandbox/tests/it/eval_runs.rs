//! Eval runs: their life, their money, their results.

use crate::{eval_support::*, support::*};
use serde_json::{Value, json};

/// Slows down the next run.
async fn pace(sandbox: &Sandbox, fault: Value) {
    let rule = json!({"match": {"method": "POST", "path": RUNS}, "fault": fault});
    sandbox.control("faults", rule).await;
}

// Interface, Eval run: queued, running, evaluating, completed; "Results are populated once the run is terminal".
#[tokio::test]
async fn a_run_goes_from_queued_over_running_and_evaluating_to_completed() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(4)).await;
    pace(
        &sandbox,
        json!({"hold_after_chunks": 2, "hold_chunks_name": "half"}),
    )
    .await;

    let created = post_run(&sandbox, &set, &["auto"]).await;
    let id = created.json()["run_id"].as_str().unwrap().to_owned();
    assert_eq!(created.json(), json!({"run_id": id, "status": "queued"}));

    let running = when(&sandbox, &id, |run| {
        run["cost_micro_usd"] != 0 && run["status"] == "running"
    })
    .await;
    assert_eq!(running["results"], json!([]));
    assert_eq!(running["run"]["error_detail"], Value::Null);
    sandbox.control("release", json!({"hold": "half"})).await;

    let ended = terminal(&sandbox, &id).await;
    assert_eq!(
        ended["run"],
        json!({
            "id": id,
            "eval_set_id": set,
            "status": "completed",
            "candidate_models": ["auto"],
            "error_detail": null,
            "cost_micro_usd": billed(&sandbox, &id).await,
        })
    );

    pace(&sandbox, json!({"hold_chunks_name": "scores"})).await;
    let second = start(&sandbox, &set, &["auto"]).await;
    let evaluating = when(&sandbox, &second, |run| run["status"] == "evaluating").await;
    assert_eq!(evaluating["results"], json!([]));
    assert_eq!(
        evaluating["run"]["cost_micro_usd"],
        billed(&sandbox, &second).await
    );
    sandbox.control("release", json!({"hold": "scores"})).await;
    assert_eq!(
        terminal(&sandbox, &second).await["run"]["status"],
        "completed"
    );
}

// Interface, Eval result (one per candidate).
#[tokio::test]
async fn each_candidate_has_one_result_with_the_fields_of_the_interface() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(5)).await;

    let run = start(&sandbox, &set, &["frontier-b", "auto"]).await;
    let ended = terminal(&sandbox, &run).await;

    let results = ended["results"].as_array().unwrap();
    let names: Vec<&str> = results[0]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        [
            "model_id",
            "kind",
            "quality_mean",
            "quality_ci_low",
            "quality_ci_high",
            "mean_cost_micro_usd",
            "n_succeeded",
            "error_count"
        ]
    );
    assert_eq!(
        (&results[0]["model_id"], &results[0]["kind"]),
        (&json!("frontier-b"), &json!("frontier"))
    );
    assert_eq!(results[1]["model_id"], "auto");
    // Interface, Eval result: kind "unset on `auto` rows"; exact_match "classification runs only".
    assert_eq!(results[1].get("kind"), None);
    for result in results {
        let quality = |name: &str| result[name].as_f64().unwrap();
        assert!(
            quality("quality_ci_low") <= quality("quality_mean"),
            "{result}"
        );
        assert!(
            quality("quality_mean") <= quality("quality_ci_high"),
            "{result}"
        );
        assert!((0.0..=1.0).contains(&quality("quality_mean")), "{result}");
        assert_eq!(
            (&result["n_succeeded"], &result["error_count"]),
            (&json!(5), &json!(0))
        );
    }
}

// Interface, POST /v1/eval-runs: "`auto` plus zero or more frontier ids".
#[tokio::test]
async fn candidates_are_auto_and_models_of_the_roster_each_once() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    let table = [
        (
            json!(["auto", "no-such-model"]),
            400,
            "candidate_model_ids[1]: unknown model",
        ),
        (
            json!(["auto", "auto"]),
            422,
            "candidate_model_ids[1]: auto stands twice",
        ),
        (
            json!(["frontier-a"]),
            422,
            "candidate_model_ids must hold auto",
        ),
        (json!([]), 422, "candidate_model_ids must hold auto"),
        (
            json!("auto"),
            422,
            "candidate_model_ids must be an array of strings",
        ),
        (
            json!(["auto", 7]),
            422,
            "candidate_model_ids must be an array of strings",
        ),
        (Value::Null, 422, "candidate_model_ids is required"),
    ];

    for (candidates, status, detail) in table {
        let body = json!({"eval_set_id": set, "candidate_model_ids": candidates});
        let reply = sandbox.post(RUNS, &[], &body).await;
        assert_eq!(
            (reply.status, reply.json()),
            (status, json!({"detail": detail}))
        );
    }
    let none = sandbox
        .post(RUNS, &[], &json!({"candidate_model_ids": ["auto"]}))
        .await;
    assert_eq!(
        (none.status, none.json()["detail"].as_str()),
        (422, Some("eval_set_id is required"))
    );
    let unknown = post_run(&sandbox, "es_unknown", &["auto"]).await;
    assert_eq!(
        (unknown.status, unknown.json()["detail"].as_str()),
        (404, Some("eval set not found"))
    );
    let malformed = sandbox.send("POST", RUNS, &[], Some(b"{".to_vec())).await;
    assert_eq!(malformed.status, 400);
    assert!(sandbox.debits().await.is_empty());
}

// Interface, GET /v1/eval-runs/{run_id}: "404 for an unknown id".
#[tokio::test]
async fn an_unknown_run_is_404() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.get(&format!("{RUNS}/run_unknown")).await;

    assert_eq!(
        (reply.status, reply.json()),
        (404, json!({"detail": "eval run not found"}))
    );
}

// Interface, POST /v1/eval-runs: "an insufficient balance returns 402 before any work is billed".
#[tokio::test]
async fn an_empty_balance_is_402_before_any_work() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    let reply = post_run(&sandbox, &set, &["auto"]).await;

    assert_eq!(reply.status, 402);
    assert!(sandbox.debits().await.is_empty());
}

// Interface, Eval run status: "A failed run carries `error_detail`"; cost_micro_usd: "raw billed total".
#[tokio::test]
async fn a_run_whose_money_ends_on_the_way_fails_and_keeps_what_was_billed_and_scored() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(6)).await;
    pace(
        &sandbox,
        json!({"hold_after_chunks": 4, "hold_chunks_name": "broke"}),
    )
    .await;
    let run = start(&sandbox, &set, &["auto", "frontier-a"]).await;
    when(&sandbox, &run, |run| run["cost_micro_usd"] != 0).await;
    while debits_of(&sandbox, &run).await.len() < 4 {
        tokio::task::yield_now().await;
    }

    sandbox.control("balance", json!({"micro_usd": 0})).await;
    sandbox.control("release", json!({"hold": "broke"})).await;
    let ended = terminal(&sandbox, &run).await;

    assert_eq!(ended["run"]["status"], "failed");
    assert_eq!(
        ended["run"]["error_detail"],
        "the organization's balance is empty after 4 of 12 answers"
    );
    assert_eq!(ended["run"]["cost_micro_usd"], billed(&sandbox, &run).await);
    // Rows first: both candidates answered the same two rows.
    for result in ended["results"].as_array().unwrap() {
        assert_eq!(result["n_succeeded"], 2, "{ended}");
    }
}

// Interface, Eval result: mean_cost_micro_usd: "average cost per item, micro-USD, never floored".
#[tokio::test]
async fn costs_are_the_books_and_their_mean_is_rounded_up() {
    let sandbox = Sandbox::start().await;
    let mut rows = replies(7);
    // One row costs more than the others, so that no sum is seven times something.
    rows[3]["input"]["message"] =
        json!("The box was open and the lamp in it was broken. ".repeat(9));
    let set = set(&sandbox, None, REPLY, &rows).await;

    let run = start(&sandbox, &set, &["auto", "frontier-d", "frontier-e"]).await;
    let ended = terminal(&sandbox, &run).await;

    let debits = debits_of(&sandbox, &run).await;
    let total: i64 = debits.iter().map(|(_, amount)| amount).sum();
    let mut uneven = 0;
    assert_eq!(
        (debits.len(), &ended["run"]["cost_micro_usd"]),
        (21, &json!(total))
    );
    for result in ended["results"].as_array().unwrap() {
        let model = format!("/{}", result["model_id"].as_str().unwrap());
        let cost: i64 = debits
            .iter()
            .filter(|(id, _)| id.ends_with(&model))
            .map(|(_, n)| n)
            .sum();
        assert_eq!(result["mean_cost_micro_usd"], (cost + 6) / 7, "{result}");
        uneven += i64::from(cost % 7 != 0);
    }
    assert!(uneven > 0, "nothing was there to be rounded: {ended}");
    let cost = |at: usize| {
        ended["results"][at]["mean_cost_micro_usd"]
            .as_i64()
            .unwrap()
    };
    assert!(
        cost(0) < cost(2) && cost(2) < cost(1),
        "each at its own price: {ended}"
    );
    let books = sandbox.books().await;
    assert_eq!(books["debited_micro_usd"], total);
}

// Interface, Eval result: error_count: "rows that errored"; Metering: "A request or turn that fails bills nothing".
#[tokio::test]
async fn a_row_that_errors_is_counted_and_bills_nothing() {
    let sandbox = Sandbox::start().await;
    let mut rows = replies(3);
    // Beyond the context window.
    rows[1]["input"]["message"] = json!("word ".repeat(140_000));
    let set = set(&sandbox, None, REPLY, &rows).await;

    let run = start(&sandbox, &set, &["auto"]).await;
    let ended = terminal(&sandbox, &run).await;

    assert_eq!(ended["run"]["status"], "completed");
    let result = &ended["results"][0];
    assert_eq!(
        (&result["n_succeeded"], &result["error_count"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(debits_of(&sandbox, &run).await.len(), 2);
}

#[tokio::test]
async fn a_run_without_a_scored_row_is_failed() {
    let sandbox = Sandbox::start().await;
    let mut rows = replies(1);
    rows[0]["input"]["message"] = json!("word ".repeat(140_000));
    let set = set(&sandbox, None, REPLY, &rows).await;

    let run = start(&sandbox, &set, &["auto"]).await;
    let ended = terminal(&sandbox, &run).await;

    assert_eq!(
        (&ended["run"]["status"], &ended["run"]["error_detail"]),
        (&json!("failed"), &json!("no row could be scored"))
    );
    assert_eq!(ended["results"][0]["error_count"], 1);
}

// Interface, Errors 409: "transient lock or contention".
#[tokio::test]
async fn a_set_cannot_change_or_go_while_a_run_reads_it() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(2)).await;
    pace(
        &sandbox,
        json!({"hold_after_chunks": 1, "hold_chunks_name": "read"}),
    )
    .await;
    let run = start(&sandbox, &set, &["auto"]).await;
    let path = format!("{SETS}/{set}");

    let early = sandbox.send("DELETE", &path, &[], None).await;
    sandbox.control("release", json!({"hold": "read"})).await;
    terminal(&sandbox, &run).await;
    let late = sandbox.send("DELETE", &path, &[], None).await;

    assert_eq!((early.status, late.status), (409, 204));
}

// Interface, Idempotency-Key: eval runs are not among the routes that honor it.
#[tokio::test]
async fn an_idempotency_key_is_ignored_and_each_post_is_a_run() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    let body = json!({"eval_set_id": set, "candidate_model_ids": ["auto"]});
    let key = [("Idempotency-Key", "same")];

    let first = sandbox.post(RUNS, &key, &body).await;
    let second = sandbox.post(RUNS, &key, &body).await;

    assert_eq!(second.header("idempotent-replayed"), None);
    let (first, second) = (
        first.json()["run_id"].clone(),
        second.json()["run_id"].clone(),
    );
    assert_ne!(first, second);
    for run in [first, second] {
        terminal(&sandbox, run.as_str().unwrap()).await;
    }
    assert_eq!(sandbox.debits().await.len(), 2);
}

// Assumed (eval-limits): 4 runs at work, 50 unfinished in an organization, then 429.
#[tokio::test]
async fn runs_wait_in_a_queue_with_an_end() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    let rule = json!({
        "match": {"method": "POST", "path": RUNS},
        "times": 0,
        "fault": {"hold_after_chunks": 1, "hold_chunks_name": "all"},
    });
    sandbox.control("faults", rule).await;
    let mut runs = Vec::new();
    for _ in 0..50 {
        runs.push(start(&sandbox, &set, &["auto"]).await);
    }

    let over = post_run(&sandbox, &set, &["auto"]).await;
    when(&sandbox, &runs[3], |run| run["status"] == "running").await;
    let queued = sandbox.get(&format!("{RUNS}/{}", runs[4])).await;

    assert_eq!((over.status, over.header("retry-after")), (429, Some("5")));
    assert_eq!(over.header("x-sandbox-assumed"), Some("eval-limits"));
    assert!(
        over.text().contains("unfinished eval runs"),
        "{}",
        over.text()
    );
    assert_eq!(queued.json()["run"]["status"], "queued");
    assert_eq!(
        queued.header("x-sandbox-assumed"),
        Some("eval-run-progress")
    );
    sandbox.control("release", json!({"hold": "all"})).await;
    for run in &runs {
        assert_eq!(terminal(&sandbox, run).await["run"]["status"], "completed");
    }
}

#[tokio::test]
async fn a_reset_ends_the_runs_and_forgets_the_sets() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(3)).await;
    pace(
        &sandbox,
        json!({"hold_after_chunks": 1, "hold_chunks_name": "reset"}),
    )
    .await;
    let run = start(&sandbox, &set, &["auto"]).await;
    when(&sandbox, &run, |run| run["cost_micro_usd"] != 0).await;

    sandbox.control("reset", json!({})).await;
    sandbox.control("release", json!({"hold": "reset"})).await;

    assert_eq!(sandbox.get(SETS).await.json(), json!({"eval_sets": []}));
    assert_eq!(sandbox.get(&format!("{RUNS}/{run}")).await.status, 404);
    assert!(sandbox.debits().await.is_empty());
}
