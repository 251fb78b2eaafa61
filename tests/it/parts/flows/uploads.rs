//! Uploads: read once, sent once whole, never sent in part; and the signed way past bursar.

use std::time::Duration;

use bursar::ledger::entry::{InDoubt, State};
use serde_json::{Value, json};

use crate::support::daemon::Daemon;
use crate::support::origin::json as answer_json;
use crate::support::{Bursar, Origin, Sandbox, Step, Wire, eventually};

use super::{
    FORM, SETS, TRANSCRIPTIONS, ask, fault, form, head, in_doubt, received, send_bytes, stage,
};

const MIB: usize = 1024 * 1024;
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A form for a set of rows with that many bytes of text each.
fn eval_set(rows: usize, bytes: usize) -> Vec<u8> {
    let text = format!("Call Ada Ling of Kite Works: {}", "x".repeat(bytes));
    let contact = json!({
        "name": "Ada Ling",
        "company": "Kite Works",
        "email": "ada@kite.example",
        "phone": "555-0101",
    });
    let line = json!({"input": {"text": text}, "expected_output": contact});
    let items = format!("{line}\n").repeat(rows);
    let texts = [
        ("prompt", "Extract the contact."),
        ("task_id", "contact-extraction"),
    ];
    form(&texts, &[("items", items.as_bytes())])
}

