//! Row 11: two requests in one. Framings that two readers may understand differently.

use super::case::{CHAT, Case, May, Sent, framed, get, hidden, post};
use crate::support::chat;

/// The head is ambiguous, or not understood by all readers.
const UNCLEAR: &[&str] = &["length_refused", "head_malformed"];
const UPGRADE: &[&str] = &["header_refused"];

pub fn cases() -> Vec<Case> {
    [heads(), lengths(), lines(), together(), upgrades()].concat()
}

/// Transfer-Encoding in all spellings, alone and beside a Content-Length. Each with three bodies
/// that fit one reading or the other.
fn heads() -> Vec<Case> {
    let chunk = format!("{:x}\r\n", hidden().len());
    let mut cases = Vec::new();
    for lines in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "Transfer-Encoding: chunked\r\nX: y\r\nContent-Length: 3\r\n",
        "transfer-encoding: CHUNKED\r\nCONTENT-LENGTH: 5\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: identity, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked,\r\n",
        "Transfer-Encoding: ,chunked\r\n",
        "Transfer-Encoding: chunked;\r\n",
        "Transfer-Encoding: chunked;q=1\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding: 'chunked'\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunkedx\r\n",
        "Transfer-Encoding: chun ked\r\n",
        "Transfer-Encoding: chunk\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nContent-Length: 0\r\n",
        "Transfer-Encoding:\r\n",
        "Transfer-Encoding:\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding:\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "Transfer-Encoding\x0b: chunked\r\n",
        "Transfer-Encoding: \x0bchunked\r\n",
        "Transfer-Encoding: chunked\x0c\r\n",
        "Transfer-Encoding: chunked\x00\r\n",
        "Transfer-Encoding: \u{a0}chunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding:\n chunked\r\n",
        "Transfer-Encoding: chunked\r\n \r\n",
        "X: y\r\n Transfer-Encoding: chunked\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\nTransfer-Encoding: chunked\r\n",
        "\0Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding\0: chunked\r\n",
        "Transfer Encoding: chunked\r\n",
        "Transfer-Encoding chunked\r\n",
        "Content-Length: 5\r\nTransfer_Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    ] {
        for (what, body) in [
            ("no body", Vec::new()),
            ("the last chunk", b"0\r\n\r\n".to_vec()),
            ("a chunk of it", chunk.clone().into_bytes()),
        ] {
            let name = format!("{lines:?} and {what}");
            cases.push(Case::refused(11, &name, framed(lines, &body), UNCLEAR));
        }
    }
    let old = format!(
        "POST {CHAT} HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    );
    cases.push(Case::refused(
        11,
        "chunks in HTTP/1.0",
        old.clone(),
        UNCLEAR,
    ));
    let both = old.replace(
        "Transfer-Encoding",
        "Content-Length: 5\r\nTransfer-Encoding",
    );
    cases.push(Case::refused(11, "both in HTTP/1.0", both, UNCLEAR));
    cases
}

