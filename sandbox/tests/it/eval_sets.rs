//! Eval sets: what is accepted, what is refused and why, and which organization sees them.

use crate::{eval_support::*, support::*};
use bursar_sandbox::Options;
use bursar_sandbox::options::Organization;
use serde_json::{Value, json};

fn contacts() -> Vec<Value> {
    let rows = [
        (
            "Ada Ling, Kite Works, ada@kite.example, 555-0101",
            "Ada Ling",
            "Kite Works",
            "ada@kite.example",
            "555-0101",
        ),
        (
            "Call Bo Reed of Mill & Sons: 555-0102 or bo@mill.example",
            "Bo Reed",
            "Mill & Sons",
            "bo@mill.example",
            "555-0102",
        ),
    ];
    rows.iter()
        .map(|(text, name, company, email, phone)| {
            json!({
                "input": {"text": text},
                "expected_output": {"name": name, "company": company, "email": email, "phone": phone},
            })
        })
        .collect()
}

// Interface, POST /v1/eval-sets: items, prompt, task_id, name. Response `{eval_set: EvalSet}`.
#[tokio::test]
async fn a_set_has_the_fields_of_the_interface_and_no_other() {
    let sandbox = Sandbox::start().await;
    let form = Form::default()
        .file("items", jsonl(&contacts()).as_bytes())
        .field("prompt", "Extract the contact.")
        .field("task_id", "contact-extraction")
        .field("name", "Contacts of May");

    let reply = form.post(&sandbox, SETS, "sandbox-key").await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    let set = &reply.json()["eval_set"];
    let id = set["id"].as_str().unwrap();
    assert_eq!(
        *set,
        json!({
            "id": id,
            "task_id": "contact-extraction",
            "name": "Contacts of May",
            "item_count": 2,
            "scoring_strategy": "extraction",
            "prompt": "Extract the contact.",
        })
    );
}

// Interface, Eval set: name: "label; the default is a generic label containing the item count".
#[tokio::test]
async fn a_set_without_a_name_is_named_by_its_item_count() {
    let sandbox = Sandbox::start().await;

    let reply = post_set(&sandbox, None, REPLY, &replies(3)).await;

    assert_eq!(reply.json()["eval_set"]["name"], "Eval set (3 items)");
}

// Interface, POST /v1/eval-sets: items: "file, JSONL; required, non-empty".
#[tokio::test]
async fn rows_of_another_shape_are_refused_with_line_and_reason() {
    let sandbox = Sandbox::start().await;
    let good = contacts()[0].to_string();
    let table: [(Vec<u8>, &str); 6] = [
        (Vec::new(), "items must not be empty"),
        (b"\xff\xfe".to_vec(), "items: line 1: not UTF-8"),
        (
            format!("{good}\nnot json\n").into_bytes(),
            "items: line 2: not JSON (column 2)",
        ),
        (
            format!("{good}\n{{\"input\": {{}}}}\n").into_bytes(),
            "items: line 2: expected_output is missing",
        ),
        (
            br#"{"input": "text", "expected_output": {}}"#.to_vec(),
            "items: line 1: input must be an object",
        ),
        (
            br#"{"input": {}, "expected_output": {}, "weight": 2}"#.to_vec(),
            "items: line 1: unexpected key weight",
        ),
    ];

    for (items, expected) in table {
        let form = Form::default()
            .file("items", &items)
            .field("prompt", "Extract the contact.");
        let reply = form.post(&sandbox, SETS, "sandbox-key").await;
        assert_eq!(reply.status, 422, "{expected}");
        assert_eq!(reply.json(), json!({"detail": expected}));
    }
    let listed = sandbox.get(SETS).await.json();
    assert_eq!(listed, json!({"eval_sets": []}));
}

#[tokio::test]
async fn a_row_that_no_answer_could_be_scored_against_is_refused() {
    let sandbox = Sandbox::start().await;
    let good = replies(1).remove(0);
    for expected in [json!({}), json!({"reply": null})] {
        let bad = json!({"input": good["input"], "expected_output": expected});

        let reply = post_set(&sandbox, Some("general"), REPLY, &[good.clone(), bad]).await;

        assert_eq!(reply.status, 422, "{}", reply.text());
        assert_eq!(
            reply.json()["detail"],
            "items: line 2: expected_output cannot be scored: the expected output holds nothing"
        );
    }
    let listed = sandbox.get(SETS).await.json();
    assert_eq!(listed, json!({"eval_sets": []}));
}

