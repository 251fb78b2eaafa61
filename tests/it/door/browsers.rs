//! What a web page can make a browser send to localhost.

use super::{Door, assert_no_cors, get, post};
use crate::support::wire::request;
use crate::support::{Answer, chat};

#[tokio::test]
async fn hosts_are_names_of_this_machine_with_any_port() {
    let door = Door::open().await;
    for host in [
        "localhost",
        "LocalHost",
        "localhost:8327",
        "localhost:1",
        "127.0.0.1",
        "127.0.0.1:65535",
        "[::1]",
        "[::1]:8327",
        "  localhost  ",
    ] {
        door.passes(get("/v1/models", &format!("Host: {host}\r\n")))
            .await;
    }
    // HTTP/1.0 knows no Host, and no browser speaks it.
    door.passes("GET /v1/models HTTP/1.0\r\n\r\n").await;
    door.passes("GET /v1/models HTTP/1.0\r\nHost: localhost\r\n\r\n")
        .await;
}

#[tokio::test]
async fn any_other_host_is_refused() {
    let door = Door::open().await;
    let refused = ["host_refused"];
    let malformed = ["head_malformed"];
    let cases: &[(&str, &[&str])] = &[
        // DNS rebinding: the attacker's own name, resolved to 127.0.0.1.
        ("Host: evil.example\r\n", &refused),
        ("Host: evil.example:8327\r\n", &refused),
        ("Host: localhost.evil.example\r\n", &refused),
        ("Host: 127.0.0.1.nip.io\r\n", &refused),
        ("Host: localhost@evil.example\r\n", &malformed),
        ("Host: evil.example@localhost\r\n", &malformed),
        ("Host: evil.example#localhost\r\n", &malformed),
        ("Host: evil.example/localhost\r\n", &malformed),
        ("Host: localhost, evil.example\r\n", &malformed),
        ("Host: localhost evil.example\r\n", &malformed),
        ("Host: http://localhost\r\n", &malformed),
        // Every way to write an address that is not on the list.
        ("Host: 0.0.0.0\r\n", &refused),
        ("Host: 0.0.0.0:8327\r\n", &refused),
        ("Host: 0\r\n", &refused),
        ("Host: [::]\r\n", &refused),
        ("Host: [::]:8327\r\n", &refused),
        ("Host: [::ffff:127.0.0.1]\r\n", &refused),
        ("Host: [::1%25lo]\r\n", &malformed),
        ("Host: ::1\r\n", &malformed),
        ("Host: 127.1\r\n", &refused),
        ("Host: 2130706433\r\n", &refused),
        ("Host: 0x7f.0.0.1\r\n", &refused),
        ("Host: 127.0.0.2\r\n", &refused),
        ("Host: ip6-localhost\r\n", &refused),
        ("Host: localhost.\r\n", &refused),
        ("Host: localhost:\r\n", &refused),
        ("Host: localhost:http\r\n", &malformed),
        ("Host: localhost:123456\r\n", &refused),
        ("Host: localhost:8327:8327\r\n", &malformed),
        ("Host: [::1\r\n", &malformed),
        ("Host: \r\n", &refused),
        ("Host: l\u{f6}calhost\r\n", &malformed),
        // None, two, and what two parsers would read differently.
        ("", &malformed),
        ("Host: localhost\r\nHost: localhost\r\n", &malformed),
        ("Host: localhost\r\nHost: evil.example\r\n", &malformed),
        ("Host: evil.example\r\nHost: localhost\r\n", &malformed),
        ("Host : localhost\r\n", &malformed),
        (" Host: localhost\r\n", &malformed),
        ("X: y\r\n Host: localhost\r\n", &malformed),
        ("X-Forwarded-Host: localhost\r\n", &malformed),
        (
            "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n",
            &refused,
        ),
    ];
    for (headers, codes) in cases {
        door.refuses(get("/v1/models", headers), codes).await;
    }
    let old = "GET /v1/models HTTP/1.0\r\nHost: evil.example\r\n\r\n";
    let answer = door.refuses(old, &refused).await;
    assert!(
        answer.text().contains("allowed_hosts"),
        "the config key is not named"
    );
    // The same door guards local answers.
    door.refuses(get("/", "Host: evil.example\r\n"), &refused)
        .await;
    door.refuses(get("/favicon.ico", "Host: evil.example\r\n"), &refused)
        .await;
}

