//! Bodies of answers: lengths that lie, malformed chunks, lines without end, codings that were not
//! requested.

use super::{App, Ask, BROKEN, Books, Case, DROPPED, case, events, events_in, play, whole};
use crate::support::origin::{json, stream_head};

const PAID: Books = Books::Settled(7);
const RECEIPT: &str = ": service-billed-micro-usd 7\n\n";
const DONE: &str = "data: [DONE]\n\n";

/// A stream that reports 7 after `text`, and reaches the app as it is.
fn stream(name: &str, text: impl AsRef<[u8]>) -> Case {
    let bytes = [text.as_ref(), RECEIPT.as_bytes(), DONE.as_bytes()].concat();
    case(21, Ask::Stream, name, events(&bytes), whole(&bytes), PAID)
}

/// A chunked 200 that reports 7 in its head.
fn chunked(name: &str, body: impl AsRef<[u8]>, app: App, books: Books) -> Case {
    let head = b"HTTP/1.1 200 OK\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
    let sends = [head, body.as_ref()].concat();
    case(24, Ask::Chat, name, sends, app, books).closing()
}

fn lengths() -> Vec<Case> {
    let short = |name: &str, ask, head: &str, app, books| {
        let sends = format!("HTTP/1.1 200 OK\r\n{head}Content-Length: 100\r\n\r\n{{}}");
        case(24, ask, name, sends, app, books).closing()
    };
    let billed_7 = "X-Service-Billed: 7\r\n";
    let long_extension = format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "e".repeat(10_000));
    let trailers = |bytes: usize| format!("2\r\n{{}}\r\n0\r\nX-T: {}\r\n\r\n", "t".repeat(bytes));
    vec![
        short("a body cut short", Ask::Chat, billed_7, BROKEN, PAID),
        short(
            "a body cut short without a price",
            Ask::Chat,
            "",
            BROKEN,
            DROPPED,
        ),
        short(
            "a body cut short on a free route",
            Ask::Free,
            "",
            BROKEN,
            Books::Nothing,
        ),
        chunked(
            "a chunk size that is none",
            "zz\r\n{}\r\n0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked(
            "a negative chunk size",
            "-2\r\n{}\r\n0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked(
            "a chunk size with 0x",
            "0x2\r\n{}\r\n0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked(
            "a chunk size of 2^64",
            "10000000000000002\r\n{}\r\n0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked(
            "a chunk size of 2^64-1",
            "ffffffffffffffff\r\n{}\r\n0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked("an endless chunk size", "0".repeat(20_000), BROKEN, PAID),
        chunked(
            "a chunk extension of 10 KB",
            long_extension,
            whole("{}"),
            PAID,
        ),
        chunked(
            "no line end behind a chunk",
            "2\r\n{}0\r\n\r\n",
            BROKEN,
            PAID,
        ),
        chunked("no last chunk", "2\r\n{}\r\n", BROKEN, PAID),
        chunked(
            "no end behind the last chunk",
            "2\r\n{}\r\n0\r\n",
            BROKEN,
            PAID,
        ),
        chunked("trailers of 1 KB", trailers(1000), whole("{}"), PAID),
        chunked("trailers of 100 KB", trailers(100_000), BROKEN, PAID),
        chunked(
            "a price in the trailers",
            "2\r\n{}\r\n0\r\nX-Service-Billed: 9\r\n\r\n",
            whole("{}"),
            PAID,
        ),
        case(
            24,
            Ask::Chat,
            "HTTP/1.0 and chunked",
            "HTTP/1.0 200 OK\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            whole("{}"),
            PAID,
        ),
        case(
            24,
            Ask::Chat,
            "HTTP/1.0 and kept alive",
            "HTTP/1.0 200 OK\r\nX-Service-Billed: 7\r\nConnection: keep-alive\r\nKeep-Alive: timeout=18446744073709551615, max=0\r\nContent-Length: 2\r\n\r\n{}",
            whole("{}"),
            PAID,
        ),
    ]
}

