use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// The chunks of a stream, in their order. Every line is as the grammar wants it.
fn chunks(stream: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(stream).unwrap();
    let events = text.strip_suffix("data: [DONE]\n\n").expect("the end mark");
    events
        .split_terminator("\n\n")
        .map(|event| {
            assert!(!event.contains(['\n', '\r']), "one line an event: {event}");
            serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()
        })
        .collect()
}

fn stream_of(completion: &Value) -> Vec<Value> {
    chunks(&as_event_stream(completion.to_string().as_bytes()).expect("a stream"))
}

/// Puts deltas together as OpenAI's SDKs do: texts are appended, calls go by their index, anything
/// else is set.
fn assembled(chunks: &[Value], index: u64) -> Map<String, Value> {
    let mut message = Map::new();
    for chunk in chunks {
        for choice in chunk["choices"].as_array().unwrap() {
            if choice["index"] == index {
                for (key, value) in choice["delta"].as_object().unwrap() {
                    add(&mut message, key, value);
                }
            }
        }
    }
    message
}

fn add(message: &mut Map<String, Value>, key: &str, value: &Value) {
    match (key, message.get_mut(key)) {
        ("content" | "refusal" | "arguments", Some(Value::String(text))) => {
            text.push_str(value.as_str().unwrap());
        }
        ("function", Some(Value::Object(function))) => {
            for (key, value) in value.as_object().unwrap() {
                add(function, key, value);
            }
        }
        ("tool_calls", Some(Value::Array(calls))) => {
            for delta in value.as_array().unwrap() {
                let at = usize::try_from(delta["index"].as_u64().unwrap()).unwrap();
                if at == calls.len() {
                    calls.push(json!({}));
                }
                let call = calls[at].as_object_mut().unwrap();
                for (key, value) in delta.as_object().unwrap() {
                    if key != "index" {
                        add(call, key, value);
                    }
                }
            }
        }
        ("tool_calls", None) => {
            message.insert(key.to_owned(), json!([]));
            if value.as_array().is_some_and(|calls| !calls.is_empty()) {
                add(message, key, value);
            }
        }
        _ => {
            message.insert(key.to_owned(), value.clone());
        }
    }
}

fn completion(message: Value) -> Value {
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "auto",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
    })
}

#[test]
fn a_message_is_itself_again_when_its_chunks_are_put_together() {
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let table = [
        json!({"role": "assistant", "content": "Hello"}),
        json!({"role": "assistant", "content": ""}),
        json!({"role": "assistant", "content": null, "refusal": null}),
        json!({"role": "assistant", "content": null, "refusal": "I will not."}),
        json!({"role": "assistant", "content": "é\"\\\n\u{0}🦀 data: [DONE]\n\n"}),
        json!({"role": "assistant", "content": null, "tool_calls": [call("a", "{\"x\":1}")]}),
        json!({"role": "assistant", "content": "both", "tool_calls": [call("a", ""), call("b", "{}")]}),
        json!({"role": "assistant", "content": "none", "tool_calls": []}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "g", "input": "raw"}, "extra": [1]},
        ]}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"id": "d", "type": "function", "function": {"name": "f", "arguments": {"no": "text"}}},
        ]}),
        json!({"role": "assistant", "reasoning_content": "Let me think.", "content": "42"}),
        json!({"role": "assistant", "content": [{"type": "text", "text": "parts"}]}),
        json!({"role": "assistant", "content": "x", "annotations": [{"url": "u"}], "new": {"a": [1.5]}}),
        json!({"role": "tool", "content": "odd role"}),
        json!({"content": "no role"}),
    ];
    for message in table {
        let found = stream_of(&completion(message.clone()));
        let mut wanted = message.as_object().unwrap().clone();
        wanted.entry("role").or_insert(json!("assistant"));
        assert_eq!(
            Value::from(assembled(&found, 0)),
            Value::from(wanted),
            "{message}"
        );
    }
}

