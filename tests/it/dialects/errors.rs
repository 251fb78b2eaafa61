//! Errors on translated routes: in the dialect's own envelope, with bursar's code, and what they cost is known.

use serde_json::{Value, json};

use super::{MESSAGES, RESPONSES, ROUTES, answers, ask, asks, settled};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Sandbox, Step, eventually, origin};

/// The message and the code of an error in its dialect's envelope.
pub fn error_of(path: &str, body: &Value) -> (String, String) {
    let error = &body["error"];
    assert!(error["message"].is_string(), "{body}");
    assert!(error["type"].is_string(), "{body}");
    if path.ends_with("/messages") {
        assert_eq!(body["type"], "error", "{body}");
    }
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (word(&error["message"]), word(&error["code"]))
}

#[tokio::test]
async fn what_cannot_be_translated_is_refused_by_name_and_nothing_is_sent_or_billed() {
    let origin = Origin::start([]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let message = |content: Value| json!({"model": "auto", "max_tokens": 9, "messages": [{"role": "user", "content": content}]});
    let rows = [
        (
            RESPONSES,
            json!({"model": "auto", "input": "x", "background": true}),
            "background",
        ),
        (
            RESPONSES,
            json!({"model": "auto", "input": "x", "conversation": "c"}),
            "conversation",
        ),
        (RESPONSES, json!({"model": "auto", "input": 5}), "input"),
        (
            RESPONSES,
            json!({"model": "auto", "input": "x", "tools": [{"type": "local_shell"}]}),
            "tools[0].type",
        ),
        (RESPONSES, json!([]), ""),
        (
            MESSAGES,
            json!({"model": "auto", "max_tokens": 9}),
            "messages",
        ),
        (
            MESSAGES,
            message(json!([{"type": "document", "source": {"type": "base64",
                "media_type": "application/pdf", "data": "JVBERg=="}}])),
            "messages[0].content[0]",
        ),
        (
            MESSAGES,
            json!({"model": "auto", "max_tokens": 9, "messages": [
                {"role": "user", "content": "x"}, {"role": "assistant", "content": "{"}]}),
            "messages",
        ),
        (
            MESSAGES,
            message(json!([{"type": "tool_result", "tool_use_id": "a", "content": "r"}])),
            "messages[0].content[0].tool_use_id",
        ),
        (
            MESSAGES,
            json!({"model": "auto", "max_tokens": 9, "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content":
                    [{"type": "tool_use", "id": "a", "name": "t", "input": {}}]},
                {"role": "user", "content": "go on"}]}),
            "messages[1].content[0]",
        ),
    ];
    for (path, body, param) in rows {
        let answer = ask(&bursar, path, &body.to_string(), &[]).await;
        assert_eq!(answer.status, 400, "{path} {body}: {}", answer.text());
        assert_eq!(answer.code(), Some("untranslatable"), "{body}");
        let document = answer.json();
        let (message, code) = error_of(path, &document);
        assert_eq!(code, "untranslatable", "{document}");
        assert!(message.len() > 10, "{document}");
        let said = document["error"]["param"].as_str().unwrap_or_default();
        assert!(said.starts_with(param), "{document}");
    }
    assert!(origin.received().is_empty());
    assert!(bursar.entries().is_empty());
}

