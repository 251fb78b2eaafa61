//! Answers, clause by clause: the output items, the status, what the document repeats, and what is not rendered.

use std::cell::RefCell;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::json::Text;
use super::super::memory::{Bounds, Memory};
use super::super::request;
use super::super::tests::samples::{
    ENTRY, answered, asked, calling, completion, facts, turn, value,
};
use super::{given, is_complete, translate};
use crate::money::MicroUsd;
use crate::protocol::translate::AnswerFacts;

const TOOLS: &str = r#"{"model":"gpt-5","input":"x","tools":[
    {"type":"function","name":"f"},
    {"type":"custom","name":"apply_patch"},
    {"type":"tool_search",
     "execution":"client"},
    {"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"},{"type":"custom","name":"draft"}]}]}"#;

/// What a row shows, how the service ended, its message, the status, the output with `E` for the entry's id.
const OUTPUT: &[(&str, &str, &str, &str, &str)] = &[
    (
        "a text",
        "stop",
        r#"{"role":"assistant","content":"Hi \u00e9\ud83d\ude00"}"#,
        "completed",
        r#"[{"id":"msg_E","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hi é😀","annotations":[],"logprobs":[]}]}]"#,
    ),
    (
        "no word at all is an empty text",
        "stop",
        r#"{"role":"assistant","content":null}"#,
        "completed",
        r#"[{"id":"msg_E","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]}]"#,
    ),
    (
        "a refusal",
        "stop",
        r#"{"content":null,"refusal":"No."}"#,
        "completed",
        r#"[{"id":"msg_E","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]"#,
    ),
    (
        "a text and a refusal",
        "stop",
        r#"{"content":"Well,","refusal":"no."}"#,
        "completed",
        r#"[{"id":"msg_E","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Well,","annotations":[],"logprobs":[]},{"type":"refusal","refusal":"no."}]}]"#,
    ),
    (
        "a text that was cut",
        "length",
        r#"{"content":"Once upon"}"#,
        "incomplete",
        r#"[{"id":"msg_E","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Once upon","annotations":[],"logprobs":[]}]}]"#,
    ),
    (
        "nothing before the limit",
        "length",
        r#"{"content":""}"#,
        "incomplete",
        "[]",
    ),
    (
        "a text that was filtered",
        "content_filter",
        r#"{"content":"Once"}"#,
        "incomplete",
        r#"[{"id":"msg_E","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Once","annotations":[],"logprobs":[]}]}]"#,
    ),
    (
        "a call, its arguments spaced as the service spaced them",
        "tool_calls",
        r#"{"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{ \"n\" : 1 }"}}]}"#,
        "completed",
        r#"[{"id":"fc_E_0","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{ \"n\" : 1 }"}]"#,
    ),
    (
        "a text and two calls; an id that stands twice is replaced, and so is one that is missing",
        "tool_calls",
        r#"{"content":"Both.","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{}"}},
            {"id":"a","function":{"name":"f","arguments":"{}"}},
            {"function":{"name":"g","arguments":"{}"}}]}"#,
        "completed",
        r#"[{"id":"msg_E","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Both.","annotations":[],"logprobs":[]}]},
            {"id":"fc_E_0","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{}"},
            {"id":"fc_E_1","type":"function_call","status":"completed","call_id":"call_E_1","name":"f","arguments":"{}"},
            {"id":"fc_E_2","type":"function_call","status":"completed","call_id":"call_E_2","name":"g","arguments":"{}"}]"#,
    ),
    (
        "no text where a function takes nothing",
        "tool_calls",
        r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#,
        "completed",
        r#"[{"id":"fc_E_0","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":""}]"#,
    ),
    (
        "Codex: apply_patch is a custom call again",
        "tool_calls",
        r#"{"content":"","tool_calls":[{"id":"a","function":{"name":"apply_patch","arguments":"{\"input\": \"*** Begin \\\"P\\\"\\n\\ud83d\\ude00\"}"}}]}"#,
        "completed",
        r#"[{"id":"ctc_E_0","type":"custom_tool_call","status":"completed","call_id":"a","name":"apply_patch","input":"*** Begin \"P\"\n😀"}]"#,
    ),
    (
        "a custom tool's text that was not wrapped",
        "tool_calls",
        r#"{"tool_calls":[{"id":"a","function":{"name":"apply_patch","arguments":"*** Begin Patch\n"}}]}"#,
        "completed",
        r#"[{"id":"ctc_E_0","type":"custom_tool_call","status":"completed","call_id":"a","name":"apply_patch","input":"*** Begin Patch\n"}]"#,
    ),
    (
        "a namespace's tools have their own names again",
        "tool_calls",
        r#"{"tool_calls":[{"id":"a","function":{"name":"mail__send","arguments":"{}"}},{"id":"b","function":{"name":"mail__draft","arguments":"{\"input\":\"x\"}"}}]}"#,
        "completed",
        r#"[{"id":"fc_E_0","type":"function_call","status":"completed","call_id":"a","name":"send","namespace":"mail","arguments":"{}"},
            {"id":"ctc_E_1","type":"custom_tool_call","status":"completed","call_id":"b","name":"draft","namespace":"mail","input":"x"}]"#,
    ),
    (
        "Codex: a search for tools has an object as its arguments",
        "tool_calls",
        r#"{"tool_calls":[{"id":"a","function":{"name":"tool_search","arguments":"{\n\"query\": \"a\\nb\"}"}}]}"#,
        "completed",
        r#"[{"id":"tsc_E_0","type":"tool_search_call","status":"completed","call_id":"a","execution":"client","arguments":{"query":"a\nb"}}]"#,
    ),
    (
        "a truncated call is not offered, one before it is",
        "length",
        r#"{"content":"Now.","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{\"n\":1}"}},
            {"id":"b","function":{"name":"f","arguments":"{\"n\":"}}]}"#,
        "incomplete",
        r#"[{"id":"msg_E","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Now.","annotations":[],"logprobs":[]}]},
            {"id":"fc_E_0","type":"function_call","status":"completed","call_id":"a","name":"f","arguments":"{\"n\":1}"}]"#,
    ),
    (
        "a truncated call whose arguments did not begin is not offered",
        "length",
        r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#,
        "incomplete",
        "[]",
    ),
    (
        "calls that were cut before their names are not offered",
        "length",
        r#"{"content":"Now.","tool_calls":[{"id":"a"},{"id":"b","function":{"arguments":""}},
            {"id":"c","function":{"name":"","arguments":""}},{"id":"d","function":{"name":null,"arguments":"{}"}}]}"#,
        "incomplete",
        r#"[{"id":"msg_E","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Now.","annotations":[],"logprobs":[]}]}]"#,
    ),
    (
        "a truncated patch is not offered, wrapped or not",
        "length",
        r#"{"tool_calls":[
            {"id":"a","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin"}},
            {"id":"b","function":{"name":"apply_patch","arguments":"*** Begin"}}]}"#,
        "incomplete",
        "[]",
    ),
];

