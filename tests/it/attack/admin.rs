//! Row 26: the admin listener only reads, answers no page, and relays nothing. A person may follow a link to what is
//! made to be looked at.

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
    cases.extend(browsed());
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
        "/explain",
        "/explain/a/b",
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

/// Header lines of what a browser says of a request: where from, how, and what for.
fn marks(site: &str, mode: &str, dest: &str) -> String {
    format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: {mode}\r\nSec-Fetch-Dest: {dest}\r\n")
}

/// What a page of another origin does to get at the two pages that a person may be linked to.
fn browsed() -> Vec<AdminCase> {
    /// No entry has it.
    const ENTRY: &str = "/explain/019a0000-0000-7000-8000-000000000000";
    let mut cases = Vec::new();
    for (page, statuses) in [("/", READS), (ENTRY, UNKNOWN)] {
        for site in ["cross-site", "same-site", "same-origin", "none"] {
            let name = format!("a link of {site} to {page}");
            let lines = marks(site, "navigate", "document");
            cases.push(case(&name, ask("GET", page, &lines), statuses));
        }
        let from = |mode, dest| marks("cross-site", mode, dest);
        let origin = "Origin: https://evil.example\r\n";
        for (what, method, lines) in [
            ("a frame", "GET", from("navigate", "iframe")),
            ("an old frame", "GET", from("navigate", "frame")),
            ("an object", "GET", from("navigate", "object")),
            ("an embed", "GET", from("navigate", "embed")),
            ("a picture", "GET", from("no-cors", "image")),
            ("a script tag", "GET", from("no-cors", "script")),
            ("a style tag", "GET", from("no-cors", "style")),
            ("a sound", "GET", from("no-cors", "audio")),
            ("a worker", "GET", from("same-origin", "worker")),
            ("a prefetch", "GET", from("no-cors", "empty")),
            ("a fetch", "GET", from("cors", "empty") + origin),
            (
                "a fetch that says it is our own",
                "GET",
                from("same-origin", "empty"),
            ),
            (
                "a form that is posted",
                "POST",
                from("navigate", "document") + origin,
            ),
            (
                "a form of a file",
                "POST",
                from("navigate", "document") + "Origin: null\r\n",
            ),
            (
                "a link with an origin",
                "GET",
                from("navigate", "document") + origin,
            ),
            ("a head by a link", "HEAD", from("navigate", "document")),
            (
                "a mode twice",
                "GET",
                from("navigate", "document") + "Sec-Fetch-Mode: cors\r\n",
            ),
            (
                "a destination twice",
                "GET",
                from("navigate", "document") + "Sec-Fetch-Dest: iframe\r\n",
            ),
            (
                "a site twice",
                "GET",
                from("navigate", "document") + "Sec-Fetch-Site: none\r\n",
            ),
            (
                "a link that lacks its destination",
                "GET",
                from("navigate", "document").replace("Sec-Fetch-Dest", "X"),
            ),
        ] {
            cases.push(case(
                &format!("{what} to {page}"),
                ask(method, page, &lines),
                REFUSED,
            ));
        }
        let rebound = ask("GET", page, &from("navigate", "document"));
        let rebound = rebound.replace("Host: localhost", "Host: evil.example:8328");
        cases.push(case(
            &format!("a name that is rebound, by a link to {page}"),
            rebound,
            REFUSED,
        ));
        let renamed = ask("GET", page, &marks("same-origin", "same-origin", "empty"));
        let renamed = renamed.replace("Host: localhost", "Host: evil.example:8328");
        cases.push(case(
            &format!("a name that is rebound, by a script to {page}"),
            renamed,
            REFUSED,
        ));
    }
    for path in PAGES.into_iter().filter(|page| *page != "/") {
        for site in ["cross-site", "same-site", "same-origin"] {
            let lines = marks(site, "navigate", "document");
            let name = format!("a link of {site} to what is for programs, {path}");
            cases.push(case(&name, ask("GET", path, &lines), REFUSED));
        }
    }
    for (site, statuses) in [
        ("same-origin", READS),
        ("same-site", REFUSED),
        ("cross-site", REFUSED),
    ] {
        let lines = marks(site, "no-cors", "image");
        let name = format!("the icon for a page of {site}");
        cases.push(case(&name, ask("GET", "/favicon.ico", &lines), statuses));
    }
    let popup = ask("GET", "/", &marks("cross-site", "navigate", "document"));
    cases.push(case(
        "a popup gets the page, and no handle on it",
        popup,
        READS,
    ));
    cases
}
