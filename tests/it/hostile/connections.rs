//! Bytes that a service sends beside its answers: none of them becomes the answer of another request.

use super::{App, Ask, Books, Case, Stage, case, play, whole};
use crate::support::origin::json;
use crate::support::{Step, chat, chat_stream, eventually};

/// Cases that take more than one request.
pub const NAMES: &[&str] = &[
    "an answer on an idle connection",
    "pieces of an answer on an idle connection",
    "a length and chunks: the connection is not used again",
];

const PAID: Books = Books::Settled(7);
const FORGED: &str = "HTTP/1.1 200 OK\r\nX-Service-Billed: 666\r\nContent-Length: 6\r\n\r\nforged";

/// Bytes after a whole answer.
fn surplus() -> Vec<Case> {
    let two = "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Length: 2\r\n\r\n{}";
    let chunks = "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
    let empty = "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nContent-Length: 0\r\n\r\n";
    let row = |name: &str, first: &str, app: App, books| {
        case(24, Ask::Chat, name, format!("{first}{FORGED}"), app, books)
    };
    let stream =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
    vec![
        row("an answer behind a length", two, whole("{}"), PAID),
        row("an answer behind chunks", chunks, whole("{}"), PAID),
        row("an answer behind an empty body", empty, whole(""), PAID),
        row(
            "an answer behind a 204",
            "HTTP/1.1 204 No Content\r\nX-Service-Billed: 7\r\n\r\n",
            whole_of(204),
            PAID,
        ),
        row(
            "an answer behind a 204 that has a length",
            "HTTP/1.1 204 No Content\r\nX-Service-Billed: 7\r\nContent-Length: 6\r\n\r\nforged",
            whole_of(204),
            PAID,
        ),
        row(
            "an answer behind a 304",
            "HTTP/1.1 304 Not Modified\r\n\r\n",
            whole_of(304),
            Books::Failed,
        ),
        row(
            "an answer behind an error",
            "HTTP/1.1 400 No\r\nContent-Length: 2\r\n\r\n{}",
            App::Whole(400, b"{}".to_vec()),
            Books::Failed,
        ),
        row(
            "an answer behind a redirect",
            "HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n",
            App::Whole(302, Vec::new()),
            Books::Failed,
        ),
        case(
            24,
            Ask::Chat,
            "one byte behind a length",
            format!("{two}x"),
            whole("{}"),
            PAID,
        ),
        case(
            24,
            Ask::Chat,
            "a megabyte behind a length",
            format!("{two}{}", "x".repeat(1 << 20)),
            whole("{}"),
            PAID,
        ),
        case(
            24,
            Ask::Stream,
            "an answer behind a stream",
            format!("{stream}{:x}\r\n{text}\r\n0\r\n\r\n{FORGED}", text.len()),
            whole(text),
            PAID,
        ),
        case(
            24,
            Ask::Free,
            "an answer behind a free one",
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}{FORGED}"),
            whole("{}"),
            Books::Nothing,
        ),
    ]
}

fn whole_of(status: u16) -> App {
    App::Whole(status, Vec::new())
}

pub fn cases() -> Vec<Case> {
    surplus()
}

#[tokio::test]
async fn surplus_bytes_are_no_answer() {
    play(cases()).await;
}

/// A service that sends without a request.
#[tokio::test]
async fn what_comes_on_an_idle_connection_is_no_answer() {
    for (name, late) in [
        ("a whole answer", FORGED.to_owned()),
        ("the beginning of one", FORGED[..20].to_owned()),
        ("a byte", "H".to_owned()),
    ] {
        let stage = Stage::with(super::ONCE).await;
        let first = json(200, &[("X-Service-Billed", "7")], "{}");
        let both = first.len() + late.len();
        stage
            .origin
            .push(Step::Pieces(vec![first, late.into_bytes()]));
        stage.origin.go();
        let answer = stage.bursar.post(super::CHAT, &chat(name)).await;
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, "{}"),
            "{name}"
        );
        stage.origin.go();
        eventually("the late bytes to be written", || async {
            (stage.origin.written() == both).then_some(())
        })
        .await;
        stage.next_is_served(name).await;
        assert_eq!(
            stage.origin.connections(),
            2,
            "{name}: the connection was used again"
        );
    }
}

/// Where two ends may count a body's bytes differently, nothing follows on the same connection.
#[tokio::test]
async fn a_connection_whose_framing_is_unclear_is_not_used_again() {
    let paid = "HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\n";
    let chunks = "2\r\n{}\r\n0\r\n\r\n";
    for (name, sends, connections) in [
        ("plain", format!("{paid}Content-Length: 2\r\n\r\n{{}}"), 1),
        (
            "a length and chunks",
            format!("{paid}Content-Length: 12\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
            2,
        ),
        (
            "chunks and a length",
            format!("{paid}Transfer-Encoding: chunked\r\ncontent-LENGTH : 12\r\n\r\n{chunks}"),
            2,
        ),
        (
            "HTTP/1.0 and chunks",
            format!(
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nX-Service-Billed: 7\r\n\r\n{chunks}"
            ),
            2,
        ),
        (
            "a close",
            format!("{paid}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}"),
            2,
        ),
    ] {
        let stage = Stage::with(super::ONCE).await;
        let plain = case(24, Ask::Chat, name, sends, whole("{}"), PAID);
        stage.plays(&plain).await;
        assert_eq!(stage.origin.connections(), connections, "{name}");
    }
}

/// A stream that continues after its end mark is the app's business as long as it reads; when the
/// app leaves, bursar leaves as well.
#[tokio::test]
async fn an_answer_that_goes_on_behind_its_end_is_not_read_for_ever() {
    let stage = Stage::with(super::ONCE).await;
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let text = ": service-billed-micro-usd 7\n\ndata: [DONE]\n\n";
    let first = format!("{head}{:x}\r\n{text}\r\n", text.len());
    let more = b"10\r\ndata: {}\n\ndata: \r\n".to_vec();
    stage.origin.push(Step::Drip(first.into_bytes(), more));
    let mut wire = stage.bursar.connect().await;
    wire.send(crate::support::wire::request(
        "POST",
        super::CHAT,
        &[],
        &chat_stream("x"),
    ))
    .await;
    let mut answer = wire.head().await;
    wire.chunk(&mut answer).await.expect("a chunk");
    drop(wire);
    eventually("the request to end", || async {
        (stage.bursar.gateway.in_flight() == 0).then_some(())
    })
    .await;
    assert_eq!(stage.bursar.billed(), 7);
    stage.next_is_served("behind the end").await;
}