#[tokio::test]
async fn an_error_of_the_service_keeps_its_status_and_words_and_is_free() {
    for (path, ..) in ROUTES {
        for status in [400, 404, 422] {
            let refusal = origin::json(status, &[], r#"{"detail":"the engine has no oil"}"#);
            let origin = Origin::start([Step::Answer(refusal)]).await;
            let bursar = Bursar::before(&origin.url()).await;

            let answer = ask(&bursar, path, &asks(path, "hi", true), &[]).await;

            assert_eq!(answer.status, status, "{path}");
            let (message, _) = error_of(path, &answer.json());
            assert!(message.contains("the engine has no oil"), "{message}");
            assert_eq!(bursar.billed(), 0);
        }
    }
}

#[tokio::test]
async fn bursars_own_refusals_are_in_the_dialect_wherever_they_arise() {
    let origin = Origin::start([]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let rows: [(&[(&str, &str)], &str); 3] = [
        (&[("host", "evil.example")], "host_refused"),
        (&[("origin", "https://evil.example")], "origin_refused"),
        (&[("content-type", "text/plain")], "content_type_refused"),
    ];
    for (path, ..) in ROUTES {
        for (headers, code) in rows {
            let answer = ask(&bursar, path, &asks(path, "hi", false), headers).await;
            assert_eq!(answer.code(), Some(code), "{path}: {}", answer.text());
            assert_eq!(error_of(path, &answer.json()).1, code, "{path}");
        }
    }
    assert!(origin.received().is_empty());
}

#[tokio::test]
async fn an_answer_that_cannot_be_given_in_the_dialect_is_an_error_that_keeps_its_price() {
    // Arguments that are no JSON object must not be offered for execution, and are never made up.
    let body = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "rm", "arguments": "{\"path\": \"/"}}],
    }}]});
    let tools = json!([{"name": "rm", "description": "", "input_schema": {"type": "object"}}]);
    let request = json!({"model": "auto", "max_tokens": 9, "tools": tools,
        "messages": [{"role": "user", "content": "x"}]});
    let answered = origin::json(200, &[("X-Service-Billed", "77")], &body.to_string());
    let origin = Origin::start([Step::Answer(answered)]).await;
    let bursar = Bursar::before(&origin.url()).await;

    let answer = ask(&bursar, MESSAGES, &request.to_string(), &[]).await;

    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(answer.code(), Some("answer_untranslatable"));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(
        error_of(MESSAGES, &answer.json()).1,
        "answer_untranslatable"
    );
    let [entry] = &bursar.settled(1).await[..] else {
        panic!("one entry");
    };
    assert_eq!(entry.state, settled(77));
}

#[tokio::test]
async fn a_repeat_of_what_cannot_be_given_is_billed_once_and_told_what_helps() {
    let call = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": null, "tool_calls": [{"id": "call_1", "type": "function",
            "function": {"name": "rm", "arguments": "{\"path\": \"/"}}],
    }}]})
    .to_string();
    for (path, ..) in ROUTES {
        for own in [None, Some(("idempotency-key", "mine-1"))] {
            let billed = ("X-Service-Billed", "77");
            let replay = [("X-Service-Billed", "0"), ("Idempotent-Replayed", "true")];
            // "turns are never stored, so a repeat runs again and is not billed a second time"
            let is_turn = path.starts_with("/agent/");
            let origin = Origin::start([
                Step::Answer(origin::json(200, &[billed], &call)),
                Step::Answer(match is_turn {
                    true => super::answers(0, "fine"),
                    false => origin::json(200, &replay, &call),
                }),
                Step::Answer(super::answers(5, "fine")),
            ])
            .await;
            let bursar = Bursar::before(&origin.url()).await;
            let headers: Vec<_> = own.into_iter().collect();
            let remedy = match own {
                None => "within 900 s of the first request ([retry] adopt_window_s)",
                Some(_) => "under this Idempotency-Key",
            };
            for attempt in 0..2 {
                let answer = ask(&bursar, path, &asks(path, "delete", false), &headers).await;
                assert_eq!(bursar.billed(), 77, "{path}");
                if is_turn && attempt == 1 {
                    assert_eq!(super::text_of(path, &answer), "fine", "{path}");
                    continue;
                }
                assert_eq!(answer.status, 400, "{path}: {}", answer.text());
                let (message, code) = error_of(path, &answer.json());
                assert_eq!(code, "answer_untranslatable", "{path}");
                assert!(message.contains(remedy), "{message}");
                let words = ["runs again, and is billed nothing", "ask in other words"];
                let said = words.map(|words| message.contains(words));
                assert_eq!(said, [is_turn, !is_turn], "{message}");
            }
            let received = origin.received();
            let key = |at: usize| received[at].header("idempotency-key");
            assert_eq!((received.len(), key(0)), (2, key(1)), "{path}");

            let answer = ask(&bursar, path, &asks(path, "in other words", false), &[]).await;
            assert_eq!(super::text_of(path, &answer), "fine", "{path}");
            assert_eq!(bursar.billed(), 82, "{path}");
        }
    }
}

