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
        ("POST", "/responses", "base_path_missing", "/v1"),
        (
            "GET",
            "/v1/responses/r-1",
            "responses_unsupported",
            "chat completions",
        ),
        ("POST", "/chat/completions", "base_path_missing", "/v1"),
        ("GET", "/models", "base_path_missing", "/v1"),
        ("POST", "/embeddings", "base_path_missing", "/v1"),
        ("POST", "/audio/speech", "base_path_missing", "/agent/v1"),
        ("POST", "/v1/completions", "route_unknown", "extra_routes"),
        ("GET", "/v1/files", "route_unknown", "extra_routes"),
        ("POST", "/v1/v1/chat/completions", "route_unknown", "twice"),
        (
            "POST",
            "/agent/v1/v1/chat/completions",
            "route_unknown",
            "twice",
        ),
        (
            "POST",
            "/v1/agent/v1/chat/completions",
            "route_unknown",
            "twice",
        ),
        ("GET", "/openai/v1/models", "route_unknown", "in front of"),
        ("POST", "/v1/v1/responses", "route_unknown", "twice"),
        ("POST", "/v1/messages", "route_unknown", "/agent"),
        ("POST", "/messages", "route_unknown", "Anthropic"),
        (
            "POST",
            "/v1/messages/count_tokens",
            "route_unknown",
            "Anthropic",
        ),
        ("POST", "/", "route_unknown", "/v1"),
        ("DELETE", "/v1/tasks", "method_refused", "method"),
    ] {
        let answer = door
            .refuses(request(method, path, &[], "{}"), &[code])
            .await;
        let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.contains(hint), "{method} {path}: {detail}");
        // The remedy names the address that this app reached.
        let base = format!("http://{}/", door.bursar.address);
        assert!(
            detail.contains(&base) || code == "method_refused",
            "{method} {path}: {detail}"
        );
        assert!(!detail.contains('<'), "a place to fill in: {detail}");
    }
    let answer = Wire::unix(&door.bursar.socket).await.get("/models").await;
    assert!(
        answer.text().contains("http://localhost/v1"),
        "{}",
        answer.text()
    );
}

#[tokio::test]
async fn the_form_of_openais_audio_is_distinguished_from_the_services() {
    let door = Door::open().await;
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
