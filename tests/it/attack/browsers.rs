//! Rows 1 to 5: what a page in a browser can send to this machine.

use super::case::{CHAT, Case, May, Sent, get, post};
use crate::support::chat;

const ORIGIN: &[&str] = &["origin_refused"];
const SITE: &[&str] = &["site_refused"];
const TYPE: &[&str] = &["content_type_refused"];
const HOST: &[&str] = &["host_refused"];
const PREFLIGHT: &[&str] = &["preflight_refused"];

pub fn cases() -> Vec<Case> {
    [
        simple_requests(),
        forms(),
        rebinding(),
        zero(),
        preflights(),
    ]
    .concat()
}

/// A chat request with lines of its own instead of the Content-Type.
fn typed(name: &str, lines: &str) -> Vec<u8> {
    let body = chat(name);
    format!(
        "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn simple_requests() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lines) in [
        ("text", "Content-Type: text/plain\r\n"),
        (
            "text with a charset",
            "Content-Type: text/plain;charset=UTF-8\r\n",
        ),
        (
            "a form",
            "Content-Type: application/x-www-form-urlencoded\r\n",
        ),
        (
            "a form with files",
            "Content-Type: multipart/form-data; boundary=x\r\n",
        ),
        ("no type", ""),
        ("an empty type", "Content-Type:\r\n"),
        (
            "json as a parameter",
            "Content-Type: text/plain; application/json\r\n",
        ),
        (
            "json in a list",
            "Content-Type: text/plain, application/json\r\n",
        ),
        (
            "json first in a list",
            "Content-Type: application/json, text/plain\r\n",
        ),
        ("json and more", "Content-Type: application/jsonx\r\n"),
        (
            "two types",
            "Content-Type: application/json\r\nContent-Type: text/plain\r\n",
        ),
        (
            "two equal types",
            "Content-Type: application/json\r\nContent-Type: application/json\r\n",
        ),
        (
            "a type with bytes",
            "Content-Type: application/json\u{e9}\r\n",
        ),
    ] {
        cases.push(Case::refused(1, name, typed(name, lines), TYPE));
    }
    for origin in [
        "https://evil.example",
        "null",
        "http://localhost:8327",
        "file://",
        "",
    ] {
        let name = format!("a call by a page of {origin:?}");
        let line = format!("Origin: {origin}\r\n");
        cases.push(Case::refused(1, &name, post(&name, &line), ORIGIN));
        let name = format!("a read by a page of {origin:?}");
        cases.push(Case::refused(1, &name, get("/v1/models", &line), ORIGIN));
    }
    let two = "Origin: https://a.example\r\nOrigin: https://b.example\r\n";
    cases.push(Case::refused(1, "two origins", post("two", two), ORIGIN));
    for site in [
        "cross-site",
        "same-site",
        "same-origin",
        "NONE",
        "none, cross-site",
        "",
    ] {
        let name = format!("a navigation marked {site:?}");
        let line = format!("Sec-Fetch-Site: {site}\r\n");
        cases.push(Case::refused(1, &name, get("/v1/models", &line), SITE));
        let name = format!("a call marked {site:?}");
        cases.push(Case::refused(1, &name, post(&name, &line), SITE));
    }
    let both = "Sec-Fetch-Site: none\r\nSec-Fetch-Site: cross-site\r\n";
    cases.push(Case::refused(1, "two marks", get("/v1/models", both), SITE));
    let node = "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\n";
    let sent = Sent::chat(chat("a program's fetch")).without("sec-fetch-mode");
    cases.push(Case::relayed(
        1,
        "a program's fetch",
        post("a program's fetch", node),
        sent,
    ));
    cases
}