/// A set whose rows wait for their documents.
async fn document_set(bursar: &Bursar) -> String {
    let line = json!({
        "input": {"question": "What is it?"},
        "expected_output": {"answer": "A lamp"},
    });
    let texts = [
        ("prompt", "Answer the question from the document."),
        ("task_id", "document-questions"),
    ];
    let items = format!("{line}\n{line}\n");
    let body = form(&texts, &[("items", items.as_bytes())]);
    let made = send_bytes(bursar, SETS, &[FORM], &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let id = made.json()["eval_set"]["id"].as_str().map(str::to_owned);
    id.expect("an id")
}

fn document() -> Vec<u8> {
    let texts = [
        ("idx", "0"),
        ("field_name", "document"),
        ("mime", "application/pdf"),
    ];
    form(
        &texts,
        &[("file", &[b"%PDF-1.7 ".as_slice(), &vec![7; MIB]].concat())],
    )
}

/// A recording of the sandbox's own, as the body of a transcription.
async fn recording(bursar: &Bursar) -> Vec<u8> {
    let text = json!({"text": "The river is wide."});
    let spoken = ask(bursar, "/v1/audio/speech", &[], &text).await;
    assert_eq!(spoken.status, 200, "{}", spoken.text());
    let audio = spoken.json()["audio_base64"].clone();
    json!({"audio_base64": audio}).to_string().into_bytes()
}

/// The three uploads: path, content type, body.
async fn uploads(bursar: &Bursar) -> [(String, (&'static str, &'static str), Vec<u8>); 3] {
    let set = document_set(bursar).await;
    [
        (SETS.to_owned(), FORM, eval_set(4, 100_000)),
        (format!("{SETS}/{set}/attach-blob"), FORM, document()),
        (TRANSCRIPTIONS.to_owned(), JSON, recording(bursar).await),
    ]
}

/// What the sandbox received of this upload.
async fn arrived(sandbox: &Sandbox, path: &str, length: usize) -> Vec<Value> {
    let mut seen = received(sandbox, "POST", path).await;
    seen.retain(|line| line["body_bytes"] == length);
    seen
}

#[tokio::test]
async fn a_set_of_megabytes_is_made_once() {
    let (sandbox, bursar) = stage().await;
    let body = eval_set(200, 20_000);
    assert!(body.len() > 3 * MIB, "{}", body.len());
    let made = send_bytes(&bursar, SETS, &[FORM], &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(made.json()["eval_set"]["item_count"], 200);
    assert_eq!(received(&sandbox, "POST", SETS).await.len(), 1);
    assert_eq!(arrived(&sandbox, SETS, body.len()).await.len(), 1);
}

/// Slowly, in chunks, or with a question before: nothing is sent before all of it is here.
#[tokio::test]
async fn an_upload_is_sent_when_it_is_whole_however_it_comes() {
    let (sandbox, bursar) = stage().await;
    for (path, kind, body) in uploads(&bursar).await {
        let before = received(&sandbox, "POST", &path).await.len();
        let (first, rest) = body.split_at(body.len() / 2);
        let mut slow = bursar.connect().await;
        slow.send(head(&path, &[kind], body.len())).await;
        slow.send(first).await;
        let mut asking = bursar.connect().await;
        let expect = ("Expect", "100-continue");
        asking.send(head(&path, &[kind, expect], body.len())).await;
        assert_eq!(asking.head().await.status, 100, "{path}");
        let mut chunked = bursar.connect().await;
        let framing = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\n{}: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            kind.0, kind.1
        );
        chunked.send(framing).await;
        send_chunk(&mut chunked, first).await;
        assert_eq!(
            received(&sandbox, "POST", &path).await.len(),
            before,
            "{path}"
        );

        slow.send(rest).await;
        asking.send(&body).await;
        send_chunk(&mut chunked, rest).await;
        chunked.send("0\r\n\r\n").await;
        for (name, wire) in [
            ("slow", &mut slow),
            ("asking", &mut asking),
            ("chunked", &mut chunked),
        ] {
            let answer = wire.answer().await;
            assert_eq!(answer.status, 200, "{path} {name}: {}", answer.text());
        }
        let seen = arrived(&sandbox, &path, body.len()).await;
        assert_eq!(seen.len(), 3, "{path}: each once and whole");
        let same = seen
            .iter()
            .all(|one| one["body_sha256"] == seen[0]["body_sha256"]);
        assert!(same, "{path}: the same bytes");
        for line in seen {
            let names = line["header_names"].as_array().expect("names");
            assert!(!names.contains(&json!("expect")), "{path}");
            assert!(!names.contains(&json!("idempotency-key")), "{path}");
        }
    }
}

async fn send_chunk(wire: &mut Wire, bytes: &[u8]) {
    wire.send(format!("{:x}\r\n", bytes.len())).await;
    wire.send(bytes).await;
    wire.send("\r\n").await;
}

/// The work was done and its answer lost: without a key a repeat would do it again.
#[tokio::test]
async fn an_upload_that_was_sent_whole_is_not_sent_again() {
    let (sandbox, bursar) = stage().await;
    for (path, kind, body) in uploads(&bursar).await {
        for status in [502, 500] {
            let broken = match status {
                502 => json!({"cut_before_head": true}),
                status => json!({"status": status}),
            };
            let before = received(&sandbox, "POST", &path).await.len();
            fault(&sandbox, &path, broken).await;
            let answer = send_bytes(&bursar, &path, &[kind], &body).await;
            assert_eq!(answer.status, status, "{path}");
            assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
            let after = received(&sandbox, "POST", &path).await.len();
            assert_eq!(after, before + 1, "{path}: once");
            if path == TRANSCRIPTIONS {
                let state = match status {
                    502 => in_doubt(InDoubt::NoResponse),
                    _ => State::Failed,
                };
                assert_eq!(bursar.entry_of(&answer).state, state);
            }
        }
    }
}

/// "fewer than all bytes handed to the kernel count as *not sent*": tried again, and then whole.
#[tokio::test]
async fn an_upload_that_was_not_sent_whole_is_sent_again() {
    let body = form(&[], &[("file", &vec![7; 16 * MIB])]);
    for path in [SETS, "/v1/eval-sets/es-1/attach-blob"] {
        let origin = Origin::start([Step::Answer(answer_json(200, &[], "{}"))]).await;
        origin.reset_before_body(2);
        let bursar = Bursar::before(&origin.url()).await;
        let answer = send_bytes(&bursar, path, &[FORM], &body).await;
        assert_eq!(answer.status, 200, "{path}");
        let sizes: Vec<usize> = origin.received().iter().map(|one| one.body.len()).collect();
        assert_eq!(sizes, [0, 0, body.len()], "{path}");
        assert!(origin.received()[2].body == body, "{path}: the same bytes");
    }
}

#[tokio::test]
async fn an_upload_whose_app_leaves_in_the_middle_is_not_sent() {
    let (sandbox, bursar) = stage().await;
    let mut turned_down = 0;
    for (path, kind, body) in uploads(&bursar).await {
        let before = received(&sandbox, "POST", &path).await.len();
        let entries = bursar.entries().len();
        for is_reset in [false, true] {
            let mut wire = match is_reset {
                true => Wire::tcp_that_resets(bursar.address).await,
                false => bursar.connect().await,
            };
            wire.send(head(&path, &[kind], body.len())).await;
            wire.send(&body[..body.len() / 2]).await;
        }
        turned_down += 2;
        eventually("both to be turned down", || async {
            let counted = bursar.metric("bursar_requests_total", "status=\"400\"");
            (counted >= f64::from(turned_down)).then_some(())
        })
        .await;
        assert_eq!(
            received(&sandbox, "POST", &path).await.len(),
            before,
            "{path}"
        );
        assert_eq!(bursar.entries().len(), entries, "{path}: no entry");
    }
}

#[tokio::test]
async fn an_upload_of_31_mb_is_refused_here_and_not_retried() {
    let (sandbox, bursar) = stage().await;
    for (path, kind) in [
        (SETS, FORM),
        ("/v1/eval-sets/es-1/attach-blob", FORM),
        (TRANSCRIPTIONS, JSON),
    ] {
        let mut wire = bursar.connect().await;
        wire.send(head(path, &[kind], 31 * MIB)).await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, 413, "{path}");
        assert_eq!(answer.code(), Some("body_too_large"), "{path}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
        assert_eq!(received(&sandbox, "POST", path).await.len(), 0, "{path}");
    }
    assert!(bursar.entries().is_empty());
}

/// One copy of a body is held, and the smaller one that it grew from while it arrived.
#[tokio::test]
async fn an_upload_of_30_mb_costs_little_more_than_its_size() {
    let origin = Origin::always(Step::Answer(answer_json(200, &[], "{}"))).await;
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &[]).await;
    let upload = |bytes: usize| {
        let body = form(&[], &[("items", &vec![b'x'; bytes])]);
        let daemon = &daemon;
        async move {
            let mut wire = daemon.connect().await;
            wire.send(head(SETS, &[FORM], body.len())).await;
            wire.send(&body).await;
            assert_eq!(wire.answer().await.status, 200);
        }
    };
    upload(1024).await;
    let before = daemon.peak_kib();
    upload(29 * MIB).await;
    let sizes: Vec<usize> = origin.received().iter().map(|one| one.body.len()).collect();
    assert!(
        sizes.len() == 2 && sizes[1] > 29 * MIB,
        "{sizes:?}: once, whole"
    );
    let grown = daemon.peak_kib().saturating_sub(before);
    assert!(grown > 20 * 1024, "the body was in memory: {grown} KiB");
    assert!(grown < 48 * 1024, "{grown} KiB for 29 MiB");
    daemon.terminate().await;
}

