//! Documents of rows: inline, by a signed URL, and what the storage refuses.

use crate::{eval_support::*, support::*};
use bursar_sandbox::Options;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

const FIELD: &str = "document";
const ASK: &str = "Answer the question from the document.";

/// Rows that carry the question and the answer; the document comes after.
fn questions(n: usize) -> Vec<Value> {
    (0..n)
        .map(|at| json!({"input": {"question": format!("What is item {at}?")}, "expected_output": {"answer": "A lamp"}}))
        .collect()
}

async fn document_set(sandbox: &Sandbox) -> String {
    set(sandbox, Some("document-questions"), ASK, &questions(2)).await
}

fn form(idx: &str, field: &str, mime: &str, file: &[u8]) -> Form {
    Form::default()
        .file("file", file)
        .field("idx", idx)
        .field("field_name", field)
        .field("mime", mime)
}

async fn attach(sandbox: &Sandbox, set: &str, form: Form) -> Reply {
    let path = format!("{SETS}/{set}/attach-blob");
    form.post(sandbox, &path, "sandbox-key").await
}

async fn announce(sandbox: &Sandbox, set: &str, body: Value) -> Reply {
    let path = format!("{SETS}/{set}/blob-upload-url");
    sandbox.post(&path, &[], &body).await
}

fn announced(size: Option<u64>) -> Value {
    json!({"idx": 0, "field_name": FIELD, "mime": "application/pdf", "size": size})
}

async fn complete(sandbox: &Sandbox, set: &str, upload: &Value) -> Reply {
    let path = format!("{SETS}/{set}/blob-upload-complete");
    sandbox
        .post(&path, &[], &json!({"upload_id": upload}))
        .await
}

/// PUT to a signed URL, with no bearer key.
async fn put(sandbox: &Sandbox, url: &str, mime: &str, bytes: &[u8]) -> Reply {
    let origin = format!("http://{}", sandbox.address);
    let path = url
        .strip_prefix(&origin)
        .expect("the sandbox's own address");
    let headers = [("Authorization", ""), ("Content-Type", mime)];
    sandbox
        .send("PUT", path, &headers, Some(bytes.to_vec()))
        .await
}

fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes)
        .as_ref()
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect()
}

const PDF: &str = "application/pdf";

// Interface, Document upload to a row: "A file under 5 MiB goes inline through `attach-blob`".
#[tokio::test]
async fn a_small_file_is_attached_to_its_row() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;

    let reply = attach(&sandbox, &set, form("1", FIELD, PDF, b"%PDF-1.7 lamp")).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-sandbox-assumed"), Some("eval-documents"));
    assert_eq!(
        reply.json(),
        json!({
            "eval_set_id": set,
            "idx": 1,
            "field_name": FIELD,
            "mime": PDF,
            "size": 13,
            "sha256": sha256(b"%PDF-1.7 lamp"),
        })
    );
}

// Interface, Limits: inline blob upload threshold: "under 5 MiB inline; larger via signed URL".
#[tokio::test]
async fn from_five_mib_on_a_file_is_sent_to_the_signed_flow() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let most = vec![7; 5 * 1024 * 1024 - 1];
    let over = vec![7; 5 * 1024 * 1024];

    let taken = attach(&sandbox, &set, form("0", FIELD, PDF, &most)).await;
    let refused = attach(&sandbox, &set, form("0", FIELD, PDF, &over)).await;

    assert_eq!(taken.status, 200);
    assert_eq!(refused.status, 413);
    assert!(
        refused.text().contains("blob-upload-url"),
        "{}",
        refused.text()
    );
}

