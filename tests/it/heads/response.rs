//! The answer's head on its way to the app.

use super::{CHAT, before};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, KEY, Origin, Step, chat};

#[tokio::test]
async fn what_reaches_beyond_this_answer_is_stripped() {
    let headers = [
        ("Connection", "x-internal, keep-alive"),
        ("X-Internal", "secret"),
        ("Keep-Alive", "timeout=5"),
        ("Proxy-Authenticate", "Basic"),
        ("Set-Cookie", "a=b"),
        ("Set-Cookie", "c=d"),
        ("Alt-Svc", "h3=\":443\""),
        ("Clear-Site-Data", "\"*\""),
        ("Access-Control-Allow-Origin", "*"),
        ("Access-Control-Allow-Credentials", "true"),
        ("Location", "http://elsewhere/"),
        ("X-Bursar-Entry", "forged"),
        ("X-Bursar-Adopted", "forged"),
        ("X-Request-Id", "r1"),
        ("X-Service-Billed", "7"),
        ("X-Many", "one"),
        ("X-Many", "two"),
        ("Retry-After", "3"),
    ];
    let (_origin, bursar) = before(json(200, &headers, "{}")).await;
    let answer = bursar.post(CHAT, &chat("hi")).await;
    for gone in [
        "x-internal",
        "keep-alive",
        "proxy-authenticate",
        "set-cookie",
        "alt-svc",
        "clear-site-data",
        "access-control-allow-origin",
        "access-control-allow-credentials",
        "location",
        "x-bursar-adopted",
    ] {
        // Our own `Connection` handling may say keep-alive; a `Keep-Alive` of the service's does
        // not pass.
        let value = answer.header(gone).filter(|value| *value != "timeout=90");
        assert_eq!(value, None, "{gone}");
    }
    let all = |name: &str| -> Vec<&str> {
        let named = answer.headers.iter().filter(|(known, _)| known == name);
        named.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(
        all("x-bursar-entry"),
        [bursar.entries()[0].id.0.to_string()]
    );
    assert_eq!(all("x-request-id"), ["r1"]);
    assert_eq!(all("x-service-billed"), ["7"]);
    assert_eq!(all("x-many"), ["one", "two"]);
    assert_eq!(all("retry-after"), ["3"]);
    assert_eq!(bursar.entries()[0].request_id.as_deref(), Some("r1"));
}

#[tokio::test]
async fn redirects_are_passed_without_their_target_and_never_followed() {
    let elsewhere = Origin::always(Step::Answer(billed(9))).await;
    for status in [301, 302, 303, 307, 308] {
        let target = format!("{}/v1/chat/completions", elsewhere.url());
        let (origin, bursar) = before(json(status, &[("Location", &target)], "{}")).await;
        let answer = bursar.post(CHAT, &chat("hi")).await;
        assert_eq!(answer.status, status);
        assert_eq!(answer.header("location"), None, "{status}");
        assert_eq!(origin.received().len(), 1, "{status}: not repeated");
        assert_eq!(
            bursar
                .entry_of(&answer)
                .billed_micro_usd
                .map(|billed| billed.get()),
            Some(0),
            "{status}"
        );
    }
    assert!(elsewhere.received().is_empty(), "the key goes to one place");
}

#[tokio::test]
async fn the_key_is_struck_out_where_the_service_echoes_it() {
    let echo = format!(r#"{{"detail":"bad key Bearer {KEY}, really {KEY}"}}"#);
    let rows = [
        ("an error body", json(401, &[], &echo)),
        ("an error body that is no JSON", {
            let text = format!("key {KEY} refused");
            format!(
                "HTTP/1.1 403 X\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}",
                text.len()
            )
            .into_bytes()
        }),
        (
            "a header",
            json(400, &[("X-Debug", &format!("Bearer {KEY}"))], "{}"),
        ),
        (
            "a header of a success",
            json(
                200,
                &[
                    ("X-Debug", &format!("auth={KEY};")),
                    ("X-Service-Billed", "7"),
                ],
                "{}",
            ),
        ),
    ];
    for (name, bytes) in rows {
        let (_origin, bursar) = before(bytes).await;
        let answer = bursar.post(CHAT, &chat("hi")).await;
        assert!(answer.complete, "{name}: its length is right");
        assert!(!answer.text().contains(KEY), "{name}: {}", answer.text());
        assert!(!format!("{:?}", answer.headers).contains(KEY), "{name}");
        let metrics = bursar.metrics_text();
        assert!(!metrics.contains(KEY), "{name}: metrics");
        let journal = format!("{:?}", bursar.entries());
        assert!(!journal.contains(KEY), "{name}: ledger");
    }
}

/// Refusals, local answers, free routes, and errors of the service: each names its entry.
#[tokio::test]
async fn every_answer_names_its_entry() {
    let (_origin, bursar) = before(json(200, &[], "{}")).await;
    let long = "x".repeat(70_000);
    let rows: Vec<(&str, String, u16)> = vec![
        ("a free route", "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 200),
        ("a metered route", request("POST", CHAT, &[], &chat("hi")), 200),
        ("the greeting", "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 200),
        ("the favicon", "GET /favicon.ico HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 204),
        ("another host", "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(), 403),
        ("a page", request("POST", CHAT, &[("Origin", "https://evil.example")], &chat("hi")), 403),
        ("a preflight", "OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: https://evil.example\r\n\r\n".into(), 403),
        ("an unknown route", "GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 404),
        ("responses", request("POST", "/v1/responses", &[], "{}"), 400),
        ("no base path", request("POST", "/chat/completions", &[], "{}"), 404),
        ("a path trick", "GET /v1/../v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 400),
        ("another method", "DELETE /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n".into(), 405),
        ("another type", request("POST", CHAT, &[("Content-Type", "text/plain")], "{}"), 415),
        ("two lengths", format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"), 400),
        ("a head that is none", "NONSENSE\r\n\r\n".into(), 400),
        ("a large head", format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX-Long: {long}\r\n\r\n"), 431),
        ("a large body", format!("POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n"), 413),
    ];
    let mut seen = Vec::new();
    for (name, bytes, status) in rows {
        let mut wire = bursar.connect().await;
        wire.send(bytes).await;
        let answer = wire.answer().await;
        assert_eq!(answer.status, status, "{name}: {}", answer.text());
        let id = answer
            .header("x-bursar-entry")
            .unwrap_or_else(|| panic!("{name}: no entry"));
        assert!(!seen.contains(&id.to_owned()), "{name}: an id of its own");
        seen.push(id.to_owned());
        if status >= 400 {
            let code = answer
                .code()
                .unwrap_or_else(|| panic!("{name}: no code"))
                .to_owned();
            let body = answer.json();
            assert_eq!(body["error"]["code"], code.as_str(), "{name}");
            assert_eq!(
                body["detail"], body["error"]["message"],
                "{name}: both shapes"
            );
        }
    }
}

#[tokio::test]
async fn errors_of_the_service_name_their_entry_too() {
    for status in [400, 401, 402, 404, 409, 422, 429, 500, 503] {
        let (_origin, bursar) = before(json(status, &[], r#"{"detail":"no"}"#)).await;
        let answer = bursar.post(CHAT, &chat("hi")).await;
        assert_eq!(answer.status, status);
        assert_eq!(
            answer.header("x-bursar-entry"),
            Some(bursar.entries()[0].id.0.to_string().as_str())
        );
        assert_eq!(answer.code(), None, "{status}: not an error of bursar's");
    }
}

#[tokio::test]
async fn interim_heads_are_skipped_and_a_flood_of_them_is_a_broken_service() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n";
    for (count, status) in [(1, 200), (5, 200), (50, 502)] {
        let bytes = [early.repeat(count).into_bytes(), billed(7)].concat();
        let origin = Origin::always(Step::Answer(bytes)).await;
        let bursar = Bursar::with(&origin.url(), "[retry]\nattempts = 1\n").await;
        let answer = bursar.post(CHAT, &chat("hi")).await;
        assert_eq!(answer.status, status, "{count} interim heads");
        assert_eq!(answer.header("link"), None, "{count} interim heads");
    }
}