#[tokio::test]
async fn configured_hosts_come_in_exactly() {
    let door = Door::with("[listen]\nallowed_hosts = [\"gateway.internal\"]\n").await;
    for host in ["gateway.internal", "Gateway.Internal:8443", "localhost"] {
        door.passes(get("/v1/models", &format!("Host: {host}\r\n")))
            .await;
    }
    let door = Door::with("[listen]\nallowed_hosts = [\"gateway.internal\"]\n").await;
    for host in [
        "internal",
        "x.gateway.internal",
        "gateway.internal.evil.example",
        "gateway-internal",
    ] {
        door.refuses(
            get("/v1/models", &format!("Host: {host}\r\n")),
            &["host_refused"],
        )
        .await;
    }
}

#[tokio::test]
async fn a_page_cannot_spend_or_read_whatever_it_sends() {
    let door = Door::open().await;
    for origin in [
        "https://evil.example",
        "http://localhost:8327",
        "http://127.0.0.1:3000",
        "null",
        "file://",
        "chrome-extension://abcdef",
        "",
    ] {
        let refused = ["origin_refused"];
        let headers = [("Origin", origin)];
        let answer = door.refuses(post(&headers), &refused).await;
        assert!(
            answer.text().contains("allowed_origins"),
            "the config key is not named"
        );
        let read = format!("Host: localhost\r\nOrigin: {origin}\r\n");
        door.refuses(get("/v1/models", &read), &refused).await;
        door.refuses(get("/", &read), &refused).await;
        // A multipart route needs no preflight: the marks of the browser are all there is.
        let form = [
            ("Origin", origin),
            ("Content-Type", "multipart/form-data; boundary=x"),
        ];
        door.refuses(
            request("POST", "/v1/eval-sets", &form, "--x--\r\n"),
            &refused,
        )
        .await;
        // `fetch` with `mode: "no-cors"` and `keepalive`, or a beacon.
        let beacon = [
            ("Origin", origin),
            ("Content-Type", "text/plain;charset=UTF-8"),
            ("Sec-Fetch-Mode", "no-cors"),
        ];
        door.refuses(
            request("POST", "/v1/chat/completions", &beacon, &chat("x")),
            &refused,
        )
        .await;
    }
    let twice = [
        ("Origin", "https://a.example"),
        ("Origin", "https://b.example"),
    ];
    door.refuses(post(&twice), &["origin_refused"]).await;
}

#[tokio::test]
async fn a_request_that_a_browser_marks_as_crossing_sites_is_refused() {
    let door = Door::open().await;
    let refused = ["site_refused"];
    for site in [
        "cross-site",
        "same-site",
        "same-origin",
        "None",
        "none, cross-site",
        "x",
        "",
    ] {
        // An image, a script, a form, a navigation: no Origin on GET.
        door.refuses(
            get(
                "/v1/models",
                &format!("Host: localhost\r\nSec-Fetch-Site: {site}\r\n"),
            ),
            &refused,
        )
        .await;
        door.refuses(post(&[("Sec-Fetch-Site", site)]), &refused)
            .await;
    }
    let two = "Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n";
    door.refuses(get("/v1/models", two), &refused).await;

    // Typed into the address bar; and what plain Node programs send.
    door.passes(get(
        "/v1/models",
        "Host: localhost\r\nSec-Fetch-Site: none\r\nSec-Fetch-Mode: navigate\r\n",
    ))
    .await;
    door.passes(post(&[
        ("Sec-Fetch-Mode", "cors"),
        ("Sec-Fetch-Dest", "empty"),
    ]))
    .await;
}

