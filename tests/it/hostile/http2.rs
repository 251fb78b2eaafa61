//! The same over HTTP/2, frame by frame: floods and forms that a library would not send.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::{CHAT, assert_no_key};
use crate::support::{Bursar, KEY, chat, within};
use crate::tls::certs::{Authority, NOW};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PUSH_PROMISE: u8 = 5;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;
pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
const PREFACE_BYTES: usize = 24;
/// `:status: 200`, by its place in the static table.
pub(super) const STATUS_200: &[u8] = &[0x88];

pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a small frame")
        .to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header field, spelled out and not indexed.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| {
        u8::try_from(text.len())
            .ok()
            .filter(|length| *length < 127)
            .expect("a short text")
    };
    [
        &[0, length(name)],
        name.as_bytes(),
        &[length(value)],
        value.as_bytes(),
    ]
    .concat()
}

pub(super) fn answer_head(more: &[u8]) -> Vec<u8> {
    let head = [STATUS_200, &field("x-service-billed", "7"), more].concat();
    frame(HEADERS, END_HEADERS, 1, &head)
}

/// What the service does once a request has come whole: bytes, and bytes that are sent again and again.
pub(super) struct Attack {
    pub name: &'static str,
    pub first: Vec<u8>,
    pub again: Vec<u8>,
    pub times: usize,
    /// The answer's status, or bursar's code.
    pub sees: Result<u16, &'static [&'static str]>,
}

fn attacks() -> Vec<Attack> {
    let row = |name, first: Vec<u8>, again: Vec<u8>, times, sees| Attack {
        name,
        first,
        again,
        times,
        sees,
    };
    let broken: &[&str] = &[
        "outcome_unknown",
        "upstream_broken",
        "upstream_timeout",
        "upstream_unreachable",
    ];
    let open = frame(HEADERS, 0, 1, STATUS_200);
    let many: Vec<u8> = (0..200)
        .flat_map(|n| field(&format!("x-{n}"), "y"))
        .collect();
    let blocks = frame(
        CONTINUATION,
        0,
        1,
        &field("x-a", &"y".repeat(100)).repeat(100),
    );
    let end = frame(DATA, END_STREAM, 1, b"{}");
    let interim = frame(HEADERS, END_HEADERS, 1, &field(":status", "103"));
    let good = [answer_head(&[]), end.clone()].concat();
    vec![
        row("a plain answer", good.clone(), Vec::new(), 0, Ok(200)),
        row(
            "200 fields",
            [answer_head(&many), end.clone()].concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a flood of continuations",
            open.clone(),
            blocks,
            100_000,
            Err(broken),
        ),
        row(
            "a flood of empty continuations",
            open.clone(),
            frame(CONTINUATION, 0, 1, b""),
            1_000_000,
            Err(broken),
        ),
        row(
            "a flood of interim heads",
            Vec::new(),
            interim.repeat(1000),
            500,
            Err(broken),
        ),
        row(
            "some interim heads",
            [interim.repeat(3), good.clone()].concat(),
            Vec::new(),
            0,
            Ok(200),
        ),
        row(
            "an interim head that ends the stream",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &field(":status", "103"),
            ),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "101",
            [
                frame(HEADERS, END_HEADERS, 1, &field(":status", "101")),
                good.clone(),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(&[
                "outcome_unknown",
                "upstream_broken",
                "upstream_timeout",
                "upstream_unreachable",
                "-",
            ]),
        ),
        row(
            "no status",
            frame(HEADERS, END_HEADERS | END_STREAM, 1, &field("x-a", "b")),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "two statuses",
            [
                frame(HEADERS, END_HEADERS, 1, &[STATUS_200, STATUS_200].concat()),
                end.clone(),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "an upper-case name",
            [answer_head(&field("X-A", "b")), end.clone()].concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a line break in a value",
            [
                answer_head(&field("x-a", "b\r\nx-service-billed: 9")),
                end.clone(),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a connection header",
            [
                answer_head(&field("transfer-encoding", "chunked")),
                end.clone(),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a length that is too long",
            [answer_head(&field("content-length", "100")), end.clone()].concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a length that is too short",
            [answer_head(&field("content-length", "1")), end.clone()].concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "bad compression",
            frame(HEADERS, END_HEADERS, 1, &[0xff; 20]),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a table of 4 GB",
            [
                frame(
                    HEADERS,
                    END_HEADERS,
                    1,
                    &[0x3f, 0xff, 0xff, 0xff, 0xff, 0x0f],
                ),
                good.clone(),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a frame larger than allowed",
            frame(DATA, 0, 1, &vec![b'x'; 100_000]),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "data before a head",
            end.clone(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "data on no stream",
            frame(DATA, 0, 0, b"x"),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "an answer to a request that was not made",
            frame(HEADERS, END_HEADERS | END_STREAM, 3, STATUS_200),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a pushed request",
            frame(PUSH_PROMISE, END_HEADERS, 1, &[0, 0, 0, 2, 0x82]),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a window beyond its limit",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]).repeat(2),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a reset",
            frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a reset inside of a body",
            [
                answer_head(&[]),
                frame(DATA, 0, 1, b"{"),
                frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a goodbye inside of a body",
            [
                answer_head(&[]),
                frame(DATA, 0, 1, b"{"),
                frame(GOAWAY, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2]),
            ]
            .concat(),
            Vec::new(),
            0,
            Err(broken),
        ),
        row(
            "a flood of settings",
            Vec::new(),
            frame(SETTINGS, 0, 0, &[]).repeat(1000),
            1000,
            Err(broken),
        ),
        row(
            "a flood of pings",
            Vec::new(),
            frame(PING, 0, 0, &[0; 8]).repeat(1000),
            1000,
            Err(broken),
        ),
        row(
            "a flood of empty data",
            answer_head(&[]),
            frame(DATA, 0, 1, b"").repeat(1000),
            1000,
            Err(broken),
        ),
        row(
            "the key in a trailer",
            [
                answer_head(&[]),
                frame(DATA, 0, 1, b"{}"),
                frame(HEADERS, END_HEADERS | END_STREAM, 1, &field("x-key", KEY)),
            ]
            .concat(),
            Vec::new(),
            0,
            Ok(200),
        ),
    ]
}

pub(super) type Next = Arc<Mutex<Option<Attack>>>;

/// Answers one request with what is planned, or plainly; then the connection ends.
async fn serve(mut io: impl AsyncRead + AsyncWrite + Unpin, next: &Next) -> std::io::Result<()> {
    io.read_exact(&mut [0; PREFACE_BYTES]).await?;
    io.write_all(&frame(SETTINGS, 0, 0, &[])).await?;
    io.flush().await?;
    loop {
        let mut head = [0; 9];
        io.read_exact(&mut head).await?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let (kind, flags) = (head[3], head[4]);
        let mut payload = vec![0; usize::try_from(length).expect("a length")];
        io.read_exact(&mut payload).await?;
        if kind == SETTINGS && flags & 1 == 0 {
            io.write_all(&frame(SETTINGS, 1, 0, &[])).await?;
            io.flush().await?;
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            break;
        }
    }
    let attack = next.lock().take();
    let (first, again, times) = match attack {
        Some(attack) => (attack.first, attack.again, attack.times),
        None => (
            [answer_head(&[]), frame(DATA, END_STREAM, 1, b"{}")].concat(),
            Vec::new(),
            0,
        ),
    };
    io.write_all(&first).await?;
    for _ in 0..times {
        io.write_all(&again).await?;
    }
    io.write_all(&frame(GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]))
        .await?;
    io.flush().await?;
    io.shutdown().await
}

/// A service at a port, and what it does next.
pub(super) async fn listen(authority: &Authority) -> (u16, Next) {
    let acceptor = TlsAcceptor::from(authority.signs(&["localhost"], &NOW).server(&["h2"]));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let next: Next = Arc::default();
    let planned = Arc::clone(&next);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, planned) = (acceptor.clone(), Arc::clone(&planned));
            tokio::spawn(async move {
                if let Ok(tls) = acceptor.accept(stream).await {
                    serve(tls, &planned).await.ok();
                }
            });
        }
    });
    (port, next)
}