// Interface, Document upload to a row: `idx` = 0-based row index, `field_name` = blob input field, `mime`.
#[tokio::test]
async fn a_document_without_a_place_is_refused_by_the_name_of_the_field() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let table = [
        (form("2", FIELD, PDF, b"x"), 422, "idx must be from 0 to 1"),
        (
            form("-1", FIELD, PDF, b"x"),
            422,
            "idx must be an integer from 0",
        ),
        (
            form("0", "scan", PDF, b"x"),
            422,
            "field_name: the blob input field of document-questions is document",
        ),
        (
            form("0", FIELD, "program/exe", b"x"),
            422,
            "mime must be application/pdf or a type of image, audio or text",
        ),
        (form("0", FIELD, PDF, b""), 422, "file must not be empty"),
        (Form::default().file("file", b"x"), 422, "idx is required"),
    ];

    for (form, status, detail) in table {
        let reply = attach(&sandbox, &set, form).await;
        assert_eq!(
            (reply.status, reply.json()["detail"].as_str()),
            (status, Some(detail))
        );
    }
    let unknown = attach(&sandbox, "es_unknown", form("0", FIELD, PDF, b"x")).await;
    assert_eq!(unknown.status, 404);
    let text = crate::eval_support::set(&sandbox, None, REPLY, &replies(1)).await;
    let no_document = attach(&sandbox, &text, form("0", FIELD, PDF, b"x")).await;
    assert_eq!(no_document.status, 422);
}

// Interface, Document upload to a row: "`blob-upload-url`, then a PUT of the bytes directly to storage at the
// returned signed URL, then `blob-upload-complete`".
#[tokio::test]
async fn a_large_file_goes_to_the_signed_url_without_a_key() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let file = vec![9; 6 * 1024 * 1024];
    let size = u64::try_from(file.len()).unwrap();

    let url = announce(&sandbox, &set, announced(Some(size))).await;
    assert_eq!(url.status, 200, "{}", url.text());
    assert_eq!(url.header("x-sandbox-assumed"), Some("eval-documents"));
    let url = url.json();
    let names: Vec<&str> = url
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    assert_eq!(
        names,
        ["url", "method", "headers", "expires_at", "upload_id"]
    );
    assert_eq!(
        (&url["method"], &url["headers"]),
        (&json!("PUT"), &json!({"Content-Type": PDF}))
    );
    let early = complete(&sandbox, &set, &url["upload_id"]).await;
    let stored = put(&sandbox, url["url"].as_str().unwrap(), PDF, &file).await;
    let done = complete(&sandbox, &set, &url["upload_id"]).await;
    let again = complete(&sandbox, &set, &url["upload_id"]).await;
    let late = put(&sandbox, url["url"].as_str().unwrap(), PDF, &file).await;

    assert_eq!((early.status, stored.status), (409, 200));
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(
        done.json(),
        json!({
            "eval_set_id": set,
            "idx": 0,
            "field_name": FIELD,
            "mime": PDF,
            "size": size,
            "sha256": sha256(&file),
        })
    );
    assert_eq!((again.status, again.json()), (200, done.json()));
    assert_eq!(late.status, 409);
    // Another document takes its place: the old one is not listed any more.
    let other = attach(&sandbox, &set, form("0", FIELD, PDF, b"%PDF-1.4 other")).await;
    let gone = complete(&sandbox, &set, &url["upload_id"]).await;
    assert_eq!((other.status, gone.status), (200, 409), "{}", gone.text());
}

// Interface, Document upload to a row: "at the returned signed URL": no other URL.
#[tokio::test]
async fn a_url_that_was_changed_is_refused() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let url = announce(&sandbox, &set, announced(Some(100))).await.json();
    let other = announce(&sandbox, &set, announced(Some(100))).await.json();
    let (url, other) = (url["url"].as_str().unwrap(), other["url"].as_str().unwrap());
    let query = |url: &str| url.split_once('?').unwrap().1.to_owned();
    let path = url.split_once('?').unwrap().0;
    let flipped = match url.strip_suffix('0') {
        Some(rest) => format!("{rest}1"),
        None => format!("{}0", &url[..url.len() - 1]),
    };
    let changed = [
        flipped,
        url.replace("size=100", "size=900"),
        url.replace("expires=", "expires=9"),
        url.replace("type=application/pdf", "type=image/png"),
        format!("{path}?{}", query(other)),
        path.to_owned(),
        url.replace("signature=", "signature=zz"),
    ];

    for one in &changed {
        let reply = put(&sandbox, one, PDF, b"bytes").await;
        assert_eq!(reply.status, 403, "{one}: {}", reply.text());
        assert!(reply.json()["detail"].is_string());
    }
    assert_eq!(put(&sandbox, url, "image/png", b"bytes").await.status, 403);
    assert_eq!(put(&sandbox, url, PDF, b"bytes").await.status, 200);
}