#[tokio::test]
async fn json_routes_take_json_and_nothing_that_needs_no_preflight() {
    let door = Door::open().await;
    let refused = ["content_type_refused"];
    for route in [
        "/v1/chat/completions",
        "/agent/v1/chat/completions",
        "/v1/responses",
        "/agent/v1/responses",
        "/agent/v1/messages",
        "/v1/embeddings",
        "/v1/audio/speech",
        "/v1/endpoints",
        "/v1/tasks/match",
    ] {
        for kind in [
            "text/plain",
            "text/plain;charset=UTF-8",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/json",
            "application/jsonp",
            "application/json-patch+json",
            "application/x-json",
            "text/plain; application/json",
            "text/plain, application/json",
            "application/json, text/plain",
            "application/",
            "json",
            "",
        ] {
            door.refuses(
                request("POST", route, &[("Content-Type", kind)], &chat("x")),
                &refused,
            )
            .await;
        }
        let body = chat("x");
        let untyped = format!(
            "POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        door.refuses(untyped, &refused).await;
        let two = [
            ("Content-Type", "application/json"),
            ("Content-Type", "text/plain"),
        ];
        door.refuses(request("POST", route, &two, &body), &refused)
            .await;
        let bodyless =
            format!("POST {route} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
        door.refuses(bodyless, &refused).await;
    }
    let json = [("Content-Type", "application/json")];
    door.refuses(request("POST", "/v1/eval-sets", &json, "{}"), &refused)
        .await;
    let text = [("Content-Type", "text/plain")];
    door.refuses(
        request("POST", "/v1/endpoints/e-1/stop", &text, "x"),
        &refused,
    )
    .await;
    door.refuses(request("DELETE", "/v1/endpoints/e-1", &text, "x"), &refused)
        .await;
    door.refuses(request("POST", "/v1/images/edits", &text, "x"), &refused)
        .await;

    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON",
        "application/json ;x=y",
    ] {
        door.passes(post(&[("Content-Type", kind)])).await;
    }
    let form = [("Content-Type", "multipart/form-data; boundary=x")];
    door.passes(request("POST", "/v1/eval-sets", &form, "--x--\r\n"))
        .await;
    door.passes(request("POST", "/v1/images/edits", &form, "--x--\r\n"))
        .await;
    door.passes(
        "POST /v1/endpoints/e-1/stop HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    door.passes("DELETE /v1/eval-sets/s-1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
}

#[tokio::test]
async fn preflights_are_refused_without_any_access_control_header() {
    let door = Door::open().await;
    let asks =
        "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: content-type\r\n";
    let private = "Access-Control-Request-Private-Network: true\r\n";
    for path in ["/v1/chat/completions", "/v1/models", "/", "/nothing"] {
        for origin in ["https://evil.example", "null", "http://localhost:3000"] {
            let preflight = format!(
                "OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\n{asks}{private}\r\n"
            );
            door.refuses(preflight, &["origin_refused"]).await;
        }
        let bare = format!("OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        door.refuses(bare, &["preflight_refused"]).await;
        let unsigned = format!("OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\n{asks}\r\n");
        door.refuses(unsigned, &["preflight_refused"]).await;
    }
}

#[tokio::test]
async fn a_listed_origin_may_ask_and_spend_and_others_still_may_not() {
    let origin = "https://studio.example";
    let door = Door::with(&format!("[listen]\nallowed_origins = [\"{origin}\"]\n")).await;
    let preflight = |origin: &str, asks: &str| {
        format!(
            "OPTIONS /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: {origin}\r\nSec-Fetch-Site: cross-site\r\n{asks}\r\n"
        )
    };
    let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization, content-type\r\n";
    for other in [
        "https://evil.example",
        "http://studio.example",
        "https://studio.example.evil.example",
        "https://studio.example:8443",
        "null",
    ] {
        door.refuses(preflight(other, asks), &["origin_refused"])
            .await;
        door.refuses(post(&[("Origin", other)]), &["origin_refused"])
            .await;
    }
    door.refuses(preflight(origin, ""), &["preflight_refused"])
        .await;

    let answer = door.ask(preflight(origin, asks)).await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
    assert_eq!(
        answer.header("access-control-allow-headers"),
        Some("authorization, content-type")
    );
    let methods = answer
        .header("access-control-allow-methods")
        .expect("methods");
    assert!(methods.contains("POST"), "{methods}");
    assert_eq!(answer.header("access-control-allow-credentials"), None);
    assert_eq!(answer.header("vary"), Some("Origin"));
    door.assert_untouched("a preflight");

    let answer = door
        .passes(post(&[
            ("Origin", origin),
            ("Sec-Fetch-Site", "cross-site"),
        ]))
        .await;
    assert_eq!(answer.header("access-control-allow-origin"), Some(origin));
    let received = &door.origin.received()[0];
    assert_eq!(received.header("origin"), None);
    assert_eq!(received.header("sec-fetch-site"), None);
    // A request without Origin is a program's, and its answer is not for pages.
    let answer = door.passes(post(&[])).await;
    assert_no_cors(&answer, "no origin");
}

/// Obsidian's plug-ins call from a page of their own, with what openai-node sends in browsers
/// (`dangerouslyAllowBrowser`).
#[tokio::test]
async fn a_listed_app_origin_passes_with_the_headers_of_an_sdk_in_a_browser() {
    let door = Door::with("[listen]\nallowed_origins = ['app://obsidian.md']\n").await;
    let asked = "authorization,content-type,dangerously-allow-browser,x-stainless-arch,x-stainless-lang,\
                 x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,\
                 x-stainless-runtime-version,x-stainless-timeout";
    for path in [
        "/v1/chat/completions",
        "/v1/models",
        "/agent/v1/messages",
        "/v1/audio/transcriptions",
    ] {
        let preflight = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: localhost\r\nOrigin: app://obsidian.md\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: {asked}\r\n\
             Sec-Fetch-Mode: cors\r\nSec-Fetch-Site: cross-site\r\n\r\n"
        );
        let answer = door.ask(preflight).await;
        assert_eq!(answer.status, 204, "{path}");
        assert_eq!(
            answer.header("access-control-allow-origin"),
            Some("app://obsidian.md")
        );
        assert_eq!(answer.header("access-control-allow-headers"), Some(asked));
        assert!(
            answer
                .header("access-control-allow-methods")
                .is_some_and(|methods| methods.contains("POST"))
        );
    }
    let headers = [
        ("Origin", "app://obsidian.md"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Mode", "cors"),
        ("dangerously-allow-browser", "true"),
        ("x-stainless-lang", "js"),
        ("x-stainless-retry-count", "0"),
        ("x-stainless-timeout", "600"),
    ];
    let answer = door.passes(post(&headers)).await;
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some("app://obsidian.md")
    );
    assert_eq!(answer.header("access-control-expose-headers"), Some("*"));
    // Another app's page, and the same name as a site.
    for origin in [
        "app://other.md",
        "https://obsidian.md",
        "app://obsidian.md.evil.example",
    ] {
        let mut headers = headers;
        headers[0] = ("Origin", origin);
        let mut wire = door.bursar.connect().await;
        wire.send(post(&headers)).await;
        let answer = wire.answer().await;
        assert_eq!(answer.code(), Some("origin_refused"), "{origin}");
        assert_no_cors(&answer, origin);
    }
}

/// A page of this origin has read an answer, and what bursar says about it.
fn assert_reads(answer: &Answer, origin: &str, what: &str) {
    assert_eq!(
        answer.header("access-control-allow-origin"),
        Some(origin),
        "{what}"
    );
    assert_eq!(
        answer.header("access-control-expose-headers"),
        Some("*"),
        "{what}"
    );
    assert_eq!(answer.header("vary"), Some("Origin"), "{what}");
    assert_eq!(answer.header("x-should-retry"), Some("false"), "{what}");
}

/// Else a plug-in whose cap is reached, or whose base URL is wrong, can only say that the network failed.
#[tokio::test]
async fn a_listed_origin_reads_why_its_request_is_refused_and_no_other_does() {
    let lines = "[listen]\nallowed_origins = ['app://obsidian.md']\n[caps]\nmonth_micro_usd = 0\n";
    let door = Door::with(lines).await;
    let listed = "app://obsidian.md";
    let body = chat("x");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let rows: [(&str, Headers<'_>, &str, u16, &str); 6] = [
        ("/v1/chat/completions", &[], &body, 402, "cap_reached"),
        (
            "/v1/responses",
            &[],
            r#"{"model":"auto","input":"x","background":true}"#,
            400,
            "untranslatable",
        ),
        (
            "/agent/v1/messages",
            &[],
            r#"{"model":"auto","max_tokens":9}"#,
            400,
            "untranslatable",
        ),
        ("/v1/nothing", &[], "{}", 404, "route_unknown"),
        (
            "/v1/chat/completions",
            &[("x-api-key", "a"), ("authorization", "Bearer b")],
            &body,
            401,
            "token_refused",
        ),
        (
            "/v1/chat/completions",
            &[("Content-Type", "text/plain")],
            &body,
            415,
            "content_type_refused",
        ),
    ];
    for (path, headers, body, status, code) in rows {
        for (origin, status, code) in [
            (Some(listed), status, code),
            (Some("app://other.md"), 403, "origin_refused"),
            // A program's refusal is not for pages.
            (None, status, code),
        ] {
            let what = format!("{path} {code} {origin:?}");
            let mut headers = headers.to_vec();
            headers.extend(origin.map(|origin| ("Origin", origin)));
            let answer = door.ask(request("POST", path, &headers, body)).await;
            assert_eq!(
                (answer.status, answer.code()),
                (status, Some(code)),
                "{what}: {}",
                answer.text()
            );
            match origin {
                Some(origin) if origin == listed => assert_reads(&answer, listed, &what),
                _ => assert_no_cors(&answer, &what),
            }
        }
    }
    // What is refused while its body is read.
    let broken = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nOrigin: {listed}\r\n\
         Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    );
    let answer = door.ask(broken).await;
    assert_eq!(answer.code(), Some("body_broken"), "{}", answer.text());
    assert_reads(&answer, listed, "a broken body");
    // Under another name for this machine a page reads nothing, wherever it is from.
    let rebound = [("Host", "evil.example"), ("Origin", listed)];
    let answer = door.ask(post(&rebound)).await;
    assert_eq!(answer.code(), Some("host_refused"), "{}", answer.text());
    assert_no_cors(&answer, "another host");
    door.assert_untouched("refusals");
}
