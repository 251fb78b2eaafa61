//! Row 16: heads and bodies that drip, readers that do not read, connections that do nothing. Time
//! is tokio's, stopped: it runs when nothing else does, so that minutes pass at once.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, sleep};

use bursar::ledger::entry::State;

use super::case::{Case, framed, get};
use crate::support::origin::{chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat_stream, eventually};

const BROKEN: &[&str] = &["body_broken"];

/// Requests that begin and do not continue.
pub fn cases() -> Vec<Case> {
    let head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
    let mut cases = Vec::new();
    for (name, bytes) in [
        ("half a line", b"GET /v1/mod".to_vec()),
        (
            "half a head",
            b"GET /v1/models HTTP/1.1\r\nHost: local".to_vec(),
        ),
        (
            "a head without its blank line",
            b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n".to_vec(),
        ),
        (
            "half a blank line",
            b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r".to_vec(),
        ),
    ] {
        cases.push(Case::refused(16, name, bytes, &["head_malformed"]).ending());
    }
    for (name, bytes) in [
        (
            "a body that never comes",
            format!("{head}Content-Length: 10\r\n\r\n"),
        ),
        (
            "a body whose last byte never comes",
            format!("{head}Content-Length: 3\r\n\r\n{{}}"),
        ),
        (
            "chunks that never come",
            format!("{head}Transfer-Encoding: chunked\r\n\r\n"),
        ),
    ] {
        cases.push(Case::refused(16, name, bytes, BROKEN).ending());
    }
    cases
}

/// bursar in front of an origin that no request may reach.
async fn alone() -> (Origin, Bursar) {
    let origin = Origin::start([]).await;
    let bursar = Bursar::before(&origin.url()).await;
    (origin, bursar)
}

/// Sends `piece` again and again, `pause` apart, until an answer comes; returns the time and the
/// answer.
async fn dripping(mut stream: TcpStream, piece: &[u8], pause: Duration) -> (Duration, String) {
    tokio::time::pause();
    let began = Instant::now();
    let (mut reads, mut writes) = stream.split();
    let drip = async {
        loop {
            sleep(pause).await;
            if writes.write_all(piece).await.is_err() {
                return std::future::pending::<()>().await;
            }
        }
    };
    let mut text = String::new();
    tokio::select! {
        read = reads.read_to_string(&mut text) => { read.expect("an answer"); }
        () = drip => {}
    }
    let took = began.elapsed();
    tokio::time::resume();
    (took, text)
}

fn assert_timed_out(text: &str, code: &str) {
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert!(
        text.to_ascii_lowercase()
            .contains(&format!("x-bursar-error: {code}")),
        "{text}"
    );
}

#[track_caller]
fn assert_about(took: Duration, seconds: u64) {
    // Without the time that passed before the clock was stopped.
    let about = Duration::from_secs(seconds - 1)..Duration::from_secs(seconds + seconds / 5 + 3);
    assert!(about.contains(&took), "{took:?} instead of {seconds} s");
}