// Assumed (eval-documents): the URL holds for 15 minutes.
#[tokio::test]
async fn a_url_ends_at_its_expiry() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let made = announce(&sandbox, &set, announced(None)).await.json();
    let url = made["url"].as_str().unwrap();
    let now = sandbox.get("/sandbox/clock").await.json()["unix_s"]
        .as_i64()
        .unwrap();
    let left = made["expires_at"].as_i64().unwrap() - now;
    assert!((899..=900).contains(&left), "{left}");

    assert_eq!(put(&sandbox, url, PDF, b"bytes").await.status, 200);
    sandbox.control("clock", json!({"advance_s": 901})).await;
    let expired = put(&sandbox, url, PDF, b"other").await;

    assert_eq!(expired.status, 403);
    assert!(expired.text().contains("expired"), "{}", expired.text());
    // What arrived in time is there.
    let done = complete(&sandbox, &set, &made["upload_id"]).await;
    assert_eq!(
        (done.status, done.json()["sha256"].as_str()),
        (200, Some(sha256(b"bytes").as_str()))
    );
}

// Interface, Errors 413: not to be retried.
#[tokio::test]
async fn more_bytes_than_were_announced_are_413_and_fewer_are_not_complete() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    let made = announce(&sandbox, &set, announced(Some(5))).await.json();
    let url = made["url"].as_str().unwrap();

    assert_eq!(put(&sandbox, url, PDF, b"123456").await.status, 413);
    assert_eq!(put(&sandbox, url, PDF, b"").await.status, 422);
    assert_eq!(put(&sandbox, url, PDF, b"1234").await.status, 200);
    assert_eq!(
        complete(&sandbox, &set, &made["upload_id"]).await.status,
        409
    );
    assert_eq!(put(&sandbox, url, PDF, b"12345").await.status, 200);
    assert_eq!(
        complete(&sandbox, &set, &made["upload_id"]).await.status,
        200
    );
    let over = announce(&sandbox, &set, announced(Some(50 * 1024 * 1024 + 1))).await;
    assert_eq!(over.status, 413);
}

// Interface, Authentication: "The organization scopes ... eval sets".
#[tokio::test]
async fn an_upload_of_another_set_or_organization_is_not_found() {
    let sandbox = Sandbox::start().await;
    let (one, two) = (document_set(&sandbox).await, document_set(&sandbox).await);
    let made = announce(&sandbox, &one, announced(None)).await.json();

    assert_eq!(
        complete(&sandbox, &two, &made["upload_id"]).await.status,
        404
    );
    assert_eq!(
        complete(&sandbox, &one, &json!("up_unknown")).await.status,
        404
    );
    assert_eq!(complete(&sandbox, &one, &json!(7)).await.status, 422);
}

// The Host of a request is the client's word; a signed URL leads to where the sandbox listens.
#[tokio::test]
async fn the_signed_url_does_not_follow_the_host_header() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;

    // Every request of these tests says `Host: sandbox`.
    let made = announce(&sandbox, &set, announced(None)).await.json();

    let origin = format!("http://{}/storage/", sandbox.address);
    assert!(made["url"].as_str().unwrap().starts_with(&origin), "{made}");
}

