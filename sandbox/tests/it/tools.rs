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

// A story of turns, as a test of a program with tools needs it: what is answered stands in the rules.
#[tokio::test]
async fn a_fixed_answer_is_given_turn_by_turn_whole_and_streamed_and_billed_by_its_tokens() {
    let sandbox = Sandbox::start().await;
    let arguments = json!({"city": "Paris", "odd": [1, null]});
    let call = json!({"name": "get_weather", "arguments": arguments});
    sandbox
        .control(
            "faults",
            json!([
                {"match": {"turn": 1, "body_contains": "\"get_weather\""}, "times": 0,
                    "fault": {"answer": {"content": "I look.", "tool_calls": [call]}}},
                {"match": {"turn": 2}, "times": 0,
                    "fault": {"answer": {"content": "Sun", "finish_reason": "length"}}},
            ]),
        )
        .await;

    for path in [CHAT, AGENT] {
        let before = sandbox.debits().await.len();
        let body = with_tools("anything");
        let first = sandbox.post(path, &[], &body).await.json();
        let choice = &first["choices"][0];
        let message = &choice["message"];
        assert_eq!(choice["finish_reason"], "tool_calls", "{first}");
        assert_eq!(message["content"], "I look.");
        // Its form is not the tool's schema: it is given as it stands.
        let given = message["tool_calls"][0]["function"]["arguments"].as_str();
        assert_eq!(
            serde_json::from_str::<Value>(given.unwrap()).unwrap(),
            arguments
        );

        let mut messages = body["messages"].as_array().unwrap().clone();
        messages.push(message.clone());
        let id = &message["tool_calls"][0]["id"];
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": "sunny"}));
        let body = with(
            with(body, "messages", json!(messages)),
            "stream",
            json!(true),
        );
        let second = sandbox.post(path, &[], &body).await;
        let text = second.text();
        assert!(
            text.contains("Sun") && text.contains(r#""finish_reason":"length""#),
            "{text}"
        );

        // Both are paid for; the second transcript is the longer one.
        let debits = sandbox.debits().await;
        assert_eq!(debits.len(), before + 2);
        assert!(0 < debits[before] && debits[before] < debits[before + 1]);
    }
    let other = sandbox.post(AGENT, &[], &ask("hi")).await.json();
    assert_ne!(other["choices"][0]["message"]["content"], "I look.");
}

#[tokio::test]
async fn a_fixed_call_may_be_no_json_and_a_misspelt_one_is_refused() {
    let sandbox = Sandbox::start().await;
    let call = json!({"name": "x", "arguments": "{\"cut", "id": "call_1"});
    sandbox
        .fault(json!({"answer": {"tool_calls": [call]}}))
        .await;

    let answer = sandbox.post(AGENT, &[], &ask("hi")).await.json();
    assert_eq!(
        answer["choices"][0]["message"]["tool_calls"],
        json!([{"id": "call_1", "type": "function", "function": {"name": "x", "arguments": "{\"cut"}}])
    );
    let wrong = json!({"fault": {"answer": {"text": "x"}}}).to_string();
    let refused = sandbox
        .send("POST", "/sandbox/faults", &[], Some(wrong.into_bytes()))
        .await;
    assert_eq!(refused.status, 422, "{}", refused.text());
}
