//! What is not in the table: hints, local answers, routes of the config.

use bursar::ledger::entry::State;

use super::{Door, get};
use crate::support::Step;
use crate::support::origin::{billed, json};
use crate::support::wire::request;

#[tokio::test]
async fn a_slip_in_the_address_is_answered_with_what_to_do() {
    let door = Door::open().await;
    for (method, path, code, hint) in [
        (
            "POST",
            "/v1/responses",
            "responses_unsupported",
            "chat completions",
        ),
        (
            "POST",
            "/responses",
            "responses_unsupported",
            "chat completions",
        ),
        (
            "GET",
            "/v1/responses/r-1",
            "responses_unsupported",
            "chat completions",
        ),
        (
            "POST",
            "/agent/v1/responses",
            "responses_unsupported",
            "chat completions",
        ),
        ("POST", "/chat/completions", "base_path_missing", "/v1"),
        ("GET", "/models", "base_path_missing", "/v1"),
        ("POST", "/embeddings", "base_path_missing", "/v1"),
        ("POST", "/audio/speech", "base_path_missing", "/agent/v1"),
        ("POST", "/v1/completions", "route_unknown", "extra_routes"),
        ("GET", "/v1/files", "route_unknown", "extra_routes"),
        ("POST", "/v1/v1/chat/completions", "route_unknown", "/v1"),
        ("POST", "/", "route_unknown", "/v1"),
        ("DELETE", "/v1/tasks", "method_refused", "method"),
    ] {
        let answer = door
            .refuses(request(method, path, &[], "{}"), &[code])
            .await;
        let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(detail.contains(hint), "{method} {path}: {detail}");
    }
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
