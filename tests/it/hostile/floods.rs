//! Floods before a real child process: its memory stays small, whatever arrives.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::support::daemon::Daemon;
use crate::support::origin::{billed, stream_head};
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, chat_stream};

use super::CHAT;

/// Floods, by what never ends.
pub const NAMES: &[&str] = &[
    "a data line",
    "a comment line",
    "a line of no kind",
    "small events",
    "a coded stream",
    "a document",
    "an error",
    "a head",
    "interim heads",
    "trailers",
    "a chunk's extension",
];

/// What the process may hold more than before: a head of 1 MiB, a whole answer, and room to work in.
const MORE_KIB: u64 = 24 * 1024;

fn floods() -> Vec<(&'static str, bool, Step)> {
    let mib = 1 << 20;
    let chunk = |bytes: &[u8]| {
        let times = mib / bytes.len();
        [
            format!("{:x}\r\n", times * bytes.len()).into_bytes(),
            bytes.repeat(times),
            b"\r\n".to_vec(),
        ]
        .concat()
    };
    let stream = |begin: &str, more: &[u8]| {
        let first = [
            stream_head(),
            format!("{:x}\r\n{begin}\r\n", begin.len()).into_bytes(),
        ]
        .concat();
        Step::Flood(first, chunk(more), 40)
    };
    let gzip = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let chunked = |status: &str| {
        format!("HTTP/1.1 {status}\r\nX-Service-Billed: 7\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes()
    };
    let block = |text: &str| text.repeat(mib / text.len()).into_bytes();
    vec![
        ("a data line", true, stream("data: ", b"x")),
        ("a comment line", true, stream(": ", b"x")),
        ("a line of no kind", true, stream("x", b"x")),
        (
            "small events",
            true,
            stream("data: {}\n\n", b"data: {}\n\n"),
        ),
        (
            "a coded stream",
            true,
            Step::Flood(gzip, chunk(b"\x1f\x8b"), 40),
        ),
        (
            "a document",
            false,
            Step::Flood(chunked("200 OK"), chunk(b"x"), 40),
        ),
        (
            "an error",
            false,
            Step::Flood(chunked("400 No"), chunk(b"x"), 40),
        ),
        (
            "a head",
            false,
            Step::Flood(
                b"HTTP/1.1 200 OK\r\n".to_vec(),
                block("X-A: yyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
                40,
            ),
        ),
        (
            "interim heads",
            false,
            Step::Flood(
                Vec::new(),
                block("HTTP/1.1 103 Early\r\nLink: </x>\r\n\r\n"),
                40,
            ),
        ),
        (
            "trailers",
            false,
            Step::Flood(
                [chunked("200 OK"), b"2\r\n{}\r\n0\r\n".to_vec()].concat(),
                block("X-T: yyyyyyyyyyyyyyyyyyyyyyyy\r\n"),
                40,
            ),
        ),
        (
            "a chunk's extension",
            false,
            Step::Flood(
                [chunked("200 OK"), b"2;".to_vec()].concat(),
                vec![b'e'; mib],
                40,
            ),
        ),
    ]
}

/// Sends a request, and reads the answer without keeping it; at most that many bytes.
async fn read_and_forget(daemon: &Daemon, stream: bool, name: &str, bytes_max: usize) -> usize {
    let body = if stream {
        chat_stream(name)
    } else {
        chat(name)
    };
    let mut app = TcpStream::connect(daemon.proxy)
        .await
        .expect("a connection");
    app.write_all(request("POST", CHAT, &[("Connection", "close")], &body).as_bytes())
        .await
        .expect("the request is written");
    let mut buffer = vec![0; 256 * 1024];
    let mut count = 0;
    while count < bytes_max {
        let read = timeout(Duration::from_secs(20), app.read(&mut buffer)).await;
        match read.expect("bytes or an end within 20 s") {
            Ok(0) | Err(_) => break,
            Ok(read) => count += read,
        }
    }
    count
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn floods_leave_memory_small() {
    let origin = Origin::start([Step::Answer(billed(1))]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, super::ONCE).expect("a file");
    let config = config.to_str().expect("a path");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&origin.url(), &state, &["--config", config]).await;
    read_and_forget(&daemon, false, "warm", 1 << 20).await;
    let before = daemon.peak_kib();
    let mut last = before;
    let names: Vec<&str> = floods().iter().map(|(name, ..)| *name).collect();
    assert_eq!(names, NAMES);
    for (name, stream, step) in floods() {
        origin.push(step);
        let count = read_and_forget(&daemon, stream, name, 32 << 20).await;
        let peak = daemon.peak_kib();
        eprintln!(
            "{name}: {count} bytes to the app, peak {peak} KiB ({} more)",
            // The kernel adds it up from counters a processor, and may read a page lower.
            peak.saturating_sub(last)
        );
        last = peak;
        assert!(
            peak < before + MORE_KIB,
            "{name}: {before} KiB, then {peak} KiB"
        );
        origin.push(Step::Answer(billed(1)));
        let next = daemon
            .connect()
            .await
            .post(CHAT, &chat(&format!("next {name}")))
            .await;
        assert_eq!(next.status, 200, "{name}: the next request");
    }
    // Eight at once are eight times as little.
    for (_, _, step) in floods()
        .into_iter()
        .take(4)
        .chain(floods().into_iter().take(4))
    {
        origin.push(step);
    }
    let names: Vec<String> = (0..8).map(|n| format!("at once {n}")).collect();
    let reads = names
        .iter()
        .map(|name| read_and_forget(&daemon, true, name, 8 << 20));
    futures_util::future::join_all(reads).await;
    let peak = daemon.peak_kib();
    eprintln!("eight at once: peak {peak} KiB ({before} before)");
    assert!(
        peak < before + MORE_KIB,
        "eight at once: {before} KiB, then {peak} KiB"
    );
    // Some of them wait for an end that does not come.
    daemon.kill().await;
}
