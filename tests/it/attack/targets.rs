//! Rows 9 and 10: the key sent to another receiver, and routes that are not in the table.

use super::case::{CHAT, Case, Sent, get, post};
use crate::support::{KEY, chat};

/// A target that another reader may take for a different one, or that is not a valid one.
const TARGET: &[&str] = &["path_refused", "head_malformed"];
/// A target of the table that is not in it.
const UNKNOWN: &[&str] = &["route_unknown", "base_path_missing"];
const METHOD: &[&str] = &["method_refused"];
const TOKEN: &[&str] = &["token_refused"];
const LINE: &[&str] = &[
    "head_malformed",
    "path_refused",
    "route_unknown",
    "method_refused",
];

/// 400, with any code.
const BAD_REQUEST: &[&str] = &["head_malformed", "path_refused"];

pub fn cases() -> Vec<Case> {
    [elsewhere(), overrides(), paths(), methods(), lines()].concat()
}

/// Every way to name another receiver.
fn elsewhere() -> Vec<Case> {
    let mut cases = Vec::new();
    for target in [
        "http://evil.example/v1/models",
        "http://localhost/v1/models",
        "http://localhost:8327/v1/models",
        "HTTP://LOCALHOST/v1/models",
        "https://127.0.0.1/v1/models",
        "http://localhost@evil.example/v1/models",
        "http://evil.example@localhost/v1/models",
        "http://user:password@localhost/v1/models",
        "http://localhost:80@evil.example/v1/models",
        "http:/v1/models",
        "http:///v1/models",
        "file:///etc/passwd",
        "unix:/run/other.sock:/v1/models",
        "localhost:8327",
        "evil.example:443",
        "*",
        "@evil.example/v1/models",
        ".evil.example/v1/models",
        ":80/v1/models",
        "?http://evil.example",
        "v1/models",
    ] {
        let name = format!("the target {target}");
        cases.push(Case::refused(9, &name, get(target, ""), TARGET));
    }
    for authority in [
        "evil.example:443",
        "localhost:8327",
        "127.0.0.1:22",
        "/v1/models",
    ] {
        let bytes = format!("CONNECT {authority} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        cases.push(Case::refused(
            9,
            &format!("CONNECT {authority}"),
            bytes,
            LINE,
        ));
    }
    let foreign = "GET http://evil.example/v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    cases.push(Case::refused(
        9,
        "a request to a forward proxy",
        foreign,
        &["path_refused", "host_refused"],
    ));
    cases
}

