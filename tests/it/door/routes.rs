//! What is not in the table: hints, local answers, routes of the config.

use bursar::ledger::entry::State;

use super::{Door, get};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Step, Wire};

#[tokio::test]
async fn a_slip_in_the_address_is_answered_with_what_to_do() {
    let door = Door::open().await;
    for (method, path, code, hint) in [
        (
            "GET",
            "/v1/responses/r-1",
            "responses_unsupported",
            "keeps no responses",
        ),
        (
            "DELETE",
            "/agent/v1/responses/r-1",
            "responses_unsupported",
            "/agent/v1/responses",
        ),
        (
            "POST",
            "/v1/responses/compact",
            "responses_unsupported",
            "chat completions",
        ),
        ("POST", "/chat/completions", "base_path_missing", "/v1"),
        ("POST", "/responses", "base_path_missing", "/agent/v1"),
        ("GET", "/models", "base_path_missing", "/v1"),
        ("GET", "/models/auto", "base_path_missing", "/v1"),
        (
            "POST",
            "/agent/chat/completions",
            "base_path_missing",
            "/agent/v1.",
        ),
        (
            "POST",
            "/agent/responses",
            "base_path_missing",
            "/agent/v1.",
        ),
        ("GET", "/agent/models", "base_path_missing", "/agent/v1."),
        (
            "POST",
            "/api/chat/completions",
            "route_unknown",
            "/agent/v1",
        ),
        ("POST", "/embeddings", "base_path_missing", "/v1"),
        ("POST", "/audio/speech", "base_path_missing", "/agent/v1"),
        (
            "POST",
            "/agent/v1/embeddings",
            "other_lane",
            "/v1/embeddings alone",
        ),
        (
            "POST",
            "/agent/v1/audio/speech",
            "other_lane",
            "/v1/audio/speech alone",
        ),
        (
            "POST",
            "/v1/completions",
            "completions_unsupported",
            "/v1/chat/completions",
        ),
        (
            "POST",
            "/agent/v1/completions",
            "completions_unsupported",
            "client.chat",
        ),
        (
            "POST",
            "/completions",
            "completions_unsupported",
            "/v1/chat/completions",
        ),
        ("GET", "/v1/files", "route_unknown", "extra_routes"),
        (
            "POST",
            "/v1/v1/chat/completions",
            "base_path_doubled",
            "twice",
        ),
        (
            "POST",
            "/agent/v1/v1/chat/completions",
            "base_path_doubled",
            "twice",
        ),
        (
            "POST",
            "/v1/agent/v1/chat/completions",
            "base_path_doubled",
            "twice",
        ),
        ("POST", "/v1/v1/responses", "base_path_doubled", "twice"),
        (
            "GET",
            "/openai/v1/models",
            "base_path_doubled",
            "in front of",
        ),
        (
            "POST",
            "/v1/messages",
            "messages_elsewhere",
            "ANTHROPIC_BASE_URL",
        ),
        (
            "POST",
            "/messages",
            "messages_elsewhere",
            "/agent/v1/messages",
        ),
        (
            "POST",
            "/v1/messages/count_tokens",
            "count_tokens_unsupported",
            "guesses none",
        ),
        (
            "POST",
            "/agent/v1/messages/count_tokens",
            "count_tokens_unsupported",
            "/agent/v1/messages",
        ),
        (
            "POST",
            "/v1/messages/batches",
            "messages_elsewhere",
            "set ANTHROPIC_BASE_URL",
        ),
        (
            "POST",
            "/v1/messages/batches",
            "messages_elsewhere",
            "Batches are not answered",
        ),
        (
            "POST",
            "/agent/v1/messages/batches",
            "messages_elsewhere",
            "Batches are not answered",
        ),
        (
            "GET",
            "/agent/v1/messages/batches/msgbatch_1/results",
            "messages_elsewhere",
            "/agent/v1/messages alone",
        ),
        // OpenAI's own, of assistants and of stored chats.
        (
            "POST",
            "/v1/threads/thread_1/messages",
            "route_unknown",
            "extra_routes",
        ),
        (
            "GET",
            "/v1/chat/completions/chatcmpl-1/messages",
            "route_unknown",
            "extra_routes",
        ),
        (
            "GET",
            "/v1/realtime",
            "realtime_unsupported",
            "/v1/audio/speech",
        ),
        (
            "POST",
            "/v1/realtime/sessions",
            "realtime_unsupported",
            "WebSockets",
        ),
        ("POST", "/", "route_unknown", "/v1"),
        ("DELETE", "/v1/tasks", "method_refused", "method"),
    ] {
        let body = if method == "GET" { "" } else { "{}" };
        let answer = door
            .refuses(request(method, path, &[], body), &[code])
            .await;
        let body = answer.json();
        let detail = body["error"]["message"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert!(detail.contains(hint), "{method} {path}: {detail}");
        // The remedy names the address that this app reached.
        let base = format!("http://{}/", door.bursar.address);
        assert!(
            detail.contains(&base) || code == "method_refused",
            "{method} {path}: {detail}"
        );
        assert!(!detail.contains('<'), "a place to fill in: {detail}");
        // What an app has right already is no remedy.
        let is_right = path.starts_with("/agent/v1/messages");
        let is_told = detail.contains("set ANTHROPIC_BASE_URL");
        assert!(!(is_right && is_told), "{method} {path}: {detail}");
        // Anthropic's clients read their own form.
        let is_anthropics = matches!(code, "messages_elsewhere" | "count_tokens_unsupported");
        assert_eq!(body["type"] == "error", is_anthropics, "{path}: {body}");
    }
    let answer = Wire::unix(&door.bursar.socket).await.get("/models").await;
    assert!(
        answer.text().contains("http://localhost/v1"),
        "{}",
        answer.text()
    );
    // Where nothing is translated, the routes of other dialects are not there, and say so.
    let door = Door::with("[models]\ntranslate = false\n").await;
    for (path, code) in [
        ("/v1/responses", "responses_unsupported"),
        ("/agent/v1/responses", "responses_unsupported"),
        ("/agent/v1/messages", "messages_elsewhere"),
    ] {
        let answer = door
            .refuses(request("POST", path, &[], "{}"), &[code])
            .await;
        assert!(
            answer.text().contains("[models] translate"),
            "{}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn another_protocol_and_a_compressed_body_are_refused_with_the_setting_that_helps() {
    let door = Door::open().await;
    let upgrade = [("Connection", "Upgrade"), ("Upgrade", "websocket")];
    for (path, code, hint) in [
        (
            "/v1/realtime?model=x",
            "realtime_unsupported",
            "/v1/audio/transcriptions",
        ),
        (
            "/agent/v1/responses",
            "header_refused",
            "supports_websockets = false",
        ),
        ("/v1/models", "header_refused", "not relayed"),
    ] {
        let answer = door
            .refuses(request("GET", path, &upgrade, ""), &[code])
            .await;
        assert!(answer.text().contains(hint), "{path}: {}", answer.text());
    }
    for (coding, names_codex) in [("zstd", true), ("ZSTD", true), ("gzip", false)] {
        let coded = [("Content-Encoding", coding)];
        for path in ["/v1/chat/completions", "/agent/v1/responses"] {
            let bytes = request("POST", path, &coded, "(compressed)");
            let answer = door.refuses(bytes, &["content_coding_refused"]).await;
            let names = answer.text().contains("enable_request_compression = false");
            assert_eq!(names, names_codex, "{coding}: {}", answer.text());
        }
    }
}

/// Cursor sends such bodies for some of its models.
#[tokio::test]
async fn a_body_of_the_responses_api_on_chat_completions_is_sent_to_its_own_route() {
    let door = Door::open().await;
    let hybrid =
        r#"{"model":"auto","stream":true,"input":[{"role":"user","content":"hi"}],"tools":[]}"#;
    for lane in ["/v1", "/agent/v1"] {
        let path = format!("{lane}/chat/completions");
        let answer = door.ask(request("POST", &path, &[], hybrid)).await;
        assert_eq!(
            (answer.status, answer.code()),
            (400, Some("responses_body"))
        );
        let at = format!("http://{}{lane}/responses", door.bursar.address);
        assert!(answer.text().contains(&at), "{}", answer.text());
        assert_eq!(answer.json()["error"]["param"], "input");
    }
    let within = r#"{"messages":null,"input":[],"tools":[{"properties":{"messages":{}}}]}"#;
    let answer = door
        .ask(request("POST", "/v1/chat/completions", &[], within))
        .await;
    assert_eq!(answer.code(), Some("responses_body"), "a parameter is none");
    door.assert_untouched("a hybrid body");
    // Whatever has messages, and whatever is neither, is the service's to judge.
    for body in [
        r#"{"input":"x","\u006dessages":[]}"#,
        r#"{"input":"x","messages":[]}"#,
        r#"{"prompt":"x"}"#,
        r#"["input"]"#,
        "input",
    ] {
        door.passes(request("POST", "/v1/chat/completions", &[], body))
            .await;
    }
}

#[tokio::test]
async fn the_form_of_openais_audio_is_distinguished_from_the_services() {
    let door = Door::with("[models]\ntranslate = false\n").await;
    let form = [("Content-Type", "multipart/form-data; boundary=x")];
    let multipart =
        "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nwhisper-1\r\n--x--\r\n";
    let path = "/v1/audio/transcriptions";
    let answer = door
        .refuses(
            request("POST", path, &form, multipart),
            &["content_type_refused"],
        )
        .await;
    let at = format!("http://{}{path}", door.bursar.address);
    for part in ["audio_base64", "application/json", &at] {
        assert!(answer.text().contains(part), "{part}: {}", answer.text());
    }
    // Any other type, and any other route, keeps its general answer.
    for (path, lines) in [
        (path, &[("Content-Type", "text/plain")][..]),
        ("/v1/audio/speech", &form[..]),
    ] {
        let answer = door
            .refuses(request("POST", path, lines, "x"), &["content_type_refused"])
            .await;
        assert!(!answer.text().contains("audio_base64"), "{}", answer.text());
    }

    let path = "/v1/audio/speech";
    let at = format!("http://{}{path}", door.bursar.address);
    let openai = r#"{"model":"tts-1","input":"hello","voice":"alloy"}"#;
    let detail = r#"{"detail":"text is required"}"#;
    for (body, status, explains) in [
        (openai, 422, true),
        (r#"{"input":"hello"}"#, 400, true),
        (r#"{"text":5,"input":"hello"}"#, 422, false),
        (r#"{"voice":"x"}"#, 422, false),
        (r#"["input"]"#, 422, false),
        (openai, 402, false),
    ] {
        door.origin.push(Step::Answer(json(status, &[], detail)));
        let answer = door.ask(request("POST", path, &[], body)).await;
        assert_eq!(answer.status, status, "{body}");
        let message = answer.json()["error"]["message"]
            .as_str()
            .expect("a text")
            .to_owned();
        assert!(message.contains("text is required"), "{message}");
        let is_whole = ["`input`", "`model`", "audio_base64", &at]
            .iter()
            .all(|part| message.contains(part));
        assert_eq!(is_whole, explains, "{body} {status}: {message}");
        let sent = door.origin.received().pop().expect("a request");
        assert_eq!(sent.body, body.as_bytes(), "the body is the app's");
    }
}

#[tokio::test]
async fn a_token_of_no_app_is_refused_in_either_header() {
    let door = Door::with("[listen]\nanonymous = false\n").await;
    let headers = [("x-api-key", "bt_token")];
    let bytes = request("POST", "/v1/messages", &headers, "{}");
    let answer = door.ask(bytes).await;
    assert_eq!((answer.status, answer.code()), (401, Some("token_refused")));
    assert!(!answer.text().contains("bt_token"), "{}", answer.text());
    door.assert_untouched("x-api-key");
}

#[tokio::test]
async fn the_root_and_the_icon_are_answered_here() {
    let door = Door::open().await;
    let answer = door.ask(get("/", "Host: localhost\r\n")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().contains("/v1"), "{}", answer.text());
    assert!(answer.header("x-bursar-entry").is_some());
    let answer = door.ask(get("/?utm=1", "Host: localhost\r\n")).await;
    assert_eq!(answer.status, 200);
    let answer = door.ask(get("/favicon.ico", "Host: localhost\r\n")).await;
    assert_eq!((answer.status, answer.body.len()), (204, 0));
    let mut wire = door.bursar.connect().await;
    wire.send("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(wire.head_answer().await.status, 200);
    // The connection is in step after a HEAD.
    wire.send(get("/favicon.ico", "Host: localhost\r\n")).await;
    assert_eq!(wire.answer().await.status, 204);
    door.assert_untouched("local answers");
}

#[tokio::test]
async fn a_route_of_the_config_is_relayed_without_a_key_and_only_as_listed() {
    let lines = "[upstream]\nextra_routes = [\"POST /v1/moderations\", \"GET /v1/files\"]\n";
    let door = Door::with(lines).await;
    for (method, path) in [
        ("POST", "/v1/files"),
        ("GET", "/v1/moderations"),
        ("DELETE", "/v1/files"),
    ] {
        door.refuses(request(method, path, &[], "{}"), &["method_refused"])
            .await;
    }
    for path in ["/v1/moderations/x", "/v1/moderation", "/v1/files/"] {
        door.refuses(request("POST", path, &[], "{}"), &["route_unknown"])
            .await;
    }
    let text = [("Content-Type", "text/plain")];
    door.refuses(
        request("POST", "/v1/moderations", &text, "{}"),
        &["content_type_refused"],
    )
    .await;

    door.origin
        .push(Step::Answer(json(200, &[], "{\"ok\":true}")));
    let own = [("Idempotency-Key", "mine")];
    let answer = door
        .ask(request(
            "POST",
            "/v1/moderations",
            &own,
            "{\"input\":\"x\"}",
        ))
        .await;
    assert_eq!(
        (answer.status, answer.text().as_str()),
        (200, "{\"ok\":true}")
    );
    let received = door.origin.received();
    assert_eq!(received[0].header("idempotency-key"), None);
    let entries = door.bursar.settled(1).await;
    assert_eq!(entries.len(), 1);
    assert!(
        matches!(entries[0].state, State::Unreported),
        "{:?}",
        entries[0].state
    );

    // Retried only if not sent: a 503 goes to the app at once.
    door.origin
        .push(Step::Answer(json(503, &[], "{\"detail\":\"later\"}")));
    door.origin.push(Step::Answer(billed(1)));
    let answer = door
        .ask(request("POST", "/v1/moderations", &[], "{\"input\":\"y\"}"))
        .await;
    assert_eq!(answer.status, 503);
    let answer = door.ask(get("/v1/files", "Host: localhost\r\n")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(door.origin.received().len(), 3);
    assert_eq!(door.bursar.entries().len(), 2, "a GET makes no entry");
}