#[tokio::test]
async fn a_stream_from_a_service_that_was_asked_for_a_whole_answer_is_an_error() {
    let mut bytes = origin::stream_head();
    bytes.extend(origin::chunk("data: {\"choices\":[]}\n\n"));
    bytes.extend(origin::last_chunk());
    for (path, ..) in ROUTES {
        let origin = Origin::start([Step::Answer(bytes.clone())]).await;
        let bursar = Bursar::before(&origin.url()).await;
        let answer = ask(&bursar, path, &asks(path, "hi", true), &[]).await;
        assert_eq!(answer.code(), Some("upstream_broken"), "{}", answer.text());
        assert_eq!(error_of(path, &answer.json()).1, "upstream_broken");
    }
}

#[tokio::test]
async fn caps_hold_on_every_dialect() {
    let sandbox = Sandbox::start().await;
    let bursar = Bursar::with(&sandbox.url(), "[caps]\nday_micro_usd = 1\n").await;
    for (path, ..) in ROUTES {
        let answer = ask(&bursar, path, &asks(path, "spend", false), &[]).await;
        let second = ask(&bursar, path, &asks(path, "spend again", true), &[]).await;
        let refused = [answer, second]
            .into_iter()
            .find(|answer| answer.status != 200)
            .expect("one is refused");
        assert_eq!(refused.status, 402, "{}", refused.text());
        assert_eq!(error_of(path, &refused.json()).1, "cap_reached", "{path}");
    }
}

#[tokio::test]
async fn a_frozen_app_spends_nothing_in_any_dialect_until_it_is_thawed() {
    let origin = Origin::always(Step::Answer(super::answers(7, "thawed"))).await;
    let bursar = Bursar::with(&origin.url(), "").await;
    let caps = bursar.gateway.caps();
    for app in [None, Some("default")] {
        caps.freeze(app, "the test").expect("an order");
        for (path, ..) in ROUTES {
            for stream in [false, true] {
                let answer = ask(&bursar, path, &asks(path, "spend", stream), &[]).await;
                assert_eq!(answer.status, 403, "{path}: {}", answer.text());
                assert_eq!(answer.header("x-should-retry"), Some("false"), "{path}");
                let (message, code) = error_of(path, &answer.json());
                assert_eq!(code, "frozen", "{path}");
                assert!(message.contains("by the test"), "{path}: {message}");
            }
        }
        caps.thaw(app, "the test").expect("an order");
    }
    assert!(origin.received().is_empty(), "nothing was sent");
    assert_eq!(bursar.billed(), 0);
    for (path, ..) in ROUTES {
        let answer = ask(&bursar, path, &asks(path, "spend", false), &[]).await;
        assert_eq!(super::text_of(path, &answer), "thawed");
    }
}

/// Nothing of a translated answer is given before its receipt is written, so here there is always room for an error.
#[tokio::test]
async fn no_translated_answer_is_given_when_its_receipt_cannot_be_written() {
    for (path, ..) in ROUTES {
        for stream in [false, true] {
            let origin = Origin::start([Step::Pieces(vec![answers(7, "unwritten")])]).await;
            let bursar = Bursar::before(&origin.url()).await;
            let mut wire = bursar.connect().await;
            wire.send(request("POST", path, &[], &asks(path, "hi", stream)))
                .await;
            eventually("the service to receive", || async {
                (!origin.received().is_empty()).then_some(())
            })
            .await;
            bursar.ledger.close().await;
            origin.go();
            let answer = wire.answer().await;
            assert_eq!(answer.status, 503, "{path} {stream}: {}", answer.text());
            let (_, code) = error_of(path, &answer.json());
            assert_eq!(code, "ledger_unavailable", "{path} {stream}");
            assert!(!answer.text().contains("unwritten"), "{path} {stream}");
        }
    }
}
