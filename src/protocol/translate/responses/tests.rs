//! Requests as four clients send them, in the middle of a tool loop, and the very bytes that are sent for them:
//! a change of these bytes makes another purchase of a repeat.

pub mod samples;

use std::sync::Arc;

use super::memory::Item;
use super::request;
use samples::{answered, calling, completion, value};

/// The client, its request, the chat completion.
const CLIENTS: &[(&str, &str, &str)] = &[
    (
        "Codex CLI",
        concat!(
            r#"{"model":"gpt-5","instructions":"You are Codex.","input":["#,
            r#"{"type":"message","role":"developer","content":[{"type":"input_text","text":"Sandbox: read-only"}]},"#,
            r#"{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix the typo"}]},"#,
            r#"{"type":"reasoning","summary":[{"type":"summary_text","text":"Look"}],"content":null,"encrypted_content":"gAAA"},"#,
            r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"I look first."}],"phase":"commentary"},"#,
            r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"cat README.md\"}","call_id":"call_1"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":"Helo\n"},"#,
            r#"{"type":"custom_tool_call","status":"completed","call_id":"call_2","name":"apply_patch","input":"*** Begin Patch\n+\"Hello\"\n"},"#,
            r#"{"type":"custom_tool_call_output","call_id":"call_2","output":"Success."},"#,
            r#"{"type":"function_call","name":"search","namespace":"mcp__docs__","arguments":"{\"q\":1.50}","call_id":"call_3"},"#,
            r#"{"type":"function_call_output","call_id":"call_3","output":[{"type":"input_text","text":"found"}]}"#,
            r#"],"tools":["#,
            r#"{"type":"function","name":"exec_command","description":"Runs.","strict":false,"parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"],"additionalProperties":false}},"#,
            r#"{"type":"custom","name":"apply_patch","description":"This is a FREEFORM tool, so do not wrap the patch in JSON.","format":{"type":"grammar","syntax":"lark","definition":"start: begin_patch\n"}},"#,
            r#"{"type":"web_search","external_web_access":false},"#,
            r#"{"type":"namespace","name":"mcp__docs__","description":"Docs.","tools":[{"type":"function","name":"search","description":"Searches.","strict":false,"parameters":{"type":"object","properties":{}}}]}"#,
            r#"],"tool_choice":"auto","parallel_tool_calls":true,"reasoning":{"effort":"medium","summary":"auto"},"store":false,"stream":true,"#,
            r#""include":["reasoning.encrypted_content"],"prompt_cache_key":"0199a213","text":{"verbosity":"low"},"client_metadata":{"x-codex-installation-id":"1"}}"#,
        ),
        concat!(
            r#"{"model":"gpt-5","messages":["#,
            r#"{"role":"system","content":"You are Codex."},"#,
            r#"{"role":"system","content":"Sandbox: read-only"},"#,
            r#"{"role":"user","content":"Fix the typo"},"#,
            r#"{"role":"assistant","content":"I look first.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"exec_command","arguments":"{\"cmd\":\"cat README.md\"}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_1","content":"Helo\n"},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_2","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin Patch\\n+\\\"Hello\\\"\\n\"}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_2","content":"Success."},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_3","type":"function","function":{"name":"mcp__docs__search","arguments":"{\"q\":1.50}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_3","content":"found"}"#,
            r#"],"tools":["#,
            r#"{"type":"function","function":{"name":"exec_command","description":"Runs.","parameters":{"type":"object","properties":{"cmd":{"type":"string"}},"required":["cmd"],"additionalProperties":false},"strict":false}},"#,
            r#"{"type":"function","function":{"name":"apply_patch","description":"This is a FREEFORM tool, so do not wrap the patch in JSON.\n\nCall this function with one argument, `input`: the whole text, as one string.\n\nThe text has to match this grammar (lark):\nstart: begin_patch\n","parameters":{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}}},"#,
            r#"{"type":"function","function":{"name":"mcp__docs__search","description":"Searches.","parameters":{"type":"object","properties":{}},"strict":false}}"#,
            r#"],"tool_choice":"auto","parallel_tool_calls":true}"#,
        ),
    ),
    (
        "OpenAI Agents SDK",
        concat!(
            r#"{"model":"gpt-5","include":[],"instructions":"Be exact.","input":["#,
            r#"{"content":"What time is it?","role":"user"},"#,
            r#"{"arguments":"{}","call_id":"call_1","name":"get_time","type":"function_call","id":"fc_1","status":"completed"},"#,
            r#"{"call_id":"call_1","output":"noon","type":"function_call_output"}],"#,
            r#""tools":[{"name":"get_time","parameters":{"properties":{},"title":"a","type":"object","additionalProperties":false,"required":[]},"strict":true,"type":"function","description":"The time."}],"#,
            r#""stream":false,"max_output_tokens":200,"temperature":0.1}"#,
        ),
        concat!(
            r#"{"model":"gpt-5","messages":["#,
            r#"{"role":"system","content":"Be exact."},"#,
            r#"{"role":"user","content":"What time is it?"},"#,
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_time","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_1","content":"noon"}],"#,
            r#""tools":[{"type":"function","function":{"name":"get_time","description":"The time.","parameters":{"properties":{},"title":"a","type":"object","additionalProperties":false,"required":[]},"strict":true}}],"#,
            r#""temperature":0.1,"max_tokens":200}"#,
        ),
    ),
    (
        "pydantic-ai",
        concat!(
            r#"{"input":[{"role":"user","content":"Two cities"},"#,
            r#"{"role":"assistant","id":"msg_1","content":[{"text":"Let me see.","type":"output_text","annotations":[]}],"status":"completed","type":"message"},"#,
            r#"{"arguments":"{\"n\":2}","call_id":"call_1","name":"cities","type":"function_call"},"#,
            r#"{"type":"function_call_output","call_id":"call_1","output":"[\"Rome\",\"Oslo\"]"}],"#,
            r#""model":"gpt-5","include":["reasoning.encrypted_content"],"parallel_tool_calls":true,"tool_choice":"required","#,
            r#""tools":[{"name":"cities","parameters":{"type":"object"},"type":"function","description":"","strict":false},"#,
            r#"{"name":"final_result","parameters":{"type":"object"},"type":"function","description":"The end.","strict":false}],"user":"u"}"#,
        ),
        concat!(
            r#"{"model":"gpt-5","messages":["#,
            r#"{"role":"user","content":"Two cities"},"#,
            r#"{"role":"assistant","content":"Let me see.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"cities","arguments":"{\"n\":2}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_1","content":"[\"Rome\",\"Oslo\"]"}],"#,
            r#""tools":[{"type":"function","function":{"name":"cities","description":"","parameters":{"type":"object"},"strict":false}},"#,
            r#"{"type":"function","function":{"name":"final_result","description":"The end.","parameters":{"type":"object"},"strict":false}}],"#,
            r#""tool_choice":"required","parallel_tool_calls":true}"#,
        ),
    ),
    (
        "Vercel AI SDK, second turn",
        concat!(
            r#"{"model":"gpt-5","input":[{"role":"developer","content":"Be kind."},"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"Hi"}]},"#,
            r#"{"type":"item_reference","id":"msg_7"},"#,
            r#"{"role":"user","content":[{"type":"input_text","text":"And?"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}],"#,
            r#""text":{"format":{"type":"json_schema","strict":false,"name":"response","schema":{"type":"object"}}},"stream":true}"#,
        ),
        concat!(
            r#"{"model":"gpt-5","messages":["#,
            r#"{"role":"system","content":"Be kind."},"#,
            r#"{"role":"user","content":"Hi"},"#,
            r#"{"role":"assistant","content":"Hello."},"#,
            r#"{"role":"user","content":[{"type":"text","text":"And?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}],"#,
            r#""response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{"type":"object"},"strict":false}}}"#,
        ),
    ),
];