/// Content-Length that is no plain number, or more than one.
fn lengths() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "+5",
        "-1",
        "-0",
        "0x5",
        "5.0",
        "5 5",
        "5,5",
        "5, 6",
        "0, 0",
        ",5",
        "5,",
        "1e1",
        "5;",
        "\"5\"",
        "five",
        "",
        "\t",
        "0b1",
        "5\x0b",
        "\u{665}",
        "\u{ff15}",
        "5_0",
        "5'",
        "5-",
        "NaN",
        "Infinity",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "18446744073709551616",
        "18446744073709551621",
        "99999999999999999999999999",
        "0000000000000000000000005",
    ] {
        let name = format!("the length {value:?}");
        let bytes = framed(&format!("Content-Length: {value}\r\n"), b"hello");
        cases.push(Case::refused(11, &name, bytes, UNCLEAR));
    }
    for lines in [
        "Content-Length: 0\r\nContent-Length: 0\r\n",
        "Content-Length: 5\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nContent-Length: 44\r\n",
        "Content-Length: 44\r\ncontent-length: 0\r\n",
        "Content-Length: 5\r\nContent-Length:\r\n",
        "Content-Length : 5\r\n",
        "Content-Length\t: 5\r\n",
        "Content-Length:\r\n 5\r\n",
        " Content-Length: 5\r\n",
        "Content-Length: 5\n",
        "X: y\nContent-Length: 5\r\n",
        "X: y\rContent-Length: 5\r\n",
        "Content-Length: 5\0\r\n",
        "Content-Length 5\r\n",
    ] {
        let name = format!("the lines {lines:?}");
        cases.push(Case::refused(11, &name, framed(lines, b"hello"), UNCLEAR));
    }
    let body = chat("leading zeros");
    let zeros = format!("Content-Length: 000{}\r\n", body.len());
    cases.push(Case::new(
        11,
        "a length with leading zeros",
        framed(&zeros, body.as_bytes()),
        May::Either(
            UNCLEAR,
            Sent::chat(body.clone()).with("content-length", &body.len().to_string()),
        ),
    ));
    // Less than what follows: the rest is the next request, or no request. It is never part of this
    // one.
    let body = chat("short");
    let short = framed(
        &format!("Content-Length: {}\r\n", body.len()),
        &[body.as_bytes(), b"GARBAGE\r\n\r\n"].concat(),
    );
    cases.push(Case::relayed(11, "a length that is too small", short, Sent::chat(body)).ending());
    // More than follows.
    let bytes = framed("Content-Length: 500\r\n", chat("long").as_bytes());
    cases.push(Case::refused(11, "a length that is too large", bytes, &["body_broken"]).ending());
    cases
}

/// Line ends and bytes that one reader treats as the end of a line, a field or the head.
fn lines() -> Vec<Case> {
    let mut cases = Vec::new();
    for lines in [
        "X: y\n",
        "X: y\r\r\n",
        "X: y\rZ: w\r\n",
        "X: y\0z\r\n",
        "X\0: y\r\n",
        "X: \x01\r\n",
        "X: \x1b[31m\r\n",
        "X: \x7f\r\n",
        "X\x7f: y\r\n",
        "X: y\r\n\tz\r\n",
        "X: y\r\n z\r\n",
        "X\r\n",
        "X y\r\n",
        ": y\r\n",
        " : y\r\n",
        "X Y: z\r\n",
        "X(: z\r\n",
        "X\t: z\r\n",
        "\u{e9}: z\r\n",
        "X:\r: y\r\n",
        "X: y\x0b\r\n",
        "@: y\r\n",
        "\r: y\r\n",
        "X: y\n\r\n",
        "X: y\n\n",
        "X: y\r\n\n",
        "\n\r\n",
        "X: y\r\n\r",
        "Host\r\n",
        "[X]: y\r\n",
        "{X}: y\r\n",
    ] {
        let name = format!("the field {lines:?}");
        let bytes = [
            format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").as_bytes(),
            &hidden(),
        ]
        .concat();
        cases.push(Case::refused(11, &name, bytes, &["head_malformed"]));
    }
    for (name, bytes) in [
        (
            "all lines end in LF",
            get("/v1/models", "X: y\r\n")
                .iter()
                .copied()
                .filter(|byte| *byte != b'\r')
                .collect::<Vec<u8>>(),
        ),
        (
            "all lines end in CR",
            get("/v1/models", "X: y\r\n")
                .iter()
                .copied()
                .filter(|byte| *byte != b'\n')
                .collect(),
        ),
        (
            "the first line ends in LF",
            b"GET /v1/models HTTP/1.1\nHost: localhost\r\n\r\n".to_vec(),
        ),
        (
            "LF behind an illegal target",
            "GET /v1/mod\u{e9}ls HTTP/1.1\r\nHost: localhost\r\nX: y\n\n".into(),
        ),
    ] {
        let bytes = [bytes, hidden()].concat();
        cases.push(
            Case::refused(
                11,
                name,
                bytes,
                &["head_malformed", "path_refused", "route_unknown"],
            )
            .ending(),
        );
    }
    cases
}

