//! `POST /v1/chat/completions`, whole answers.

use crate::support::*;
use bursar_sandbox::Options;
use serde_json::{Value, json};

// Interface, Chat completion (OpenAI shape): `id`, `model` "always `auto`", `created`, `choices`, `usage`.
// Interface, POST /v1/chat/completions: response headers `X-Service-Billed`,
// `X-Service-Frontier-Would-Have-Cost`, `X-Service-Served-By`, `X-Service-Specialist`,
// `X-Service-Escalated`, `X-Service-Route-Version`.
#[tokio::test]
async fn an_answer_has_the_openai_shape_and_its_whole_receipt() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.post(CHAT, &[], &ask("What is 12 + 30?")).await;

    assert_eq!(reply.status, 200, "{}", reply.text());
    let body = reply.json();
    assert_eq!(body["model"], "auto");
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert!(reply.content().starts_with("12 + 30 = 42."));
    let usage = &body["usage"];
    assert_eq!(
        usage["total_tokens"],
        usage["prompt_tokens"].as_u64().unwrap() + usage["completion_tokens"].as_u64().unwrap()
    );
    assert_eq!(reply.header("x-service-served-by"), Some("specialist"));
    assert_eq!(reply.header("x-service-specialist"), Some("general-chat"));
    assert_eq!(reply.header("x-service-escalated"), Some("false"));
    assert!(reply.header("x-service-route-version").is_some());
    assert!(reply.header("x-request-id").is_some());
    assert_eq!(reply.header("idempotent-replayed"), None);
    // 200,000 and 600,000 micro-USD per million, rounded up; the frontier list price beside it.
    let (p, c) = (
        usage["prompt_tokens"].as_i64().unwrap(),
        usage["completion_tokens"].as_i64().unwrap(),
    );
    assert_eq!(
        reply.billed(),
        (p * 200_000 + c * 600_000 + 999_999) / 1_000_000
    );
    assert_eq!(
        reply.header("x-service-frontier-would-have-cost").unwrap(),
        ((p * 3_000_000 + c * 15_000_000 + 999_999) / 1_000_000).to_string()
    );
}

// Interface, What the service does, Metering rules: "debit once per request or turn, however many internal
// model calls are made".
#[tokio::test]
async fn the_books_hold_one_debit_per_request_and_the_balance_agrees() {
    let sandbox = Sandbox::start().await;

    let mut billed = Vec::new();
    for text in [
        "one",
        "two words",
        "hard: three",
        "What does the attached document say?",
    ] {
        billed.push(sandbox.post(CHAT, &[], &ask(text)).await.billed());
    }

    assert_eq!(billed.pop(), Some(0));
    assert_eq!(sandbox.debits().await, billed);
    let books = sandbox.books().await;
    assert_eq!(
        books["balance_micro_usd"],
        100_000_000 - billed.iter().sum::<i64>()
    );
    assert_eq!(books["debited_micro_usd"], billed.iter().sum::<i64>());
}

// Interface, What the service does, Metering rules: "Escalated turns bill at the frontier provider list
// price."
#[tokio::test]
async fn a_hard_prompt_is_escalated_and_billed_at_the_frontier_list_price() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .post(
            CHAT,
            &[],
            &ask("hard: Prove that there are infinitely many primes"),
        )
        .await;

    assert_eq!(reply.header("x-service-served-by"), Some("frontier"));
    assert_eq!(reply.header("x-service-escalated"), Some("true"));
    assert_eq!(reply.header("x-service-specialist"), Some("general-chat"));
    assert_eq!(
        Some(reply.billed().to_string().as_str()),
        reply.header("x-service-frontier-would-have-cost")
    );
}

// Interface, POST /v1/chat/completions: `X-Service-Specialist` "absent when no specialist was involved".
#[tokio::test]
async fn a_very_long_prompt_goes_to_the_frontier_with_no_specialist() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox.post(CHAT, &[], &ask(&"word ".repeat(5_000))).await;

    assert_eq!(reply.header("x-service-served-by"), Some("frontier"));
    assert_eq!(reply.header("x-service-escalated"), Some("false"));
    assert_eq!(reply.header("x-service-specialist"), None);
}

// Interface, POST /v1/chat/completions: "Structured requests that need an input the request lacks get 400
// `input_modality_unsupported`."
// Interface, POST /v1/chat/completions: "a clarification response (HTTP 200, billed 0) with the header
// `X-Service-Input-Required`".
#[tokio::test]
async fn a_missing_input_is_asked_for_at_no_cost_or_refused_when_structured() {
    let sandbox = Sandbox::start().await;
    let text = "Summarize the attached document";

    let open = sandbox.post(CHAT, &[], &ask(text)).await;
    assert_eq!((open.status, open.billed()), (200, 0));
    assert_eq!(open.header("x-service-served-by"), Some("none"));
    assert_eq!(open.header("x-service-input-required"), Some("document"));
    assert_eq!(open.header("x-service-specialist"), None);

    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let structured = sandbox
        .post(CHAT, &[], &with(ask(text), "response_format", format))
        .await;
    assert_eq!(structured.status, 400);
    assert!(
        structured.json()["detail"]
            .as_str()
            .unwrap()
            .contains("input_modality_unsupported")
    );

    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
}