/// What a row shows, and an answer that is not rendered.
const UNRENDERED: &[(&str, &str)] = &[
    ("no JSON", "<html>"),
    ("no choice", r#"{"choices":[]}"#),
    ("no message", r#"{"choices":[{"finish_reason":"stop"}]}"#),
    (
        "a text that is none",
        r#"{"choices":[{"message":{"content":7}}]}"#,
    ),
    (
        "calls that are no list",
        r#"{"choices":[{"message":{"tool_calls":{}}}]}"#,
    ),
    (
        "a call without a name",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"arguments":"{}"}}]}}]}"#,
    ),
    (
        "arguments that break off",
        r#"{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"n\":"}}]}}]}"#,
    ),
    (
        "arguments that are a list",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"[]"}}]}}]}"#,
    ),
    (
        "arguments that are no text",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}}]}"#,
    ),
    (
        "arguments with half a character outside of JSON",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\ud800}"}}]}}]}"#,
    ),
    (
        "a custom tool without its text",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"apply_patch","arguments":"{\"patch\":\"x\"}"}}]}}]}"#,
    ),
    (
        "no arguments where no end is said: the call may have been cut behind its name",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
    ),
    (
        "no arguments where the end is not known",
        r#"{"choices":[{"finish_reason":"novel","message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}}]}"#,
    ),
    (
        "a custom tool's text that was not wrapped, where the end is not known",
        r#"{"choices":[{"finish_reason":"novel","message":{"tool_calls":[{"id":"a","function":{"name":"apply_patch","arguments":"*** Begin"}}]}}]}"#,
    ),
    (
        "a custom tool's text that breaks off",
        r#"{"choices":[{"message":{"tool_calls":[{"id":"a","function":{"name":"apply_patch","arguments":" {\"input\":\"x"}}]}}]}"#,
    ),
];

