//! Row 11: chunked bodies. Readers differ on odd chunks, so a body is read as the one that every
//! reader reads, or refused; nothing that follows it on the connection is a request.

use super::case::{Case, May, Sent, framed};
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
    // Read as the one body that every reader reads, or refused.
    for (name, body) in [
        (
            "an extension",
            format!("5;a=b\r\n{one}\r\n{n:x};c=\"d;e\"\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "an extension of the last chunk",
            format!("{all:x}\r\n{json}\r\n0;a\r\n\r\n"),
        ),
        (
            "a space behind a size",
            format!("5 \r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "a tab behind a size",
            format!("5\t\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
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
            "a trailer that is a request",
            format!("{all:x}\r\n{json}\r\n0\r\nGET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ),
        (
            "a folded trailer",
            format!("{all:x}\r\n{json}\r\n0\r\nX: y\r\n z\r\n\r\n"),
        ),
        (
            "a trailer of bytes",
            format!("{all:x}\r\n{json}\r\n0\r\n\0\0\0\r\n\r\n"),
        ),
    ] {
        let sent = whole.clone().without("x-service-session");
        cases.push(Case::new(
            11,
            name,
            chunked(&body),
            May::Either(BROKEN, sent),
        ));
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
    // Readers differ on these; what follows is never read as a request.
    for (name, body) in [
        (
            "LF in an extension",
            format!("5;a\nb\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "LF at the end of an extension",
            format!("5;\n\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
        (
            "LF at the end of a trailer",
            format!("{all:x}\r\n{json}\r\n0\r\nX: y\n\n"),
        ),
        (
            "a request in an extension",
            format!("5;\nGET /v1/models HTTP/1.1\r\n{one}\r\n{n:x}\r\n{rest}\r\n0\r\n\r\n"),
        ),
    ] {
        cases
            .push(Case::new(11, name, chunked(&body), May::Either(BROKEN, whole.clone())).ending());
    }
    let empty = Sent::chat("").ending();
    cases.push(Case::new(
        11,
        "a size that is missing",
        chunked("\r\n\r\n"),
        May::Either(BROKEN, empty.clone()),
    ));
    cases.push(Case::new(
        11,
        "no chunk at all",
        chunked("0\r\n\r\n"),
        May::Either(BROKEN, empty),
    ));
    cases
}