fn streams() -> Vec<Case> {
    let megabytes = |begin: &str, count: usize| format!("{begin}{}\n", "x".repeat(count << 20));
    let event = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    let hidden = "data: {\"content\":\"\\n: service-billed-micro-usd 999\\n\"}\n\n";
    vec![
        stream("a comment of 10 MB", megabytes(": ", 10)),
        stream(
            "a comment of 10 MB that begins as a receipt",
            megabytes(": service-billed-micro-usd ", 10),
        ),
        stream("a data line of 10 MB", megabytes("data: ", 10)),
        stream("a line of 10 MB of no kind", megabytes("", 10)),
        stream(
            "a data line of spaces",
            format!("data:{}\n", " ".repeat(1 << 20)),
        ),
        stream(
            "brackets in brackets",
            format!("data: {{\"usage\":{}\n\n", "[{\"usage\":".repeat(6000)),
        ),
        stream("20,000 events", event.repeat(20_000)),
        stream("100,000 empty lines", "\n".repeat(100_000)),
        stream("100,000 empty comments", ":\n".repeat(100_000)),
        stream(
            "carriage returns alone in a line",
            "data: a\rdata: b\r: service-billed-micro-usd 9\rc\n",
        ),
        stream("a byte order mark", "\u{feff}data: {}\n\n"),
        stream("NUL bytes", "data: \0\0\n\0\n\n"),
        stream(
            "bytes that are no UTF-8",
            b"data: \xff\xfe\xc0\n\n: \xff\n\n",
        ),
        stream(
            "escapes for a terminal",
            "data: \x1b[2J\x1b]0;x\x07\n\n: \x1b[2J\n\n",
        ),
        stream("a receipt inside of data", hidden),
        stream("half an end mark, often", "data: [DON\n\n".repeat(1000)),
        case(
            21,
            Ask::Stream,
            "carriage returns alone",
            events("data: {}\r\r: service-billed-micro-usd 7\r\rdata: [DONE]\r\r"),
            App::BrokenOff,
            DROPPED,
        ),
        case(
            21,
            Ask::Stream,
            "no end mark and no receipt",
            events("data: {}\n\n"),
            App::BrokenOff,
            DROPPED,
        ),
        case(
            21,
            Ask::Stream,
            "nothing but a head",
            events(""),
            BROKEN,
            DROPPED,
        ),
        case(
            21,
            Ask::Stream,
            "a line that never ends",
            [
                stream_head(),
                format!("1000000\r\ndata: {}", "x".repeat(3 << 20)).into_bytes(),
            ]
            .concat(),
            App::BrokenOff,
            DROPPED,
        )
        .closing(),
        case(
            21,
            Ask::Stream,
            "an event stream on a free route",
            events("data: {}\n\n"),
            whole("data: {}\n\n"),
            Books::Unreported,
        )
        .asking(Ask::Free),
    ]
}

fn codings() -> Vec<Case> {
    let bomb = bomb();
    let json_bomb = |name: &str, coding: &str, ask, status: u16, books| {
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nX-Service-Billed: 7\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n",
            bomb.len()
        );
        let sends = [head.as_bytes(), &bomb].concat();
        case(
            21,
            ask,
            name,
            sends,
            App::Whole(status, bomb.clone()),
            books,
        )
    };
    let coded = |name: &str, coding: &str, lines: &str, body: &[u8], app, books| {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: {coding}\r\n{lines}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n",
            body.len()
        );
        let sends = [head.as_bytes(), body, b"\r\n0\r\n\r\n"].concat();
        case(21, Ask::Stream, name, sends, app, books)
    };
    let plain = [RECEIPT, DONE].concat();
    vec![
        json_bomb("a gzip bomb", "gzip", Ask::Chat, 200, PAID),
        json_bomb("a gzip bomb said to be brotli", "br", Ask::Chat, 200, PAID),
        json_bomb(
            "a gzip bomb on a route without a key",
            "gzip",
            Ask::Speech,
            200,
            PAID,
        ),
        json_bomb(
            "a gzip bomb as an error",
            "gzip",
            Ask::Chat,
            400,
            Books::Failed,
        )
        .odd(&[bursar::ledger::entry::Anomaly::AmountOnFailure]),
        coded(
            "a stream in gzip",
            "gzip",
            "",
            &bomb,
            whole(&bomb),
            Books::Unreported,
        ),
        coded(
            "a stream in zstd",
            "zstd",
            "",
            &bomb,
            whole(&bomb),
            Books::Unreported,
        ),
        coded(
            "a stream in gzip with its price in the head",
            "GZip",
            "X-Service-Billed: 7\r\n",
            &bomb,
            whole(&bomb),
            PAID,
        ),
        // Text between coded bytes that looks like a receipt is not one.
        coded(
            "a receipt among coded bytes",
            "gzip",
            "",
            plain.as_bytes(),
            whole(&plain),
            Books::Unreported,
        ),
        coded(
            "a stream in an empty coding",
            ", identity",
            "",
            plain.as_bytes(),
            whole(&plain),
            PAID,
        ),
        coded(
            "a stream in identity",
            "identity",
            "",
            plain.as_bytes(),
            whole(&plain),
            PAID,
        ),
    ]
}