/// Headers that would change sender, content or receiver, if a hop behind us believed them.
fn overrides() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, value) in [
        ("X-Original-URL", "/v1/endpoints"),
        ("X-Original-Host", "evil.example"),
        ("X-Rewrite-URL", "/v1/endpoints"),
        ("X-Override-URL", "/v1/endpoints"),
        ("X-HTTP-Method-Override", "DELETE"),
        ("X-HTTP-Method", "DELETE"),
        ("X-Method-Override", "DELETE"),
        ("X-Forwarded-For", "127.0.0.1"),
        ("X-Forwarded-Host", "evil.example"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Prefix", "/admin"),
        ("X-Forwarded", "for=127.0.0.1"),
        ("Forwarded", "for=127.0.0.1;host=evil.example"),
        ("X-Host", "evil.example"),
        ("X-Real-IP", "127.0.0.1"),
        ("X-Client-IP", "127.0.0.1"),
        ("True-Client-IP", "127.0.0.1"),
        ("CF-Connecting-IP", "127.0.0.1"),
        ("X-Cluster-Client-IP", "127.0.0.1"),
        ("X-Remote-User", "root"),
        ("Remote-User", "root"),
        ("X-Envoy-Original-Path", "/v1/endpoints"),
        ("Via", "1.1 evil.example"),
        ("Proxy", "http://evil.example"),
        ("Proxy-Authorization", "Bearer sk-of-the-app"),
        ("Proxy-Connection", "keep-alive"),
        ("Cookie", "session=sk-of-the-app"),
        ("Referer", "https://evil.example/"),
        ("X-Api-Key", "sk-of-the-app"),
        ("Api-Key", "sk-of-the-app"),
        ("X-Goog-Api-Key", "sk-of-the-app"),
        ("X-Auth-Token", "sk-of-the-app"),
        ("Author_ization", "Bearer sk-of-the-app"),
        ("Content_Length", "0"),
        ("Transfer_Encoding", "chunked"),
        ("Host_", "evil.example"),
        ("Transfer.Encoding", "chunked"),
        ("Content~Length", "0"),
        ("X-Forwarded!Host", "evil.example"),
    ] {
        let case = format!("{name} is not relayed");
        let gone: &'static str = Box::leak(name.to_ascii_lowercase().into_boxed_str());
        let sent = Sent::chat(chat(&case)).without(gone);
        let bytes = post(&case, &format!("{name}: {value}\r\n"));
        cases.push(Case::relayed(9, &case, bytes, sent));
    }
    let ours = format!("Bearer {KEY}");
    for (name, lines) in [
        (
            "the app's own key",
            "Authorization: Bearer sk-of-the-app\r\n",
        ),
        ("an empty key of the app", "Authorization:\r\n"),
    ] {
        let sent = Sent::chat(chat(name)).with("authorization", &ours);
        cases.push(Case::relayed(9, name, post(name, lines), sent));
    }
    for (name, lines) in [
        (
            "two keys of the app",
            "Authorization: Bearer a\r\nauthorization: Bearer b\r\n",
        ),
        (
            "two keys of the app in two places",
            "Authorization: Bearer a\r\nX-Api-Key: b\r\n",
        ),
    ] {
        cases.push(Case::refused(9, name, post(name, lines), TOKEN));
    }
    cases
}

