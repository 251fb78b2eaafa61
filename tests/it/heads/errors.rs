//! `error` beside `detail`, the one change to a body that is on by default; and model aliases.

use super::{CHAT, before};
use crate::support::origin::{billed, json};
use crate::support::{Bursar, Origin, Step};

#[tokio::test]
async fn an_error_object_is_added_beside_a_lone_detail() {
    let rows: [(&str, u16, &str, Option<&str>); 10] = [
        (
            "a text",
            404,
            r#"{"detail":"no such model"}"#,
            Some("no such model"),
        ),
        (
            "with white space",
            404,
            "{ \"detail\" : \"no \\u00fc\" }\n",
            Some("no ü"),
        ),
        (
            "with more members",
            403,
            r#"{"detail":"closed","x":[1,2.50]}"#,
            Some("closed"),
        ),
        ("a server error", 500, r#"{"detail":"oops"}"#, Some("oops")),
        (
            "an object already",
            404,
            r#"{"error":{"message":"M"}}"#,
            None,
        ),
        (
            "both already",
            404,
            r#"{"detail":"M","error":{"message":"M"}}"#,
            None,
        ),
        ("no detail", 404, r#"{"message":"M"}"#, None),
        ("no object", 404, r#"["detail"]"#, None),
        ("no JSON", 404, r#"{"detail":"M""#, None),
        ("a success", 200, r#"{"detail":"M"}"#, None),
    ];
    for (name, status, body, message) in rows {
        let (_origin, bursar) = before(json(status, &[], body)).await;
        let answer = bursar.post(CHAT, r#"{"model":"auto"}"#).await;
        assert_eq!(answer.status, status, "{name}");
        assert!(answer.complete, "{name}: its length is right");
        match message {
            Some(message) => {
                let before: serde_json::Value = serde_json::from_str(body).expect(name);
                let mut after = answer.json();
                assert_eq!(after["error"]["message"], message, "{name}");
                assert!(after["error"]["type"].is_string(), "{name}");
                assert_ne!(
                    after["error"]["type"], "invalid_request_error",
                    "{name}: litellm"
                );
                after.as_object_mut().unwrap().remove("error");
                assert_eq!(after, before, "{name}: the rest is as it was");
                let kept = body.trim_end().strip_suffix('}').unwrap().trim_end();
                assert!(answer.text().starts_with(kept), "{name}: byte for byte");
            }
            None => assert_eq!(answer.text(), body, "{name}: unchanged"),
        }
        let (origin, _bursar) = before(json(status, &[], body)).await;
        let off = Bursar::with(&origin.url(), "[errors]\nadd_error_object = false\n").await;
        let answer = off.post(CHAT, r#"{"model":"auto"}"#).await;
        assert_eq!(answer.text(), body, "{name}: switched off");
    }
}

/// An error is the service's, of any size: it is not replaced by one of ours.
#[tokio::test]
async fn a_large_error_passes_whole() {
    for (status, kib) in [(400, 70), (422, 500), (404, 1000), (503, 100)] {
        let text = "e".repeat(kib * 1024);
        let body = format!(r#"{{"detail":"{text}"}}"#);
        let (origin, bursar) = before(json(status, &[], &body)).await;
        let answer = bursar.post(CHAT, r#"{"model":"auto"}"#).await;
        assert_eq!(answer.status, status, "{kib} KiB");
        assert!(
            answer.text().starts_with(&body[..body.len() - 1]),
            "{kib} KiB: byte for byte"
        );
        let attempts = if status == 503 { 3 } else { 1 };
        assert_eq!(origin.received().len(), attempts, "{kib} KiB: attempts");
    }
}

#[tokio::test]
async fn an_alias_edits_the_model_and_nothing_else() {
    let rows = [
        (
            "first",
            "{\"model\":\"gpt-4o\",\"messages\":[]}",
            "{\"model\":\"auto\",\"messages\":[]}",
        ),
        (
            "odd white space and order",
            "{ \"messages\" : [ {\"model\":\"gpt-4o\"} ] ,\n\t\"model\" :  \"gpt-4o\" , \"x\":1.50 }",
            "{ \"messages\" : [ {\"model\":\"gpt-4o\"} ] ,\n\t\"model\" :  \"auto\" , \"x\":1.50 }",
        ),
        (
            "an escape",
            "{\"model\":\"gpt\\u002d4o\"}",
            "{\"model\":\"auto\"}",
        ),
        (
            "another model",
            "{\"model\":\"gpt-5\"}",
            "{\"model\":\"gpt-5\"}",
        ),
        ("auto", "{\"model\":\"auto\"}", "{\"model\":\"auto\"}"),
        ("no text", "{\"model\":4}", "{\"model\":4}"),
        ("not JSON", "{\"model\":\"gpt-4o\"", "{\"model\":\"gpt-4o\""),
    ];
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let config = "[models]\naliases = { \"gpt-4o\" = \"auto\" }\n";
    let bursar = Bursar::with(&origin.url(), config).await;
    for (index, (name, sent, wanted)) in rows.iter().enumerate() {
        let answer = bursar.post(CHAT, sent).await;
        assert_eq!(answer.status, 200, "{name}");
        let received = &origin.received()[index];
        assert_eq!(String::from_utf8_lossy(&received.body), *wanted, "{name}");
        let length = wanted.len().to_string();
        assert_eq!(
            received.header("content-length"),
            Some(length.as_str()),
            "{name}"
        );
    }
    let entry = &bursar.settled(1).await[0];
    assert_eq!(
        entry.model.as_deref(),
        Some("gpt-4o"),
        "the ledger keeps what the app asked for"
    );
}

#[tokio::test]
async fn without_an_alias_the_error_names_the_key_to_set() {
    for (path, status) in [(CHAT, 404), ("/agent/v1/chat/completions", 400)] {
        let (origin, bursar) = before(json(status, &[], r#"{"detail":"unknown model"}"#)).await;
        let answer = bursar.post(path, r#"{"model":"gpt-4o"}"#).await;
        assert_eq!(
            origin.received()[0].body,
            br#"{"model":"gpt-4o"}"#,
            "{path}: off by default"
        );
        let body = answer.json();
        assert_eq!(body["detail"], "unknown model", "{path}");
        let message = body["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("unknown model"), "{path}: {message}");
        assert!(message.contains("[models] aliases"), "{path}: {message}");
        assert!(message.contains("gpt-4o"), "{path}: {message}");
        let answer = bursar.post(path, r#"{"model":"auto"}"#).await;
        assert_eq!(
            answer.json()["error"]["message"],
            "unknown model",
            "{path}: auto needs no alias"
        );
    }
}
