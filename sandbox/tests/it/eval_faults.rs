//! Faults on the routes of sets and documents: what fails leaves nothing, what was done is there.
//!
//! Promise: a status in the place of the work changes no state; a connection cut after the work changes
//! nothing of what was done.

use crate::{eval_support::*, support::*};
use serde_json::{Value, json};

const PDF: &str = "application/pdf";
const FIELD: &str = "document";

fn set_form() -> Form {
    let rows = [json!({"input": {"question": "What?"}, "expected_output": {"answer": "A lamp"}})];
    Form::default()
        .file("items", jsonl(&rows).as_bytes())
        .field("prompt", "Answer the question from the document.")
        .field("task_id", "document-questions")
}

fn document_form() -> Form {
    Form::default()
        .file("file", b"%PDF-1.7 lamp")
        .field("idx", "0")
        .field("field_name", FIELD)
        .field("mime", PDF)
}

async fn fault(sandbox: &Sandbox, method: &str, path: &str, fault: Value) {
    let rule = json!({"match": {"method": method, "path": path}, "times": 1, "fault": fault});
    sandbox.control("faults", rule).await;
}

async fn new_set(sandbox: &Sandbox) -> Reply {
    set_form().post(sandbox, SETS, "sandbox-key").await
}

async fn sets(sandbox: &Sandbox) -> Vec<Value> {
    let listed = sandbox.get(SETS).await.json();
    listed["eval_sets"].as_array().unwrap().clone()
}

// Interface, Errors 503: "a serving backend … is warming or briefly unavailable": nothing is half done.
#[tokio::test]
async fn a_status_in_the_place_of_the_work_changes_no_set_and_no_document() {
    let sandbox = Sandbox::start().await;
    fault(
        &sandbox,
        "POST",
        SETS,
        json!({"status": 503, "retry_after": "2"}),
    )
    .await;
    let refused = new_set(&sandbox).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("2"))
    );
    assert!(sets(&sandbox).await.is_empty());

    let id = new_set(&sandbox).await.json()["eval_set"]["id"].clone();
    let path = format!("{SETS}/{}", id.as_str().unwrap());
    let attach = format!("{path}/attach-blob");
    fault(&sandbox, "POST", &attach, json!({"status": 500})).await;
    let refused = document_form().post(&sandbox, &attach, "sandbox-key").await;
    assert_eq!(refused.status, 500);
    let run = post_run(&sandbox, id.as_str().unwrap(), &["auto"]).await;
    assert_eq!(run.status, 422, "no document is attached: {}", run.text());

    let announce = format!("{path}/blob-upload-url");
    let place = json!({"idx": 0, "field_name": FIELD, "mime": PDF});
    fault(
        &sandbox,
        "POST",
        &announce,
        json!({"status": 429, "retry_after": "15"}),
    )
    .await;
    assert_eq!(sandbox.post(&announce, &[], &place).await.status, 429);
    let made = sandbox.post(&announce, &[], &place).await.json();
    let url = made["url"].as_str().unwrap();
    let storage = &url[url.find("/storage/").unwrap()..];
    let headers = [("Authorization", ""), ("Content-Type", PDF)];
    let stored = sandbox
        .send("PUT", storage, &headers, Some(b"%PDF-1.7 lamp".to_vec()))
        .await;
    assert_eq!(stored.status, 200);
    let complete = format!("{path}/blob-upload-complete");
    let upload = json!({"upload_id": made["upload_id"]});
    fault(&sandbox, "POST", &complete, json!({"warm_up": true})).await;
    assert_eq!(sandbox.post(&complete, &[], &upload).await.status, 503);
    let run = post_run(&sandbox, id.as_str().unwrap(), &["auto"]).await;
    assert_eq!(
        run.status,
        422,
        "the upload is not complete: {}",
        run.text()
    );
    assert_eq!(sandbox.post(&complete, &[], &upload).await.status, 200);

    fault(&sandbox, "DELETE", &path, json!({"status": 502})).await;
    assert_eq!(sandbox.send("DELETE", &path, &[], None).await.status, 502);
    assert_eq!(sets(&sandbox).await.len(), 1);
    assert_eq!(sandbox.books().await["debits_made"], 0);
}

#[tokio::test]
async fn an_answer_that_is_cut_after_the_work_leaves_the_work_done() {
    let sandbox = Sandbox::start().await;
    fault(&sandbox, "POST", SETS, json!({"cut_before_head": true})).await;
    assert_eq!(new_set(&sandbox).await.status, 0);
    let made = sets(&sandbox).await;
    assert_eq!(
        made.len(),
        1,
        "the set is there, its client does not know it"
    );

    let path = format!("{SETS}/{}", made[0]["id"].as_str().unwrap());
    let attach = format!("{path}/attach-blob");
    fault(&sandbox, "POST", &attach, json!({"cut_before_head": true})).await;
    let cut = document_form().post(&sandbox, &attach, "sandbox-key").await;
    assert_eq!(cut.status, 0);
    let run = start(&sandbox, made[0]["id"].as_str().unwrap(), &["auto"]).await;
    assert_eq!(terminal(&sandbox, &run).await["run"]["status"], "completed");

    fault(&sandbox, "DELETE", &path, json!({"cut_before_head": true})).await;
    assert_eq!(sandbox.send("DELETE", &path, &[], None).await.status, 0);
    assert!(sets(&sandbox).await.is_empty());
}

#[tokio::test]
async fn a_held_set_is_made_when_it_is_released() {
    let sandbox = Sandbox::start().await;
    fault(&sandbox, "POST", SETS, json!({"hold": "a"})).await;
    let making = new_set(&sandbox);
    let looking = async {
        sandbox
            .until("requests", |log| log["by_route"]["POST /v1/eval-sets"] == 1)
            .await;
        let before = sets(&sandbox).await.len();
        sandbox.control("release", json!({"hold": "a"})).await;
        before
    };

    let (made, before) = tokio::join!(making, looking);

    assert_eq!((before, made.status), (0, 200));
    assert_eq!(sets(&sandbox).await.len(), 1);
}