// Interface, Errors: 502 "a structured request produced no schema-conformant answer; not billed".
#[tokio::test]
async fn a_structured_answer_conforms_or_escalates_or_is_502_and_free() {
    let sandbox = Sandbox::start().await;
    let structured = |schema: Value| {
        let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
        with(
            ask("Book a table for 4 in Lisbon, Ana Silva, ana@example.org"),
            "response_format",
            format,
        )
    };
    let plain = json!({"type": "object", "properties": {"city": {"type": "string"}, "people": {"type": "integer"}}, "required": ["city", "people"]});
    let demanding = json!({"type": "object", "properties": {"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{3}$"}}, "required": ["code"]});
    let impossible = json!({"type": "object", "required": ["a"], "properties": {"a": false}});

    let easy = sandbox.post(CHAT, &[], &structured(plain)).await;
    assert_eq!(easy.header("x-service-served-by"), Some("specialist"));
    assert_eq!(easy.header("x-service-specialist"), Some("extraction"));
    assert_eq!(
        serde_json::from_str::<Value>(&easy.content()).unwrap(),
        json!({"city": "Lisbon", "people": 4})
    );

    let hard = sandbox.post(CHAT, &[], &structured(demanding)).await;
    assert_eq!(
        (
            hard.header("x-service-served-by"),
            hard.header("x-service-escalated")
        ),
        (Some("frontier"), Some("true"))
    );

    let none = sandbox
        .post(CHAT, &[("Idempotency-Key", "k")], &structured(impossible))
        .await;
    assert_eq!((none.status, none.header("x-service-billed")), (502, None));
    assert_eq!(sandbox.debits().await, [easy.billed(), hard.billed()]);
}

// Interface, What the service does: "The result is checked against the bar, and the request is escalated to a
// frontier model when needed."
#[tokio::test]
async fn what_conforms_is_not_escalated_whatever_words_stand_in_the_material() {
    let sandbox = Sandbox::start().await;
    let schema =
        json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let format = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": schema}});
    let weather =
        json!({"type": "function", "function": {"name": "get_weather", "parameters": schema}});
    for (material, same) in [
        (
            "A proof of residence in Lisbon",
            "A letter of residence in Lisbon",
        ),
        (
            "It was hard: the theorem of Lisbon",
            "It was long, the theory of Lisbon",
        ),
    ] {
        for (field, value) in [
            ("response_format", format.clone()),
            ("tools", json!([weather])),
            ("user", json!("u")),
        ] {
            let ask = |material: &str| {
                let text = format!("Say the weather. {material}");
                with(ask(&text), field, value.clone())
            };
            let marked = sandbox.post(CHAT, &[], &ask(material)).await;
            let plain = sandbox.post(CHAT, &[], &ask(same)).await;

            assert_eq!(
                marked.header("x-service-escalated"),
                Some("false"),
                "{field} {material}"
            );
            assert_eq!(
                plain.header("x-service-escalated"),
                Some("false"),
                "{field} {same}"
            );
            assert!(marked.billed() <= 2 * plain.billed(), "{field} {material}");
        }
    }
}

// Interface, POST /v1/chat/completions: "temperature, …, seed and other OpenAI body fields".
#[tokio::test]
async fn sampling_varies_by_run_and_temperature_0_or_a_seed_fixes_it() {
    let sandbox = Sandbox::start().await;
    let mut sampled = std::collections::BTreeSet::new();
    let warm = with(ask("Tell me about rivers"), "temperature", json!(0.7));

    for _ in 0..5 {
        sampled.insert(sandbox.post(CHAT, &[], &warm).await.content());
    }
    assert_eq!(sampled.len(), 5);

    for fixed in [ask("Tell me about rivers"), with(warm, "seed", json!(3))] {
        let first = sandbox.post(CHAT, &[], &fixed).await.content();
        assert_eq!(sandbox.post(CHAT, &[], &fixed).await.content(), first);
    }
    assert_ne!(
        sandbox
            .post(CHAT, &[], &ask("Tell me about rivers"))
            .await
            .content(),
        sandbox
            .post(CHAT, &[], &ask("Tell me about bridges"))
            .await
            .content()
    );
}

