//! Items, clause by clause, and the messages that say the same.

use serde_json::json;

use super::super::tests::samples::{asked, value};

/// What a row shows, the input, the messages.
const MESSAGES: &[(&str, &str, &str)] = &[
    (
        "a string is the user's message",
        r#""Hi""#,
        r#"[{"role":"user","content":"Hi"}]"#,
    ),
    (
        "an item with and without its type",
        r#"[{"type":"message","role":"user","content":"a"},{"role":"user","content":"b"}]"#,
        r#"[{"role":"user","content":"a"},{"role":"user","content":"b"}]"#,
    ),
    (
        "the service knows no developer",
        r#"[{"role":"developer","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]"#,
        r#"[{"role":"system","content":"a"},{"role":"system","content":"b"},{"role":"user","content":"c"}]"#,
    ),
    (
        "Codex: one part of text is a string",
        r#"[{"type":"message","role":"user","content":[{"type":"input_text","text":"Fix it"}]}]"#,
        r#"[{"role":"user","content":"Fix it"}]"#,
    ),
    (
        "several parts stay several",
        r#"[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#,
    ),
    (
        "an image by address, with its detail",
        r#"[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"https://x.invalid/i.png","detail":"low"}]}]"#,
        r#"[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"https://x.invalid/i.png","detail":"low"}}]}]"#,
    ),
    (
        "an image alone, as data",
        r#"[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]"#,
        r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]"#,
    ),
    (
        "the assistant's earlier words, with phase, annotations and id",
        r#"[{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"final_answer","content":[{"type":"output_text","text":"four","annotations":[],"logprobs":[]}]},{"role":"user","content":"Repeat."}]"#,
        r#"[{"role":"assistant","content":"four"},{"role":"user","content":"Repeat."}]"#,
    ),
    (
        "two messages of the assistant stay two",
        r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]"#,
        r#"[{"role":"assistant","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]"#,
    ),
    (
        "a refusal is what the assistant said",
        r#"[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"Why?"}]"#,
        r#"[{"role":"assistant","content":[{"type":"refusal","refusal":"No."}]},{"role":"user","content":"Why?"}]"#,
    ),
    (
        "calls that follow each other are one message",
        r#"[{"role":"user","content":"x"},
            {"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\":1}"},
            {"type":"function_call","call_id":"b","name":"f","arguments":"{\"n\":2}"},
            {"type":"function_call_output","call_id":"a","output":"1"},
            {"type":"function_call_output","call_id":"b","output":"2"}]"#,
        r#"[{"role":"user","content":"x"},
            {"role":"assistant","content":null,"tool_calls":[
              {"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1}"}},
              {"id":"b","type":"function","function":{"name":"f","arguments":"{\"n\":2}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"tool","tool_call_id":"b","content":"2"}]"#,
    ),
    (
        "a call behind an output is a turn of its own",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"1"},
            {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"b","output":"2"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"b","content":"2"}]"#,
    ),
    (
        "the assistant's text before a call is in its message",
        r#"[{"role":"assistant","content":"Looking."},
            {"type":"reasoning","summary":[],"encrypted_content":"gAAA"},
            {"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"1"}]"#,
        r#"[{"role":"assistant","content":"Looking.","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"}]"#,
    ),
    (
        "the assistant's text between a call and its output is in its message",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"role":"assistant","content":"Wait."},
            {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"b","output":"2"},
            {"type":"function_call_output","call_id":"a","output":"1"}]"#,
        r#"[{"role":"assistant","content":"Wait.","tool_calls":[
              {"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
              {"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"tool","tool_call_id":"b","content":"2"}]"#,
    ),
    (
        "the assistant's text behind an output is a message of its own",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"1"},
            {"role":"assistant","content":"Done."}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"assistant","content":"Done."}]"#,
    ),
    (
        "the user's text between a call and its output comes behind both",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"role":"user","content":"Hurry."},
            {"type":"function_call_output","call_id":"a","output":"1"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"1"},
            {"role":"user","content":"Hurry."}]"#,
    ),
    (
        "an id that a service gives anew in each turn belongs to the latest call",
        r#"[{"type":"function_call","call_id":"call_0","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"call_0","output":"1"},
            {"type":"function_call","call_id":"call_0","name":"g","arguments":"{}"},
            {"type":"function_call_output","call_id":"call_0","output":"2"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"call_0","content":"1"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"call_0","type":"function","function":{"name":"g","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"call_0","content":"2"}]"#,
    ),
    (
        "arguments that are no JSON go back as they came",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"n\":"},
            {"type":"function_call_output","call_id":"a","output":"no JSON"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":"}}]},
            {"role":"tool","tool_call_id":"a","content":"no JSON"}]"#,
    ),
    (
        "Codex: apply_patch is a custom tool, and its text is one argument",
        r#"[{"type":"custom_tool_call","status":"completed","call_id":"a","name":"apply_patch","input":"*** Begin \"P\"\n\\"},
            {"type":"custom_tool_call_output","call_id":"a","output":"Done"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"apply_patch","arguments":"{\"input\":\"*** Begin \\\"P\\\"\\n\\\\\"}"}}]},
            {"role":"tool","tool_call_id":"a","content":"Done"}]"#,
    ),
    (
        "a tool's output in parts",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"a"},{"type":"input_text","text":"b"}]}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}]"#,
    ),
    (
        "Codex: view_image puts out an image, which a tool's message cannot hold",
        r#"[{"type":"function_call","call_id":"a","name":"view_image","arguments":"{}"},
            {"type":"function_call","call_id":"b","name":"f","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]},
            {"type":"function_call_output","call_id":"b","output":"2"}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[
              {"id":"a","type":"function","function":{"name":"view_image","arguments":"{}"}},
              {"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"The output is an image; it is in the next message."},
            {"role":"tool","tool_call_id":"b","content":"2"},
            {"role":"user","content":[
              {"type":"text","text":"The image that the tool call put out, id a:"},
              {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]"#,
    ),
    (
        "an output of nothing is an empty text",
        r#"[{"type":"function_call","call_id":"a","name":"f","arguments":""},
            {"type":"function_call_output","call_id":"a","output":[]}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]},
            {"role":"tool","tool_call_id":"a","content":""}]"#,
    ),
    (
        "Codex: the model asked for tools, and the app found some",
        r#"[{"type":"tool_search_call","call_id":"a","execution":"client","arguments":{"query": "mail"}},
            {"type":"tool_search_output","call_id":"a","status":"completed","execution":"client","tools":[]},
            {"type":"tool_search_call","call_id":null,"execution":"server","arguments":{}}]"#,
        r#"[{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"tool_search","arguments":"{\"query\": \"mail\"}"}}]},
            {"role":"tool","tool_call_id":"a","content":"[]"}]"#,
    ),
    (
        "what a server tool did is left out, and does not part a call from its text",
        r#"[{"role":"assistant","content":"a"},{"type":"web_search_call","id":"ws_1","status":"completed"},
            {"role":"user","content":"b"}]"#,
        r#"[{"role":"assistant","content":"a"},{"role":"user","content":"b"}]"#,
    ),
];

#[test]
fn items_become_the_messages_that_say_the_same() {
    for (what, input, messages) in MESSAGES {
        let translated = asked(&format!(r#"{{"input":{input}}}"#)).expect(what);
        let expected = json!({"messages": value(messages)});
        assert_eq!(value(translated.body), expected, "{what}");
    }
}

#[test]
fn half_a_character_passes_as_it_came() {
    let body = r#"{"input":[{"role":"user","content":"\ud800 \udc00\ud83d\ude00"},
        {"type":"custom_tool_call","call_id":"a","name":"c","input":"\ud800"},
        {"type":"custom_tool_call_output","call_id":"a","output":"\udfff"}]}"#;
    let translated = asked(body).expect("a request");
    let sent = String::from_utf8(translated.body).expect("UTF-8");
    assert!(
        sent.contains(r#""content":"\ud800 \udc00\ud83d\ude00""#),
        "{sent}"
    );
    assert!(sent.contains(r#""{\"input\":\"\\ud800\"}""#), "{sent}");
}