fn paths() -> Vec<Case> {
    let mut cases = Vec::new();
    // Paths that another program may normalise into different ones.
    for target in [
        "//v1/models",
        "/v1//models",
        "/v1/models//",
        "/v1/./models",
        "/v1/models/.",
        "/v1/models/..",
        "/v1/models/..%2fchat%2fcompletions",
        "/v1/models/a%2F..%2f..%2ftasks",
        "/v1/models/%2f%2fevil.example",
        "/v1/models/a%2e%2e%2fb",
        "/v1/models/a%5cb",
        "/v1/models/a%00",
        "/v1/../v1/models",
        "/v1/tasks/..",
        "/v1/tasks/../endpoints",
        "/agent/v1/../../v1/endpoints",
        "/v1/%2e%2e/v1/models",
        "/v1/%2E%2e/v1/models",
        "/v1/.%2e/v1/models",
        "/v1/%2e./v1/models",
        "/v1%2fmodels",
        "/v1%2Fmodels",
        "/v1/tasks/a%2fb",
        "/v1/tasks/a%5cb",
        "/v1/tasks/a%5Cb",
        "/v1/tasks/a\\b",
        "/v1\\models",
        "\\v1\\models",
        "/v1/models%00",
        "/v1/tasks/%00",
        "/v1/models#part",
        "/v1/models?a#part",
    ] {
        let name = format!("the path {target}");
        cases.push(Case::refused(10, &name, get(target, ""), TARGET));
    }
    // Routes that are in no table.
    for target in [
        "/v1/models/",
        "/v1/models/a/",
        "/v1/models/a%2f",
        "/v1/models/%ff",
        "/v1/models/a%0d%0aX:y",
        "/v1/tasks/..;/endpoints",
        "/v1/tasks/%252e%252e",
        "/v1/tasks/%c0%ae%c0%ae",
        "/v1/tasks/%c0%af",
        "/v1/tasks/%e0%80%ae",
        "/v1/tasks/%u002e",
        "/v1/tasks/%",
        "/v1/tasks/%2",
        "/v1/tasks/%zz",
        "/v1/tasks/a%20b",
        "/v1/tasks/a%0d%0aX:y",
        "/v1/tasks/a%3fb",
        "/v1/tasks/a%23b",
        "/v1/tasks/a;b",
        "/v1/models;x",
        "/v1/models.json",
        "/v1/%6dodels",
        "/%76%31/models",
        "/v1/m%6Fdels",
        "/v1/models%3fa",
        "/v1/tasks/*",
        "/v1/tasks/a:b",
        "/v1/tasks/a@b",
        "/v1/tasks/{}",
        "/V1/models",
        "/v1/MODELS",
        "/v1",
        "/v1/",
        "/metrics",
        "/healthz",
        "/readyz",
        "/api/spend",
        "/sandbox/books",
        "/v1/files",
        "/admin",
    ] {
        let name = format!("the path {target}");
        cases.push(Case::refused(10, &name, get(target, ""), UNKNOWN));
    }
    const KEPT: &[&str] = &["responses_unsupported"];
    for (target, codes) in [
        ("/v1/responses", METHOD),
        ("/v1/responses/resp_1", KEPT),
        ("/agent/v1/messages", METHOD),
    ] {
        let name = format!("the path {target}");
        cases.push(Case::refused(10, &name, get(target, ""), codes));
    }
    // Bytes that no target may hold (RFC 9112, 3.2). pingora's parser escapes them and continues.
    for illegal in [
        b" ".as_slice(),
        b"\t",
        b"\0",
        b"\x01",
        b"\x0b",
        b"\x0c",
        b"\x1b",
        b"\x7f",
        b"\r",
        b" <\"> ",
        b"\x80",
        b"\xff",
        b"\xc3\xa9",
        b"\xc0\xae",
        b"\xef\xbc\x8e",
    ] {
        for (start, end) in [
            ("/v1/tasks/a", "b"),
            ("/v1/models", ""),
            ("/v1/models?a=b", "c"),
            ("/v1/models?a=b", ""),
            ("/v1/models?", ""),
            ("", "/v1/models"),
        ] {
            let target = [start.as_bytes(), illegal, end.as_bytes()].concat();
            let name = format!("the path {}", target.escape_ascii());
            let bytes = [b"GET ", &*target, b" HTTP/1.1\r\nHost: localhost\r\n\r\n"].concat();
            cases.push(Case::refused(10, &name, bytes, BAD_REQUEST));
        }
        let name = format!("a paid query with {}", illegal.escape_ascii());
        let spends = String::from_utf8(post(&name, "")).expect("ASCII");
        let (before, behind) = spends.split_once(" HTTP/1.1").expect("a request line");
        let bytes = [
            before.as_bytes(),
            b"?a=b",
            illegal,
            b"c HTTP/1.1",
            behind.as_bytes(),
        ];
        cases.push(Case::refused(10, &name, bytes.concat(), BAD_REQUEST));
    }
    let long = format!("/v1/tasks/{}", "a".repeat(129));
    cases.push(Case::refused(
        10,
        "an id of 129 bytes",
        get(&long, ""),
        UNKNOWN,
    ));
    let long = format!("/v1/models?{}", "a".repeat(9000));
    cases.push(Case::refused(
        10,
        "a target of 9000 bytes",
        get(&long, ""),
        TARGET,
    ));
    // A query is not a path: it passes byte for byte.
    for target in [
        "/v1/models?a=../../x//y\\z%2e%2f%00;b",
        "/v1/models??a=b?c",
        "/v1/models?",
        "/v1/tasks/...",
        "/v1/tasks/~a.b_c-D",
    ] {
        let name = format!("the target {target} passes");
        cases.push(Case::relayed(10, &name, get(target, ""), Sent::get(target)));
    }
    cases
}

