//! Tool calls: shape, schema, and the turn after the results.

use crate::support::*;
use serde_json::{Value, json};

fn weather() -> Value {
    json!({"type": "function", "function": {
        "name": "get_weather",
        "description": "Current weather of a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 14},
            },
            "required": ["city", "unit", "days"],
            "additionalProperties": false,
        },
    }})
}

fn with_tools(text: &str) -> Value {
    with(ask(text), "tools", json!([weather()]))
}

fn is_valid(arguments: &str) -> bool {
    let schema = weather()["function"]["parameters"].clone();
    jsonschema::is_valid(&schema, &serde_json::from_str(arguments).unwrap())
}

// Interface, POST /agent/v1/chat/completions: "`tool_calls` return in the same shape"; "tool calls stream
// in OpenAI shape".
#[tokio::test]
async fn a_tool_call_validates_on_both_lanes_whole_and_streamed() {
    let sandbox = Sandbox::start().await;
    let body = with_tools("What is the weather in Paris in fahrenheit for 3 days?");

    for path in [CHAT, AGENT] {
        let whole = sandbox.post(path, &[], &body).await;
        let choice = &whole.json()["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{}", whole.text());
        assert_eq!(choice["message"]["content"], Value::Null);
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!("get_weather"))
        );
        let arguments = call["function"]["arguments"].as_str().unwrap();
        assert!(is_valid(arguments), "{arguments}");
        assert_eq!(
            serde_json::from_str::<Value>(arguments).unwrap(),
            json!({"city": "Paris", "unit": "fahrenheit", "days": 3})
        );

        let stream = sandbox
            .post(path, &[], &with(body.clone(), "stream", json!(true)))
            .await;
        let deltas: Vec<Value> = stream
            .chunks()
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0).cloned())
            .collect();
        assert_eq!(deltas[0]["id"], call["id"]);
        assert_eq!(deltas[0]["function"]["name"], "get_weather");
        assert!(
            deltas[1..]
                .iter()
                .all(|delta| delta["index"] == 0 && delta.get("id").is_none())
        );
        let joined: String = deltas
            .iter()
            .map(|delta| delta["function"]["arguments"].as_str().unwrap())
            .collect();
        assert_eq!(joined, arguments);
    }
}

// Interface, POST /agent/v1/chat/completions: messages, "full transcript (system, user, assistant
// including prior `tool_calls`, and tool results)".
#[tokio::test]
async fn after_the_results_the_turn_answers_with_them() {
    let sandbox = Sandbox::start().await;
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}});
    let mut body = with_tools("What is the weather in Paris?");
    body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": "call_1", "content": "18 degrees and clear"}),
    ]);

    let reply = sandbox.post(AGENT, &[], &body).await;

    assert_eq!(reply.json()["choices"][0]["finish_reason"], "stop");
    assert!(reply.content().contains("18 degrees and clear"));
}

// Interface, POST /agent/v1/chat/completions: "tools, tool_choice, parallel_tool_calls: OpenAI
// function-calling shape".
#[tokio::test]
async fn tool_choice_decides() {
    let sandbox = Sandbox::start().await;
    let calls = async |text: &str, choice: Value| {
        let reply = sandbox
            .post(AGENT, &[], &with(with_tools(text), "tool_choice", choice))
            .await;
        reply.json()["choices"][0]["message"]["tool_calls"]
            .as_array()
            .map_or(0, Vec::len)
    };

    assert_eq!(
        calls("What is the weather in Rome?", json!("none")).await,
        0
    );
    assert_eq!(calls("Good morning", json!("auto")).await, 0);
    assert_eq!(calls("Good morning", json!("required")).await, 1);
    assert_eq!(
        calls(
            "Good morning",
            json!({"type": "function", "function": {"name": "get_weather"}})
        )
        .await,
        1
    );
}

// Interface, Errors: 502 "on the agent lane, a turn that could not complete (never a raw 500)".
#[tokio::test]
async fn arguments_the_specialist_cannot_make_escalate_and_impossible_ones_are_502() {
    let sandbox = Sandbox::start().await;
    let tool = |schema: Value| {
        let tool =
            json!({"type": "function", "function": {"name": "lookup", "parameters": schema}});
        with(
            with(ask("Please lookup the part"), "tools", json!([tool])),
            "temperature",
            json!(0),
        )
    };
    let demanding = json!({"type": "object", "properties": {"id": {"type": "string", "pattern": "^P-\\d{5}$"}}, "required": ["id"]});

    let reply = sandbox.post(CHAT, &[], &tool(demanding)).await;
    assert_eq!(
        reply.header("x-service-escalated"),
        Some("true"),
        "{}",
        reply.text()
    );

    let none = sandbox
        .post(
            AGENT,
            &[],
            &tool(json!({"type": "object", "required": ["a"], "properties": {"a": false}})),
        )
        .await;
    assert_eq!(none.status, 502);
    assert_eq!(sandbox.debits().await, [reply.billed()]);
}
