use super::check;
use serde_json::json;

// Interface, POST /v1/chat/completions: "messages | array of `{role, content}` | OpenAI message format"
#[test]
fn what_clients_send_passes() {
    for message in [
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}),
        json!({"role": "user", "content": "", "name": "ann"}),
        json!({"role": "user", "content": [
            {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}},
            {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}},
            {"type": "image_url", "image_url": "https://example.org/a.png"},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "input_image", "image_url": "https://example.org/a.png"},
        ]}),
        json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
            "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"role": "assistant", "tool_calls": [{"id": "c", "type": "custom"}]}),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "assistant", "content": null, "refusal": "No."}),
        json!({"role": "assistant", "audio": {"id": "a"}}),
        json!({"role": "assistant", "content": "", "refusal": null, "annotations": [], "audio": null,
            "function_call": null, "tool_calls": null}),
        json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}),
        json!({"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "18"}]}),
        json!({"role": "function", "name": "f", "content": null}),
    ] {
        assert_eq!(check(&message), Ok(()), "{message}");
    }
}

#[test]
fn what_no_model_can_read_is_refused_by_its_place() {
    for (message, place) in [
        (json!("hi"), " must be an object"),
        (json!({"content": "x"}), ".role must be one of"),
        (json!({"role": 7, "content": "x"}), ".role must be one of"),
        (
            json!({"role": "banana", "content": "x"}),
            ".role must be one of",
        ),
        (json!({"role": "user"}), ".content is required"),
        (
            json!({"role": "user", "content": null}),
            ".content is required",
        ),
        (
            json!({"role": "tool", "tool_call_id": "c"}),
            ".content is required",
        ),
        (
            json!({"role": "function", "name": "f"}),
            ".content is required",
        ),
        (
            json!({"role": "assistant", "content": null}),
            ".content is required",
        ),
        (
            json!({"role": "assistant", "content": null, "tool_calls": []}),
            ".content is required",
        ),
        (json!({"role": "user", "content": 7}), ".content must be"),
        (json!({"role": "user", "content": []}), ".content must be"),
        (
            json!({"role": "user", "content": ["x"]}),
            ".content[0].type",
        ),
        (
            json!({"role": "user", "content": [{"text": "x"}]}),
            ".content[0].type",
        ),
        (
            json!({"role": "user", "content": [{"type": "zzz"}]}),
            ".content[0].type",
        ),
        (
            json!({"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "text"}]}),
            ".content[1].text",
        ),
        (
            json!({"role": "user", "content": [{"type": "image_url"}]}),
            ".content[0].image_url",
        ),
        (
            json!({"role": "user", "content": [{"type": "input_audio", "input_audio": "x"}]}),
            ".content[0].input_audio",
        ),
    ] {
        let wrong = check(&message).unwrap_err();
        assert!(wrong.starts_with(place), "{message}: {wrong}");
        assert!(!wrong.contains("banana") && !wrong.contains("zzz"));
    }
}
