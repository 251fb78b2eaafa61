//! What becomes of the system prompt and of messages.

use super::*;

/// What is checked, the dialect's messages, and the chat form's.
type Case = (&'static str, Value, Value);

fn check(cases: impl IntoIterator<Item = Case>) {
    for (what, messages, expected) in cases {
        let sent = sent(&request(json!({"messages": messages})));
        assert_eq!(sent["messages"], expected, "{what}");
    }
}

fn image_part() -> Value {
    json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO+/8="}})
}

fn tool(id: &str, content: &str) -> Value {
    json!({"role": "tool", "content": content, "tool_call_id": id})
}

#[test]
fn the_system_prompt_is_one_message_and_loses_nothing() {
    let line = "x-anthropic-billing-header: cc_version=2.1; cch=1;";
    let cases = [
        ("a string", json!("Be kind."), Some("Be kind.")),
        ("an empty string", json!(""), None),
        ("no blocks", json!([]), None),
        (
            "blocks",
            json!([text("a"), text("b"), text("c")]),
            Some("a\n\nb\n\nc"),
        ),
        (
            "an empty block",
            json!([text("a"), text(""), text("c")]),
            Some("a\n\nc"),
        ),
        (
            "the attribution in a block",
            json!([text(line), text("b")]),
            Some("b"),
        ),
        ("nothing but the attribution", json!([text(line)]), None),
        (
            "the attribution in a string",
            json!(format!("{line}\nBe kind.\n")),
            Some("Be kind.\n"),
        ),
        (
            "more in its block",
            json!([text(&format!("{line}\n\na")), text("b")]),
            Some("\na\n\nb"),
        ),
        (
            "a backslash and an n in its line",
            json!(format!("{line}\\n\nrest")),
            Some("rest"),
        ),
        (
            "the same words further down",
            json!([text("a"), text(line)]),
            Some(&format!("a\n\n{line}")),
        ),
        ("null", Value::Null, None),
    ];
    for (what, system, expected) in cases {
        let messages = json!([user(json!("hi"))]);
        let sent = sent(&request(json!({"system": system, "messages": messages})));
        let sent = sent["messages"].as_array().unwrap();
        match expected {
            Some(text) => assert_eq!(
                sent[0],
                json!({"role": "system", "content": text}),
                "{what}"
            ),
            None => assert_eq!(sent.len(), 1, "{what}"),
        }
        assert_eq!(*sent.last().unwrap(), user(json!("hi")), "{what}");
    }
}

#[test]
fn a_system_message_stands_where_it_stood() {
    let system = |content: Value| json!({"role": "system", "content": content});
    let for_once = json!({"role": "system", "content": "once", "clear_at": "next_user_message"});
    check([
        (
            "in the middle, as a string",
            json!([
                user(json!("a")),
                system(json!("s")),
                assistant(json!("b")),
                user(json!("c"))
            ]),
            json!([
                user(json!("a")),
                system(json!("s")),
                assistant(json!("b")),
                user(json!("c"))
            ]),
        ),
        (
            "at the end, as blocks: Claude Code's first request",
            json!([user(json!("a")), system(json!([text("s"), text("t")]))]),
            json!([user(json!("a")), system(json!("s\n\nt"))]),
        ),
        (
            "one that only directs",
            json!([user(json!("a")), {"role": "system", "content": [], "output_config": {"effort": "low"}}]),
            json!([user(json!("a"))]),
        ),
        (
            "one for the turn it follows, in that turn",
            json!([user(json!("a")), for_once]),
            json!([user(json!("a")), system(json!("once"))]),
        ),
        (
            "one for the turn it follows, later",
            json!([
                user(json!("a")),
                for_once,
                assistant(json!("b")),
                user(json!("c"))
            ]),
            json!([user(json!("a")), assistant(json!("b")), user(json!("c"))]),
        ),
    ]);
}

#[test]
fn what_the_user_says_keeps_its_blocks() {
    let url = json!({"type": "image", "source": {"type": "url", "url": "https://x.invalid/a.png"}});
    let plain = json!({"type": "text", "media_type": "text/plain", "data": "words"});
    let document = json!({"type": "document", "source": plain, "title": "T", "context": "C"});
    let inside = json!({"type": "content", "content": [text("a"), image()]});
    let found = json!({"type": "search_result", "title": "T", "source": "https://x.invalid",
        "content": [text("a"), text("b")], "citations": {"enabled": true}});
    check([
        (
            "a string",
            json!([user(json!("a"))]),
            json!([user(json!("a"))]),
        ),
        (
            "one text is a string",
            json!([user(json!([text("a")]))]),
            json!([user(json!("a"))]),
        ),
        (
            "texts stay apart",
            json!([user(json!([text("a"), text("b")]))]),
            json!([user(json!([text("a"), text("b")]))]),
        ),
        (
            "an image between texts",
            json!([user(json!([text("a"), image(), text("b")]))]),
            json!([user(json!([text("a"), image_part(), text("b")]))]),
        ),
        (
            "an image alone",
            json!([user(json!([url]))]),
            json!([user(
                json!([{"type": "image_url", "image_url": {"url": "https://x.invalid/a.png"}}])
            )]),
        ),
        (
            "a document of plain text",
            json!([user(json!([document]))]),
            json!([user(json!("T\n\nC\n\nwords"))]),
        ),
        (
            "a document of blocks",
            json!([user(json!([{"type": "document", "source": inside}]))]),
            json!([user(json!([text("a"), image_part()]))]),
        ),
        (
            "a document of one string",
            json!([user(
                json!([{"type": "document", "source": {"type": "content", "content": "a"}}])
            )]),
            json!([user(json!("a"))]),
        ),
        (
            "a search result",
            json!([user(json!([found]))]),
            json!([user(json!("T\n\nhttps://x.invalid\n\na\n\nb"))]),
        ),
        (
            "two turns of the user",
            json!([user(json!("a")), user(json!("b"))]),
            json!([user(json!("a")), user(json!("b"))]),
        ),
    ]);
}

#[test]
fn results_stand_directly_behind_their_calls() {
    let called = |id: &str| assistant(json!([call(id, json!({}))]));
    let chat_call = |id: &str| {
        let function = json!({"name": "t", "arguments": "{}"});
        let calls = json!([{"id": id, "type": "function", "function": function}]);
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    };
    let failed =
        json!({"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": true});
    let silent = json!({"type": "tool_result", "tool_use_id": "a", "is_error": true});
    let fine =
        json!({"type": "tool_result", "tool_use_id": "a", "content": "r", "is_error": false});
    let empty = json!({"type": "tool_result", "tool_use_id": "a"});
    let image_of = |id: &str| text(&format!("Images of the result of tool call {id}:"));
    let note = "Images of this result follow in the next user message.";
    let found = json!({"type": "tool_reference", "tool_name": "WebFetch"});
    check([
        (
            "a string",
            json!([called("a"), user(json!([result("a", json!("r"))]))]),
            json!([chat_call("a"), tool("a", "r")]),
        ),
        (
            "blocks",
            json!([
                called("a"),
                user(json!([result("a", json!([text("r"), text("s")]))]))
            ]),
            json!([chat_call("a"), tool("a", "r\n\ns")]),
        ),
        (
            "before the user's text, wherever it stood",
            json!([
                called("a"),
                user(json!([text("go on"), result("a", json!("r"))]))
            ]),
            json!([chat_call("a"), tool("a", "r"), user(json!("go on"))]),
        ),
        (
            "a failure",
            json!([called("a"), user(json!([failed]))]),
            json!([
                chat_call("a"),
                tool("a", "The tool reported an error:\n\nno")
            ]),
        ),
        (
            "a failure without words",
            json!([called("a"), user(json!([silent]))]),
            json!([chat_call("a"), tool("a", "The tool reported an error:")]),
        ),
        (
            "no failure",
            json!([called("a"), user(json!([fine]))]),
            json!([chat_call("a"), tool("a", "r")]),
        ),
        (
            "nothing",
            json!([called("a"), user(json!([empty]))]),
            json!([chat_call("a"), tool("a", "")]),
        ),
        (
            "an image: a tool's message takes none",
            json!([
                called("a"),
                user(json!([result("a", json!([image()])), text("and?")]))
            ]),
            json!([
                chat_call("a"),
                tool("a", note),
                user(json!([image_of("a"), image_part(), text("and?")]))
            ]),
        ),
        (
            "images of two results, texts between them",
            json!([
                assistant(json!([call("a", json!({})), call("b", json!({}))])),
                user(json!([
                    result("a", json!([text("r"), image(), text("s")])),
                    result("b", json!([image(), image()])),
                ]))
            ]),
            json!([
                {"role": "assistant", "content": null, "tool_calls": [
                    chat_call("a")["tool_calls"][0], chat_call("b")["tool_calls"][0]]},
                tool("a", &format!("r\n\ns\n\n{note}")),
                tool("b", note),
                user(json!([
                    image_of("a"),
                    image_part(),
                    image_of("b"),
                    image_part(),
                    image_part()
                ])),
            ]),
        ),
        (
            "a tool that was looked up",
            json!([called("a"), user(json!([result("a", json!([found]))]))]),
            json!([chat_call("a"), tool("a", "tool_reference: WebFetch")]),
        ),
        (
            "ids that were shown in another form are the service's again",
            json!([
                called("tx_functions_2et_3a0"),
                user(json!([result("tx_functions_2et_3a0", json!([image()]))]))
            ]),
            json!([
                chat_call("functions.t:0"),
                tool("functions.t:0", note),
                user(json!([image_of("functions.t:0"), image_part()])),
            ]),
        ),
        (
            "ids that another gateway gave out",
            json!([
                called("call.x:2"),
                user(json!([result("call.x:2", json!("r"))]))
            ]),
            json!([chat_call("call.x:2"), tool("call.x:2", "r")]),
        ),
        (
            "before what the system and the user say in messages of their own",
            json!([
                called("a"),
                {"role": "system", "content": "s"},
                user(json!("wait")),
                user(json!([result("a", json!("r")), text("go on")])),
                user(json!("now"))
            ]),
            json!([
                chat_call("a"),
                tool("a", "r"),
                {"role": "system", "content": "s"},
                user(json!("wait")),
                user(json!("go on")),
                user(json!("now"))
            ]),
        ),
        (
            "results in several messages of the user, of calls in several of the assistant",
            json!([
                called("a"),
                assistant(json!("and")),
                called("b"),
                user(json!([result("b", json!("s"))])),
                user(json!([result("a", json!("r"))]))
            ]),
            json!([
                {"role": "assistant", "content": "and", "tool_calls": [
                    chat_call("a")["tool_calls"][0], chat_call("b")["tool_calls"][0]]},
                tool("b", "s"),
                tool("a", "r")
            ]),
        ),
        (
            "a service may number its calls anew in each turn",
            json!([
                called("a"),
                user(json!([result("a", json!("r"))])),
                called("a"),
                user(json!([result("a", json!("s"))]))
            ]),
            json!([
                chat_call("a"),
                tool("a", "r"),
                chat_call("a"),
                tool("a", "s")
            ]),
        ),
    ]);
}

#[test]
fn an_assistants_turn_keeps_its_texts_and_its_calls() {
    let chat_call = |id: &str, arguments: &str| {
        let function = json!({"name": "t", "arguments": arguments});
        json!({"id": id, "type": "function", "function": function})
    };
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let hidden = json!({"type": "redacted_thinking", "data": "s"});
    let searched = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let end = user(json!("go on"));
    let turn = |content: Value| {
        let blocks = content.as_array().into_iter().flatten();
        let calls = blocks.filter(|block| block["type"] == "tool_use");
        let results = calls.map(|call| result(call["id"].as_str().unwrap(), json!("r")));
        let said: Vec<Value> = results.chain([text("go on")]).collect();
        json!([user(json!("a")), assistant(content), user(json!(said))])
    };
    let told = |content: Value, calls: Value| {
        let mut message = json!({"role": "assistant", "content": content});
        let ids = calls.as_array().into_iter().flatten();
        let results = ids.map(|call| tool(call["id"].as_str().unwrap(), "r"));
        let results: Vec<Value> = results.chain([end.clone()]).collect();
        if !calls.is_null() {
            message["tool_calls"] = calls;
        }
        let begun = [user(json!("a")), message];
        Value::from([begun.as_slice(), &results].concat())
    };
    check([
        ("a string", turn(json!("b")), told(json!("b"), Value::Null)),
        (
            "texts",
            turn(json!([text("b"), text("c")])),
            told(json!("b\n\nc"), Value::Null),
        ),
        (
            "two calls of one turn are one message",
            turn(json!([
                text("b"),
                call("x", json!({"k": [1, null]})),
                call("y", json!({}))
            ])),
            told(
                json!("b"),
                json!([chat_call("x", r#"{"k":[1,null]}"#), chat_call("y", "{}")]),
            ),
        ),
        (
            "a text behind a call",
            turn(json!([call("x", json!({})), text("b")])),
            told(json!("b"), json!([chat_call("x", "{}")])),
        ),
        (
            "thinking is another model's",
            turn(json!([thinking, hidden, text("b")])),
            told(json!("b"), Value::Null),
        ),
        (
            "what Anthropic's own tools did",
            turn(json!([searched, found, text("b")])),
            told(json!("b"), Value::Null),
        ),
        (
            "thinking alone",
            turn(json!([thinking])),
            json!([user(json!("a")), end.clone()]),
        ),
        (
            "an empty text beside a call",
            turn(json!([text(""), call("x", json!({}))])),
            told(Value::Null, json!([chat_call("x", "{}")])),
        ),
    ]);
}

#[test]
fn what_is_left_out_of_a_conversation_is_counted() {
    let cached = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}, "citations": null});
    let thinking = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    let searched = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s", "content": []});
    let called = json!({"type": "tool_use", "id": "x", "name": "t", "input": {}, "caller": {"type": "direct"}});
    let messages = json!([
        user(json!([cached, cached])),
        assistant(json!([thinking, thinking, searched, found, called])),
        user(json!([{"type": "tool_result", "tool_use_id": "x", "novel": 1}])),
    ]);
    let expected = [
        ("cache_control", 2),
        ("content.thinking", 2),
        ("content.server_tool_use", 1),
        ("content.server_tool_result", 1),
        ("caller", 1),
        ("unknown", 1),
    ];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(dropped(&request(json!({"messages": messages}))), expected);
}