#[tokio::test]
async fn a_head_that_drips_is_refused_at_its_deadline() {
    let (origin, bursar) = alone().await;
    let mut stream = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    stream
        .write_all(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: ")
        .await
        .expect("sent");
    let (took, text) = dripping(stream, b"y", Duration::from_millis(900)).await;
    assert_timed_out(&text, "head_too_slow");
    assert_about(took, 10);
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn a_body_that_stands_still_is_refused() {
    let (origin, bursar) = alone().await;
    for lines in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        let mut stream = TcpStream::connect(bursar.address)
            .await
            .expect("a connection");
        stream
            .write_all(&framed(lines, b"5\r\nhel"))
            .await
            .expect("sent");
        let (took, text) = dripping(stream, b"", Duration::from_secs(3600)).await;
        assert_timed_out(&text, "body_too_slow");
        assert_about(took, 15);
    }
    assert_eq!(origin.connections(), 0);
    assert!(bursar.entries().is_empty());
}

#[tokio::test]
async fn a_body_that_drips_is_refused_although_it_never_stands_still() {
    let (origin, bursar) = alone().await;
    for (lines, piece) in [
        ("Content-Length: 1000000\r\n", b"x".as_slice()),
        ("Transfer-Encoding: chunked\r\n", b"1\r\nx\r\n"),
    ] {
        let mut stream = TcpStream::connect(bursar.address)
            .await
            .expect("a connection");
        stream.write_all(&framed(lines, b"")).await.expect("sent");
        let (took, text) = dripping(stream, piece, Duration::from_secs(2)).await;
        assert_timed_out(&text, "body_too_slow");
        assert_about(took, 15);
    }
    assert_eq!(origin.connections(), 0);
    assert!(bursar.entries().is_empty());
}

/// A fast beginning buys no time for a drip that follows.
#[tokio::test]
async fn a_body_that_drips_behind_a_quick_beginning_is_refused() {
    let (origin, bursar) = alone().await;
    let mut stream = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    let head = framed("Content-Length: 30000000\r\n", &[b'x'; 3_000_000]);
    stream.write_all(&head).await.expect("sent");
    let (took, text) = dripping(stream, &[b'x'; 400], Duration::from_secs(2)).await;
    assert_timed_out(&text, "body_too_slow");
    assert_about(took, 15);
    assert_eq!(origin.connections(), 0);
}

/// 5 kB a second, with a pause of ten seconds in between: an app on a poor mobile link.
#[tokio::test]
async fn a_slow_link_that_pauses_is_no_drip() {
    let origin = Origin::always(Step::Answer(json(200, &[("X-Service-Billed", "1")], "{}"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut stream = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    let head = framed("Content-Length: 400000\r\n", b"");
    stream.write_all(&head).await.expect("sent");
    tokio::time::pause();
    for at in 0..80 {
        stream.write_all(&[b'x'; 5_000]).await.expect("sent");
        let pause = if at % 10 == 9 { 10 } else { 1 };
        sleep(Duration::from_secs(pause)).await;
    }
    tokio::time::resume();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(answer, b"HTTP/1.1 200");
}

/// Just quick enough at every moment, and never done.
#[tokio::test]
async fn a_body_without_end_is_refused_after_ten_minutes() {
    let (origin, bursar) = alone().await;
    let mut stream = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    stream
        .write_all(&framed("Content-Length: 30000000\r\n", b""))
        .await
        .expect("sent");
    let (took, text) = dripping(stream, &[b'x'; 4096], Duration::from_secs(2)).await;
    assert_timed_out(&text, "body_too_slow");
    assert_about(took, 600);
    assert_eq!(origin.connections(), 0);
}

#[tokio::test]
async fn an_idle_connection_is_closed_after_its_time() {
    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let used = {
        let mut stream = TcpStream::connect(bursar.address)
            .await
            .expect("a connection");
        stream
            .write_all(&get("/v1/models", ""))
            .await
            .expect("sent");
        let mut answer = Vec::new();
        while !answer.ends_with(b"{}") {
            assert!(stream.read_buf(&mut answer).await.expect("an answer") > 0);
        }
        stream
    };
    let unused = TcpStream::connect(bursar.address)
        .await
        .expect("a connection");
    for stream in [used, unused] {
        let (took, text) = dripping(stream, b"", Duration::from_secs(3600)).await;
        assert_eq!(text, "", "nobody asked");
        // Pooled clients drop theirs long before; the second has waited along with the first.
        assert!(took <= Duration::from_secs(100), "{took:?}");
    }
}

/// A program that asks for a stream and does not read it holds nothing for more than a minute; what
/// it bought is read to its receipt meanwhile.
#[tokio::test]
async fn a_reader_that_stands_still_is_left_and_its_receipt_is_still_recorded() {
    let event = chunk(&format!("data: \"{}\"\n\n", "x".repeat(1024 * 1024)));
    let end = [
        chunk(": service-billed-micro-usd 7\n\n"),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ];
    let all = [stream_head(), event.repeat(14), end.concat()].concat();
    let origin = Origin::start([Step::Pieces(vec![all])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_recv_buffer_size(4096).expect("a small buffer");
    let mut stream = socket.connect(bursar.address).await.expect("a connection");
    let bytes = request("POST", "/v1/chat/completions", &[], &chat_stream("hi"));
    stream.write_all(bytes.as_bytes()).await.expect("sent");
    eventually("the service to receive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    origin.go();
    let (mut seen, mut looks) = (0, 0);
    eventually("everything to stand still", || {
        let written = origin.written();
        looks = if written > seen { 0 } else { looks + 1 };
        seen = written;
        std::future::ready((written > 0 && looks >= 20).then_some(()))
    })
    .await;
    let entries = bursar.settled(1).await;
    assert!(
        matches!(entries[0].state, State::Settled { .. }),
        "{:?}",
        entries[0].state
    );
    tokio::time::pause();
    let began = Instant::now();
    let left = || bursar.gateway.in_flight() == 0;
    sleep(Duration::from_secs(55)).await;
    assert!(!left(), "too early");
    while !left() && began.elapsed() < Duration::from_secs(300) {
        sleep(Duration::from_millis(500)).await;
    }
    assert_about(began.elapsed(), 60);
    tokio::time::resume();
    assert_eq!(bursar.billed(), 7);
    drop(stream);
}
