use serde_json::{Value, json};

use super::*;

mod conversations;
mod members;
mod refused;

/// A request that lacks nothing, with `more` over it.
fn request(more: Value) -> Value {
    let mut request = json!({
        "model": "claude-x",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "hi"}],
    });
    for (name, value) in more.as_object().unwrap() {
        match value {
            Value::String(word) if word == "REMOVED" => {
                request.as_object_mut().unwrap().remove(name);
            }
            value => request[name] = value.clone(),
        }
    }
    request
}

fn translated(request: &Value) -> Translated<Turn> {
    let result = translate(request.to_string().as_bytes());
    result.unwrap_or_else(|refusal| panic!("{request}: {refusal:?}"))
}

fn sent(request: &Value) -> Value {
    serde_json::from_slice(&translated(request).body).unwrap()
}

fn dropped(request: &Value) -> Vec<(String, u32)> {
    let translated = translated(request);
    let dropped = translated.dropped.iter();
    dropped
        .map(|(name, count)| (name.to_owned(), count))
        .collect()
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn assistant(content: Value) -> Value {
    json!({"role": "assistant", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": "t", "input": input})
}

fn result(id: &str, content: Value) -> Value {
    json!({"type": "tool_result", "tool_use_id": id, "content": content})
}

fn image() -> Value {
    let source = json!({"type": "base64", "media_type": "image/png", "data": "iVBO+/8="});
    json!({"type": "image", "source": source})
}

/// As Claude Code 2.1 asks in the second turn of a session, shortened.
const CLAUDE_CODE: &str = r#"{
  "model": "claude-opus-4-8",
  "messages": [
    {"role": "user", "content": [
      {"type": "text", "text": "<system-reminder>\nToday is a day.\n</system-reminder>"},
      {"type": "text", "text": "hello"}]},
    {"role": "system", "content": "Available agent types"},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
      {"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "echo \"hi\"",  "n": 1.50}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "content": "Exit code 3\nhi", "is_error": true, "tool_use_id": "toolu_1",
       "cache_control": {"type": "ephemeral"}}]}
  ],
  "system": [
    {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.fa0; cc_entrypoint=sdk-cli; cch=36ee5;"},
    {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}},
    {"type": "text", "text": "\nYou help.", "cache_control": {"type": "ephemeral", "scope": "global"}}
  ],
  "tools": [
    {"name": "Bash", "description": "Runs.", "input_schema": {"type": "object",  "required": ["command"]}},
    {"name": "TaskList", "description": "Lists.", "input_schema": {"type": "object", "properties": {}}},
    {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}
  ],
  "metadata": {"user_id": "{\"session_id\":\"2efcae18\"}"},
  "max_tokens": 64000,
  "thinking": {"type": "adaptive"},
  "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
  "output_config": {"effort": "high"},
  "stream": true
}"#;

#[test]
fn a_request_of_claude_code_is_sent_in_these_bytes() {
    let translated = translate(CLAUDE_CODE.as_bytes()).unwrap();

    let expected = [
        r#"{"model":"claude-opus-4-8","messages":["#,
        r#"{"role":"system","content":"You are an agent.\n\n\nYou help."},"#,
        r#"{"role":"user","content":["#,
        r#"{"type":"text","text":"<system-reminder>\nToday is a day.\n</system-reminder>"},"#,
        r#"{"type":"text","text":"hello"}]},"#,
        r#"{"role":"system","content":"Available agent types"},"#,
        r#"{"role":"assistant","content":"I look.","tool_calls":[{"id":"toolu_1","type":"function","function":"#,
        r#"{"name":"Bash","arguments":"{\"command\": \"echo \\\"hi\\\"\",  \"n\": 1.50}"}}]},"#,
        r#"{"role":"tool","content":"The tool reported an error:\n\nExit code 3\nhi","tool_call_id":"toolu_1"}],"#,
        r#""tools":[{"type":"function","function":{"name":"Bash","description":"Runs.","#,
        r#""parameters":{"type": "object",  "required": ["command"]}}},"#,
        r#"{"type":"function","function":{"name":"TaskList","description":"Lists.","#,
        r#""parameters":{"type": "object", "properties": {}}}}],"#,
        r#""max_tokens":64000}"#,
    ];
    assert_eq!(
        String::from_utf8(translated.body).unwrap(),
        expected.concat()
    );
    assert!(translated.wants_stream);
    let turn = Turn::new("claude-opus-4-8", Vec::new(), vec!["TaskList".to_owned()]);
    assert_eq!(translated.turn, turn);
    let dropped: Vec<(&str, u32)> = translated.dropped.iter().collect();
    let expected = [
        ("cache_control", 3),
        ("system.attribution", 1),
        ("tools.web_search", 1),
        ("content.thinking", 1),
        ("output_config.effort", 1),
        ("metadata", 1),
        ("thinking", 1),
        ("context_management", 1),
    ];
    assert_eq!(dropped, expected);
}