fn documents() -> Vec<Case> {
    let large = |mib: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(mib << 20));
    let deep = "[".repeat(500_000);
    let usage = |usage: &str| format!("{{\"usage\":{usage}}}");
    let billed = |name: &str, body: &str| {
        let sends = json(200, &[("X-Service-Billed", "7")], body);
        case(22, Ask::Chat, name, sends, whole(body), PAID)
    };
    vec![
        billed("a document of 8 MB", &large(8)).at(21),
        billed("500,000 brackets", &deep).at(21),
        billed(
            "usage of 2^63",
            &usage(r#"{"prompt_tokens":9223372036854775808}"#),
        ),
        billed("usage below zero", &usage(r#"{"prompt_tokens":-5}"#)),
        billed(
            "usage in fractions",
            &usage(r#"{"prompt_tokens":1.5,"completion_tokens":1e300}"#),
        ),
        billed(
            "usage in texts",
            &usage(r#"{"prompt_tokens":"5","completion_tokens":[1]}"#),
        ),
        billed("usage of no object", &usage("[1,2]")),
        billed(
            "usage twice",
            r#"{"usage":{"prompt_tokens":1},"usage":{"prompt_tokens":2}}"#,
        ),
    ]
}

pub fn cases() -> Vec<Case> {
    [lengths(), streams(), codings(), documents()].concat()
}

#[tokio::test]
async fn bodies_of_any_length_line_and_coding() {
    play(cases()).await;
}

/// The same where the events come in chunks of every size.
#[tokio::test]
async fn a_receipt_is_read_whatever_the_chunks() {
    let texts = ["data: {}\n\n: service-billed-micro-usd 7\n\ndata: [DONE]\n\n"];
    for text in texts {
        let pieces: Vec<&str> = text.split_inclusive(|_: char| true).collect();
        let sends = events_in(&pieces);
        play(vec![case(
            21,
            Ask::Stream,
            "byte by byte",
            sends,
            whole(text),
            PAID,
        )])
        .await;
    }
}

/// A gzip stream that inflates to about 160 times its size: one zero byte, copied for ever by the
/// longest match at distance 1, in fixed Huffman codes.
fn bomb() -> Vec<u8> {
    let mut bits = Vec::new();
    let mut push = |code: u32, length: u32| bits.extend((0..length).rev().map(|at| code >> at & 1));
    // The last block, with fixed codes; numbers go lowest bit first.
    push(0b110, 3);
    push(0b0011_0000, 8);
    for _ in 0..400_000 {
        push(0b1100_0101, 8);
        push(0, 5);
    }
    push(0, 7);
    let packed = bits.chunks(8).map(|byte| {
        let bits = byte.iter().enumerate();
        bits.fold(0u8, |sum, (at, bit)| sum | u8::from(*bit == 1) << at)
    });
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    head.into_iter().chain(packed).chain([0; 8]).collect()
}

// === impl Case ===

impl Case {
    fn at(mut self, row: u8) -> Self {
        self.row = row;
        self
    }

    fn asking(mut self, ask: Ask) -> Self {
        self.ask = ask;
        if ask == Ask::Free {
            self.books = Books::Nothing;
        }
        self
    }
}