// Interface, Task: has_blob_input; POST /v1/eval-runs needs every row's document.
#[tokio::test]
async fn a_run_waits_for_the_documents_of_all_rows_and_for_models_that_see() {
    let sandbox = Sandbox::start().await;
    let set = document_set(&sandbox).await;
    attach(&sandbox, &set, form("1", FIELD, PDF, b"%PDF-1.7 lamp")).await;

    let missing = post_run(&sandbox, &set, &["auto"]).await;
    attach(&sandbox, &set, form("0", FIELD, PDF, b"%PDF-1.7 lamp")).await;
    // Interface, Task: "only vision-capable frontier models can run such tasks".
    let blind = post_run(&sandbox, &set, &["auto", "frontier-e"]).await;
    let run = start(&sandbox, &set, &["auto", "frontier-a"]).await;

    assert_eq!(missing.status, 422);
    assert_eq!(
        missing.json()["detail"],
        "eval_set_id: no document is attached to row 0"
    );
    assert_eq!(blind.status, 422);
    let ended = terminal(&sandbox, &run).await;
    assert_eq!(ended["run"]["status"], "completed", "{ended}");
    assert_eq!(ended["run"]["cost_micro_usd"], billed(&sandbox, &run).await);
}

// Interface, Eval set: "with the blob attached afterwards": a field with something else in it is no blob.
#[tokio::test]
async fn a_row_without_bytes_in_its_document_field_has_no_document() {
    let sandbox = Sandbox::start().await;
    for junk in [json!(5), json!(""), json!({}), json!("not a data url")] {
        let mut rows = questions(2);
        rows[0]["input"][FIELD] = json!("data:application/pdf;base64,JVBERi0xLjcgbGFtcA==");
        rows[1]["input"][FIELD] = junk.clone();
        let set = set(&sandbox, Some("document-questions"), ASK, &rows).await;

        let refused = post_run(&sandbox, &set, &["auto"]).await;

        assert_eq!(refused.status, 422, "{junk}: {}", refused.text());
        assert_eq!(
            refused.json()["detail"],
            "eval_set_id: no document is attached to row 1"
        );
        attach(&sandbox, &set, form("1", FIELD, PDF, b"%PDF-1.7 lamp")).await;
        let run = start(&sandbox, &set, &["auto"]).await;
        assert_eq!(terminal(&sandbox, &run).await["run"]["status"], "completed");
    }
}

#[tokio::test]
async fn documents_and_open_uploads_survive_a_restart() {
    let directory = std::env::temp_dir().join(format!("sandbox-documents-{}", std::process::id()));
    let options = || Options {
        state_dir: Some(directory.clone()),
        ..Options::default()
    };
    let sandbox = Sandbox::start_with(options()).await;
    let set = document_set(&sandbox).await;
    attach(&sandbox, &set, form("0", FIELD, PDF, b"%PDF-1.7 first")).await;
    let made = announce(
        &sandbox,
        &set,
        json!({"idx": 1, "field_name": FIELD, "mime": PDF}),
    )
    .await
    .json();
    put(
        &sandbox,
        made["url"].as_str().unwrap(),
        PDF,
        b"%PDF-1.7 second",
    )
    .await;
    let blobs = || std::fs::read_dir(directory.join("blobs")).unwrap().count();
    std::fs::write(directory.join("blobs/left-by-a-kill.part"), b"half").unwrap();
    assert_eq!(blobs(), 3);
    sandbox.stop().await;

    let sandbox = Sandbox::start_with(options()).await;

    assert_eq!(sandbox.get(&format!("{SETS}/{set}")).await.status, 200);
    assert_eq!(blobs(), 2);
    let done = complete(&sandbox, &set, &made["upload_id"]).await;
    assert_eq!(done.json()["sha256"], sha256(b"%PDF-1.7 second"));
    let run = start(&sandbox, &set, &["auto"]).await;
    assert_eq!(terminal(&sandbox, &run).await["run"]["status"], "completed");
    // The bytes go with their set.
    let deleted = sandbox
        .send("DELETE", &format!("{SETS}/{set}"), &[], None)
        .await;
    assert_eq!((deleted.status, blobs()), (204, 0));
    sandbox.stop().await;
    std::fs::remove_dir_all(directory).unwrap();
}
