//! Request targets and methods.

use super::{Door, get};

#[tokio::test]
async fn no_path_trick_comes_through() {
    let door = Door::open().await;
    let tricks = [
        "path_refused",
        "route_unknown",
        "base_path_missing",
        "head_malformed",
    ];
    let long_id = format!("/v1/tasks/{}", "a".repeat(129));
    let too_long = format!("/v1/models?{}", "a".repeat(8 * 1024));
    for target in [
        "//v1/models",
        "/v1//models",
        "/v1/models//",
        "/v1/models/",
        "/v1/./models",
        "/v1/models/.",
        "/v1/models/a/",
        "/v1/models/a/../b",
        "/v1/models/..%2fchat%2fcompletions",
        "/v1/models/a%2f..%2f..%2ftasks",
        "/v1/models/%2fa",
        "/v1/models/a%2e%2e",
        "/v1/models/a%5cb",
        "/v1/models/a%0d%0aX:y",
        "/v1/../v1/models",
        "/v1/tasks/..",
        "/v1/tasks/../models",
        "/agent/v1/../../v1/models",
        "/v1/%2e%2e/v1/models",
        "/v1/%2E%2E/v1/models",
        "/v1/.%2e/v1/models",
        "/v1/%2e/models",
        "/v1%2fmodels",
        "/v1%2Fmodels",
        "/v1/tasks/a%2fb",
        "/v1/tasks/a%5cb",
        "/v1/tasks/a%5Cb",
        "/v1/tasks/..%5c",
        "/v1/tasks/a\\b",
        "\\v1\\models",
        "/v1\\models",
        "/v1/tasks/%00",
        "/v1/models%00",
        "/v1/tasks/a\0b",
        "/v1/models\0",
        "/v1/tasks/%252e%252e",
        "/v1/tasks/%c0%ae",
        "/v1/tasks/a%20b",
        "/v1/tasks/a%0d%0ab",
        "/v1/tasks/a%3fb",
        "/v1/tasks/a;b",
        "/v1/models;x=y",
        "/v1/;/models",
        "/v1/models#part",
        "/v1/models?x=y#part",
        "/v1/tasks/*",
        "/v1/tasks/a:b",
        "/v1/tasks/a@b",
        "/v1/tasks/\u{e9}",
        "/v1/tasks/\u{2025}",
        "/v1/tasks/a b",
        "/v1/tasks/a\tb",
        "/V1/models",
        "/v1/Models",
        "/v1",
        "/v1/",
        "/sandbox/books",
        "/metrics",
        "/healthz",
        "/v1/no-such-route",
        "v1/models",
        "*",
        "localhost:80",
        "http://localhost/v1/models",
        "http://evil.example/v1/models",
        "https://127.0.0.1/v1/models",
        "file:///etc/passwd",
        "?x",
        "",
        long_id.as_str(),
        too_long.as_str(),
    ] {
        door.refuses(get(target, "Host: localhost\r\n"), &tricks)
            .await;
        let spends = format!(
            "POST {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}"
        );
        let codes: Vec<&str> = tricks.into_iter().chain(["method_refused"]).collect();
        door.refuses(spends, &codes).await;
    }
}

#[tokio::test]
async fn ids_and_queries_pass_byte_for_byte() {
    let door = Door::open().await;
    let longest = format!("/v1/tasks/{}", "a".repeat(128));
    for target in [
        "/v1/tasks/a.b_c~d-E9",
        "/v1/tasks/...",
        "/v1/tasks/t-1?examples_n=3",
        "/v1/models?",
        "/v1/models?next=../../x//y\\z%2e%2f%00&a=%20",
        "/v1/endpoints/e-1/performance?window=1h&x=%c3%a9",
        longest.as_str(),
    ] {
        door.passes(get(target, "Host: localhost\r\n")).await;
        let received = door.origin.received();
        let line = received
            .last()
            .expect("a request")
            .request_line()
            .to_owned();
        assert_eq!(line, format!("GET {target} HTTP/1.1"));
    }
}