#[test]
fn answers_become_the_items_that_say_the_same() {
    let turn = turn(TOOLS);
    for (what, finish, message, status, output) in OUTPUT {
        let document = answered(&turn, &completion(finish, message)).expect(what);
        let output = output.replace("_E", &format!("_{ENTRY}"));
        assert_eq!(document["output"], value(output), "{what}");
        assert_eq!(document["status"], *status, "{what}");
        let reason = match *finish {
            "length" => json!({"reason": "max_output_tokens"}),
            "content_filter" => json!({"reason": "content_filter"}),
            _ => Value::Null,
        };
        assert_eq!(document["incomplete_details"], reason, "{what}");
    }
}

#[test]
fn what_cannot_be_acted_on_is_not_rendered_and_nothing_is_invented() {
    let turn = turn(TOOLS);
    for (what, body) in UNRENDERED {
        let failed = answered(&turn, body).expect_err(what);
        assert!(failed.message.contains("billed"), "{what}: {failed:?}");
    }
    assert!(translate(&turn, b"\xff", facts()).is_err());
}

#[test]
fn the_document_has_every_member_that_clients_wait_for() {
    let turn = turn(r#"{"model":"gpt-5","input":"x"}"#);
    let document = answered(&turn, &completion("stop", r#"{"content":"Hi"}"#));
    let expected = json!({
        "id": format!("resp_{ENTRY}"),
        "object": "response",
        "created_at": 1_764_000_000,
        "status": "completed",
        "completed_at": null,
        "error": null,
        "incomplete_details": null,
        "model": "gpt-5",
        "output": [{
            "id": format!("msg_{ENTRY}"),
            "type": "message",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hi", "annotations": [], "logprobs": []}],
        }],
        "usage": {
            "input_tokens": 11,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 4,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 15,
            "cost": 0.001_857,
        },
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "temperature": 1.0,
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_output_tokens": null,
        "top_logprobs": 0,
        "text": {"format": {"type": "text"}},
        "instructions": null,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "safety_identifier": null,
        "metadata": {},
        "max_tool_calls": null,
        "store": true,
        "background": false,
        "reasoning": {"effort": null, "summary": null},
        "service_tier": "default",
        "truncation": "disabled",
    });
    assert_eq!(document.expect("a document"), expected);
}

#[test]
fn the_document_repeats_what_the_app_asked_and_not_what_was_left_out() {
    let turn = turn(
        r#"{"model":"gpt-5","input":"x","instructions":"Be \u0062rief.","metadata":{"k":"v"},"user":"u","store":false,
            "temperature":0.2,"max_output_tokens":64,"max_tool_calls":3,"prompt_cache_key":"p","safety_identifier":"s",
            "parallel_tool_calls":false,"tool_choice":"none","reasoning":{"effort":"high"},"service_tier":"priority",
            "truncation":"auto","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}},"verbosity":"low"},
            "tools":[{"type":"function","name":"f"},{"type":"web_search"},{"type":"custom","name":"c"}]}"#,
    );
    let document = answered(&turn, &completion("stop", r#"{"content":"Hi"}"#)).expect("a document");
    for (member, expected) in [
        ("instructions", json!("Be brief.")),
        ("metadata", json!({"k": "v"})),
        ("user", json!("u")),
        ("store", json!(false)),
        ("temperature", json!(0.2)),
        ("max_output_tokens", json!(64)),
        ("max_tool_calls", json!(3)),
        ("prompt_cache_key", json!("p")),
        ("safety_identifier", json!("s")),
        ("parallel_tool_calls", json!(false)),
        ("tool_choice", json!("none")),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("service_tier", json!("default")),
        ("truncation", json!("disabled")),
        (
            "text",
            json!({"format": {"type": "json_schema", "name": "n", "description": null, "schema": {"type": "object"}, "strict": false}}),
        ),
        (
            "tools",
            json!([
                {"type": "function", "name": "f", "description": null, "parameters": null, "strict": null},
                {"type": "custom", "name": "c"},
            ]),
        ),
    ] {
        assert_eq!(document[member], expected, "{member}");
    }
}

#[test]
fn counts_are_the_service_s_and_0_where_it_reported_none() {
    let turn = turn(r#"{"input":"x"}"#);
    let counted = |usage: &str| {
        let body = format!(r#"{{"choices":[{{"message":{{"content":"Hi"}}}}]{usage}}}"#);
        let document = answered(&turn, &body).expect("a document");
        let usage = &document["usage"];
        ["input_tokens", "output_tokens", "total_tokens"].map(|name| usage[name].as_u64())
    };
    let some = |counts: [u64; 3]| counts.map(Some);
    assert_eq!(counted(""), some([0, 0, 0]));
    assert_eq!(counted(r#","usage":null"#), some([0, 0, 0]));
    assert_eq!(
        counted(r#","usage":{"prompt_tokens":3,"completion_tokens":4}"#),
        some([3, 4, 7])
    );
    assert_eq!(
        counted(r#","usage":{"prompt_tokens":-3,"completion_tokens":1.5}"#),
        some([0, 0, 0])
    );
    assert_eq!(counted(r#","usage":{"total_tokens":9}"#), some([0, 0, 9]));

    let detailed = r#"{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7,
        "prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}"#;
    let document = answered(&turn, detailed).expect("a document");
    assert_eq!(
        document["usage"]["input_tokens_details"]["cached_tokens"],
        2
    );
    assert_eq!(
        document["usage"]["output_tokens_details"]["reasoning_tokens"],
        1
    );
}

#[test]
fn the_price_is_written_from_the_integer_and_absent_where_it_is_not_known() {
    let turn = turn(r#"{"input":"x"}"#);
    let body = completion("stop", r#"{"content":"Hi"}"#);
    for (cost, expected) in [
        (Some(0), Some(",\"cost\":0.000000}")),
        (Some(1), Some(",\"cost\":0.000001}")),
        (Some(12_345_678), Some(",\"cost\":12.345678}")),
        (Some(u64::MAX), Some(",\"cost\":18446744073709.551615}")),
        (None, None),
    ] {
        let facts = AnswerFacts {
            cost: cost.map(MicroUsd::new),
            ..facts()
        };
        let document = translate(&turn, body.as_bytes(), facts).expect("a document");
        let document = String::from_utf8(document).expect("UTF-8");
        match expected {
            Some(expected) => assert!(document.contains(expected), "{document}"),
            None => assert!(!document.contains("cost"), "{document}"),
        }
    }
}

#[test]
fn probabilities_are_the_service_s_own() {
    let turn = turn(r#"{"input":"x","top_logprobs":1}"#);
    let body = r#"{"choices":[{"finish_reason":"stop","message":{"content":"Hi"},
        "logprobs":{"content":[{"token":"Hi","logprob":-0.10,"bytes":[72,105],"top_logprobs":[]}]}}]}"#;
    let document = translate(&turn, body.as_bytes(), facts()).expect("a document");
    let document = String::from_utf8(document).expect("UTF-8");
    assert!(
        document.contains(r#""logprobs":[{"token":"Hi","logprob":-0.10,"#),
        "{document}"
    );
}

#[test]
fn where_the_service_names_no_time_or_the_app_no_model_the_other_s_stands() {
    let turn = turn(r#"{"input":"x"}"#);
    let document = answered(
        &turn,
        r#"{"model":"auto","choices":[{"message":{"content":"Hi"}}]}"#,
    );
    let document = document.expect("a document");
    assert_eq!(document["created_at"], 1_700_000_000);
    assert_eq!(document["model"], "auto");
}

#[test]
fn half_a_character_of_the_service_passes_as_it_came() {
    let turn = turn(TOOLS);
    let message = r#"{"content":"\ud800","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":\"\\ud800\"}"}}]}"#;
    let body = completion("tool_calls", message);
    let document = translate(&turn, body.as_bytes(), facts()).expect("a document");
    let document = String::from_utf8(document).expect("UTF-8");
    assert!(document.contains(r#""text":"\ud800""#), "{document}");
    assert!(
        document.contains(r#""arguments":"{\"x\":\"\\ud800\"}""#),
        "{document}"
    );
}

#[test]
fn the_document_is_one_line_however_the_request_was_spaced() {
    let body = completion("tool_calls", &calling("tool_search", "{\r\n}"));
    let document = translate(&turn(TOOLS), body.as_bytes(), facts()).expect("a document");
    assert!(!document.iter().any(|byte| b"\r\n".contains(byte)));
}

#[test]
fn the_same_answer_gives_the_same_bytes() {
    let body = completion("tool_calls", &calling("mail__send", r#"{"to":"a"}"#));
    let [one, two] = [(); 2].map(|()| translate(&turn(TOOLS), body.as_bytes(), facts()));
    assert_eq!(one.expect("a document"), two.expect("a document"));
}

#[test]
fn a_second_turn_may_refer_to_the_first_by_answer_or_by_item() {
    let memory = RefCell::new(Memory::new(Bounds::default()));
    let first = turn(r#"{"input":[{"role":"user","content":"My name is Alice."}]}"#);
    let body = completion("stop", r#"{"content":"Hello Alice!"}"#);
    let document = translate(&first, body.as_bytes(), facts()).expect("a document");
    let kept = given(&first, &document).expect("kept");
    memory.borrow_mut().keep("app", kept, Duration::ZERO);

    let by_answer = format!(r#"{{"previous_response_id":"resp_{ENTRY}","input":"Which?"}}"#);
    let by_item = format!(
        r#"{{"input":[{{"role":"user","content":"My name is Alice."}},{{"type":"item_reference","id":"msg_{ENTRY}"}},
            {{"role":"user","content":"Which?"}}]}}"#
    );
    for body in [by_answer, by_item] {
        let found = |id: &str| memory.borrow_mut().find("app", id, Duration::ZERO);
        let second = request::translate(body.as_bytes(), &found).expect("a request");
        let messages = json!([
            {"role": "user", "content": "My name is Alice."},
            {"role": "assistant", "content": "Hello Alice!"},
            {"role": "user", "content": "Which?"},
        ]);
        assert_eq!(value(second.body)["messages"], messages);
        // A third turn finds the whole conversation.
        let third = given(&second.turn, &document).expect("kept");
        let mut memory = Memory::new(Bounds::default());
        memory.keep("app", third, Duration::ZERO);
        let found = memory.find("app", &format!("resp_{ENTRY}"), Duration::ZERO);
        assert_eq!(found.map(|items| items.len()), Some(4));
    }
}

#[test]
fn what_is_not_to_be_stored_is_not_kept() {
    let turn = turn(r#"{"input":"x","store":false}"#);
    let body = completion("stop", r#"{"content":"Hi"}"#);
    let document = translate(&turn, body.as_bytes(), facts()).expect("a document");
    assert!(given(&turn, &document).is_none());
}

#[test]
fn a_turn_shows_no_text_of_its_request() {
    let translated = asked(r#"{"input":"a secret","instructions":"another secret"}"#);
    let shown = format!("{:?}", translated.expect("a request").turn);
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn arguments_may_have_any_number_of_members() {
    let members = (0..2_000).map(|n| format!("\"k{n}\":{n}"));
    let arguments = format!("{{{}}}", members.collect::<Vec<_>>().join(","));
    let text = json!(arguments).to_string();
    let text = RawValue::from_string(text).expect("JSON");
    assert!(is_complete(Text::of(&text).expect("a text"), true));
}
