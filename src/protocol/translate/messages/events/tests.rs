use super::*;

#[test]
fn a_message_is_these_events() {
    let document = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[
        {"type":"text","text":"Hi \"you\"\n"},
        {"type":"tool_use","id":"call_1","name":"t","input":{"a":
 "b"}},{"type":"tool_use","id":"call_2","name":"u","input":{}}],
        "stop_reason":"tool_use","stop_sequence":null,"stop_details":null,
        "usage":{"input_tokens":12,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,
        "cost":0.001857}}"#;
    let expected = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"usage":{"input_tokens":12,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":3}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi \"you\"\n"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_1","name":"t","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\n \"b\"}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"call_2","name":"u","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":12,"output_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":3,"cost":0.001857}}

event: message_stop
data: {"type":"message_stop"}

"#;
    assert_eq!(
        String::from_utf8(of(document.as_bytes())).unwrap(),
        expected
    );
}

#[test]
fn a_message_that_says_nothing_has_no_block() {
    let document = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],
        "stop_reason":"stop_sequence","stop_sequence":"END",
        "usage":{"input_tokens":1,"output_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}}"#;
    let events = String::from_utf8(of(document.as_bytes())).unwrap();
    let names: Vec<&str> = events
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(names, ["message_start", "message_delta", "message_stop"]);
    assert!(events.contains(r#""stop_reason":"stop_sequence","stop_sequence":"END""#));
    assert!(!events.contains("cost"));
}

#[test]
fn a_break_ends_with_an_error_and_with_nothing_else() {
    let events = error(
        502,
        br#"{"error":{"message":"Cut.","code":"stream_cut"},"request_id":"req_1"}"#,
    );
    let expected = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"Cut.\",\
        \"code\":\"stream_cut\"},\"request_id\":\"req_1\"}\n\n";
    assert_eq!(String::from_utf8(events).unwrap(), expected);
}

#[test]
fn what_is_no_message_never_ends_well() {
    let usage = r#""usage":{"input_tokens":1,"output_tokens":1,"cache_creation_input_tokens":0,"cache_read_input_tokens":0}"#;
    let frame = |content: &str, usage: &str| {
        format!(
            r#"{{"id":"i","model":"m","content":{content},"stop_reason":"end_turn","stop_sequence":null,{usage}}}"#
        )
    };
    let sound = frame("[]", usage);
    assert!(
        of(sound.as_bytes())
            .ends_with(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n")
    );
    let documents = [
        String::new(),
        "{}".to_owned(),
        frame("{}", usage),
        frame(r#"[{"type":"novel"}]"#, usage),
        frame(r#"[{"type":"text"}]"#, usage),
        frame(r#"[{"type":"tool_use","input":{}}]"#, usage),
        frame("[]", r#""usage":[]"#),
        frame(
            "[]",
            &format!("{},\"cost\":[\n]}}", usage.strip_suffix('}').unwrap()),
        ),
        sound.replace("\"id\":\"i\"", "\"id\":{\n}"),
        sound.replace("\"stop_sequence\":null", "\"stop_sequence\":[\n]"),
        frame(
            r#"[{"type":"tool_use","id":{},"name":"n","input":{}}]"#,
            usage,
        ),
        frame("[]", r#""usage":{"input_tokens":-1}"#),
    ];
    for document in documents {
        let events = String::from_utf8(of(document.as_bytes())).unwrap();
        assert!(events.starts_with("event: error\n"), "{document}: {events}");
        assert_eq!(events.matches("event: ").count(), 1, "{document}: {events}");
    }
}
