//! What is relayed while a model server of one's own still writes it: endpoints, and turns with tools.

use crate::{
    endpoints::*, model_server::*, own_models::sandbox_with, own_streams::read_until, support::*,
};
use bursar_sandbox::Scenario;
use serde_json::{Value, json};

const URL: &str = "/v1/endpoints/mine/chat/completions";
const SPEECH: &str = "One two three";

async fn endpoint_with(models: &[String]) -> Sandbox {
    let scenario = Scenario::from_toml_str(&models.concat()).unwrap();
    let sandbox = Sandbox::start_with(scenario.apply(quick())).await;
    deploy(&sandbox, json!({"task": TASK, "name": "mine"})).await;
    sandbox
}

fn to_mine() -> Value {
    let body = with(ask_stream("Good morning"), "model", json!("mine"));
    with(body, "stream_options", json!({"include_usage": true}))
}

/// The chunks in what was read of a stream.
fn chunks(read: &str) -> Vec<Value> {
    let lines = read.lines().filter_map(|line| line.strip_prefix("data: {"));
    lines
        .map(|rest| serde_json::from_str(&format!("{{{rest}")).unwrap())
        .collect()
}

fn said(chunks: &[Value]) -> String {
    let deltas = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]);
    deltas
        .filter_map(|delta| delta["content"].as_str())
        .collect()
}

fn called(chunks: &[Value]) -> (Option<&str>, String) {
    let deltas = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0]);
    let calls: Vec<&Value> = deltas.filter(|call| call.is_object()).collect();
    let arguments = calls
        .iter()
        .filter_map(|call| call["function"]["arguments"].as_str());
    let name = calls
        .first()
        .and_then(|call| call["function"]["name"].as_str());
    (name, arguments.collect())
}

/// Opens a stream whose server stops after its first word; what came before it went on, and after.
async fn early_and_late(
    sandbox: &Sandbox,
    server: &ModelServer,
    path: &str,
    body: &Value,
) -> (String, String) {
    let body = body.to_string().into_bytes();
    let mut socket = sandbox.open("POST", path, &[], Some(body)).await;
    let early = read_until(&mut socket, "One ").await;
    assert!(!early.contains("three"), "{early}");
    server.release().await;
    let late = read_until(&mut socket, "[DONE]").await;
    (early, late)
}

// Interface, Resources, Endpoint: "OpenAI-compatible inference URL".
#[tokio::test]
async fn an_endpoints_stream_is_relayed_while_it_is_written_and_billed_at_its_end() {
    let server = ModelServer::start();
    let script = json!({"say": SPEECH, "hold_after": 3});
    let sandbox = endpoint_with(&[server.model("specialist", "", script)]).await;
    for (path, n) in [(URL, 1), (CHAT, 2)] {
        let (early, late) = early_and_late(&sandbox, &server, path, &to_mine()).await;

        let chunks = chunks(&(early + &late));
        assert_eq!(said(&chunks), SPEECH, "{path}");
        assert!(chunks.iter().all(|chunk| chunk["model"] == "mine"));
        assert_eq!(chunks.last().unwrap()["usage"]["total_tokens"], 1100);
        assert!(!late.contains(": service-"), "{late}");
        // Assumed (prices, endpoint-billing): extraction's rate, 150,000 and 450,000 per million.
        assert_eq!(sandbox.debits().await, vec![195; n]);
    }
    let activity = sandbox.get("/v1/endpoints/mine/activity").await.json();
    assert_eq!(activity["requests"], 2, "{activity}");
}

// Assumed (broken-relay). Interface, Other endpoint routes, uptime: availability.
#[tokio::test]
async fn an_endpoints_stream_that_breaks_has_no_end_no_debit_and_a_place_in_the_metrics() {
    let server = ModelServer::start();
    let script = json!({"say": SPEECH, "hold_after": 3, "break_after": 4});
    let sandbox = endpoint_with(&[server.model("specialist", "", script)]).await;
    let body = to_mine().to_string().into_bytes();

    let mut socket = sandbox.open("POST", URL, &[], Some(body)).await;
    read_until(&mut socket, "One ").await;
    server.release().await;
    let mut rest = Vec::new();
    let _ = within(tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut rest)).await;

    assert!(!String::from_utf8_lossy(&rest).contains("[DONE]"));
    sandbox.until_in_flight(0).await;
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    let activity = sandbox.get("/v1/endpoints/mine/activity").await.json();
    assert_eq!(activity["errors"], 1, "{activity}");
}

fn with_tool() -> Value {
    let tool = json!({"type": "function", "function": {"name": "lookup", "parameters": {
        "type": "object", "required": ["part"], "properties": {"part": {"type": "string"}}}}});
    with(ask_stream("Look it up"), "tools", json!([tool]))
}