fn methods() -> Vec<Case> {
    let mut cases = Vec::new();
    for (method, path) in [
        ("TRACE", "/v1/models"),
        ("TRACK", "/v1/models"),
        ("PUT", "/v1/models"),
        ("POST", "/v1/models"),
        ("DELETE", "/v1/models"),
        ("DELETE", CHAT),
        ("GET", CHAT),
        ("PATCH", "/v1/eval-sets/s-1"),
        ("get", "/v1/models"),
        ("Get", "/v1/models"),
        ("GETT", "/v1/models"),
        ("PRI", "/v1/models"),
        ("PROPFIND", "/v1/models"),
        ("X", "/v1/models"),
    ] {
        let bytes = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        cases.push(Case::refused(
            10,
            &format!("{method} {path}"),
            bytes,
            METHOD,
        ));
    }
    let head = format!("HEAD {CHAT} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    cases.push(Case::refused(10, "HEAD of what spends", head, METHOD));
    // A body on a method without one: one reader treats it as the next request.
    for method in ["GET", "HEAD"] {
        for (what, lines) in [
            ("a typed body", "Content-Type: application/json\r\n"),
            ("an untyped body", ""),
        ] {
            let body = super::case::hidden();
            let head = format!(
                "{method} /v1/models HTTP/1.1\r\nHost: localhost\r\n{lines}Content-Length: {}\r\n\r\n",
                body.len()
            );
            let bytes = [head.as_bytes(), &body].concat();
            let name = format!("{method} with {what}");
            cases.push(Case::refused(10, &name, bytes, &["content_type_refused"]));
        }
    }
    cases
}

/// Invalid first lines.
fn lines() -> Vec<Case> {
    let mut cases = Vec::new();
    for line in [
        "G@T /v1/models HTTP/1.1",
        "GET\t/v1/models HTTP/1.1",
        "GET  /v1/models HTTP/1.1",
        "GET /v1/models  HTTP/1.1",
        "GET /v1/models HTTP/1.1 ",
        "GET /v1/models HTTP/1.1\t",
        " GET /v1/models HTTP/1.1",
        "\tGET /v1/models HTTP/1.1",
        "\u{feff}GET /v1/models HTTP/1.1",
        "GET /v1/models HTTP/1.2",
        "GET /v1/models HTTP/1.01",
        "GET /v1/models HTTP/01.1",
        "GET /v1/models HTTP/2.0",
        "GET /v1/models HTTP/3",
        "GET /v1/models HTTP/0.9",
        "GET /v1/models http/1.1",
        "GET /v1/models HTTP /1.1",
        "GET /v1/models HTTPS/1.1",
        "GET /v1/models HTTP/1.1 HTTP/1.1",
        "GET /v1/models",
        "GET",
        "/v1/models HTTP/1.1",
        "HTTP/1.1 200 OK",
        "PRI * HTTP/2.0",
    ] {
        let name = format!("the line {line:?}");
        let bytes = format!("{line}\r\nHost: localhost\r\n\r\n");
        cases.push(Case::refused(10, &name, bytes, LINE));
    }
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    cases.push(Case::refused(10, "the preface of HTTP/2", preface, LINE));
    let hello = b"\x16\x03\x01\x00\xc8\x01\x00\x00\xc4\x03\x03\r\n\r\n";
    cases.push(Case::refused(10, "a TLS hello", hello, LINE));
    let old = b"GET /v1/models\r\n\r\n";
    cases.push(Case::refused(10, "HTTP/0.9", old, LINE));
    // "SHOULD ignore at least one empty line" before a request line (RFC 9112, 2.2).
    for target in ["/v1/models", "/v1/models?a=b:c"] {
        let blank = |count: usize| ["\r\n".repeat(count).into_bytes(), get(target, "")].concat();
        let name = format!("a blank line before {target}");
        cases.push(Case::relayed(10, &name, blank(1), Sent::get(target)));
        for count in [2, 50] {
            let name = format!("{count} blank lines before {target}");
            cases.push(Case::refused(10, &name, blank(count), LINE));
        }
    }
    let lf = ["\n".repeat(3).into_bytes(), get("/v1/models", "")].concat();
    cases.push(Case::refused(10, "blank lines of LF first", lf, LINE));
    cases
}
