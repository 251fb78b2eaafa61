//! Conversations that cannot be sent.

use super::*;

#[test]
fn what_would_change_the_conversation_is_refused_by_name() {
    let one = |block: Value| json!([user(json!([block]))]);
    let source = |source: Value| json!({"type": "document", "source": source});
    let picture = |source: Value| json!({"type": "image", "source": source});
    let called = || assistant(json!([call("a", json!({}))]));
    let inside = |block: Value| json!([called(), user(json!([result("a", json!([block]))]))]);
    let place = "messages[0].content[0]";
    let of_result = "messages[1].content[0]";
    let cases = [
        ("no messages", json!([]), "messages".to_owned()),
        ("no list", json!("hi"), "messages".to_owned()),
        (
            "system alone",
            json!([{"role": "system", "content": "s"}]),
            "messages".to_owned(),
        ),
        (
            "another role",
            json!([{"role": "tool", "content": "s"}]),
            "messages[0].role".to_owned(),
        ),
        (
            "no role",
            json!([{"content": "s"}]),
            "messages[0].role".to_owned(),
        ),
        ("no object", json!(["hi"]), "messages[0]".to_owned()),
        (
            "no content",
            json!([{"role": "user"}]),
            "messages[0].content".to_owned(),
        ),
        (
            "content of another form",
            json!([user(json!(7))]),
            "messages[0].content".to_owned(),
        ),
        (
            "no blocks",
            json!([user(json!([]))]),
            "messages[0].content".to_owned(),
        ),
        (
            "an unknown block",
            one(json!({"type": "novel"})),
            format!("{place}.type"),
        ),
        (
            "a block without a type",
            one(json!({"text": "a"})),
            format!("{place}.type"),
        ),
        (
            "a text without text",
            one(json!({"type": "text"})),
            format!("{place}.text"),
        ),
        (
            "a text that is none",
            one(json!({"type": "text", "text": 1})),
            format!("{place}.text"),
        ),
        (
            "a call of the user",
            one(call("a", json!({}))),
            format!("{place}.type"),
        ),
        (
            "thinking of the user",
            one(json!({"type": "thinking"})),
            format!("{place}.type"),
        ),
        (
            "a PDF",
            one(source(
                json!({"type": "base64", "media_type": "application/pdf", "data": ""}),
            )),
            format!("{place}.source.type"),
        ),
        (
            "a PDF elsewhere",
            one(source(json!({"type": "url", "url": "u"}))),
            format!("{place}.source.type"),
        ),
        (
            "a file",
            one(source(json!({"type": "file", "file_id": "f"}))),
            format!("{place}.source.type"),
        ),
        (
            "an image file",
            one(picture(json!({"type": "file", "file_id": "f"}))),
            format!("{place}.source.type"),
        ),
        (
            "an image that is none",
            one(picture(
                json!({"type": "base64", "media_type": "text/html,<b>", "data": ""}),
            )),
            format!("{place}.source.media_type"),
        ),
        (
            "an upload",
            one(json!({"type": "container_upload", "file_id": "f"})),
            format!("{place}.type"),
        ),
        (
            "a PDF in a result",
            inside(source(
                json!({"type": "base64", "media_type": "application/pdf", "data": ""}),
            )),
            format!("{of_result}.content[0].source.type"),
        ),
        (
            "a document in a document",
            one(source(
                json!({"type": "content", "content": [source(json!({}))]}),
            )),
            format!("{place}.source.content[0].type"),
        ),
        (
            "the state of a browser",
            inside(json!({"type": "browser_state"})),
            format!("{of_result}.content[0].type"),
        ),
        (
            "a result of no call",
            one(json!({"type": "tool_result"})),
            format!("{place}.tool_use_id"),
        ),
        (
            "a failure that is no flag",
            json!([
                called(),
                user(json!([{"type": "tool_result", "tool_use_id": "a", "is_error": "yes"}]))
            ]),
            format!("{of_result}.is_error"),
        ),
        (
            "a result whose call never was",
            one(result("a", json!("r"))),
            format!("{place}.tool_use_id"),
        ),
        (
            "a result of another call",
            json!([called(), user(json!([result("b", json!("r"))]))]),
            format!("{of_result}.tool_use_id"),
        ),
        (
            "a second result of one call",
            json!([
                called(),
                user(json!([result("a", json!("r")), result("a", json!("r"))]))
            ]),
            "messages[1].content[1].tool_use_id".to_owned(),
        ),
        (
            "a result of a call of an earlier turn",
            json!([
                called(),
                user(json!([result("a", json!("r"))])),
                assistant(json!("b")),
                user(json!([result("a", json!("r"))]))
            ]),
            "messages[3].content[0].tool_use_id".to_owned(),
        ),
        (
            "a call without a result, at the end",
            json!([called(), user(json!("go on"))]),
            place.to_owned(),
        ),
        (
            "a call without a result in the middle",
            json!([
                user(json!("a")),
                assistant(json!([
                    text("b"),
                    call("a", json!({})),
                    call("b", json!({}))
                ])),
                user(json!([result("a", json!("r"))])),
                assistant(json!("c")),
                user(json!([result("b", json!("r"))]))
            ]),
            "messages[1].content[2]".to_owned(),
        ),
        (
            "two calls of one id in a turn",
            json!([
                assistant(json!([call("a", json!({})), call("a", json!({}))])),
                user(json!([result("a", json!("r"))]))
            ]),
            "messages[0].content[1].id".to_owned(),
        ),
        (
            "prefill",
            json!([user(json!("a")), assistant(json!("{"))]),
            "messages[1].role".to_owned(),
        ),
        (
            "prefill behind which the system speaks",
            json!([user(json!("a")), assistant(json!("{")), {"role": "system", "content": "s"}]),
            "messages[1].role".to_owned(),
        ),
        (
            "an image of the assistant",
            json!([assistant(json!([image()])), user(json!("a"))]),
            format!("{place}.type"),
        ),
        (
            "a result of the assistant",
            json!([
                assistant(json!([result("a", json!("r"))])),
                user(json!("a"))
            ]),
            format!("{place}.type"),
        ),
        (
            "an input that is no object",
            json!([assistant(json!([call("a", json!("{}"))])), user(json!("a"))]),
            format!("{place}.input"),
        ),
        (
            "a summary of another server",
            json!([
                assistant(json!([{"type": "compaction", "content": "c"}])),
                user(json!("a"))
            ]),
            format!("{place}.type"),
        ),
        (
            "a removal of nothing",
            json!([user(json!("a")), {"role": "system", "content": [{"type": "tool_removal"}]}]),
            "messages[1].content[0].tool".to_owned(),
        ),
        (
            "tools of a server",
            json!([user(json!("a")), {"role": "system", "content": [{"type": "tool_addition",
                "tool": {"type": "mcp_toolset_reference", "server_name": "m"}}]}]),
            "messages[1].content[0].tool.type".to_owned(),
        ),
        (
            "a tool without a schema",
            json!([user(json!("a")), {"role": "system", "content": [{"type": "tool_addition",
                "tool": {"type": "tool_definition", "definition": {"name": "t"}}}]}]),
            "messages[1].content[0].tool.definition.input_schema".to_owned(),
        ),
        (
            "an image of the system",
            json!([user(json!("a")), {"role": "system", "content": [image()]}]),
            "messages[1].content[0].type".to_owned(),
        ),
    ];
    for (what, messages, param) in cases {
        let request = request(json!({"messages": messages})).to_string();
        let refusal = translate(request.as_bytes()).expect_err(what);
        assert_eq!(refusal.param, param, "{what}");
        assert!(!refusal.message.is_empty(), "{what}");
    }
}