/// A multipart route accepts what needs no preflight: only the browser's marks reveal a page.
fn forms() -> Vec<Case> {
    let form = |lines: &str, body: &str| {
        format!(
            "POST /v1/eval-sets HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\n{lines}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let whole = "--x\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\np\r\n--x--\r\n";
    let mut cases = Vec::new();
    for (name, lines, codes) in [
        (
            "a form of a page",
            "Origin: https://evil.example\r\n",
            ORIGIN,
        ),
        ("a form of a file", "Origin: null\r\n", ORIGIN),
        (
            "a form that a browser marks",
            "Sec-Fetch-Site: cross-site\r\n",
            SITE,
        ),
        (
            "a form of the same site",
            "Sec-Fetch-Site: same-site\r\n",
            SITE,
        ),
        (
            "a form with an innocent mark",
            "Sec-Fetch-Site: none\r\nOrigin: https://evil.example\r\n",
            ORIGIN,
        ),
    ] {
        cases.push(Case::refused(2, name, form(lines, whole), codes));
    }
    let url_encoded =
        form("", whole).replace("multipart/form-data", "application/x-www-form-urlencoded");
    cases.push(Case::refused(2, "a form without files", url_encoded, TYPE));
    // A program's form is the service's to judge, whole or broken.
    for (name, body) in [
        ("a program's form", whole.to_owned()),
        (
            "a boundary that never comes",
            "--y\r\n\r\nx\r\n--y--\r\n".to_owned(),
        ),
        (
            "a boundary that never ends",
            "--x\r\nContent-Disposition: form-data\r\n\r\n".to_owned(),
        ),
        (
            "a request in a form",
            format!(
                "--x\r\n\r\n{}",
                String::from_utf8_lossy(&super::case::hidden())
            ),
        ),
    ] {
        let sent = Sent::post("/v1/eval-sets", body.clone());
        cases.push(Case::relayed(2, name, form("", &body), sent));
    }
    cases
}

fn host_case(row: u8, host: &str, codes: &'static [&'static str]) -> Case {
    let bytes = format!("GET /v1/models HTTP/1.1\r\nHost: {host}\r\n\r\n");
    Case::refused(row, &format!("the host {host:?}"), bytes, codes)
}

fn rebinding() -> Vec<Case> {
    let mut cases = Vec::new();
    for host in [
        "evil.example",
        "evil.example:8327",
        "localhost.evil.example",
        "evil.example.localhost",
        "127.0.0.1.nip.io",
        "localhost.",
        "ip6-localhost",
    ] {
        cases.push(host_case(3, host, HOST));
    }
    // Invalid syntax: 400. Valid, but not a name of this machine: 403.
    for host in [
        "localhost@evil.example",
        "evil.example@localhost",
        "evil.example#localhost",
        "evil.example/localhost",
        "evil.example\\localhost",
        "localhost, evil.example",
        "localhost evil.example",
        "http://localhost",
        "localhost:8327:8327",
        "localhost:+80",
        "localhost:80x",
        "localhost\tevil.example",
        "local<host",
        "local\"host",
        "local^host",
        "local|host",
        "local`host",
        "local{host}",
        "localhost?",
        "local[host]",
        "[::1",
        "[::1]evil.example",
        "[::1]:x",
        "[]",
        "[localhost]",
        "[127.0.0.1]",
        "[fe80::1%25eth0]",
        "::1",
        "local%host",
        "local%6",
        "local%zzhost",
        "l\u{f6}calhost",
    ] {
        cases.push(host_case(3, host, &["head_malformed"]));
    }
    for host in [
        "localhost:",
        "localhost:99999999",
        "localhost,evil.example",
        "%6cocalhost",
        "[::2]",
        "[v1.x]",
        "[::ffff:127.0.0.1]:8327",
        "a.b_c~d-e!$&'()*+,;=",
        "",
    ] {
        cases.push(host_case(3, host, HOST));
    }
    for (name, lines) in [
        ("no host", ""),
        ("two hosts", "Host: localhost\r\nHost: localhost\r\n"),
        (
            "a good host and another",
            "Host: localhost\r\nHost: evil.example\r\n",
        ),
        (
            "another host and a good one",
            "Host: evil.example\r\nHost: localhost\r\n",
        ),
        ("a folded host", "Host:\r\n localhost\r\n"),
        ("a host with a space", "Host : localhost\r\n"),
        ("a forwarded host only", "X-Forwarded-Host: localhost\r\n"),
    ] {
        let bytes = format!("GET /v1/models HTTP/1.1\r\n{lines}\r\n");
        cases.push(Case::refused(3, name, bytes, &["head_malformed"]));
    }
    for (name, lines) in [
        (
            "a host beside a forwarded one",
            "Host: evil.example\r\nX-Forwarded-Host: localhost\r\n",
        ),
        (
            "a host beside Forwarded",
            "Host: evil.example\r\nForwarded: host=localhost\r\n",
        ),
        (
            "a host beside X-Host",
            "Host: evil.example\r\nX-Host: localhost\r\n",
        ),
    ] {
        let bytes = format!("GET /v1/models HTTP/1.1\r\n{lines}\r\n");
        cases.push(Case::refused(3, name, bytes, HOST));
    }
    let old = "GET /v1/models HTTP/1.0\r\nHost: evil.example\r\n\r\n";
    cases.push(Case::refused(3, "a host in HTTP/1.0", old, HOST));
    for target in ["/", "/favicon.ico"] {
        let bytes = format!("GET {target} HTTP/1.1\r\nHost: evil.example\r\n\r\n");
        cases.push(Case::refused(
            3,
            &format!("{target} of another host"),
            bytes,
            HOST,
        ));
    }
    cases.push(Case::relayed(
        3,
        "this machine by its number",
        "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n",
        Sent::get("/v1/models"),
    ));
    cases
}

fn zero() -> Vec<Case> {
    let hosts = [
        "0.0.0.0",
        "0.0.0.0:8327",
        "0",
        "0x0",
        "0:8327",
        "[::]",
        "[::]:8327",
        "[::ffff:0.0.0.0]",
        "[::ffff:127.0.0.1]",
        "127.1",
        "127.0.0.2",
        "2130706433",
        "017700000001",
        "0x7f.0.0.1",
    ];
    hosts.iter().map(|host| host_case(4, host, HOST)).collect()
}

fn preflights() -> Vec<Case> {
    let asks = "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization, content-type\r\n";
    let options = |target: &str, lines: &str| {
        format!("OPTIONS {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n")
    };
    let mut cases = Vec::new();
    for (name, target, lines, codes) in [
        (
            "a page asks for leave",
            CHAT,
            format!("Origin: https://evil.example\r\n{asks}"),
            ORIGIN,
        ),
        (
            "a file asks for leave",
            CHAT,
            format!("Origin: null\r\n{asks}"),
            ORIGIN,
        ),
        (
            "a page of this machine asks",
            CHAT,
            format!("Origin: http://localhost:3000\r\n{asks}"),
            ORIGIN,
        ),
        (
            "a page asks for the network",
            "/",
            format!(
                "Origin: https://evil.example\r\n{asks}Access-Control-Request-Private-Network: true\r\n"
            ),
            ORIGIN,
        ),
        ("nobody asks", CHAT, asks.to_owned(), PREFLIGHT),
        (
            "nobody asks for anything",
            "/v1/models",
            String::new(),
            PREFLIGHT,
        ),
        (
            "a mark without an origin",
            CHAT,
            format!("Sec-Fetch-Site: cross-site\r\n{asks}"),
            SITE,
        ),
        (
            "all that there is",
            "*",
            String::new(),
            &["path_refused", "preflight_refused"] as &[&str],
        ),
    ] {
        cases.push(Case::refused(5, name, options(target, &lines), codes));
    }
    cases.push(Case::new(
        5,
        "a preflight with a body",
        [
            options("/", &format!("{asks}Content-Length: 5\r\n")).as_bytes(),
            b"hello",
        ]
        .concat(),
        May::Refused(&["preflight_refused", "content_type_refused"]),
    ));
    cases
}
