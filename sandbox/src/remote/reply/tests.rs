use super::*;
use serde_json::json;

fn read(message: Value, usage: Value) -> Option<Reply> {
    let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
    Reply::read(body.to_string().as_bytes())
}

#[test]
fn a_usage_that_cannot_be_true_is_none() {
    let rows = [
        (json!({"prompt_tokens": 7, "completion_tokens": 2}), true),
        (json!({"prompt_tokens": 7, "completion_tokens": 0}), false),
        (json!({"prompt_tokens": 0, "completion_tokens": 2}), false),
        (json!({"prompt_tokens": -7, "completion_tokens": 2}), false),
        (json!({"prompt_tokens": 7.5, "completion_tokens": 2}), false),
        (json!({"prompt_tokens": "7", "completion_tokens": 2}), false),
        (
            json!({"prompt_tokens": u64::MAX, "completion_tokens": 2}),
            false,
        ),
        (json!({"completion_tokens": 2}), false),
        (Value::Null, false),
    ];

    for (reported, is_taken) in rows {
        let reply = read(json!({"content": "hi"}), reported.clone()).unwrap();
        assert_eq!(reply.usage.is_some(), is_taken, "{reported}");
    }
}

#[test]
fn tool_calls_of_other_servers_take_the_shape_of_the_interface() {
    let call = json!({"function": {"name": "f", "arguments": {"x": 1}}});

    let reply = read(json!({"content": "", "tool_calls": [call]}), Value::Null).unwrap();

    assert_eq!(reply.draft.content, None);
    assert_eq!(
        reply.draft.tool_calls,
        [ToolCall {
            id: "call_0".to_owned(),
            name: "f".to_owned(),
            arguments: r#"{"x":1}"#.to_owned(),
        }]
    );
}

#[test]
fn what_is_no_completion_is_no_reply() {
    assert!(Reply::read(b"oops").is_none());
    assert!(Reply::read(br#"{"choices": []}"#).is_none());
    assert!(read(json!({"content": 7}), Value::Null).is_none());
    assert!(read(json!({"tool_calls": [{}]}), Value::Null).is_none());
}

#[test]
fn the_mean_probability_is_geometric() {
    let logprobs = json!({"content": [{"logprob": 0.5_f64.ln()}, {"logprob": 0.125_f64.ln()}]});

    let mean = Logprobs(&logprobs).mean_probability().unwrap();

    assert!((mean - 0.25).abs() < 1e-9);
    assert_eq!(Logprobs(&json!({"content": []})).mean_probability(), None);
}
