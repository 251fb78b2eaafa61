use serde_json::{Value, json};

use super::*;
use crate::money::MicroUsd;

const ENTRY: &str = "0192f0c1a2b3747d8e9f001122334455";

fn facts(cost: Option<u64>) -> AnswerFacts<'static> {
    AnswerFacts {
        entry: ENTRY,
        created_s: 1_730_000_000,
        cost: cost.map(MicroUsd::new),
    }
}

fn turn() -> Turn {
    let stops = vec!["END".to_owned(), "\n".to_owned()];
    Turn::new("claude-x", stops, vec!["now".to_owned()])
}

/// A completion of one choice.
fn completion(message: Value, finish: &str) -> Value {
    json!({
        "id": "c", "object": "chat.completion", "model": "auto", "created": 1,
        "choices": [{"index": 0, "finish_reason": finish, "message": message}],
        "usage": {"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17},
    })
}

fn calls(calls: &[(&str, &str, &str)]) -> Value {
    let call = |(id, name, arguments): &(&str, &str, &str)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    Value::from(calls.iter().map(call).collect::<Vec<_>>())
}

fn rendered(completion: &Value) -> Result<Value, Unrendered> {
    let document = translate(&turn(), completion.to_string().as_bytes(), facts(None))?;
    Ok(serde_json::from_slice(&document).unwrap())
}

#[test]
fn a_text_and_a_call_are_in_these_bytes() {
    let body = br#"{"id":"c","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
        "content":"I look \ud83d\ude00 \ud83d.","tool_calls":[{"id":"functions.Bash:0","type":"function",
        "function":{"name":"Bash","arguments":" {\"command\": \"ls\",  \"n\": 1.50}\n"}}]}}],
        "usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234}}"#;
    let document = translate(&turn(), body, facts(Some(1857))).unwrap();
    let expected = [
        r#"{"id":"msg_0192f0c1a2b3747d8e9f001122334455","type":"message","role":"assistant","#,
        r#""model":"claude-x","content":[{"type":"text","text":"I look \ud83d\ude00 \ud83d."},"#,
        r#"{"type":"tool_use","id":"tx_functions_2eBash_3a0","name":"Bash","#,
        r#""input":{"command": "ls",  "n": 1.50}}],"#,
        r#""stop_reason":"tool_use","stop_sequence":null,"stop_details":null,"#,
        r#""usage":{"input_tokens":1200,"output_tokens":34,"cache_creation_input_tokens":0,"#,
        r#""cache_read_input_tokens":0,"cost":0.001857}}"#,
    ];
    assert_eq!(String::from_utf8(document).unwrap(), expected.concat());
}

#[test]
fn each_end_has_the_dialects_reason() {
    let text = json!({"role": "assistant", "content": "a"});
    let refused = json!({"role": "assistant", "content": null, "refusal": "I will not."});
    let called = json!({"content": null, "tool_calls": calls(&[("i", "t", "{}")])});
    let none_called = json!({"content": "a", "tool_calls": []});
    let cases = [
        ("an end", text.clone(), "stop", "end_turn"),
        ("the limit", text.clone(), "length", "max_tokens"),
        ("a filter", text.clone(), "content_filter", "refusal"),
        ("a refusal in words", refused, "stop", "refusal"),
        ("calls", called.clone(), "tool_calls", "tool_use"),
        (
            "calls that end with stop",
            called.clone(),
            "stop",
            "tool_use",
        ),
        (
            "calls, by the old word",
            called.clone(),
            "function_call",
            "tool_use",
        ),
        ("calls at the limit", called, "length", "max_tokens"),
        (
            "calls are said and none is there",
            none_called,
            "tool_calls",
            "end_turn",
        ),
        ("a word of tomorrow", text, "novel", "end_turn"),
    ];
    for (what, message, finish, expected) in cases {
        let rendered = rendered(&completion(message, finish)).unwrap();
        assert_eq!(rendered["stop_reason"], expected, "{what}");
        assert_eq!(rendered["stop_sequence"], Value::Null, "{what}");
    }
}