#[tokio::test]
async fn only_the_methods_of_a_route_come_through() {
    let door = Door::open().await;
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("TRACE", "/v1/models", Some("GET")),
        ("TRACE", "/", None),
        ("CONNECT", "/v1/models", Some("GET")),
        ("PUT", "/v1/models", Some("GET")),
        ("PATCH", "/v1/eval-sets/s-1", Some("GET, DELETE")),
        ("POST", "/v1/models", Some("GET")),
        ("DELETE", "/v1/models", Some("GET")),
        ("GET", "/v1/chat/completions", Some("POST")),
        ("HEAD", "/v1/chat/completions", None),
        ("DELETE", "/v1/chat/completions", Some("POST")),
        ("get", "/v1/models", Some("GET")),
        ("Get", "/v1/models", Some("GET")),
        ("post", "/v1/chat/completions", Some("POST")),
        ("GETT", "/v1/models", Some("GET")),
        ("BREW", "/v1/models", Some("GET")),
        ("PROPFIND", "/v1/no-such-route", None),
        ("PUT", "/v1/no-such-route", None),
    ];
    for (method, path, allow) in cases {
        let bytes = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if *method == "HEAD" {
            let mut wire = door.bursar.connect().await;
            wire.send(bytes).await;
            let answer = wire.head_answer().await;
            assert_eq!(
                (answer.status, answer.code()),
                (405, Some("method_refused"))
            );
            assert!(wire.ends().await, "a HEAD was answered with a body");
            continue;
        }
        let answer = door.refuses(bytes, &["method_refused"]).await;
        if let Some(allow) = allow {
            assert_eq!(answer.header("allow"), Some(*allow), "{method} {path}");
        }
    }
    // A target of another form, or an invalid method: the parser refuses it, or the path's check.
    for line in [
        "CONNECT evil.example:443 HTTP/1.1",
        "CONNECT localhost:8327 HTTP/1.1",
        "G@T /v1/models HTTP/1.1",
        "GET\t/v1/models HTTP/1.1",
        "GET  /v1/models HTTP/1.1",
        "GET /v1/models  HTTP/1.1",
        "GET /v1/models HTTP/1.1 ",
        " GET /v1/models HTTP/1.1",
        "GET /v1/models HTTP/1.2",
        "GET /v1/models HTTP/2.0",
        "GET /v1/models HTTP/0.9",
        "GET /v1/models http/1.1",
        "GET /v1/models",
        "/v1/models HTTP/1.1",
        "PRI * HTTP/2.0",
    ] {
        let codes = [
            "head_malformed",
            "path_refused",
            "route_unknown",
            "method_refused",
        ];
        door.refuses(format!("{line}\r\nHost: localhost\r\n\r\n"), &codes)
            .await;
    }
    // A TLS hello on a plain port.
    let hello = b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\r\n\r\n";
    door.refuses(hello, &["head_malformed"]).await;

    let mut wire = door.bursar.connect().await;
    door.origin.push(crate::support::Step::Answer(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 17\r\n\r\n".to_vec(),
    ));
    wire.send("HEAD /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    let answer = wire.head_answer().await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        door.origin.received()[0].request_line(),
        "HEAD /v1/models HTTP/1.1"
    );
}

#[tokio::test]
async fn a_target_that_was_judged_is_the_target_that_is_sent() {
    let door = Door::open().await;
    // The parser below escapes bytes that no target may hold; what is judged is what is sent.
    for target in [
        "/v1/models?q=a\"b",
        "/v1/models?q=<x>",
        "/v1/models?q=\u{e9}",
    ] {
        door.origin.push(crate::support::Step::Answer(
            crate::support::origin::billed(1),
        ));
        let before = door.origin.received().len();
        let answer = door.ask(get(target, "Host: localhost\r\n")).await;
        let received = door.origin.received();
        if answer.status == 200 {
            let line = received.last().expect("a request").request_line();
            let sent = line.split(' ').nth(1).expect("a target");
            assert!(
                sent.is_ascii() && sent.starts_with("/v1/models?q="),
                "{line}"
            );
            assert_eq!(line.split(' ').count(), 3, "{line}");
        } else {
            assert_eq!(
                (answer.status, received.len()),
                (400, before),
                "{target}: {answer:?}"
            );
        }
    }
}
