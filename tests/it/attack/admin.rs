//! Row 26: the admin listener only reads, answers no page, and relays nothing.

use super::case::{Case, May};

/// Bytes for the admin listener and the statuses that may answer them.
pub struct AdminCase {
    pub row: u8,
    pub name: String,
    pub bytes: Vec<u8>,
    pub statuses: &'static [u16],
}

const READS: &[u16] = &[200];
const REFUSED: &[u16] = &[403];
/// A request that hyper or the door refuses, with any text.
const NONE: &[u16] = &[400, 403, 404, 405, 414, 431, 505];
const UNKNOWN: &[u16] = &[404];
const METHOD: &[u16] = &[405];

const PAGES: [&str; 6] = [
    "/",
    "/metrics",
    "/healthz",
    "/readyz",
    "/api/status",
    "/api/spend",
];

/// The same for counting.
pub fn as_cases() -> Vec<Case> {
    cases()
        .into_iter()
        .map(|case| Case::new(case.row, &case.name, case.bytes, May::Local(0)))
        .collect()
}

fn case(name: &str, bytes: impl Into<Vec<u8>>, statuses: &'static [u16]) -> AdminCase {
    AdminCase {
        row: 26,
        name: name.to_owned(),
        bytes: bytes.into(),
        statuses,
    }
}

fn ask(method: &str, target: &str, lines: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
}

pub fn cases() -> Vec<AdminCase> {
    let mut cases = Vec::new();
    for page in PAGES {
        cases.push(case(&format!("reads {page}"), ask("GET", page, ""), READS));
        for method in [
            "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get", "X",
        ] {
            let bytes = ask(method, page, "Content-Length: 0\r\n");
            cases.push(case(&format!("{method} {page}"), bytes, METHOD));
        }
        for (what, lines) in [
            ("a page", "Origin: https://evil.example\r\n"),
            ("a file", "Origin: null\r\n"),
            ("its own page", "Origin: http://localhost:8328\r\n"),
            ("an image of a page", "Sec-Fetch-Site: cross-site\r\n"),
            ("a page of the same site", "Sec-Fetch-Site: same-site\r\n"),
            (
                "two marks",
                "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n",
            ),
        ] {
            let name = format!("{what} reads {page}");
            cases.push(case(&name, ask("GET", page, lines), REFUSED));
        }
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "localhost.",
        "0.0.0.0:8328",
        "[::]",
        "127.1",
        "localhost:123456",
        "localhost:80:80",
        "evil.example@localhost",
        "",
    ] {
        let bytes = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n");
        cases.push(case(
            &format!("the host {host:?} at the admin listener"),
            bytes,
            NONE,
        ));
    }
    for (name, lines) in [
        ("no host at the admin listener", ""),
        (
            "two hosts at the admin listener",
            "Host: localhost\r\nHost: localhost\r\n",
        ),
        (
            "a forwarded host at the admin listener",
            "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n",
        ),
    ] {
        let bytes = format!("GET /metrics HTTP/1.1\r\n{lines}\r\n");
        cases.push(case(name, bytes, NONE));
    }
    for target in [
        "/metrics/",
        "//metrics",
        "/./metrics",
        "/x/../metrics",
        "/%6detrics",
        "/metrics%00",
        "/metrics%3fa",
        "/METRICS",
        "/api",
        "/api/",
        "/api/spend/",
        "/api//spend",
        "/api/%2e%2e/metrics",
        "/v1/models",
        "/v1/chat/completions",
        "/agent/v1/models",
        "/debug/pprof",
        "/.git/config",
        "/favicon.ico",
    ] {
        let name = format!("the path {target} at the admin listener");
        cases.push(case(&name, ask("GET", target, ""), UNKNOWN));
    }
    for target in [
        "http://evil.example/metrics",
        "http://localhost/metrics",
        "https://localhost:8328/metrics",
        "http://evil.example@localhost/metrics",
        "*",
        "evil.example:443",
        "metrics",
    ] {
        let name = format!("the target {target} at the admin listener");
        cases.push(case(&name, ask("GET", target, ""), NONE));
    }
    cases.push(case(
        "a tunnel through the admin listener",
        ask("CONNECT", "evil.example:443", ""),
        NONE,
    ));
    cases.push(case(
        "a call that spends, at the admin listener",
        super::case::post("admin", ""),
        &[404, 405],
    ));
    for (name, lines) in [
        (
            "both framings at the admin listener",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        ),
        (
            "two lengths at the admin listener",
            "Content-Length: 5\r\nContent-Length: 6\r\n",
        ),
        ("a folded field at the admin listener", "X: y\r\n z\r\n"),
        ("a NUL at the admin listener", "X: y\0\r\n"),
        (
            "a space before a colon at the admin listener",
            "Content-Length : 5\r\n",
        ),
    ] {
        cases.push(case(name, ask("POST", "/metrics", lines), NONE));
    }
    let long = format!("X: {}\r\n", "y".repeat(20_000));
    cases.push(case(
        "a long field at the admin listener",
        ask("GET", "/metrics", &long),
        &[431],
    ));
    let many: String = (0..200).map(|at| format!("X-{at}: y\r\n")).collect();
    cases.push(case(
        "many fields at the admin listener",
        ask("GET", "/metrics", &many),
        &[431],
    ));
    for query in [
        "?limit=99999999999999999999",
        "?by=app,app,x",
        "?since=../../etc/passwd",
        "?%00",
        "?since=1e999",
    ] {
        let name = format!("the question {query}");
        cases.push(case(
            &name,
            ask("GET", &format!("/api/spend{query}"), ""),
            &[400],
        ));
    }
    cases.push(case(
        "the head of the metrics",
        ask("HEAD", "/metrics", ""),
        READS,
    ));
    cases
}