#[test]
fn the_chunks_have_the_form_of_the_interface() {
    let found = stream_of(&completion(json!({
        "role": "assistant",
        "content": "Hi",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    })));
    let of = |choices: Value| {
        json!({
            "object": "chat.completion.chunk", "id": "chatcmpl-1", "created": 1_700_000_000,
            "model": "auto", "choices": choices,
        })
    };
    let delta = |delta: Value| of(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut last = of(json!([]));
    last["usage"] = json!({"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7});
    let wanted = [
        delta(json!({"role": "assistant"})),
        delta(json!({"content": "Hi"})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "function",
            "function": {"name": "f", "arguments": ""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
        of(json!([{"index": 0, "delta": {}, "finish_reason": "stop"}])),
        last,
    ];
    assert_eq!(found, wanted);
}

#[test]
fn what_is_not_of_the_message_is_passed_on_once() {
    let mut whole = completion(json!({"role": "assistant", "content": "Hi"}));
    whole["system_fingerprint"] = json!("fp");
    whole["provider"] = json!({"region": "eu"});
    whole["choices"][0]["logprobs"] = json!({"content": [{"token": "Hi", "logprob": -0.5}]});
    whole["choices"][0]["stop_reason"] = json!(7);
    let found = stream_of(&whole);

    let count = |pointer: &str| {
        found
            .iter()
            .filter_map(|chunk| chunk.pointer(pointer))
            .count()
    };
    assert_eq!(count("/system_fingerprint"), found.len());
    assert_eq!(found[0]["provider"], whole["provider"]);
    assert_eq!(count("/provider"), 1);
    assert_eq!(
        found[1]["choices"][0]["logprobs"],
        whole["choices"][0]["logprobs"]
    );
    assert_eq!(count("/choices/0/logprobs"), 1);
    assert_eq!(found[2]["choices"][0]["stop_reason"], 7);
    assert_eq!(count("/choices/0/stop_reason"), 1);

    whole["choices"][0]["message"]["content"] = Value::Null;
    let found = stream_of(&whole);
    let last = &found[found.len() - 2]["choices"][0];
    assert_eq!(
        last["logprobs"], whole["choices"][0]["logprobs"],
        "no text to go with"
    );
}

#[test]
fn each_choice_is_a_message_of_its_own() {
    let mut whole = completion(json!({"role": "assistant", "content": "a"}));
    let other = json!({"index": 1, "message": {"role": "assistant", "content": "b"}, "finish_reason": "length"});
    whole["choices"].as_array_mut().unwrap().push(other);
    let found = stream_of(&whole);

    assert_eq!(assembled(&found, 0)["content"], "a");
    assert_eq!(assembled(&found, 1)["content"], "b");
    assert_eq!(found.len(), 7, "three each, and the usage");
}

#[test]
fn long_texts_are_divided_and_their_lines_stay_short() {
    // One byte of text is six of JSON, and a character of four bytes lies across each boundary.
    let text = format!("{}{}", "\u{1}".repeat(100_000), "x🦀".repeat(50_000));
    let message = json!({
        "role": "assistant", "content": text, "refusal": text,
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}],
    });
    let stream = as_event_stream(completion(message.clone()).to_string().as_bytes()).unwrap();

    let longest = stream.split(|byte| *byte == b'\n').map(<[u8]>::len).max();
    assert!(longest < Some(64 * 1024), "{longest:?}");
    assert_eq!(Value::from(assembled(&chunks(&stream), 0)), message);
}

#[test]
fn values_keep_their_text_and_line_ends_become_blanks() {
    let body = "{\n \"id\": \"a\",\r\n \"created\": 12345678901234567890123,\n \"cost\": 0.10,\n \"choices\": [\n  {\"message\": {\"x\": 1.000,\n \"content\": \"a\"}}]}";
    let stream = String::from_utf8(as_event_stream(body.as_bytes()).unwrap()).unwrap();

    for kept in [
        "\"created\":12345678901234567890123",
        "\"cost\":0.10",
        "\"x\":1.000",
    ] {
        assert!(stream.contains(kept), "{kept}: {stream}");
    }
    let found = chunks(stream.as_bytes());
    assert_eq!(
        found.last().unwrap()["choices"][0]["finish_reason"],
        Value::Null
    );
    assert_eq!(found[0]["choices"][0]["index"], 0);
}

#[test]
fn a_text_that_no_string_can_hold_is_passed_as_it_is() {
    let body = r#"{"choices":[{"message":{"content":"\ud83d"}}]}"#;
    let stream = String::from_utf8(as_event_stream(body.as_bytes()).unwrap()).unwrap();
    assert!(
        stream.contains(r#""delta":{"content":"\ud83d"}"#),
        "{stream}"
    );
}

#[test]
fn what_is_no_completion_is_not_turned_into_one() {
    for body in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"detail":"no"}"#,
        r#"{"choices":null}"#,
        r#"{"choices":{}}"#,
        r#"{"choices":[1]}"#,
        r#"{"choices":[{"index":0}]}"#,
        r#"{"choices":[{"message":"text"}]}"#,
        r#"{"choices":[{"message":{}}]"#,
        "<html>",
    ] {
        assert_eq!(as_event_stream(body.as_bytes()), None, "{body}");
    }
}

proptest! {
    #[test]
    fn any_text_and_any_call_come_back(
        content in proptest::option::of(any::<String>()),
        calls in proptest::collection::vec((any::<String>(), any::<String>()), 0..3),
        more in "[a-z]{9}",
    ) {
        let calls: Vec<Value> = calls
            .iter()
            .map(|(id, arguments)| json!({
                "id": id, "type": "function", "function": {"name": id, "arguments": arguments},
            }))
            .collect();
        let message = json!({
            "role": "assistant", "content": content, "tool_calls": calls, more: {"text": content},
        });
        let found = stream_of(&completion(message.clone()));
        prop_assert_eq!(Value::from(assembled(&found, 0)), message);
    }

    #[test]
    fn making_never_fails(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        as_event_stream(&body);
    }
}
