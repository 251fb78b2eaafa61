//! A stream while it comes: a sequence written by hand, the same answer in any pieces, and what cannot be given.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::tests::samples::{ENTRY, calling, completion, facts, turn, value};
use super::super::{answer, events};
use super::{CALLS_MAX, HEARD_BYTES_MAX, Live};
use crate::money::MicroUsd;

const ASKS: &str = r#"{"model":"gpt-5","input":"Hi","store":false,"tools":[
    {"type":"function","name":"f","parameters":{"type":"object"}},
    {"type":"custom","name":"apply_patch","description":"Patches."},
    {"type":"namespace","name":"docs","tools":[{"type":"function","name":"search","parameters":{}}]}]}"#;

fn live() -> Live {
    Live::new(Arc::new(turn(ASKS)), ENTRY.to_owned(), facts().created_s)
}

/// The chunk that says why the answer ends.
fn finish(why: &str) -> String {
    let mut last = chunk(&json!({}));
    last["choices"][0]["finish_reason"] = json!(why);
    last.to_string()
}

/// A chunk with this delta.
fn chunk(delta: &Value) -> Value {
    json!({"id": "c", "created": 1_764_000_000, "model": "auto",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn read(events: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(events).expect("UTF-8");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(value).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    let kinds = events.iter().map(|event| event["type"].as_str());
    kinds.map(Option::unwrap_or_default).collect()
}

/// All events of these lines, and the document.
fn given(lines: &[String]) -> (Vec<Value>, Option<Value>) {
    let mut live = live();
    let mut all = Vec::new();
    for line in lines {
        live.hear(line.as_bytes());
        all.extend(live.events().unwrap_or_default());
    }
    let ending = live.ends(facts().cost);
    all.extend(ending.events);
    assert_eq!(live.events(), None, "nothing comes behind the end");
    (read(&all), ending.document.map(value))
}

#[test]
fn text_is_given_as_it_comes_and_the_rest_with_the_end() {
    let mut live = live();
    live.hear(
        chunk(&json!({"role": "assistant", "content": null}))
            .to_string()
            .as_bytes(),
    );
    let begun = read(&live.events().expect("events"));
    assert_eq!(kinds(&begun), ["response.created", "response.in_progress"]);
    assert_eq!(begun[0]["response"]["status"], "in_progress");
    assert_eq!(begun[0]["response"]["output"], json!([]));
    assert_eq!(begun[0]["response"]["usage"], Value::Null);
    assert_eq!(begun[0]["response"]["id"], format!("resp_{ENTRY}"));

    live.hear(chunk(&json!({"content": "Hel"})).to_string().as_bytes());
    let first = read(&live.events().expect("events"));
    assert_eq!(
        kinds(&first),
        [
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta"
        ]
    );
    assert_eq!(first[2]["delta"], "Hel");
    live.hear(chunk(&json!({"content": "lo"})).to_string().as_bytes());
    assert_eq!(
        kinds(&read(&live.events().expect("events"))),
        ["response.output_text.delta"]
    );
    let call = json!({"tool_calls": [{"index": 0, "id": "call_1",
        "function": {"name": "f", "arguments": "{\"n\":"}}]});
    live.hear(chunk(&call).to_string().as_bytes());
    let rest = json!({"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]});
    live.hear(chunk(&rest).to_string().as_bytes());
    assert_eq!(live.events(), None, "a call is not given before the end");

    live.hear(finish("tool_calls").as_bytes());
    let end = read(&live.ends(Some(MicroUsd::new(1_857))).events);

    assert_eq!(
        kinds(&end),
        [
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.output_item.added",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.output_item.done",
            "response.completed"
        ]
    );
    assert_eq!(end[0]["text"], "Hello");
    assert_eq!(end[3]["output_index"], 1);
    assert_eq!(end[5]["arguments"], "{\"n\":1}");
    assert_eq!(end[7]["response"]["usage"]["cost"], 0.001_857);
    assert_eq!(
        end[7]["response"]["output"][0]["content"][0]["text"],
        "Hello"
    );
}

/// A whole answer's message in chunks: each text in pieces of `size` characters.
fn in_chunks(finish: &str, message: &Value, size: usize) -> Vec<String> {
    let pieces = |text: &str| -> Vec<String> {
        let all: Vec<char> = text.chars().collect();
        all.chunks(size)
            .map(|piece| piece.iter().collect())
            .collect()
    };
    let mut lines = vec![chunk(&json!({"role": "assistant", "content": null}))];
    for name in ["content", "refusal"] {
        for piece in pieces(message[name].as_str().unwrap_or_default()) {
            lines.push(chunk(&json!({name: piece})));
        }
    }
    for (index, call) in message["tool_calls"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        let name = &call["function"]["name"];
        let begin = json!({"index": index, "id": call["id"], "type": "function",
            "function": {"name": name, "arguments": ""}});
        lines.push(chunk(&json!({"tool_calls": [begin]})));
        for piece in pieces(call["function"]["arguments"].as_str().unwrap_or_default()) {
            let piece = json!({"index": index, "function": {"arguments": piece}});
            lines.push(chunk(&json!({"tool_calls": [piece]})));
        }
    }
    let mut last = chunk(&json!({}));
    last["choices"][0]["finish_reason"] = json!(finish);
    lines.push(last);
    lines.push(json!({"choices": [], "usage":
        {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}}));
    lines.iter().map(Value::to_string).collect()
}

#[test]
fn a_stream_ends_with_the_document_of_the_whole_answer_in_whatever_pieces_it_comes() {
    let text = "Grüße \"an\" \\ dich,\n\u{1F600} und\u{2028}Ende";
    let call = |name: &str, arguments: &str| -> Value {
        serde_json::from_str(&calling(name, arguments)).expect("JSON")
    };
    let mut both = call("f", "{\"a\": [1, {\"b\": \"ü\"}]}");
    both["content"] = json!(text);
    let mut two = call("apply_patch", "{\"input\":\"*** Begin\\n+\\\"x\\\"\"}");
    let second = json!({"id": "call_2", "type": "function",
        "function": {"name": "docs__search", "arguments": "{}"}});
    two["tool_calls"]
        .as_array_mut()
        .expect("calls")
        .push(second);
    let messages = [
        ("stop", json!({"content": text})),
        ("stop", json!({"content": ""})),
        ("length", json!({"content": text})),
        ("content_filter", json!({"content": null})),
        ("stop", json!({"content": null, "refusal": "No."})),
        ("stop", json!({"content": "Well.", "refusal": "No."})),
        ("tool_calls", both.clone()),
        ("tool_calls", two),
        ("length", both),
        ("length", call("f", "{\"a\": [1, ")),
        ("tool_calls", call("f", "")),
    ];
    for (finish, message) in &messages {
        let whole = completion(finish, &message.to_string());
        let whole = answer::translate(&turn(ASKS), whole.as_bytes(), facts()).expect("a document");
        let made = read(&events::of(&whole).expect("events"));
        for size in [1, 2, 7, 10_000] {
            let (events, document) = given(&in_chunks(finish, message, size));
            let name = format!("{finish} {message} in pieces of {size}");

            assert_eq!(document.as_ref(), Some(&value(&whole)), "{name}");
            let last = events.last().expect("an end");
            assert_eq!(last["response"], value(&whole), "{name}");
            let numbers = events.iter().map(|event| event["sequence_number"].as_u64());
            let expected = (0..events.len()).map(|number| u64::try_from(number).ok());
            assert!(numbers.eq(expected), "{name}");
            // Apart from how the text is divided, the events are those of the whole answer.
            let fixed = |events: &[Value]| -> Vec<Value> {
                let delta = |event: &&Value| event["type"] != "response.output_text.delta";
                let rest = events.iter().filter(delta).cloned();
                let numberless = rest.map(|mut event| {
                    event
                        .as_object_mut()
                        .expect("an object")
                        .remove("sequence_number");
                    event
                });
                numberless.collect()
            };
            assert_eq!(fixed(&events), fixed(&made), "{name}");
            let deltas = events
                .iter()
                .filter(|event| event["type"] == "response.output_text.delta");
            let joined: String = deltas.filter_map(|event| event["delta"].as_str()).collect();
            assert_eq!(
                joined,
                message["content"].as_str().unwrap_or_default(),
                "{name}"
            );
        }
    }
}

#[test]
fn probabilities_of_tokens_are_joined() {
    let token =
        |text: &str| json!({"token": text, "logprob": -0.5, "bytes": null, "top_logprobs": []});
    let mut lines: Vec<String> = ["Hel", "lo"]
        .iter()
        .map(|text| {
            let mut chunk = chunk(&json!({"content": text}));
            chunk["choices"][0]["logprobs"] = json!({"content": [token(text)]});
            chunk.to_string()
        })
        .collect();
    lines.push(finish("stop"));
    let document = given(&lines).1.expect("a document");
    let logprobs = &document["output"][0]["content"][0]["logprobs"];
    assert_eq!(logprobs, &json!([token("Hel"), token("lo")]));
}

/// Services that number their calls otherwise than OpenAI, or not at all.
#[test]
fn calls_are_kept_apart_however_a_service_numbers_them() {
    let whole = |index: Value, id: Value| json!({"index": index, "id": id, "function": {"name": "f", "arguments": "{}"}});
    let begun = |index: Value, id: Value| json!({"index": index, "id": id, "function": {"name": "f", "arguments": "{\"n\""}});
    let piece = |index: Value, id: Value| json!({"index": index, "id": id, "function": {"arguments": ":1}"}});
    let none = || Value::Null;
    let rows = [
        (
            "ids alone",
            vec![
                begun(none(), json!("a")),
                piece(none(), none()),
                whole(none(), json!("b")),
            ],
        ),
        (
            "the id with each piece",
            vec![
                begun(none(), json!("a")),
                piece(none(), json!("a")),
                whole(none(), json!("b")),
            ],
        ),
        (
            "one number for all",
            vec![
                begun(json!(0), json!("a")),
                piece(json!(0), none()),
                whole(json!(0), json!("b")),
            ],
        ),
        (
            "neither",
            vec![
                begun(none(), none()),
                piece(none(), none()),
                whole(none(), none()),
            ],
        ),
        (
            "as OpenAI does",
            vec![
                begun(json!(0), json!("a")),
                whole(json!(1), json!("b")),
                piece(json!(0), none()),
            ],
        ),
    ];
    for (name, calls) in rows {
        let lines = calls
            .iter()
            .map(|call| chunk(&json!({"tool_calls": [call]})).to_string());
        let lines: Vec<String> = lines.chain([finish("tool_calls")]).collect();
        let document = given(&lines)
            .1
            .unwrap_or_else(|| panic!("{name}: a document"));
        let output = document["output"].as_array().expect("items");
        assert_eq!(output.len(), 2, "{name}: {document}");
        assert_eq!(output[0]["arguments"], "{\"n\":1}", "{name}");
        assert_eq!(output[1]["arguments"], "{}", "{name}");
    }
}

/// It is not known whether more would have come: a call that was cut behind its name would read as one without
/// arguments, and a sentence cut in its middle as a whole one.
#[test]
fn an_answer_that_does_not_say_why_it_ends_has_failed() {
    let call = json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]});
    let free_text = json!({"tool_calls": [{"index": 0, "id": "a",
        "function": {"name": "apply_patch", "arguments": "*** Begin"}}]});
    for cut in [
        Some(call),
        Some(free_text),
        Some(json!({"content": "Half a sen"})),
        None,
    ] {
        let lines: Vec<String> = cut.iter().map(|delta| chunk(delta).to_string()).collect();
        let (events, document) = given(&lines);
        assert_eq!(document, None, "{cut:?}");
        let last = events.last().expect("an end");
        assert_eq!(last["type"], "response.failed", "{cut:?}");
        assert_eq!(
            last["response"]["error"]["code"], "invalid_prompt",
            "{cut:?}"
        );
        assert!(
            !kinds(&events).contains(&"response.output_item.done"),
            "{cut:?}"
        );
    }
}

#[test]
fn an_answer_that_cannot_be_given_ends_as_failed_with_its_price_and_without_a_call() {
    let text = chunk(&json!({"content": "Hi"})).to_string();
    let usage = json!({"choices": [], "usage":
        {"prompt_tokens": 11, "completion_tokens": 4, "total_tokens": 15}});
    let usage = usage.to_string();
    let numbered = |index: usize| json!({"index": index, "id": format!("c{index}")});
    let many: Vec<Value> = (0..=CALLS_MAX).map(numbered).collect();
    let broken = json!({"tool_calls": [{"index": 0, "id": "a",
        "function": {"name": "f", "arguments": "{\"n\":"}}]});
    let rows = [
        ("no JSON", "{\"choices\":[".to_owned(), "invalid_prompt"),
        (
            "an error",
            json!({"error": {"message": "out of luck"}}).to_string(),
            "server_error",
        ),
        (
            "an error in one word",
            json!({"error": "luck"}).to_string(),
            "server_error",
        ),
        (
            "an error in the service's own form",
            json!({"detail": "luck"}).to_string(),
            "server_error",
        ),
        (
            "a text that is none",
            chunk(&json!({"content": 5})).to_string(),
            "invalid_prompt",
        ),
        (
            "arguments in part",
            chunk(&broken).to_string(),
            "invalid_prompt",
        ),
        (
            "too many calls",
            chunk(&json!({"tool_calls": many})).to_string(),
            "invalid_prompt",
        ),
        (
            "more than is kept",
            chunk(&json!({"content": "x".repeat(HEARD_BYTES_MAX + 1)})).to_string(),
            "invalid_prompt",
        ),
    ];
    for (name, line, code) in rows {
        for lines in [
            vec![line.clone(), usage.clone()],
            vec![
                text.clone(),
                line.clone(),
                text.clone(),
                finish("stop"),
                usage.clone(),
            ],
        ] {
            let (events, document) = given(&lines);
            assert!(document.is_none(), "{name}");
            let last = events.last().expect("an end");
            assert_eq!(last["type"], "response.failed", "{name}");
            assert_eq!(last["response"]["status"], "failed", "{name}");
            assert_eq!(last["response"]["error"]["code"], code, "{name}");
            assert_eq!(last["response"]["usage"]["cost"], 0.001_857, "{name}");
            assert_eq!(last["response"]["usage"]["input_tokens"], 11, "{name}");
            let kinds = kinds(&events);
            assert!(
                !kinds.contains(&"response.output_item.done"),
                "{name}: {kinds:?}"
            );
            assert_eq!(
                kinds
                    .iter()
                    .filter(|kind| **kind == "response.created")
                    .count(),
                1
            );
        }
    }
}

#[test]
fn a_line_that_was_too_long_fails_the_answer() {
    let mut live = live();
    live.missed();
    let ending = live.ends(None);
    assert_eq!(ending.document, None);
    let events = read(&ending.events);
    assert_eq!(events.last().expect("an end")["type"], "response.failed");
}

#[test]
fn a_break_is_said_once_and_only_inside_of_an_answer() {
    let hi = chunk(&json!({"content": "Hi"})).to_string();
    let mut untouched = live();
    assert_eq!(untouched.breaks("upstream_broken", "It broke."), None);

    let mut begun = live();
    begun.hear(hi.as_bytes());
    let given = begun.events().expect("events");
    let failed = read(
        &begun
            .breaks("upstream_broken", "It \"broke\".")
            .expect("an event"),
    );
    assert_eq!(kinds(&failed), ["response.failed"]);
    assert_eq!(failed[0]["sequence_number"], read(&given).len());
    let error = json!({"code": "upstream_broken", "message": "It \"broke\"."});
    assert_eq!(failed[0]["response"]["error"], error);
    assert_eq!(failed[0]["response"]["output"], json!([]));
    assert_eq!(begun.breaks("upstream_broken", "It broke."), None);

    // What failed it before says more than that it broke then.
    let mut failing = live();
    failing.hear(hi.as_bytes());
    failing.hear(
        json!({"error": {"message": "out of luck"}})
            .to_string()
            .as_bytes(),
    );
    let failed = read(
        &failing
            .breaks("upstream_broken", "It broke.")
            .expect("events"),
    );
    let error = &failed.last().expect("an end")["response"]["error"];
    assert_eq!(error["code"], "server_error");
    assert!(
        error["message"]
            .as_str()
            .is_some_and(|words| words.contains("out of luck"))
    );

    let mut ended = live();
    ended.hear(hi.as_bytes());
    ended.ends(None);
    assert_eq!(ended.heard_bytes(), 0, "nothing is kept behind the end");
    assert_eq!(ended.breaks("shutting_down", "Stopping."), None);
}
