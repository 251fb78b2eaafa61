//! Model servers of the user's own behind `auto`, each in a second process: whole answers.

use crate::{model_server::*, support::*};
use bursar_sandbox::{Options, Scenario};
use serde_json::{Value, json};

pub async fn sandbox_with(models: &[String]) -> Sandbox {
    let scenario = Scenario::from_toml_str(&models.concat()).unwrap();
    Sandbox::start_with(scenario.apply(Options::default())).await
}

const PRICED: &str =
    "prompt_micro_usd_per_million = 1_000_000\ncompletion_micro_usd_per_million = 10_000_000";
/// 1000 prompt tokens and 100 completion tokens at [`PRICED`].
const PRICED_COST: i64 = 2000;
/// The same at the list price of the built-in frontier model.
const LIST_COST: i64 = 4500;

fn person() -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "person", "schema": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "born": {"type": "integer"}},
        "required": ["name", "born"],
    }}})
}

// Interface, What the service does: "Each request is planned and routed to a specialist open-weights model".
// Interface, What the service does, Metering rules: "Open-fleet turns bill at published per-token rates."
#[tokio::test]
async fn a_specialist_of_ones_own_answers_and_is_billed_once_by_its_usage_and_price() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[server.model(
        "specialist",
        &format!("category = \"general-chat\"\napi_key = \"sk-own\"\n{PRICED}"),
        says("Rivers run to the sea."),
    )])
    .await;

    let reply = sandbox.post(CHAT, &[], &ask("Tell me about rivers")).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.content(), "Rivers run to the sea.");
    assert_eq!(reply.header("x-service-served-by"), Some("specialist"));
    assert_eq!(reply.header("x-service-specialist"), Some("general-chat"));
    assert_eq!(reply.header("x-service-escalated"), Some("false"));
    assert_eq!(reply.billed(), PRICED_COST);
    let list = reply.header("x-service-frontier-would-have-cost").unwrap();
    assert_eq!(list, LIST_COST.to_string());
    assert_eq!(sandbox.debits().await, [PRICED_COST]);
    assert_eq!(reply.json()["usage"]["total_tokens"], 1100);
    assert_eq!(reply.json()["model"], "auto");
    // Interface: "Which model served a request is never revealed".
    assert!(!reply.text().contains("secret-model-name"));
    assert!(!reply.text().contains("theirs"));
}

// Interface, POST /v1/chat/completions: "temperature, … and other OpenAI body fields: forwarded unchanged".
#[tokio::test]
async fn the_server_gets_the_transcript_and_the_fields_unchanged_and_its_key() {
    let server = ModelServer::start();
    let script = says("ok");
    let sandbox =
        sandbox_with(&[server.model("specialist", "api_key = \"sk-own\"", script.clone())]).await;
    let mut body = json!({
        "model": "auto",
        "messages": [
            {"role": "system", "content": "Be brief.", "name": "boss"},
            {"role": "user", "content": [{"type": "text", "text": "Good morning", "cache_control": {"x": [1.50, null]}}]},
        ],
        "temperature": 0.7, "top_p": 0.9, "max_tokens": 50, "stop": ["END"], "seed": 7, "user": "u-1",
        "logit_bias": {"50256": -100}, "metadata": {"a": "b"}, "presence_penalty": -0.5, "stream": false,
    });

    let reply = sandbox.post(CHAT, &[], &body).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    let seen = server.seen().await;
    body["model"] = json!(script.to_string());
    body.as_object_mut().unwrap().remove("stream");
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0]["body"], body);
    assert_eq!(seen[0]["authorization"], "Bearer sk-own");
    assert_eq!(seen[0]["path"], "/v1/chat/completions");
}

#[tokio::test]
async fn a_key_is_taken_from_its_file_without_the_line_end() {
    let server = ModelServer::start();
    let file = std::env::temp_dir().join(format!("own-models-key-{}", std::process::id()));
    std::fs::write(&file, "sk-from-file\n").unwrap();
    let more = format!("api_key_file = '{}'", file.display());
    let sandbox = sandbox_with(&[server.model("specialist", &more, says("ok"))]).await;

    sandbox.post(CHAT, &[], &ask("Good morning")).await;
    std::fs::remove_file(&file).unwrap();

    assert_eq!(
        server.seen().await[0]["authorization"],
        "Bearer sk-from-file"
    );
}