/// The URL is signed for the service's own host: the file is sent there without a key, past bursar,
/// which relays only the request for the URL and the confirmation.
#[tokio::test]
async fn a_large_document_goes_to_its_signed_url_past_bursar() {
    let (sandbox, bursar) = stage().await;
    let set = document_set(&bursar).await;
    let file = vec![9_u8; 6 * MIB];
    let wanted = json!({
        "idx": 1,
        "field_name": "document",
        "mime": "application/pdf",
        "size": file.len(),
    });
    let path = format!("{SETS}/{set}/blob-upload-url");
    let signed = ask(&bursar, &path, &[], &wanted).await;
    assert_eq!(signed.status, 200, "{}", signed.text());
    let signed = signed.json();
    let url = signed["url"].as_str().expect("a url");
    let target = url
        .strip_prefix(&sandbox.url())
        .expect("the service's host");

    // Through bursar it does not go: no route of the interface is a PUT.
    let mut wire = bursar.connect().await;
    wire.send(format!(
        "PUT {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/pdf\r\nContent-Length: 1\r\n\r\nx"
    ))
    .await;
    let refused = wire.answer().await;
    assert_eq!(
        (refused.status, refused.code()),
        (405, Some("method_refused"))
    );

    let put = reqwest::Client::new()
        .put(url)
        .timeout(Duration::from_secs(20))
        .header("Content-Type", "application/pdf")
        .body(file.clone())
        .send()
        .await
        .expect("an answer");
    assert_eq!(put.status(), 200);
    let done = json!({"upload_id": signed["upload_id"]});
    let path = format!("{SETS}/{set}/blob-upload-complete");
    let done = ask(&bursar, &path, &[], &done).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(done.json()["size"], file.len());
    assert!(bursar.entries().is_empty(), "all of it is free");
}