// Interface, Eval set: "For document tasks a row may carry only `expected_output`".
#[tokio::test]
async fn a_row_without_input_is_refused_when_the_task_takes_no_document() {
    let sandbox = Sandbox::start().await;
    let row = json!({"expected_output": contacts()[0]["expected_output"]});

    let reply = post_set(
        &sandbox,
        Some("contact-extraction"),
        "Extract the contact.",
        &[row],
    )
    .await;

    assert_eq!(reply.status, 422);
    assert_eq!(reply.json()["detail"], "items: line 1: input is missing");
}

// Interface, POST /v1/eval-sets: "pins a scoring setup"; Errors 400: unknown task.
#[tokio::test]
async fn an_unknown_task_is_400_and_rows_that_miss_the_tasks_gold_are_422() {
    let sandbox = Sandbox::start().await;

    let unknown = post_set(&sandbox, Some("no-such-task"), REPLY, &replies(1)).await;
    let misfit = post_set(&sandbox, Some("contact-extraction"), REPLY, &replies(1)).await;

    assert_eq!(unknown.status, 400);
    assert_eq!(misfit.status, 422);
    assert_eq!(
        misfit.json()["detail"],
        "items: line 1: expected_output does not meet the schema of contact-extraction"
    );
}

// Interface, POST /v1/eval-sets: prompt: "if it does not line up with the data the set is refused with suggestions".
#[tokio::test]
async fn a_prompt_about_something_else_is_refused_with_prompts_that_are_taken() {
    let sandbox = Sandbox::start().await;

    let refused = post_set(&sandbox, None, "Bake a chocolate cake.", &contacts()).await;

    assert_eq!(refused.status, 422);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.starts_with("prompt does not line up with the data; try \""),
        "{detail}"
    );
    let suggestions: Vec<&str> = detail.split('"').skip(1).step_by(2).collect();
    assert_eq!(suggestions.len(), 2, "{detail}");
    for one in suggestions {
        assert!(one.contains("phone"), "made of the fields: {one}");
        assert_eq!(
            post_set(&sandbox, None, one, &contacts()).await.status,
            200,
            "{one}"
        );
    }
}

// Interface, POST /v1/eval-sets: task_id not required: the task is found from prompt and rows.
#[tokio::test]
async fn the_task_is_found_from_the_prompt_and_the_rows() {
    let sandbox = Sandbox::start().await;
    let task = |reply: Reply| reply.json()["eval_set"]["task_id"].clone();

    let fits = post_set(
        &sandbox,
        None,
        "Extract contact details from the text.",
        &contacts(),
    )
    .await;
    let other_rows = post_set(
        &sandbox,
        None,
        "Extract contact details from the message.",
        &replies(2),
    )
    .await;

    assert_eq!(task(fits), "contact-extraction");
    assert_eq!(task(other_rows), "general");
    // Assumed (eval-task): what a set names can be looked up, though it is in no list.
    let general = sandbox.get("/v1/tasks/general").await;
    assert_eq!(
        (general.status, &general.json()["default_scorer"]),
        (200, &json!("judge"))
    );
    let roster = sandbox.get("/v1/eval/frontier-models?task=general").await;
    assert_eq!(roster.status, 200, "{}", roster.text());
    assert_eq!(roster.json()["frontier_models"][0]["benchmarked"], false);
    let listed = sandbox.get("/v1/tasks").await.json();
    let listed = listed["tasks"].as_array().unwrap();
    assert!(listed.iter().all(|task| task["id"] != "general"));
}

// Interface, Limits: eval set `prompt` at most 500 characters.
#[tokio::test]
async fn a_prompt_has_from_one_to_500_characters() {
    let sandbox = Sandbox::start().await;
    let long = |n: usize| format!("reply {}", "é".repeat(n - 6));

    for (prompt, status) in [(long(500), 200), (long(501), 422), ("  ".to_owned(), 422)] {
        let reply = post_set(&sandbox, None, &prompt, &replies(1)).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
    let none = Form::default().file("items", jsonl(&replies(1)).as_bytes());
    let reply = none.post(&sandbox, SETS, "sandbox-key").await;
    assert_eq!(
        (reply.status, reply.json()["detail"].as_str()),
        (422, Some("prompt is required"))
    );
}

// Interface, Endpoints: "Eval-set creation and blob attachment use `multipart/form-data`".
#[tokio::test]
async fn a_body_that_is_no_form_is_400() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.post(SETS, &[], &json!({"prompt": REPLY})).await;

    assert_eq!(reply.status, 400);
    assert!(reply.json()["detail"].is_string());
}

