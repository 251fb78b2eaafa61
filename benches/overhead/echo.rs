//! The service at the far end: one thread that answers at once, with receipts, and does nothing
//! else, so that what is measured is the way to it.
//!
//! It is this same program, started with `--echo`; it ends when its standard input does.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use crate::clock::stamp_ns;

/// What stands before the stamp of a chunk.
pub const STAMP_MARK: &[u8] = b"\"t=";
pub const STAMP_DIGITS: usize = 20;

/// What each answer costs, in micro-USD: the ledger must show requests times this.
pub const BILLED: u64 = 137;

/// Before the address on standard output.
pub const LISTENING: &str = "echo listening on ";

const READ_BYTES: usize = 16 * 1024;

/// Serves until standard input ends.
pub async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let mut out = io::stdout();
    writeln!(out, "{LISTENING}{}", listener.local_addr()?)?;
    out.flush()?;
    let mut alive = tokio::io::stdin();
    let mut nothing = [0; 64];
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                // A proxy that hangs up is no matter of ours.
                tokio::spawn(async move { answer_all(stream).await.ok() });
            }
            read = alive.read(&mut nothing) => if matches!(read, Ok(0) | Err(_)) {
                return Ok(());
            }
        }
    }
}

/// Answers one connection's requests.
async fn answer_all(mut stream: TcpStream) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut served = 0_u64;
    let connection = stream.peer_addr()?.port();
    loop {
        let Some((body_at, end)) = whole_request(&buffer) else {
            buffer.reserve(READ_BYTES);
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        served += 1;
        let id = format!("req-{connection}-{served}");
        let body = buffer.get(body_at..end).unwrap_or_default();
        match number_after(body, b"chunks=") {
            Some(chunks) => {
                let every = number_after(body, b"every_us=").unwrap_or_default();
                let every = Duration::from_micros(every);
                answer_stream(&mut stream, &id, chunks, every).await?;
            }
            None => stream.write_all(json_answer(&id).as_bytes()).await?,
        }
        buffer.drain(..end);
    }
}

/// Where the body of the first request begins and ends, once it is there.
fn whole_request(buffer: &[u8]) -> Option<(usize, usize)> {
    let body_at = memmem::find(buffer, b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(buffer.get(..body_at)?).ok()?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or_default();
    let end = body_at + length;
    (buffer.len() >= end).then_some((body_at, end))
}

fn number_after(body: &[u8], mark: &[u8]) -> Option<u64> {
    let from = memmem::find(body, mark)? + mark.len();
    let digits = body
        .get(from..)?
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    digits.fold(None, |sum, digit| {
        Some(sum.unwrap_or(0) * 10 + u64::from(digit - b'0'))
    })
}

/// A completion of about 600 bytes.
fn json_answer(id: &str) -> String {
    let content = "All work and no play makes the ledger a dull book. ".repeat(7);
    let body = format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":1700000000,"model":"auto","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":120,"completion_tokens":80,"total_tokens":200}}}}"#
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         X-Request-Id: {id}\r\nX-Service-Billed: {BILLED}\r\n\
         X-Service-Frontier-Would-Have-Cost: 2100\r\nX-Service-Served-By: specialist\r\n\
         X-Service-Specialist: general-chat\r\nX-Service-Escalated: false\r\n\
         X-Service-Route-Version: bench-1\r\n\r\n{body}",
        body.len()
    )
}

/// A stream of stamped chunks of about 170 bytes, each written by itself.
async fn answer_stream(
    stream: &mut TcpStream,
    id: &str,
    chunks: u64,
    every: Duration,
) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\
         X-Request-Id: {id}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    let began = Instant::now();
    let mut text = String::new();
    let mut due = began;
    for _ in 0..chunks {
        text.clear();
        let event = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\
             \"created\":1700000000,\"model\":\"auto\",\"choices\":[{{\"index\":0,\"delta\":\
             {{\"content\":\"t={:020}\"}},\"finish_reason\":null}}]}}\n\n",
            stamp_ns()
        );
        push_chunk(&mut text, &event);
        stream.write_all(text.as_bytes()).await?;
        due += every;
        if every.is_zero() {
            // The other streams have their turn, as with a service of many machines.
            tokio::task::yield_now().await;
        } else {
            sleep_until(due).await;
        }
    }
    let end = format!(
        "data: {{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\
         \"model\":\"auto\",\"choices\":[],\"usage\":{{\"prompt_tokens\":120,\
         \"completion_tokens\":80,\"total_tokens\":200}}}}\n\n\
         : service-billed-micro-usd {BILLED}\n\
         : service-frontier-would-have-cost-micro-usd 2100\n\
         : service-served-by specialist\n: service-route-version bench-1\n\ndata: [DONE]\n\n"
    );
    text.clear();
    push_chunk(&mut text, &end);
    text.push_str("0\r\n\r\n");
    stream.write_all(text.as_bytes()).await
}

fn push_chunk(to: &mut String, event: &str) {
    // Writing to a string cannot fail.
    let _ = write!(to, "{:x}\r\n{event}\r\n", event.len());
}