#[test]
fn a_stop_sequence_is_named_where_the_service_names_it() {
    let cases = [
        (json!("END"), "stop_sequence", json!("END")),
        (json!("\n"), "stop_sequence", json!("\n")),
        (json!("another"), "end_turn", Value::Null),
        (json!(151_645), "end_turn", Value::Null),
        (Value::Null, "end_turn", Value::Null),
    ];
    for (stop_reason, expected, sequence) in cases {
        let mut completion = completion(json!({"content": "a"}), "stop");
        completion["choices"][0]["stop_reason"] = stop_reason.clone();
        let rendered = rendered(&completion).unwrap();
        assert_eq!(rendered["stop_reason"], expected, "{stop_reason}");
        assert_eq!(rendered["stop_sequence"], sequence, "{stop_reason}");
    }
}

#[test]
fn blocks_are_what_was_said_and_nothing_is_made_up() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let used = |id: &str, name: &str, input: Value| json!({"type": "tool_use", "id": id, "name": name, "input": input});
    let object =
        json!([{"id": "i", "type": "function", "function": {"name": "t", "arguments": {"a": 1}}}]);
    let without_id = json!([{"type": "function", "function": {"name": "t", "arguments": "{}"}}]);
    let silent = json!([{"id": "i", "function": {"name": "now"}}]);
    let cases = [
        (
            "a text",
            json!({"content": "a"}),
            "stop",
            json!([text("a")]),
        ),
        ("nothing", json!({"content": null}), "stop", json!([])),
        ("an empty text", json!({"content": ""}), "stop", json!([])),
        (
            "space",
            json!({"content": " \n"}),
            "stop",
            json!([text(" \n")]),
        ),
        (
            "reasoning has no signature",
            json!({"content": "a", "reasoning_content": "hm", "reasoning": "hm"}),
            "stop",
            json!([text("a")]),
        ),
        (
            "a text and its refusal",
            json!({"content": "a", "refusal": "no"}),
            "stop",
            json!([text("a"), text("no")]),
        ),
        (
            "an empty text beside a call",
            json!({"content": "", "tool_calls": calls(&[("i", "t", r#"{"a":"b"}"#)])}),
            "tool_calls",
            json!([used("i", "t", json!({"a": "b"}))]),
        ),
        (
            "two calls",
            json!({"content": null, "tool_calls": calls(&[("i", "t", "{}"), ("j", "t", r#"{"a":[]}"#)])}),
            "tool_calls",
            json!([used("i", "t", json!({})), used("j", "t", json!({"a": []}))]),
        ),
        (
            "arguments that are an object",
            json!({"tool_calls": object}),
            "stop",
            json!([used("i", "t", json!({"a": 1}))]),
        ),
        (
            "no id",
            json!({"tool_calls": without_id}),
            "stop",
            json!([used(
                "toolu_0192f0c1a2b3747d8e9f001122334455_0",
                "t",
                json!({})
            )]),
        ),
        (
            "no arguments for a tool that requires none",
            json!({"tool_calls": calls(&[("i", "now", ""), ("j", "now", " ")])}),
            "tool_calls",
            json!([used("i", "now", json!({})), used("j", "now", json!({}))]),
        ),
        (
            "absent arguments of such a tool",
            json!({"tool_calls": silent}),
            "stop",
            json!([used("i", "now", json!({}))]),
        ),
        (
            "a call that the limit cut off is not offered",
            json!({"content": "a", "tool_calls": calls(&[("i", "t", r#"{"a":1}"#), ("j", "t", r#"{"a":"#)])}),
            "length",
            json!([text("a"), used("i", "t", json!({"a": 1}))]),
        ),
        (
            "a call that the limit cut off before its arguments",
            json!({"content": "a", "tool_calls": calls(&[("i", "t", "")])}),
            "length",
            json!([text("a")]),
        ),
        (
            "a call that the limit cut off behind its name, of a tool that requires nothing",
            json!({"content": "a", "tool_calls": calls(&[("i", "now", ""), ("j", "now", " ")])}),
            "length",
            json!([text("a")]),
        ),
        (
            "calls that the limit cut off before their names",
            json!({"content": "a", "tool_calls": [{"id": "i"}, {"id": "j", "function": {"arguments": "{}"}},
                {"id": "k", "function": {"name": "", "arguments": "{}"}}]}),
            "length",
            json!([text("a")]),
        ),
        (
            "the same without a member for its arguments",
            json!({"content": "a", "tool_calls": silent}),
            "content_filter",
            json!([text("a")]),
        ),
        (
            "two calls of one id",
            json!({"tool_calls": calls(&[("i", "t", "{}"), ("i", "t", r#"{"a":1}"#), ("j", "t", "{}")])}),
            "tool_calls",
            json!([
                used("i", "t", json!({})),
                used(
                    "toolu_0192f0c1a2b3747d8e9f001122334455_1",
                    "t",
                    json!({"a": 1})
                ),
                used("j", "t", json!({})),
            ]),
        ),
        (
            "a call that a filter cut off",
            json!({"content": "a", "tool_calls": calls(&[("i", "t", "{\"a")])}),
            "content_filter",
            json!([text("a")]),
        ),
    ];
    for (what, message, finish, expected) in cases {
        let rendered = rendered(&completion(message, finish)).unwrap();
        assert_eq!(rendered["content"], expected, "{what}");
    }
}

#[test]
fn a_turn_that_cannot_be_rendered_is_an_error_and_never_an_empty_input() {
    let called = |arguments: &str| {
        completion(
            json!({"content": "a", "tool_calls": calls(&[("i", "t", arguments)])}),
            "tool_calls",
        )
    };
    let cases = [
        ("no arguments for a tool that requires some", called("")),
        ("half an object", called("{\"a\":")),
        ("a list", called("[]")),
        ("a string", called("\"{}\"")),
        ("null", called("null")),
        ("words", called("ls -l")),
        ("two objects", called("{}{}")),
        (
            "no arguments where the end is not known",
            completion(
                json!({"content": "a", "tool_calls": calls(&[("i", "now", "")])}),
                "novel",
            ),
        ),
        (
            "no arguments where no end is said",
            json!({"choices": [{"message": {"tool_calls": calls(&[("i", "now", "")])}}]}),
        ),
        (
            "a number for arguments",
            completion(
                json!({"tool_calls": [{"function": {"name": "t", "arguments": 1}}]}),
                "stop",
            ),
        ),
        (
            "a call without a name",
            completion(json!({"tool_calls": calls(&[("i", "", "{}")])}), "stop"),
        ),
        (
            "a call without a function",
            completion(
                json!({"tool_calls": [{"id": "i", "type": "custom"}]}),
                "stop",
            ),
        ),
        (
            "content that is a list",
            completion(json!({"content": []}), "stop"),
        ),
        ("no choice", json!({"choices": []})),
        ("no choices", json!({"id": "c"})),
        ("no message", json!({"choices": [{"index": 0}]})),
        ("no completion", json!([])),
    ];
    for (what, completion) in cases {
        let found = rendered(&completion);
        assert!(found.is_err(), "{what}: {found:?}");
    }
    assert!(translate(&turn(), b"\xff", facts(None)).is_err());
}

#[test]
fn tokens_are_the_services_and_none_is_made_up() {
    let cases = [
        (
            json!({"prompt_tokens": 12, "completion_tokens": 5}),
            [12, 5, 0],
        ),
        (json!({"completion_tokens": 5}), [0, 5, 0]),
        (
            json!({"prompt_tokens": "12", "completion_tokens": -5}),
            [0, 0, 0],
        ),
        (json!({"prompt_tokens": 1.5}), [0, 0, 0]),
        (Value::Null, [0, 0, 0]),
        (json!([]), [0, 0, 0]),
        // The dialect does not count the cached ones among the input's.
        (
            json!({"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8}}),
            [4, 5, 8],
        ),
        (
            json!({"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 13}}),
            [12, 5, 0],
        ),
    ];
    for (usage, [input, output, cached]) in cases {
        let mut completion = completion(json!({"content": "a"}), "stop");
        completion["usage"] = usage.clone();
        let expected = json!({"input_tokens": input, "output_tokens": output,
            "cache_creation_input_tokens": 0, "cache_read_input_tokens": cached});
        assert_eq!(rendered(&completion).unwrap()["usage"], expected, "{usage}");
    }
}

#[test]
fn the_price_is_a_decimal_of_the_integer_or_absent() {
    let body = completion(json!({"content": "a"}), "stop").to_string();
    let cases = [
        (Some(1857), r#","cost":0.001857}"#),
        (Some(0), r#","cost":0.000000}"#),
        (Some(12_345_678), r#","cost":12.345678}"#),
        (Some(1), r#","cost":0.000001}"#),
        (None, r#""cache_read_input_tokens":0}"#),
    ];
    for (cost, expected) in cases {
        let document = translate(&turn(), body.as_bytes(), facts(cost)).unwrap();
        let document = String::from_utf8(document).unwrap();
        assert!(document.ends_with(&format!("{expected}}}")), "{document}");
    }
}