/// Several requests in one piece.
fn together() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, first, codes) in [
        (
            "behind an unknown route",
            get("/nothing", ""),
            &["route_unknown"] as &[&str],
        ),
        (
            "behind another host",
            b"GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n".to_vec(),
            &["host_refused"],
        ),
        (
            "behind a page's request",
            post("x", "Origin: null\r\n"),
            &["origin_refused"],
        ),
        (
            "behind a refused length",
            framed("Content-Length: x\r\n", b""),
            &["length_refused", "head_malformed"],
        ),
        (
            "behind a refused method",
            b"PUT /v1/models HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody".to_vec(),
            &["method_refused"],
        ),
        (
            "behind garbage",
            b"GARBAGE\r\n\r\n".to_vec(),
            &["head_malformed"],
        ),
    ] {
        let bytes = [first, hidden(), hidden(), hidden()].concat();
        cases.push(Case::refused(
            11,
            &format!("three requests {name}"),
            bytes,
            codes,
        ));
    }
    // A body that hides a request, where the answer needs no body: it is not the next request.
    for (name, target, method) in [
        ("the greeting", "/", "GET"),
        ("the icon", "/favicon.ico", "GET"),
        ("the greeting's head", "/", "HEAD"),
    ] {
        let body = hidden();
        for (kind, lines, body) in [
            (
                "a length",
                format!("Content-Length: {}\r\n", body.len()),
                body.clone(),
            ),
            (
                "chunks",
                "Transfer-Encoding: chunked\r\n".to_owned(),
                [
                    format!("{:x}\r\n", body.len()).as_bytes(),
                    &body,
                    b"\r\n0\r\n\r\n",
                ]
                .concat(),
            ),
            (
                "an announced body",
                format!("Expect: 100-continue\r\nContent-Length: {}\r\n", body.len()),
                body.clone(),
            ),
        ] {
            let head = format!("{method} {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
            let bytes = [head.as_bytes(), &body].concat();
            let name = format!("a request in the body of {name}, framed by {kind}");
            cases.push(Case::refused(11, &name, bytes, &["content_type_refused"]));
        }
    }
    cases
}

fn upgrades() -> Vec<Case> {
    let mut cases = Vec::new();
    for value in [
        "websocket",
        "h2c, websocket",
        "TLS/1.0",
        "HTTP/2.0",
        "h2",
        "",
        "h2c,",
    ] {
        let lines = format!("Connection: Upgrade\r\nUpgrade: {value}\r\n");
        let name = format!("an upgrade to {value:?}");
        cases.push(Case::refused(11, &name, get("/v1/models", &lines), UPGRADE));
    }
    let two = "Upgrade: h2c\r\nUpgrade: websocket\r\n";
    cases.push(Case::refused(
        11,
        "two upgrades",
        get("/v1/models", two),
        UPGRADE,
    ));
    let offer = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    let sent = Sent::get("/v1/models")
        .without("upgrade")
        .without("http2-settings");
    cases.push(Case::relayed(
        11,
        "an offer of HTTP/2",
        get("/v1/models", offer),
        sent,
    ));
    let name = "an offer of HTTP/2 with a body";
    let sent = Sent::chat(chat(name)).without("upgrade");
    cases.push(Case::relayed(11, name, post(name, offer), sent));
    let name = "an offer of HTTP/2 with chunks";
    let json = chat(name);
    let body = format!("{:x}\r\n{json}\r\n0\r\n\r\n", json.len());
    let bytes = framed(
        &format!("{offer}Transfer-Encoding: chunked\r\n"),
        body.as_bytes(),
    );
    cases.push(Case::relayed(11, name, bytes, Sent::chat(json).ending()));
    cases
}
