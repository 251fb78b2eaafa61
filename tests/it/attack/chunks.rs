//! Row 11: chunked bodies. Readers differ on odd chunks, so a body is read as RFC 9112 (7.1) has it,
//! or refused; nothing that follows it on the connection is a request.

use super::case::{Case, Sent, framed};
use crate::support::chat;

const BROKEN: &[&str] = &["body_broken", "length_refused", "body_too_large"];

/// A chat request with these chunks.
fn chunked(body: &str) -> Vec<u8> {
    framed("Transfer-Encoding: chunked\r\n", body.as_bytes())
}

pub fn cases() -> Vec<Case> {
    let json = chat("chunks");
    let (one, rest) = json.split_at(5);
    let n = rest.len();
    let all = json.len();
    let whole = Sent::chat(json.clone())
        .with("content-length", &all.to_string())
        .without("x-trailer")
        .ending();
    let mut cases = Vec::new();
    for (name, body) in [
        (
            "two chunks",
            format!("5\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "capitals and zeros",
            format!("0005\r\n{one}\r\n{n:X}\r\n{rest}\r\n000\r\n\r\n"),
        ),
    ] {
        cases.push(Case::relayed(11, name, chunked(&body), whole.clone()));
    }
    // Valid, and nothing of it is relayed.
    let size = |extension: &str| format!("5{extension}\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n");
    for extension in [
        ";a",
        ";a=b",
        ";a=b;c=d",
        ";a=\"b\"",
        ";a=\"\"",
        ";a=\"b;c=d\"",
        ";a=\"\\\"\\\\\"",
        ";a=\"b\tc \u{e9}\"",
        ";!#$%&'*+-.^_`|~=0",
        " ;a=b",
        "\t;a=b",
        "; a=b",
        ";a =b",
        ";a= b",
        " \t; \ta \t= \tb \t;c",
    ] {
        let name = format!("an extension {extension:?}");
        cases.push(Case::relayed(
            11,
            &name,
            chunked(&size(extension)),
            whole.clone(),
        ));
    }
    for extension in [
        " ",
        "\t",
        "   ",
        ";",
        ";;a",
        ";a;",
        " ;",
        "; ",
        ";a ",
        ";a=b ",
        ";a=",
        ";=b",
        ";bad[=x",
        ";a=b[",
        ";a b",
        ";a=b c",
        ";a,b",
        ";a=\"",
        ";a=\"b",
        ";a=\"b\\\"",
        ";a=\"b\"c",
        ";a=\"\0\"",
        ";a=\"\x7f\"",
        ";a=\"\x01\"",
        ";\0a",
        ";a\0",
        ";a=\0",
        ";a\x01",
        ";a\x1b",
        ";a\x7f",
        ";a\u{e9}",
        ";a\rb",
        ";a\nb",
        ";\n",
        ";a=b\n",
        ";a=\"b\nc\"",
        " a=b",
        "a=b;",
        ";\nGET /v1/models HTTP/1.1",
    ] {
        let name = format!("an extension {extension:?} that is none");
        cases.push(Case::refused(11, &name, chunked(&size(extension)), BROKEN));
    }
    for (last, name) in [
        ("0;a", "an extension of the last chunk"),
        ("0;a=b", "an extension with a value of the last chunk"),
        ("0 ;a", "a space and an extension of the last chunk"),
    ] {
        let body = format!("{all:x}\r\n{json}\r\n{last}\r\n\r\n");
        cases.push(Case::relayed(11, name, chunked(&body), whole.clone()));
    }
    for last in ["0;", "0 ", "0;a[", "0\0", "", " ", ";a", "-0", "0x0"] {
        let body = format!("{all:x}\r\n{json}\r\n{last}\r\n\r\n");
        let name = format!("a last chunk {last:?}");
        cases.push(Case::refused(11, &name, chunked(&body), BROKEN).ending());
    }
    for trailer in [
        "X-Trailer y",
        "X-Trailer",
        ": y",
        "X-Trailer : y",
        " X-Trailer: y",
        "X-Trailer: y\r\n z",
        "X Trailer: y",
        "X[: y",
        "X-Trailer: y\0",
        "X\0: y",
        "X-Trailer: y\x01",
        "X-Trailer: y\x7f",
        "X-Trailer: y\rz",
        "X-Trailer: y\nz",
        "\0\0\0",
        "GET /v1/models HTTP/1.1\r\nHost: localhost",
        "X: y\r\nX-Trailer",
    ] {
        let body = format!("{all:x}\r\n{json}\r\n0\r\n{trailer}\r\n\r\n");
        let name = format!("a trailer {trailer:?}");
        cases.push(Case::refused(11, &name, chunked(&body), BROKEN));
    }
    // Read, and nothing of it is relayed or believed.
    for (name, body) in [
        (
            "a trailer",
            format!("{all:x}\r\n{json}\r\n0\r\nX-Trailer: y\r\n\r\n"),
        ),
        (
            "a trailer with a key",
            format!(
                "{all:x}\r\n{json}\r\n0\r\nAuthorization: Bearer sk-of-the-app\r\nIdempotency-Key: trailed\r\n\r\n"
            ),
        ),
        (
            "a trailer with a length",
            format!(
                "{all:x}\r\n{json}\r\n0\r\nContent-Length: 5\r\nTransfer-Encoding: identity\r\n\r\n"
            ),
        ),
        (
            "a trailer with a host",
            format!(
                "{all:x}\r\n{json}\r\n0\r\nHost: evil.example\r\nX-Service-Session: trailed\r\n\r\n"
            ),
        ),
        (
            "a trailer without a value",
            format!("{all:x}\r\n{json}\r\n0\r\nX-Trailer:\r\n\r\n"),
        ),
        (
            "a trailer of bytes above ASCII",
            format!("{all:x}\r\n{json}\r\n0\r\nX-Trailer: \u{e9}\t\r\n\r\n"),
        ),
    ] {
        let sent = whole.clone().without("x-service-session");
        cases.push(Case::relayed(11, name, chunked(&body), sent));
    }
    for (name, body) in [
        ("a size that is none", format!("zz\r\n{json}\r\n0\r\n\r\n")),
        ("a negative size", format!("-5\r\n{one}\r\n0\r\n\r\n")),
        ("a size with a sign", format!("+5\r\n{one}\r\n0\r\n\r\n")),
        ("a size with 0x", format!("0x5\r\n{one}\r\n0\r\n\r\n")),
        (
            "a size with an underscore",
            format!("5_0\r\n{one}\r\n0\r\n\r\n"),
        ),
        ("a size with a comma", format!("5,5\r\n{one}\r\n0\r\n\r\n")),
        ("two sizes", format!("5 5\r\n{one}\r\n0\r\n\r\n")),
        (
            "a size of 2^64-1",
            format!("FFFFFFFFFFFFFFFF\r\n{json}\r\n0\r\n\r\n"),
        ),
        (
            "a size of 2^68-1",
            format!("FFFFFFFFFFFFFFFFF\r\n{json}\r\n0\r\n\r\n"),
        ),
        (
            "a size of 2^64+5",
            format!("10000000000000005\r\n{one}\r\n0\r\n\r\n"),
        ),
        (
            "a size of 2^32+5 with 5 bytes",
            format!("100000005\r\n{one}\r\n0\r\n\r\n"),
        ),
        (
            "no CRLF behind a chunk",
            format!("5\r\n{one}{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "bytes behind a chunk",
            format!("5\r\n{one}XX{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "a chunk that is longer than its size",
            format!("4\r\n{one}\r\n0\r\n\r\n"),
        ),
        ("LF for CRLF", format!("5\n{one}\n0\n\n")),
        ("a size that is missing", "\r\n\r\n".to_owned()),
        (
            "LF at the end of a trailer",
            format!("{all:x}\r\n{json}\r\n0\r\nX: y\n\n"),
        ),
        (
            "a long extension in each of many chunks",
            format!("1;a={}\r\n \r\n", "b".repeat(1000)).repeat(100),
        ),
        ("LF behind a size", format!("5\n{one}\r\n0\r\n\r\n")),
        ("LF behind a chunk", format!("5\r\n{one}\n0\r\n\r\n")),
        (
            "CR CR LF behind a size",
            format!("5\r\r\n{one}\r\n0\r\n\r\n"),
        ),
        ("a NUL in a size", format!("5\0\r\n{one}\r\n0\r\n\r\n")),
        (
            "a form feed behind a size",
            format!("5\x0c\r\n{one}\r\n0\r\n\r\n"),
        ),
        (
            "letters of another script",
            format!("\u{665}\r\n{one}\r\n0\r\n\r\n"),
        ),
        (
            "an extension without end",
            format!("5;x={}\r\n{one}\r\n", "y".repeat(70_000)),
        ),
    ] {
        cases.push(Case::refused(11, name, chunked(&body), BROKEN).ending());
    }
    for (name, body) in [
        ("no last chunk", format!("{all:x}\r\n{json}\r\n")),
        ("half a last chunk", format!("{all:x}\r\n{json}\r\n0\r\n")),
        (
            "a last chunk without an end",
            format!("{all:x}\r\n{json}\r\n0"),
        ),
        ("half a chunk", format!("{all:x}\r\n{one}")),
        ("half a size", "5".to_owned()),
        (
            "trailers without end",
            format!(
                "{all:x}\r\n{json}\r\n0\r\n{}",
                "X-Trailer: yyyyyyyyyyyyyyyyyyyy\r\n".repeat(4000)
            ),
        ),
    ] {
        cases.push(Case::refused(11, name, chunked(&body), BROKEN).ending());
    }
    let empty = Sent::chat("").ending();
    cases.push(Case::relayed(
        11,
        "no chunk at all",
        chunked("0\r\n\r\n"),
        empty,
    ));
    cases
}