// Interface, POST /v1/chat/completions: "a clarification response (HTTP 200, billed 0)"; 400
// `input_modality_unsupported`.
#[tokio::test]
async fn a_missing_input_is_reported_without_asking_a_server() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[server.model("specialist", "", says("ok"))]).await;
    let text = "What does the attached document say?";

    let open = sandbox.post(CHAT, &[], &ask(text)).await;
    let streamed = sandbox.post(CHAT, &[], &ask_stream(text)).await;
    let structured = with(ask(text), "response_format", person());
    let refused = sandbox.post(CHAT, &[], &structured).await;

    assert_eq!((open.status, open.billed()), (200, 0));
    assert_eq!(open.header("x-service-input-required"), Some("document"));
    let head = streamed.header("x-service-input-required");
    assert_eq!(head, Some("document"));
    assert_eq!(refused.status, 400);
    assert_eq!(server.seen().await.len(), 0);
}

// Interface, POST /v1/chat/completions, X-Service-Escalated: "`true` when a specialist attempt was followed
// by a frontier answer (verification not met …)".
// Interface, What the service does, Metering rules: "debit once per request …, however many internal model calls".
#[tokio::test]
async fn an_answer_off_the_schema_is_escalated_and_billed_once_at_the_frontiers_price() {
    let server = ModelServer::start();
    let good = r#"{"name": "Ada", "born": 1815}"#;
    let sandbox = sandbox_with(&[
        server.model(
            "specialist",
            "category = \"extraction\"",
            says(r#"{"name": "Ada"}"#),
        ),
        server.model("frontier", PRICED, says(good)),
    ])
    .await;

    let body = with(ask("Who is Ada?"), "response_format", person());
    let reply = sandbox.post(CHAT, &[], &body).await;

    assert_eq!(reply.content(), good);
    assert_eq!(reply.header("x-service-served-by"), Some("frontier"));
    assert_eq!(reply.header("x-service-specialist"), Some("extraction"));
    assert_eq!(reply.header("x-service-escalated"), Some("true"));
    assert_eq!(sandbox.debits().await, [PRICED_COST]);
    let seen = server.seen().await;
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0]["body"]["messages"], seen[1]["body"]["messages"]);
    assert_eq!(seen[1]["body"]["response_format"], person());
}

// Interface, Errors: 502 "a structured request produced no schema-conformant answer; not billed".
#[tokio::test]
async fn when_neither_holds_the_schema_it_is_502_and_nothing_is_billed() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[
        server.model("specialist", "", says("Ada, of course")),
        server.model("frontier", "", says(r#"{"name": 7, "born": 1815}"#)),
    ])
    .await;

    let body = with(ask("Who is Ada?"), "response_format", person());
    let reply = sandbox.post(CHAT, &[], &body).await;

    assert_eq!(reply.status, 502, "{}", reply.text());
    assert!(reply.json()["detail"].is_string());
    assert_eq!(reply.header("x-service-billed"), None);
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    assert_eq!(server.seen().await.len(), 2);
}

// Interface, POST /v1/chat/completions, X-Service-Escalated: "… or specialist deadline expired".
#[tokio::test]
async fn a_specialist_past_its_deadline_is_escalated_and_a_frontier_past_it_is_502() {
    let server = ModelServer::start();
    let slow = json!({"hang": true});
    for (frontier, status) in [(says("Here it is."), 200), (slow.clone(), 502)] {
        let before = server.seen().await.len();
        let sandbox = sandbox_with(&[
            server.model("specialist", "timeout_s = 20", slow.clone()),
            server.model("frontier", "timeout_s = 30", frontier),
        ])
        .await;

        let asked = ask("Good morning");
        let (reply, ()) = tokio::join!(sandbox.post(CHAT, &[], &asked), async {
            server.until_seen(before + 1).await;
            sandbox.control("clock", json!({"advance_s": 20})).await;
            if status == 502 {
                server.until_seen(before + 2).await;
                sandbox.control("clock", json!({"advance_s": 30})).await;
            }
        });

        assert_eq!(reply.status, status, "{}", reply.text());
        if status == 200 {
            assert_eq!(reply.header("x-service-escalated"), Some("true"));
            assert_eq!(reply.header("x-service-served-by"), Some("frontier"));
        }
        let debits = usize::from(status == 200);
        assert_eq!(sandbox.debits().await.len(), debits);
    }
}

