//! Requests, clause by clause: what is sent for them, what is refused, what is left out.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::memory::Item;
use super::super::tests::samples::{asked, value};
use super::translate;

/// What a row shows, members beside the input, the members of the chat completion beside the messages.
const MEMBERS: &[(&str, &str, &str)] = &[
    (
        "a function's flat form is nested; strict as sent",
        r#""tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object"},"strict":false}]"#,
        r#""tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":false}}]"#,
    ),
    (
        "a function of a name alone",
        r#""tools":[{"type":"function","name":"f","description":null,"parameters":null,"strict":null}]"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
    ),
    (
        "a custom tool takes one string",
        r#""tools":[{"type":"custom","name":"c"}]"#,
        r#""tools":[{"type":"function","function":{"name":"c","description":"Call this function with one argument, `input`: the whole text, as one string.","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}}]"#,
    ),
    (
        "Codex: the grammar of apply_patch is in its description",
        r#""tools":[{"type":"custom","name":"apply_patch","description":"Edit.","format":{"type":"grammar","syntax":"lark","definition":"start: \"x\"\n"}}]"#,
        r#""tools":[{"type":"function","function":{"name":"apply_patch","description":"Edit.\n\nCall this function with one argument, `input`: the whole text, as one string.\n\nThe text has to match this grammar (lark):\nstart: \"x\"\n","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}}]"#,
    ),
    (
        "a namespace is flattened",
        r#""tools":[{"type":"namespace","name":"mcp__mail","description":"Mail.","tools":[{"type":"function","name":"send","defer_loading":true,"parameters":{"type":"object"}}]}]"#,
        r#""tools":[{"type":"function","function":{"name":"mcp__mail__send","parameters":{"type":"object"}}}]"#,
    ),
    (
        "server tools are left out, and with the last tool what is said of tools",
        r#""tools":[{"type":"web_search_preview_2025_03_11"},{"type":"code_interpreter"},{"type":"not_yet_known"}],"tool_choice":"auto","parallel_tool_calls":true"#,
        "",
    ),
    (
        "Codex sends an empty list",
        r#""tools":[],"tool_choice":"auto","parallel_tool_calls":false"#,
        "",
    ),
    (
        "Codex: a search for tools that the app does itself is a function",
        r#""tools":[{"type":"tool_search","execution":"client","description":"Finds tools.","parameters":{"type":"object"}},{"type":"tool_search"}]"#,
        r#""tools":[{"type":"function","function":{"name":"tool_search","description":"Finds tools.","parameters":{"type":"object"}}}]"#,
    ),
    (
        "a choice of a word",
        r#""tools":[{"type":"function","name":"f"}],"tool_choice":"required","parallel_tool_calls":false"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"required","parallel_tool_calls":false"#,
    ),
    (
        "no call at all",
        r#""tools":[{"type":"function","name":"f"}],"tool_choice":"none""#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none""#,
    ),
    (
        "a choice of one function",
        r#""tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"}"#,
        r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"f"}}"#,
    ),
    (
        "of the allowed tools only those are offered",
        r#""tools":[{"type":"function","name":"f"},{"type":"function","name":"g"},{"type":"mcp","server_label":"x"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"mcp","server_label":"x"}]}"#,
        r#""tools":[{"type":"function","function":{"name":"g"}}],"tool_choice":"required""#,
    ),
    (
        "numbers keep their digits",
        r#""temperature":0.70,"top_p":1e-1,"presence_penalty":-0.5,"frequency_penalty":0,"max_output_tokens":16"#,
        r#""temperature":0.70,"top_p":1e-1,"presence_penalty":-0.5,"frequency_penalty":0,"max_tokens":16"#,
    ),
    (
        "a limit at the window",
        r#""max_output_tokens":131072"#,
        r#""max_tokens":131072"#,
    ),
    (
        "a limit above the window",
        r#""max_output_tokens":1000000"#,
        r#""max_tokens":131072"#,
    ),
    (
        "of a member that occurs twice the last one counts",
        r#""temperature":1,"temperature":2"#,
        r#""temperature":2"#,
    ),
    (
        "probabilities of tokens",
        r#""top_logprobs":3,"include":["message.output_text.logprobs"]"#,
        r#""logprobs":true,"top_logprobs":3"#,
    ),
    (
        "plain text is the default",
        r#""text":{"format":{"type":"text"},"verbosity":"low"}"#,
        "",
    ),
    (
        "JSON",
        r#""text":{"format":{"type":"json_object"}}"#,
        r#""response_format":{"type":"json_object"}"#,
    ),
    (
        "a schema is nested",
        r#""text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object","required":["a"]}}}"#,
        r#""response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","required":["a"]},"strict":true}}"#,
    ),
    (
        "what is null is absent",
        r#""reasoning":null,"temperature":null,"tools":null,"text":null,"stream":null,"metadata":null,"previous_response_id":null,"conversation":null,"prompt":null"#,
        "",
    ),
];