// Interface, POST /v1/chat/completions: "max_tokens, …, stop"; Chat completion: `finish_reason` "(for
// example `stop`, `length`)".
#[tokio::test]
async fn max_tokens_and_stop_cut_the_answer() {
    let sandbox = Sandbox::start().await;

    let short = sandbox
        .post(
            CHAT,
            &[],
            &with(ask("Tell me about rivers"), "max_tokens", json!(5)),
        )
        .await;
    assert_eq!(short.json()["choices"][0]["finish_reason"], "length");
    assert_eq!(short.json()["usage"]["completion_tokens"], 5);

    let stopped = sandbox
        .post(
            CHAT,
            &[],
            &with(ask("Tell me about rivers"), "stop", json!([","])),
        )
        .await;
    assert_eq!(stopped.json()["choices"][0]["finish_reason"], "stop");
    assert!(!stopped.content().contains(','));
}

// Interface, Errors: 400 "malformed JSON", 404 "`model` not a recognized id on `/v1/chat/completions`",
// 422 "validation failure"; bodies `{detail: <message>}`.
#[tokio::test]
async fn a_wrong_request_is_answered_with_status_and_detail() {
    let sandbox = Sandbox::start_with(Options {
        forbidden_keys: vec!["no-entry".to_owned()],
        ..Options::default()
    })
    .await;
    let ok = ask("hi");
    type Row<'a> = (&'a str, Vec<(&'a str, &'a str)>, Vec<u8>, u16);
    let rows: Vec<Row<'_>> = vec![
        (
            "no key",
            vec![("Authorization", "")],
            ok.to_string().into(),
            401,
        ),
        (
            "wrong key",
            vec![("Authorization", "Bearer nope")],
            ok.to_string().into(),
            401,
        ),
        (
            "not bearer",
            vec![("Authorization", "Basic sandbox-key")],
            ok.to_string().into(),
            401,
        ),
        (
            "forbidden key",
            vec![("Authorization", "Bearer no-entry")],
            ok.to_string().into(),
            403,
        ),
        ("malformed JSON", vec![], b"{\"model\":".to_vec(), 400),
        ("no object", vec![], b"[]".to_vec(), 422),
        (
            "no model",
            vec![],
            json!({"messages": [{"role": "user", "content": "x"}]})
                .to_string()
                .into(),
            422,
        ),
        (
            "another model",
            vec![],
            with(ok.clone(), "model", json!("gpt-4o"))
                .to_string()
                .into(),
            404,
        ),
        (
            "no messages",
            vec![],
            json!({"model": "auto"}).to_string().into(),
            422,
        ),
        (
            "empty messages",
            vec![],
            with(ok.clone(), "messages", json!([])).to_string().into(),
            422,
        ),
        (
            "odd content",
            vec![],
            with(
                ok.clone(),
                "messages",
                json!([{"role": "user", "content": 3}]),
            )
            .to_string()
            .into(),
            422,
        ),
        (
            "unsupported field",
            vec![],
            with(ok.clone(), "frobnicate", json!(1)).to_string().into(),
            422,
        ),
        (
            "temperature",
            vec![],
            with(ok.clone(), "temperature", json!(9)).to_string().into(),
            422,
        ),
        (
            "n",
            vec![],
            with(ok.clone(), "n", json!(2)).to_string().into(),
            400,
        ),
        (
            "odd key",
            vec![("Idempotency-Key", "k\u{e9}")],
            ok.to_string().into(),
            400,
        ),
    ];

    for (what, headers, body, expected) in rows {
        let reply = sandbox.send("POST", CHAT, &headers, Some(body)).await;
        assert_eq!(reply.status, expected, "{what}: {}", reply.text());
        assert!(reply.json()["detail"].is_string(), "{what}");
        assert!(reply.header("x-request-id").is_some(), "{what}");
    }
    assert_eq!(sandbox.get("/v1/responses").await.status, 404);
    assert_eq!(sandbox.get(CHAT).await.status, 405);
    assert_eq!(sandbox.debits().await, Vec::<i64>::new());
}

// Interface, Errors: 402 "organization balance empty".
#[tokio::test]
async fn an_empty_balance_is_402_until_it_is_filled() {
    let sandbox = Sandbox::start_with(Options {
        balance_micro_usd: 0,
        ..Options::default()
    })
    .await;
    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 402);

    sandbox.control("balance", json!({"micro_usd": 1})).await;

    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 200);
    assert_eq!(sandbox.post(CHAT, &[], &ask("hi")).await.status, 402);
}

// Interface, Limits: request body size, 30 MB (413), all routes.
#[tokio::test]
async fn a_body_over_30_mb_is_413_and_the_client_reads_it() {
    let sandbox = Sandbox::start().await;

    let reply = sandbox
        .send("POST", CHAT, &[], Some(vec![b' '; 30 * 1024 * 1024 + 1]))
        .await;

    assert_eq!(reply.status, 413);
    assert!(reply.json()["detail"].is_string());
}