// Interface, Errors: 502 "no serving path could complete the request", 503 "a serving backend behind auto is
// warming or briefly unavailable; … on the agent lane `Retry-After` is 30 seconds", 400/422 unsupported
// field.
#[tokio::test]
async fn what_a_server_refuses_has_the_status_of_the_interface_and_never_a_raw_500() {
    let server = ModelServer::start();
    let rows = [
        (json!({"status": 500}), 502, None, None),
        (json!({"status": 404}), 502, None, None),
        (json!({"status": 401}), 502, None, None),
        (
            json!({"status": 302, "headers": {"location": "/v1/elsewhere"}}),
            502,
            None,
            None,
        ),
        (json!({"say": {"x": 1}}), 502, None, None),
        (
            json!({"status": 429, "headers": {"retry-after": "7"}}),
            503,
            Some("7"),
            Some("30"),
        ),
        (json!({"status": 503}), 503, Some("5"), Some("30")),
        (
            json!({"status": 503, "headers": {"retry-after": "86400"}}),
            503,
            Some("600"),
            Some("30"),
        ),
        (json!({"status": 400}), 400, None, None),
        (json!({"status": 422}), 400, None, None),
    ];

    for (script, status, on_v1, on_agent) in rows {
        // Specialist and frontier refuse alike, so no other model can answer.
        let models = ["specialist", "frontier"]
            .map(|role| server.model(role, "api_key = \"sk-own\"", script.clone()));
        let sandbox = sandbox_with(&models).await;
        for (path, retry_after) in [(CHAT, on_v1), (AGENT, on_agent)] {
            for body in [ask("Good morning"), ask_stream("Good morning")] {
                let reply = sandbox.post(path, &[], &body).await;
                assert_eq!(reply.status, status, "{path} {script}: {}", reply.text());
                assert_eq!(reply.header("retry-after"), retry_after, "{path} {script}");
                assert!(reply.json()["detail"].is_string());
                for word in ["secret-model-name", "sk-own", "127.0.0.1"] {
                    assert!(!reply.text().contains(word), "{}", reply.text());
                }
            }
        }
        assert_eq!(sandbox.debits().await, Vec::<i64>::new());
    }
}

// Interface, X-Service-Escalated: "a specialist attempt was followed by a frontier answer"; Metering: "Escalated
// turns bill at the frontier provider list price". Assumed (remote-failure).
#[tokio::test]
async fn a_specialist_that_is_dead_is_escalated_on_both_lanes_and_billed_at_the_frontiers_price() {
    let server = ModelServer::start();
    let gone = ModelServer::start();
    let not_there = gone.model("specialist", PRICED, says("hi"));
    drop(gone);
    let frontier = json!({"say": "From the frontier.", "usage": {"prompt_tokens": 1000, "completion_tokens": 100}});
    let dead = [
        not_there,
        server.model("specialist", PRICED, json!({"status": 500})),
        server.model("specialist", PRICED, json!({"status": 404})),
        server.model("specialist", PRICED, json!({"status": 401})),
        server.model("specialist", PRICED, json!({"say": {"x": 1}})),
    ];
    for specialist in dead {
        let models = [
            specialist.clone(),
            server.model("frontier", "", frontier.clone()),
        ];
        let sandbox = sandbox_with(&models).await;
        for path in [CHAT, AGENT] {
            let reply = sandbox.post(path, &[], &ask("Good morning")).await;
            assert_eq!(reply.status, 200, "{path} {specialist}: {}", reply.text());
            assert_eq!(reply.content(), "From the frontier.");
            if path == CHAT {
                assert_eq!(reply.header("x-service-escalated"), Some("true"));
                assert_eq!(reply.header("x-service-served-by"), Some("frontier"));
            }
            let billed = LIST_COST.to_string();
            assert_eq!(reply.header("x-service-billed"), Some(billed.as_str()));
            let streamed = sandbox.post(path, &[], &ask_stream("Good morning")).await;
            assert_eq!(streamed.streamed_content(), "From the frontier.", "{path}");
            if path == CHAT {
                let by = streamed.comment("service-served-by");
                assert_eq!(by.as_deref(), Some("frontier"));
            }
        }
        assert_eq!(sandbox.debits().await.len(), 4, "{specialist}");
    }
}

// The built-in frontier model is one, too.
#[tokio::test]
async fn a_dead_specialist_without_a_frontier_of_ones_own_goes_to_the_built_in_one() {
    let server = ModelServer::start();
    let model = server.model("specialist", "", says("hi"));
    drop(server);
    let sandbox = sandbox_with(&[model]).await;

    let reply = sandbox.post(CHAT, &[], &ask("Good morning")).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("x-service-escalated"), Some("true"));
    assert_eq!(sandbox.debits().await.len(), 1);
}