// Interface, GET /v1/eval-sets and GET /v1/eval-sets/{eval_set_id}: `{eval_sets}`, `{eval_set}`; 404 for an unknown id.
#[tokio::test]
async fn sets_are_listed_and_found_by_id_in_the_order_they_were_made() {
    let sandbox = Sandbox::start().await;
    let mut made = Vec::new();
    for n in 1..=3 {
        made.push(post_set(&sandbox, None, REPLY, &replies(n)).await.json()["eval_set"].clone());
    }

    let listed = sandbox.get(SETS).await.json();
    let one = sandbox
        .get(&format!("{SETS}/{}", made[1]["id"].as_str().unwrap()))
        .await;
    let unknown = sandbox.get(&format!("{SETS}/es_unknown")).await;

    assert_eq!(listed, json!({"eval_sets": made}));
    assert_eq!(one.json(), json!({"eval_set": made[1]}));
    assert_eq!(
        (unknown.status, unknown.json()),
        (404, json!({"detail": "eval set not found"}))
    );
}

// Interface, DELETE /v1/eval-sets/{eval_set_id}: "Deletes the set; no response content is used".
#[tokio::test]
async fn a_deleted_set_is_gone_and_its_runs_are_not() {
    let sandbox = Sandbox::start().await;
    let set = set(&sandbox, None, REPLY, &replies(2)).await;
    let run = start(&sandbox, &set, &["auto"]).await;
    let before = terminal(&sandbox, &run).await;
    let path = format!("{SETS}/{set}");

    let deleted = sandbox.send("DELETE", &path, &[], None).await;
    let again = sandbox.send("DELETE", &path, &[], None).await;

    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    assert_eq!(again.status, 404);
    assert_eq!(sandbox.get(&path).await.status, 404);
    assert_eq!(post_run(&sandbox, &set, &["auto"]).await.status, 404);
    assert_eq!(terminal(&sandbox, &run).await, before);
}

// Interface, Authentication: "The organization scopes balance, eval sets, runs, endpoints, and idempotency keys".
#[tokio::test]
async fn another_organizations_sets_and_runs_do_not_exist() {
    let sandbox = Sandbox::start_with(Options {
        more_organizations: vec![Organization {
            name: "org-2".to_owned(),
            api_key: "second-key".to_owned(),
        }],
        ..Options::default()
    })
    .await;
    let set = set(&sandbox, None, REPLY, &replies(1)).await;
    let run = start(&sandbox, &set, &["auto"]).await;
    let other = [("Authorization", "Bearer second-key")];

    for (method, path) in [
        ("GET", format!("{SETS}/{set}")),
        ("DELETE", format!("{SETS}/{set}")),
        ("GET", format!("{RUNS}/{run}")),
    ] {
        let reply = sandbox.send(method, &path, &other, None).await;
        assert_eq!(reply.status, 404, "{method} {path}");
    }
    let body = json!({"eval_set_id": set, "candidate_model_ids": ["auto"]});
    assert_eq!(sandbox.post(RUNS, &other, &body).await.status, 404);
    let listed = sandbox.send("GET", SETS, &other, None).await.json();
    assert_eq!(listed, json!({"eval_sets": []}));
}

// Interface, Authentication: "A missing or invalid key returns 401".
#[tokio::test]
async fn every_route_of_evals_needs_a_key() {
    let sandbox = Sandbox::start().await;
    let routes = [
        ("POST", "/v1/eval-sets"),
        ("GET", "/v1/eval-sets"),
        ("GET", "/v1/eval-sets/x"),
        ("DELETE", "/v1/eval-sets/x"),
        ("POST", "/v1/eval-sets/x/attach-blob"),
        ("POST", "/v1/eval-sets/x/blob-upload-url"),
        ("POST", "/v1/eval-sets/x/blob-upload-complete"),
        ("POST", "/v1/eval-runs"),
        ("GET", "/v1/eval-runs/x"),
    ];

    for (method, path) in routes {
        let body = (method == "POST").then(|| b"{}".to_vec());
        let reply = sandbox
            .send(method, path, &[("Authorization", "")], body)
            .await;
        assert_eq!(reply.status, 401, "{method} {path}");
    }
}

// Interface, Metering: only inference, runs, comparison and speech bill; a set needs no balance.
#[tokio::test]
async fn making_a_set_is_free() {
    let sandbox = Sandbox::start().await;
    sandbox.control("balance", json!({"micro_usd": 0})).await;

    assert_eq!(
        post_set(&sandbox, None, REPLY, &replies(1)).await.status,
        200
    );
    assert!(sandbox.debits().await.is_empty());
}
