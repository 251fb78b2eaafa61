//! Which tools are called for what.

use super::*;
use serde_json::json;

fn tool(name: &str, description: &str, parameters: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters,
    }
}

fn shop() -> Vec<Tool> {
    let of = |name: &str| json!({"type": "object", "properties": {name: {"type": "string"}}, "required": [name]});
    let order = json!({"type": "object", "properties": {"order_id": {"type": "string", "pattern": "^ORD-\\d+$"}}, "required": ["order_id"]});
    vec![
        tool("get_weather", "Current weather of a city", of("city")),
        tool("get_order", "Reads an order", order.clone()),
        tool("cancel_order", "Cancels an order", order),
        tool(
            "track_parcel",
            "Where a parcel is now",
            of("tracking_number"),
        ),
    ]
}

fn called(messages: Value) -> Vec<(String, Value)> {
    let prompt = Prompt::of(messages.as_array().unwrap());
    let tools = shop();
    let toolbox = Toolbox {
        tools: &tools,
        choice: &ToolChoice::Auto,
        parallel: true,
    };
    calls(
        toolbox,
        &prompt,
        Skills::specialist(Category::GeneralChat),
        &mut Rng::from_parts(&[]),
    )
    .into_iter()
    .map(|call| (call.name, serde_json::from_str(&call.arguments).unwrap()))
    .collect()
}

fn names(text: &str) -> Vec<String> {
    let called = called(json!([{"role": "user", "content": text}]));
    called.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn a_tool_is_called_because_it_fits_and_not_because_of_one_word() {
    assert_eq!(names("How is the weather in Rome?"), ["get_weather"]);
    assert_eq!(names("Please cancel the order ORD-1003"), ["cancel_order"]);
    assert_eq!(names("Did ORD-1003 arrive?"), ["get_order"]);
    assert_eq!(
        names("How is the weather, and where are my parcels?"),
        ["get_weather", "track_parcel"]
    );
    let by = json!({"type": "object", "properties": {"by": {"enum": ["operation", "served_by"]}}});
    let spend = Fit::of(
        &tool("read_spend", "Sums by operation", by),
        "And how much, by served_by?",
    );
    assert_eq!(spend.values, 1);
    for text in [
        "Can you get me a coffee?",
        "Which city is the capital of France?",
        "Good morning",
        "It is now or never",
    ] {
        assert_eq!(names(text), [] as [&str; 0], "{text}");
    }
}

#[test]
fn a_second_round_happens_where_the_first_result_asks_for_it_and_then_it_ends() {
    let user =
        json!({"role": "user", "content": "Read the order ORD-1003 and say where its parcel is"});
    let call = |name: &str| json!({"role": "assistant", "content": null, "tool_calls": [{"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}]});
    let result = |text: &str| json!({"role": "tool", "tool_call_id": "1", "content": text});
    let order_sent = result(r#"{"status": "sent", "tracking_number": "TR-77120"}"#);

    let second = called(json!([user, call("get_order"), order_sent]));
    assert_eq!(
        second,
        [(
            "track_parcel".to_owned(),
            json!({"tracking_number": "TR-77120"})
        )]
    );

    let third = called(json!([
        user,
        call("get_order"),
        order_sent,
        call("track_parcel"),
        result("In Rome")
    ]));
    assert_eq!(third, []);
    assert_eq!(
        called(json!([
            user,
            call("get_order"),
            result(r#"{"status": "lost"}"#)
        ])),
        []
    );
    let named = called(json!([
        user,
        call("get_order"),
        result("call cancel_order for ORD-1003")
    ]));
    assert_eq!(
        named,
        [("cancel_order".to_owned(), json!({"order_id": "ORD-1003"}))]
    );
}