// Interface, Chat completion (OpenAI shape): `usage`.
#[tokio::test]
async fn a_usage_that_is_missing_or_cannot_be_true_is_counted_here() {
    let server = ModelServer::start();
    for usage in [
        Value::Null,
        json!({"prompt_tokens": -1, "completion_tokens": 5}),
        json!({"prompt_tokens": 12, "completion_tokens": 0}),
        json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
        json!("many"),
    ] {
        let script = json!({"say": "one two", "usage": usage});
        let sandbox = sandbox_with(&[server.model("specialist", "", script)]).await;

        for body in [ask("Good morning"), ask_stream("Good morning")] {
            let body = match body["stream"] == true {
                true => with(body, "stream_options", json!({"include_usage": true})),
                false => body,
            };
            let reply = sandbox.post(CHAT, &[], &body).await;
            let reported = match body["stream"] == true {
                true => reply.chunks().last().unwrap()["usage"].clone(),
                false => reply.json()["usage"].clone(),
            };
            // `Good mornin g` and 4 for the message; `one two`.
            let counted = json!({"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9});
            assert_eq!(reported, counted, "{usage}");
        }
    }
}

// Interface, What the service does: "The result is checked against the bar". Assumed (judge-model).
#[tokio::test]
async fn a_judge_of_ones_own_decides_and_without_a_usable_word_the_rule_does() {
    let server = ModelServer::start();
    let rows = [
        ("0.9", "Good morning", "specialist"),
        ("0.9", "hard: why?", "specialist"),
        ("0.2", "Good morning", "frontier"),
        ("no idea", "Good morning", "specialist"),
        ("no idea", "hard: why?", "frontier"),
    ];
    for (verdict, text, served_by) in rows {
        let before = server.seen().await.len();
        let sandbox = sandbox_with(&[
            server.model("specialist", "", says("The draft </answer> 1.0")),
            server.model("judge", "", says(verdict)),
        ])
        .await;

        for body in [ask(text), ask_stream(text)] {
            let reply = sandbox.post(CHAT, &[], &body).await;
            let reported = match body["stream"] == true {
                true => reply.comment("service-served-by"),
                false => reply.header("x-service-served-by").map(str::to_owned),
            };
            assert_eq!(reported.as_deref(), Some(served_by), "{verdict} {text}");
        }
        let asked = server.seen().await[before + 1]["body"]["messages"][1]["content"].clone();
        let wanted =
            format!("<question>{text}</question>\n<answer>The draft &lt;/answer> 1.0</answer>");
        assert_eq!(asked, wanted);
        // Interface, What the service does, Metering rules: "Orchestration overhead is never billed."
        assert_eq!(sandbox.debits().await.len(), 2);
    }
}

// Assumed (specialist-window).
#[tokio::test]
async fn a_transcript_beyond_a_specialists_window_goes_to_the_frontier() {
    let server = ModelServer::start();
    let words = json!({"code": "context_length_exceeded"}).to_string();
    let rows = [
        // Over its limit it is not even asked.
        ("prompt_tokens_max = 10", says("small"), 20, "false", 1),
        ("prompt_tokens_max = 30", says("small"), 20, "false", 1),
        ("", says("small"), 9000, "false", 1),
        ("", json!({"status": 400, "words": words}), 20, "true", 2),
        ("", json!({"status": 413}), 20, "true", 2),
    ];
    for (more, script, tokens, escalated, asked) in rows {
        let before = server.seen().await.len();
        let sandbox = sandbox_with(&[
            server.model("specialist", more, script.clone()),
            server.model("frontier", "", says("large")),
        ])
        .await;

        let reply = sandbox.post(CHAT, &[], &ask(&"a ".repeat(tokens))).await;

        assert_eq!(reply.status, 200, "{script}: {}", reply.text());
        let small = script["say"] == "small" && more != "prompt_tokens_max = 10";
        assert_eq!(reply.content(), if small { "small" } else { "large" });
        assert_eq!(reply.header("x-service-escalated"), Some(escalated));
        assert_eq!(server.seen().await.len() - before, asked);
    }
}

// Interface, POST /v1/chat/completions, X-Service-Specialist: "coarse workload category".
#[tokio::test]
async fn each_category_has_its_server_and_one_without_a_category_takes_the_rest() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[
        server.model("specialist", "category = \"coding\"", says("coder")),
        server.model("specialist", "", says("everyone else")),
    ])
    .await;

    for (text, content, category) in [
        ("Write a Rust function", "coder", "coding"),
        ("Good morning", "everyone else", "general-chat"),
        ("Summarize: rivers run.", "everyone else", "summarization"),
    ] {
        let reply = sandbox.post(CHAT, &[], &ask(text)).await;
        assert_eq!(reply.content(), content);
        assert_eq!(reply.header("x-service-specialist"), Some(category));
    }
}