fn given_out(id: &str) -> Option<Arc<[Item]>> {
    let item = r#"{"id":"msg_7","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello.","annotations":[],"logprobs":[]}]}"#;
    (id == "msg_7").then(|| Arc::from([Item::new(item)]))
}

#[test]
fn requests_of_four_clients_are_sent_in_these_bytes() {
    for (client, body, expected) in CLIENTS {
        let translated = request::translate(body.as_bytes(), &given_out).expect(client);
        let sent = String::from_utf8(translated.body).expect("UTF-8");
        assert_eq!(sent, *expected, "{client}");
    }
}

#[test]
fn a_codex_turn_gives_back_what_codex_runs() {
    let (_, body, _) = CLIENTS[0];
    let translated = request::translate(body.as_bytes(), &given_out).expect("a request");
    assert!(translated.wants_stream);
    let dropped: Vec<(&str, u32)> = translated.dropped.iter().collect();
    let expected = [
        ("reasoning", 1),
        ("prompt_cache_key", 1),
        ("client_metadata", 1),
        ("tool web_search", 1),
        ("namespace description", 1),
        ("item reasoning", 1),
        ("phase", 1),
        ("include", 1),
        ("text.verbosity", 1),
    ];
    assert_eq!(dropped, expected);

    for (sent, arguments, item) in [
        (
            "apply_patch",
            r#"{"input":"*** Begin Patch\n*** End Patch\n"}"#,
            r#"{"type":"custom_tool_call","name":"apply_patch","input":"*** Begin Patch\n*** End Patch\n"}"#,
        ),
        (
            "mcp__docs__search",
            r#"{"q":2}"#,
            r#"{"type":"function_call","name":"search","namespace":"mcp__docs__","arguments":"{\"q\":2}"}"#,
        ),
        (
            "exec_command",
            r#"{"cmd":"ls"}"#,
            r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"ls\"}"}"#,
        ),
    ] {
        let body = completion("tool_calls", &calling(sent, arguments));
        let document = answered(&translated.turn, &body).expect("a document");
        for (member, expected) in value(item).as_object().expect("an object") {
            assert_eq!(&document["output"][0][member], expected, "{sent}: {member}");
        }
        assert_eq!(document["output"][0]["call_id"], "call_1");
        assert_eq!(document["model"], "gpt-5");
    }
}