#[test]
fn the_line_that_varies_does_not_move_what_is_sent() {
    let first = CLAUDE_CODE.to_owned();
    let again = CLAUDE_CODE
        .replace("cch=36ee5", "cch=0aaa9")
        .replace("197.fa0", "198.b11");
    assert_ne!(first, again);
    let body = |request: &str| translate(request.as_bytes()).unwrap().body;
    assert_eq!(body(&first), body(&again));
}

#[test]
fn a_repeat_that_asks_for_a_whole_answer_sends_the_same_bytes() {
    // Claude Code repeats a failed stream so.
    let whole = CLAUDE_CODE.replace("\"stream\": true", "\"stream\": false");
    let whole = translate(whole.as_bytes()).unwrap();
    assert!(!whole.wants_stream);
    assert_eq!(whole.body, translate(CLAUDE_CODE.as_bytes()).unwrap().body);
}

#[test]
fn the_order_of_the_members_makes_no_difference() {
    let request = request(json!({
        "system": "s", "temperature": 0.5, "stop_sequences": ["x"], "stream": true, "top_k": 3,
        "tools": [{"name": "t", "input_schema": {}}], "tool_choice": {"type": "any"},
    }));
    let turned: serde_json::Map<String, Value> = request
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .rev()
        .collect();
    let turned = Value::from(turned);
    assert_ne!(request.to_string(), turned.to_string());
    assert_eq!(translated(&request).body, translated(&turned).body);
}

#[test]
fn texts_keep_their_spelling() {
    // Half a surrogate pair, escapes that need none, and one that PHP writes.
    let text = r"half \ud83d \u0041 \/ \u00e9 é \t";
    let body = format!(
        r#"{{"model":"m\u002f1","max_tokens":1,"system":"{text}","stop_sequences":["{text}"],
        "messages":[{{"role":"user","content":"{text}"}},
        {{"role":"assistant","content":[{{"type":"tool_use","id":"a","name":"n\u0061","input":{{"k": "{text}"}}}}]}},
        {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"a","content":"{text}"}}]}}],
        "tools":[{{"name":"n","description":"{text}","input_schema":{{"k": "{text}"}}}}]}}"#
    );
    let sent = String::from_utf8(translate(body.as_bytes()).unwrap().body).unwrap();
    assert_eq!(sent.matches(&format!("\"{text}\"")).count(), 6, "{sent}");
    let argument = format!(r#"{{"k": "{text}"}}"#);
    assert!(
        sent.contains(&format!("\"arguments\":{}", Value::from(argument))),
        "{sent}"
    );
    assert!(sent.starts_with(r#"{"model":"m\u002f1","#));
}

#[test]
fn a_long_conversation_is_translated_whole() {
    let block = |index: usize| json!({"type": "text", "text": format!("block {index}")});
    let blocks: Vec<Value> = (0..2000).map(block).collect();
    let pairs = (0..1000).flat_map(|index| {
        let id = format!("call_{index}");
        let call = json!({"type": "tool_use", "id": id, "name": "t", "input": {"i": index}});
        let result = json!({"type": "tool_result", "tool_use_id": id, "content": "r"});
        [
            json!({"role": "assistant", "content": [call]}),
            json!({"role": "user", "content": [result]}),
        ]
    });
    let mut messages = vec![json!({"role": "user", "content": blocks})];
    messages.extend(pairs);
    let sent = sent(&request(json!({"messages": messages})));
    assert_eq!(sent["messages"].as_array().unwrap().len(), 2001);
    assert_eq!(sent["messages"][0]["content"][1999]["text"], "block 1999");
    assert_eq!(sent["messages"][2000]["tool_call_id"], "call_999");
}