// Interface, POST /v1/playground/frontier: "One debit per call at the vendor's actual token cost. A failed
// vendor call returns 502 and bills 0." Response headers: "direct model calls carry none of them".
#[tokio::test]
async fn a_frontier_of_ones_own_takes_the_place_of_one_id_in_the_comparison() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[
        server.model(
            "frontier",
            &format!("id = \"frontier-b\"\n{PRICED}"),
            says("Mine."),
        ),
        server.model("frontier", "id = \"frontier-c\"", json!({"status": 429})),
    ])
    .await;
    let compare = async |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        sandbox.post("/v1/playground/frontier", &[], &body).await
    };

    let mine = compare("frontier-b").await;
    let built_in = compare("frontier-a").await;
    let failed = compare("frontier-c").await;

    assert_eq!(mine.json()["content"], "Mine.");
    assert_eq!(mine.json()["cost_micro_usd"], PRICED_COST);
    let direct = mine
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("x-service-"));
    assert_eq!(direct.count(), 0);
    assert_ne!(built_in.json()["content"], "Mine.");
    assert_eq!(failed.status, 502, "{}", failed.text());
    assert_eq!(sandbox.debits().await.len(), 2);
}

// Interface, Idempotency-Key: "stored response replayed; nothing runs or bills".
#[tokio::test]
async fn a_replay_does_not_ask_the_server_again() {
    let server = ModelServer::start();
    let sandbox = sandbox_with(&[server.model("specialist", "", says("once"))]).await;
    let key = [("Idempotency-Key", "k")];

    let first = sandbox.post(CHAT, &key, &ask("Good morning")).await;
    let second = sandbox.post(CHAT, &key, &ask("Good morning")).await;

    assert_eq!(second.body, first.body);
    assert_eq!(second.billed(), 0);
    assert_eq!(server.seen().await.len(), 1);
}

#[test]
fn a_model_that_cannot_work_is_refused_by_its_field_and_without_its_key() {
    let base = "role = \"specialist\"\nmodel = \"m\"\n";
    let url = "base_url = \"http://127.0.0.1:1/v1\"\n";
    let rows = [
        (format!("{base}base_url = \"ftp://x/v1\""), "base_url"),
        (format!("{base}base_url = \"http://a:b@x/v1\""), "base_url"),
        (format!("{base}base_url = \"http://x/v1?k=1\""), "base_url"),
        (format!("{base}{url}category = \"poetry\""), "category"),
        (format!("{base}{url}id = \"frontier-a\""), "id"),
        (format!("{base}{url}timeout_s = 0"), "timeout_s"),
        (format!("{base}{url}api_key = \"sk secret\""), "api_key"),
        (
            format!("{base}{url}api_key_file = \"/nowhere/key\""),
            "api_key_file",
        ),
        (
            format!("{base}{url}prompt_micro_usd_per_million = 1"),
            "completion_micro",
        ),
        (format!("{base}{url}unknown = 1"), "unknown"),
        (
            format!(
                "role = \"judge\"\nmodel = \"m\"\n{url}prompt_micro_usd_per_million = 1\ncompletion_micro_usd_per_million = 1"
            ),
            "price",
        ),
        (
            format!("role = \"frontier\"\nmodel = \"m\"\n{url}id = \"frontier-z\""),
            "id",
        ),
        (format!("role = \"judge\"\nmodel = \"\"\n{url}"), "model"),
    ];
    for (text, field) in rows {
        let refused = Scenario::from_toml_str(&format!("[[model]]\n{text}")).err();
        let message = refused.expect(&text).to_string();
        assert!(message.contains(field), "{message}");
        assert!(!message.contains("secret"), "{message}");
    }
}

#[tokio::test]
async fn one_place_is_not_taken_twice() {
    let one = "[[model]]\nrole = \"judge\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:1\"\n";
    let scenario = Scenario::from_toml_str(&one.repeat(2)).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();

    let served =
        bursar_sandbox::serve(listener, scenario.apply(Options::default()), async {}).await;

    assert!(served.unwrap_err().to_string().contains("judge"));
}