fn calls(arguments: &str) -> Value {
    let function = json!({"name": "lookup", "arguments": arguments});
    json!([{"id": "call_7", "type": "function", "function": function}])
}

// Interface, POST /agent/v1/chat/completions: "tool calls stream in OpenAI shape".
#[tokio::test]
async fn the_words_of_a_turn_with_tools_are_relayed_and_its_call_comes_whole_behind_them() {
    let server = ModelServer::start();
    let script = json!({"say": SPEECH, "tool_calls": calls("{\"part\": \"P-1\"}"),
        "finish": "tool_calls", "hold_after": 3});
    for path in [CHAT, AGENT] {
        let sandbox = sandbox_with(&[server.model("specialist", "", script.clone())]).await;

        let (early, late) = early_and_late(&sandbox, &server, path, &with_tool()).await;

        let chunks = chunks(&(early + &late));
        assert_eq!(said(&chunks), SPEECH, "{path}");
        let (name, arguments) = called(&chunks);
        assert_eq!(
            (name, arguments.as_str()),
            (Some("lookup"), "{\"part\": \"P-1\"}")
        );
        let finish = chunks
            .iter()
            .find_map(|c| c["choices"][0]["finish_reason"].as_str());
        assert_eq!(finish, Some("tool_calls"));
        assert_eq!(sandbox.debits().await.len(), 1);
    }
}

// Interface, POST /agent/v1/chat/completions: a turn "is re-run on a frontier model with the tools intact".
#[tokio::test]
async fn a_wrong_call_behind_relayed_words_is_never_given_and_the_frontier_makes_the_end() {
    let server = ModelServer::start();
    let wrong = json!({"say": SPEECH, "tool_calls": calls("{\"part\": 7}"), "hold_after": 3});
    let right =
        json!({"say": null, "tool_calls": calls("{\"part\": \"P-2\"}"), "finish": "tool_calls"});
    for (frontier, ends) in [(right, true), (wrong.clone(), false)] {
        let sandbox = sandbox_with(&[
            server.model("specialist", "", wrong.clone()),
            server.model("frontier", "", frontier),
        ])
        .await;
        let body = with_tool().to_string().into_bytes();
        let mut socket = sandbox.open("POST", CHAT, &[], Some(body)).await;
        let early = read_until(&mut socket, "One ").await;
        server.release().await;
        let mut rest = Vec::new();
        let _ = within(tokio::io::AsyncReadExt::read_to_end(&mut socket, &mut rest)).await;
        let late = String::from_utf8_lossy(&rest).into_owned();

        sandbox.until_in_flight(0).await;
        assert_eq!(late.contains("[DONE]"), ends, "{late}");
        assert_eq!(sandbox.debits().await.len(), usize::from(ends));
        let chunks = chunks(&(early + &late));
        let (name, arguments) = called(&chunks);
        if ends {
            assert_eq!(
                (name, arguments.as_str()),
                (Some("lookup"), "{\"part\": \"P-2\"}")
            );
            assert!(late.contains(": service-served-by frontier\n"), "{late}");
        } else {
            assert_eq!(name, None, "{late}");
        }
        let asked = server.seen().await.last().unwrap()["body"].clone();
        assert_eq!(asked["tools"], with_tool()["tools"]);
    }
}

// Interface, What the service does: "The result is checked against the bar". Assumed (judge-model).
#[tokio::test]
async fn a_judge_is_shown_the_conversation_and_not_its_last_message_alone() {
    let server = ModelServer::start();
    let models = [
        server.model("specialist", "", says("Paris.")),
        server.model("judge", "", says("0.9")),
    ];
    let sandbox = sandbox_with(&models).await;
    let messages = json!([
        {"role": "system", "content": "Answer in one word."},
        {"role": "user", "content": "Do you know France?"},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": [{"type": "text", "text": "Its capital <city>?"}]},
    ]);

    let reply = sandbox
        .post(CHAT, &[], &with(ask(""), "messages", messages))
        .await;

    assert_eq!(reply.content(), "Paris.");
    let seen = server.seen().await;
    let asked = seen[1]["body"]["messages"][1]["content"].as_str().unwrap();
    assert_eq!(
        asked,
        "<conversation>\n\
         <message role=\"system\">Answer in one word.</message>\n\
         <message role=\"user\">Do you know France?</message>\n\
         <message role=\"assistant\">Yes.</message>\n\
         <message role=\"user\">Its capital &lt;city>?</message>\n\
         </conversation>\n<answer>Paris.</answer>"
    );
}
