//! Row 14: answers that could not be read, and bodies that bursar and the service may read differently.

use super::case::{CHAT, Case, May, Sent, post, with_body};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::{Bursar, Origin, Step, chat};

const CODING: &[&str] = &["content_coding_refused"];

pub fn cases() -> Vec<Case> {
    [answers(), encodings(), documents()].concat()
}

/// An answer that is compressed, or only a part, has no receipt that can be read.
fn answers() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lines) in [
        ("asks for gzip", "Accept-Encoding: gzip\r\n"),
        (
            "asks for anything",
            "Accept-Encoding: gzip, deflate, br, zstd, *;q=0\r\n",
        ),
        (
            "refuses the plain form",
            "Accept-Encoding: identity;q=0, gzip\r\n",
        ),
        (
            "asks twice",
            "Accept-Encoding: identity\r\nAccept-Encoding: br\r\n",
        ),
        (
            "asks for a transfer coding",
            "TE: gzip, trailers\r\nConnection: TE\r\n",
        ),
    ] {
        let sent = Sent::chat(chat(name))
            .with("accept-encoding", "identity")
            .without("te");
        cases.push(Case::relayed(14, name, post(name, lines), sent));
    }
    for (name, lines) in [
        ("asks for a range", "Range: bytes=0-0\r\n"),
        (
            "asks for many ranges",
            "Range: bytes=0-0,1-1,2-2\r\nIf-Range: \"x\"\r\n",
        ),
    ] {
        let sent = Sent::chat(chat(name)).without("range").without("if-range");
        cases.push(Case::relayed(14, name, post(name, lines), sent));
    }
    cases
}

/// A body that only one side can read: its wish for a stream, and its model, would go unseen.
fn encodings() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, lines) in [
        ("a gzip body", "Content-Encoding: gzip\r\n"),
        ("a body in two codings", "Content-Encoding: gzip, br\r\n"),
        ("an empty coding", "Content-Encoding:\r\n"),
        (
            "a plain coding and another",
            "Content-Encoding: identity\r\nContent-Encoding: gzip\r\n",
        ),
    ] {
        let body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";
        cases.push(Case::refused(14, name, with_body(lines, body), CODING));
    }
    let name = "a body that says it is plain";
    let sent = Sent::chat(chat(name)).without("content-encoding");
    cases.push(Case::relayed(
        14,
        name,
        post(name, "Content-Encoding: identity\r\n"),
        sent,
    ));
    cases
}

/// JSON that two readers understand differently passes unchanged: bursar follows the answer, and
/// the service judges the body.
fn documents() -> Vec<Case> {
    let mut cases = Vec::new();
    let deep = 100_000;
    for (name, body) in [
        (
            "two models",
            br#"{"model":"auto","model":"other","messages":[]}"#.to_vec(),
        ),
        (
            "two wishes for a stream",
            br#"{"model":"auto","stream":false,"stream":true}"#.to_vec(),
        ),
        (
            "an escaped key",
            br#"{"mod\u0065l":"auto","str\u0065am":true}"#.to_vec(),
        ),
        (
            "a wish in words",
            br#"{"model":"auto","stream":"true"}"#.to_vec(),
        ),
        (
            "a wish as a number",
            br#"{"model":"auto","stream":1}"#.to_vec(),
        ),
        ("a BOM", [b"\xef\xbb\xbf", chat("bom").as_bytes()].concat()),
        (
            "UTF-16",
            chat("utf-16")
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect(),
        ),
        (
            "bytes that are no text",
            b"{\"model\":\"au\xff\xfeto\"}".to_vec(),
        ),
        ("a NUL", b"{\"model\":\"auto\"}\0".to_vec()),
        ("a lone surrogate", br#"{"model":"\ud800"}"#.to_vec()),
        (
            "two documents",
            br#"{"model":"auto"}{"stream":true}"#.to_vec(),
        ),
        ("no object", b"[1,2,3]".to_vec()),
        ("half a document", br#"{"model":"#.to_vec()),
        ("no document", b"not JSON".to_vec()),
        (
            "a number without end",
            format!("{{\"n\":{}}}", "9".repeat(100_000)).into_bytes(),
        ),
        (
            "arrays in arrays",
            [b"[".repeat(deep), b"]".repeat(deep)].concat(),
        ),
        (
            "objects in objects",
            [b"{\"a\":".repeat(deep), b"1".to_vec(), b"}".repeat(deep)].concat(),
        ),
        (
            "depth below a wanted key",
            [
                b"{\"model\":".to_vec(),
                b"[".repeat(deep),
                b"]".repeat(deep),
                b"}".to_vec(),
            ]
            .concat(),
        ),
        ("depth without end", b"{\"stream\":[".repeat(deep)),
        (
            "a million keys",
            format!("{{{}\"z\":1}}", "\"model\":\"auto\",".repeat(100_000)).into_bytes(),
        ),
        ("nothing", Vec::new()),
    ] {
        let sent = Sent::chat(body.clone());
        cases.push(Case::new(
            15,
            &format!("a body: {name}"),
            with_body("", &body),
            May::Relayed(sent),
        ));
    }
    cases
}

/// A reader of the first of two equal keys and a reader of the last disagree about the stream; both
/// answers are booked to the micro-dollar.
#[tokio::test]
async fn the_receipt_follows_the_answer_whatever_its_body_seemed_to_ask_for() {
    let stream = [
        stream_head(),
        chunk("data: {\"choices\":[]}\n\n"),
        chunk(": service-billed-micro-usd 7\n\n"),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ];
    let answers = [stream.concat(), billed(7)];
    let origin = Origin::start([]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let bodies = [
        r#"{"model":"auto","stream":true,"stream":false}"#,
        r#"{"model":"auto","stream":false,"stream":true}"#,
        r#"{"model":"auto","str\u0065am":true}"#,
        r#"{"model":"auto","stream":"true"}"#,
        "\u{feff}{\"model\":\"auto\",\"stream\":true}",
        "not JSON",
    ];
    for body in bodies {
        for answer in &answers {
            origin.push(Step::Answer(answer.clone()));
            let before = bursar.billed();
            let given = bursar.post(CHAT, body).await;
            assert!(given.complete && given.status == 200, "{body}");
            assert_eq!(bursar.billed(), before + 7, "{body}");
        }
    }
    let sent: Vec<_> = origin
        .received()
        .into_iter()
        .map(|seen| seen.body)
        .collect();
    let twice: Vec<_> = bodies.iter().flat_map(|body| [body, body]).collect();
    let wanted: Vec<_> = twice.iter().map(|body| body.as_bytes()).collect();
    assert_eq!(sent, wanted, "each as it came");
}