#[tokio::test]
async fn frames_of_any_kind_end_in_an_answer_or_in_a_clear_break() {
    let authority = Authority::new("tests");
    let (port, next) = listen(&authority).await;
    let directory = tempfile::tempdir().expect("a directory");
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, &authority.pem).expect("a file");
    let lines = format!(
        "[upstream]\nca_file = {:?}\nread_timeout_s = 3\n{}",
        ca.display().to_string(),
        super::ONCE
    );
    let bursar = Bursar::with(&format!("https://localhost:{port}"), &lines).await;
    for attack in attacks() {
        let (name, sees) = (attack.name, attack.sees);
        *next.lock() = Some(attack);
        let began = tokio::time::Instant::now();
        let answer = bursar.post(CHAT, &chat(name)).await;
        eprintln!(
            "{name}: {} {:?} after {:?}",
            answer.status,
            answer.code(),
            began.elapsed()
        );
        match sees {
            Ok(status) => assert_eq!((answer.status, answer.code()), (status, None), "{name}"),
            Err(codes) => assert!(
                codes.contains(&answer.code().unwrap_or("-")),
                "{name}: {} {:?} {}",
                answer.status,
                answer.code(),
                answer.text()
            ),
        }
        assert_no_key(name, &answer);
        assert!(answer.complete, "{name}");
        let entry = bursar.entry_of(&answer);
        assert!(entry.ended_ms.is_some(), "{name}: {entry:?}");
        // The connection that was attacked may still be in the pool until its end shows.
        within(Duration::from_secs(10), name, || async {
            *next.lock() = None;
            let asks = chat(&format!(
                "next after {name} {:?}",
                tokio::time::Instant::now()
            ));
            let answer = bursar.post(CHAT, &asks).await;
            (answer.status == 200 && answer.text() == "{}").then_some(())
        })
        .await;
    }
    super::assert_no_key_in(&bursar.state_dir());
}