/// What a row shows, the members of the request, the path that is refused.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "background",
        r#""input":"x","background":true"#,
        "background",
    ),
    (
        "a conversation",
        r#""input":"x","conversation":"conv_1""#,
        "conversation",
    ),
    (
        "a stored prompt",
        r#""input":"x","prompt":{"id":"pmpt_1"}"#,
        "prompt",
    ),
    ("a chat completion's body", r#""messages":[]"#, "messages"),
    ("nothing to answer", r#""instructions":"x""#, "input"),
    ("an empty list", r#""input":[]"#, "input"),
    (
        "an answer that is not known",
        r#""input":"x","previous_response_id":"resp_1""#,
        "previous_response_id",
    ),
    (
        "an item that is not known",
        r#""input":[{"type":"item_reference","id":"msg_1"}]"#,
        "input[0].id",
    ),
    (
        "the same without its type",
        r#""input":[{"id":"msg_1"}]"#,
        "input[0].id",
    ),
    (
        "a file by id",
        r#""input":[{"role":"user","content":[{"type":"input_image","file_id":"file-1"}]}]"#,
        "input[0].content[0].file_id",
    ),
    (
        "a file",
        r#""input":[{"role":"user","content":[{"type":"input_file","file_data":"x"}]}]"#,
        "input[0].content[0].type",
    ),
    (
        "sound",
        r#""input":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]"#,
        "input[0].content[0].type",
    ),
    (
        "an image of the system",
        r#""input":[{"role":"system","content":[{"type":"input_image","image_url":"x"}]}]"#,
        "input[0].content[0].type",
    ),
    (
        "a file as an output",
        r#""input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_file"}]}]"#,
        "input[1].output[0].type",
    ),
    (
        "a call without an output",
        r#""input":[{"role":"user","content":"x"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"}]"#,
        "input[1]",
    ),
    (
        "an output without a call",
        r#""input":[{"type":"function_call_output","call_id":"a","output":"x"}]"#,
        "input[0].call_id",
    ),
    (
        "a shell that the app runs, which has no schema",
        r#""input":"x","tools":[{"type":"function","name":"f"},{"type":"local_shell"}]"#,
        "tools[1].type",
    ),
    (
        "another one",
        r#""input":"x","tools":[{"type":"shell"}]"#,
        "tools[0].type",
    ),
    (
        "a computer that the app drives",
        r#""input":"x","tools":[{"type":"computer_use_preview","display_width":800}]"#,
        "tools[0].type",
    ),
    (
        "patches that the app applies, in a form without a schema",
        r#""input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"apply_patch"}]}]"#,
        "tools[0].tools[0].type",
    ),
    (
        "a call of the computer",
        r#""input":[{"type":"computer_call","id":"c"}]"#,
        "input[0].type",
    ),
    (
        "a call of the local shell",
        r#""input":[{"type":"local_shell_call","call_id":"c"}]"#,
        "input[0].type",
    ),
    (
        "a compacted past, which only its maker reads",
        r#""input":[{"type":"compaction","encrypted_content":"x"}]"#,
        "input[0].type",
    ),
    (
        "a role of chat completions",
        r#""input":[{"role":"tool","content":"x"}]"#,
        "input[0].role",
    ),
    (
        "a message without content",
        r#""input":[{"role":"user"}]"#,
        "input[0].content",
    ),
    (
        "a number for a text",
        r#""input":[{"role":"user","content":[{"type":"input_text","text":1}]}]"#,
        "input[0].content[0].text",
    ),
    ("a number for the input", r#""input":7"#, "input"),
    ("an item that is no object", r#""input":["x"]"#, "input[0]"),
    (
        "half a character for a name",
        r#""input":[{"type":"function_call","call_id":"a","name":"\ud800","arguments":"{}"}]"#,
        "input[0].name",
    ),
    (
        "the nested form of a function",
        r#""input":"x","tools":[{"type":"function","function":{"name":"f"}}]"#,
        "tools[0].name",
    ),
    (
        "two tools of one name",
        r#""input":"x","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]"#,
        "tools[1].name",
    ),
    (
        "two tools of one name in a namespace",
        r#""input":"x","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"},{"type":"custom","name":"f"}]}]"#,
        "tools[0].tools[1].name",
    ),
    (
        "parameters that are no object",
        r#""input":"x","tools":[{"type":"function","name":"f","parameters":[]}]"#,
        "tools[0].parameters",
    ),
    (
        "a grammar without text",
        r#""input":"x","tools":[{"type":"custom","name":"f","format":{"type":"grammar"}}]"#,
        "tools[0].format.definition",
    ),
    (
        "a server tool that has to be called",
        r#""input":"x","tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}"#,
        "tool_choice",
    ),
    (
        "a call that nothing can answer",
        r#""input":"x","tools":[{"type":"web_search"}],"tool_choice":"required""#,
        "tool_choice",
    ),
    (
        "a tool that is not offered",
        r#""input":"x","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}"#,
        "tool_choice.name",
    ),
    (
        "a choice that is no word",
        r#""input":"x","tool_choice":"perhaps""#,
        "tool_choice",
    ),
    (
        "a form that is not known",
        r#""input":"x","text":{"format":{"type":"xml"}}"#,
        "text.format.type",
    ),
    (
        "a schema without a schema",
        r#""input":"x","text":{"format":{"type":"json_schema","name":"n"}}"#,
        "text.format.schema",
    ),
    (
        "a text for a number",
        r#""input":"x","temperature":"hot""#,
        "temperature",
    ),
    (
        "half a token",
        r#""input":"x","max_output_tokens":1.5"#,
        "max_output_tokens",
    ),
    (
        "a text for a switch",
        r#""input":"x","stream":"yes""#,
        "stream",
    ),
    (
        "metadata that is a list",
        r#""input":"x","metadata":[]"#,
        "metadata",
    ),
    ("a number for a model", r#""input":"x","model":1"#, "model"),
];

/// The members of the request, and what is left out of it.
const DROPPED: &[(&str, &[(&str, u32)])] = &[
    (r#""input":"x""#, &[]),
    (
        r#""input":"x","reasoning":null,"service_tier":null,"whatever":null"#,
        &[],
    ),
    (
        r#""input":"x","reasoning":{"effort":"high","summary":"auto"},"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","service_tier":"priority","client_metadata":{"a":"b"}"#,
        &[
            ("reasoning", 1),
            ("prompt_cache_key", 1),
            ("service_tier", 1),
            ("client_metadata", 1),
            ("include", 1),
        ],
    ),
    (
        r#""input":"x","truncation":"auto","user":"u","safety_identifier":"s""#,
        &[("truncation", 1), ("user", 1), ("safety_identifier", 1)],
    ),
    (
        r#""input":"x","text":{"verbosity":"low"},"stream_options":{"include_obfuscation":false}"#,
        &[("stream_options", 1), ("text.verbosity", 1)],
    ),
    (
        r#""input":"x","max_output_tokens":131073"#,
        &[("max_output_tokens above the window", 1)],
    ),
    (
        r#""input":"x","secret of the app":1,"another":2"#,
        &[("unknown member", 2)],
    ),
    (
        r#""input":"x","tools":[{"type":"web_search"},{"type":"web_search_preview"},{"type":"mcp"},{"type":"quite new"}]"#,
        &[("tool web_search", 2), ("tool mcp", 1), ("tool other", 1)],
    ),
    (
        r#""input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"reasoning","summary":[],"encrypted_content":"x"},{"role":"user","content":"x"}]"#,
        &[("item reasoning", 2)],
    ),
    (
        r#""input":[{"role":"assistant","phase":"commentary","content":"x"},{"role":"user","content":[{"type":"input_image","image_url":"x","detail":"original"}]}]"#,
        &[("phase", 1), ("image detail", 1)],
    ),
];

fn sent(members: &str) -> Value {
    let body = format!(r#"{{"model":"gpt-5",{members}}}"#);
    let translated = asked(&body).unwrap_or_else(|error| panic!("{error:?} for {body}"));
    value(translated.body)
}

#[test]
fn members_become_those_of_a_chat_completion_or_none() {
    for (what, members, expected) in MEMBERS {
        let comma = if expected.is_empty() { "" } else { "," };
        let messages = r#""messages":[{"role":"user","content":"x"}]"#;
        let expected = value(format!(
            r#"{{"model":"gpt-5",{messages}{comma}{expected}}}"#
        ));
        assert_eq!(
            sent(&format!(r#""input":"x",{members}"#)),
            expected,
            "{what}"
        );
    }
}

#[test]
fn what_changes_the_meaning_is_refused_with_its_path() {
    for (what, members, path) in REFUSED {
        let body = format!("{{{members}}}");
        let refused = asked(&body).expect_err(what);
        assert_eq!(refused.param, *path, "{what}");
        assert!(!refused.message.is_empty(), "{what}");
    }
}

#[test]
fn what_only_tunes_is_left_out_and_counted_without_a_word_of_the_app() {
    for (members, expected) in DROPPED {
        let translated = asked(&format!("{{{members}}}")).expect("a request");
        let dropped: Vec<(&str, u32)> = translated.dropped.iter().collect();
        assert_eq!(dropped, *expected, "{members}");
    }
}

#[test]
fn what_is_not_kept_is_refused_with_the_remedy() {
    for body in [
        r#"{"input":"x","previous_response_id":"resp_1"}"#,
        r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
    ] {
        let refused = asked(body).expect_err("nothing is kept");
        assert!(refused.message.contains("store: false"), "{refused:?}");
    }
}

#[test]
fn a_body_that_is_no_object_is_refused_as_a_whole() {
    for body in [
        "",
        "[]",
        "7",
        "{\"input\":\"x\"",
        "{\"input\":\"x\"} x",
        "\u{feff}{}",
    ] {
        assert_eq!(asked(body).expect_err(body).param, "", "{body}");
    }
    let refused = translate(b"{\"input\":\"\xff\"}", &|_| None);
    assert_eq!(refused.expect_err("not UTF-8").param, "");
}

#[test]
fn a_stream_is_asked_for_whole_and_remembered_as_the_app_s_wish() {
    for (body, wants_stream) in [
        (r#"{"input":"x","stream":true}"#, true),
        (r#"{"input":"x","stream":false}"#, false),
        (r#"{"input":"x"}"#, false),
    ] {
        let translated = asked(body).expect("a request");
        assert_eq!(translated.wants_stream, wants_stream);
        assert_eq!(value(translated.body).get("stream"), None);
    }
}

#[test]
fn instructions_come_first_and_those_of_an_earlier_answer_do_not_come_again() {
    let earlier = |id: &str| -> Option<Arc<[Item]>> {
        let items = [
            r#"{"role":"user","content":"a"}"#,
            r#"{"role":"assistant","content":"b"}"#,
        ];
        (id == "resp_1").then(|| items.map(Item::new).into())
    };
    let body = br#"{"instructions":"Be brief.","previous_response_id":"resp_1","input":"c"}"#;
    let translated = translate(body, &earlier).expect("a request");

    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]);
    assert_eq!(value(translated.body).get("messages"), Some(&messages));
}

#[test]
fn an_item_is_no_answer_to_go_on_from() {
    let earlier = |_: &str| Some(Arc::from([Item::new(r#"{"role":"user","content":"a"}"#)]));
    let body = br#"{"input":"x","previous_response_id":"msg_1"}"#;
    let refused = translate(body, &earlier).expect_err("an item");
    assert_eq!(refused.param, "previous_response_id");
}

#[test]
fn a_reference_stands_for_one_item_and_never_for_a_conversation() {
    let earlier = |_: &str| {
        Some(Arc::from([Item::new(
            r#"{"role":"assistant","content":"b"}"#,
        )]))
    };
    let ask = |id: &str| {
        let body = json!({"input": [{"type": "item_reference", "id": id}, {"role": "user", "content": "c"}]});
        translate(body.to_string().as_bytes(), &earlier)
    };
    let messages = json!([{"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]);
    let translated = ask("msg_1").expect("a request");
    assert_eq!(value(translated.body).get("messages"), Some(&messages));
    assert_eq!(
        ask("resp_1").expect_err("a conversation").param,
        "input[0].id"
    );
}

#[test]
fn a_namespace_s_long_or_taken_name_is_told_apart() {
    let long = "n".repeat(80);
    let body = json!({"input": "x", "tools": [
        {"type": "namespace", "name": "a", "tools": [{"type": "function", "name": "f"}, {"type": "function", "name": long}]},
        {"type": "function", "name": "a__f"},
        {"type": "namespace", "name": "b.c", "tools": [{"type": "function", "name": "f"}]},
    ]});
    let sent = value(asked(&body.to_string()).expect("a request").body);
    let tools = sent.get("tools").and_then(Value::as_array).expect("tools");
    let names: Vec<&str> = tools
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    let cut = format!("a__{}_a18ea6a4", "n".repeat(52));
    assert_eq!(names, ["a__f_0cf3a586", &cut, "a__f", "bc__f_5d61bfac"]);
    assert_eq!(cut.len(), 64);
}

#[test]
fn a_call_to_a_namespace_s_tool_goes_back_under_the_name_that_the_service_knows() {
    let body = r#"{"tools":[{"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"}]}],
        "input":[{"type":"function_call","call_id":"a","namespace":"mail","name":"send","arguments":"{}"},
                 {"type":"function_call_output","call_id":"a","output":"x"}]}"#;
    let sent = value(asked(body).expect("a request").body);
    assert_eq!(
        sent["messages"][0]["tool_calls"][0]["function"]["name"],
        "mail__send"
    );
    assert_eq!(sent["tools"][0]["function"]["name"], "mail__send");
}

#[test]
fn tools_that_the_app_found_are_offered_once() {
    let found = r#"{"type":"namespace","name":"mail","tools":[{"type":"function","name":"send"}]},{"type":"function","name":"f"}"#;
    let body = format!(
        r#"{{"tools":[{{"type":"tool_search","execution":"client"}},{{"type":"function","name":"f"}}],"input":[
            {{"type":"tool_search_call","call_id":"a","execution":"client","arguments":{{}}}},
            {{"type":"tool_search_output","call_id":"a","tools":[{found}]}},
            {{"type":"tool_search_call","call_id":"b","execution":"client","arguments":{{}}}},
            {{"type":"tool_search_output","call_id":"b","tools":[{found}]}}]}}"#
    );
    let sent = value(asked(&body).expect("a request").body);
    let tools = sent["tools"].as_array().expect("tools");
    let names: Vec<&Value> = tools.iter().map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["tool_search", "f", "mail__send"]);
    assert_eq!(sent["messages"][1]["content"], format!("[{found}]"));
}

#[test]
fn tools_that_stand_among_the_items_are_offered() {
    let body = r#"{"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"f"}]},
        {"role":"user","content":"x"}]}"#;
    let sent = value(asked(body).expect("a request").body);
    assert_eq!(sent["tools"][0]["function"]["name"], "f");
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_model_is_named_as_the_app_did_or_not_at_all() {
    let named = value(
        asked(r#"{"input":"x","model":"gpt-5"}"#)
            .expect("a request")
            .body,
    );
    assert_eq!(named["model"], "gpt-5");
    let unnamed = value(asked(r#"{"input":"x"}"#).expect("a request").body);
    assert_eq!(unnamed.get("model"), None);
}

#[test]
fn a_long_conversation_and_a_deep_document_are_read_in_one_go() {
    let mut items = String::new();
    for number in 0..2_000 {
        items.push_str(&format!(r#"{{"role":"user","content":"{number}"}},"#));
    }
    let body = format!(r#"{{"input":[{}]}}"#, items.trim_end_matches(','));
    let sent = value(asked(&body).expect("a request").body);
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(2_000));

    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let body = format!(r#"{{"input":"x","unknown":{deep},"metadata":{{"a":{deep}}}}}"#);
    assert!(asked(&body).is_ok());
    assert_eq!(
        asked(&format!(r#"{{"input":{deep}}}"#))
            .expect_err("no item")
            .param,
        "input[0]"
    );
}
