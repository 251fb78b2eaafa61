//! The service at the far end: one thread that answers at once, with receipts, and does nothing
//! else, so that what is measured is the way to it.
//!
//! It is this same program, started with `--echo`; it ends when its standard input does.
//!
//! Promise: it counts what it billed, answer by answer, and reports it at [`BILLED_PATH`]: that is what a
//! ledger is compared with.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, sleep_until};

use crate::ask::METERED_PATH;
use crate::clock::stamp_ns;

/// What stands before the stamp of a chunk.
pub const STAMP_MARK: &[u8] = b"\"t=";
pub const STAMP_DIGITS: usize = 20;

/// What the first answer costs, in micro-USD; the next ones differ, so that a sum says more than a count.
const BILLED_LEAST: u64 = 100;
const AMOUNTS: u64 = 61;

/// Where it reports how many answers it billed, and their sum.
pub const BILLED_PATH: &str = "/billed";

/// Before the address on standard output.
pub const LISTENING: &str = "echo listening on ";

const READ_BYTES: usize = 16 * 1024;

/// A larger body is read and thrown away piece by piece; what it asks for stands in its beginning.
const KEPT_BYTES_MAX: usize = 64 * 1024;
const LARGE_READ_BYTES: usize = 256 * 1024;

/// What was billed by this process.
#[derive(Default)]
struct Books {
    answers: AtomicU64,
    micro_usd: AtomicU64,
}

/// What a request asks for.
struct Asked {
    is_billed: bool,
    is_question: bool,
    body_at: usize,
    body_bytes: usize,
}

/// Serves until standard input ends.
pub async fn serve() -> io::Result<()> {
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
    let mut out = io::stdout();
    writeln!(out, "{LISTENING}{}", listener.local_addr()?)?;
    out.flush()?;
    let mut alive = tokio::io::stdin();
    let mut nothing = [0; 64];
    let books = Arc::new(Books::default());
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (stream, _) = accepted?;
                stream.set_nodelay(true)?;
                let books = Arc::clone(&books);
                // A proxy that hangs up is no matter of ours.
                tokio::spawn(async move { answer_all(stream, &books).await.ok() });
            }
            read = alive.read(&mut nothing) => if matches!(read, Ok(0) | Err(_)) {
                return Ok(());
            }
        }
    }
}

/// Answers one connection's requests.
async fn answer_all(mut stream: TcpStream, books: &Books) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut served = 0_u64;
    let connection = stream.peer_addr()?.port();
    loop {
        let Some(asked) = read_request(&mut stream, &mut buffer).await? else {
            return Ok(());
        };
        served += 1;
        let id = format!("req-{connection}-{served}");
        let amount = BILLED_LEAST + (u64::from(connection) + served) % AMOUNTS;
        let body = buffer.get(asked.body_at..).unwrap_or_default();
        if asked.is_question {
            let report = books.report();
            stream.write_all(report.as_bytes()).await?;
        } else if let Some(chunks) = number_after(body, b"chunks=") {
            let every = number_after(body, b"every_us=").unwrap_or_default();
            let every = Duration::from_micros(every);
            answer_stream(&mut stream, &id, amount, chunks, every).await?;
        } else {
            stream
                .write_all(json_answer(&id, amount).as_bytes())
                .await?;
        }
        if asked.is_billed {
            books.bill(amount);
        }
        let end = (asked.body_at + asked.body_bytes).min(buffer.len());
        buffer.drain(..end);
    }
}

/// Reads one request. Of a large body only the beginning stays in the buffer. `None`: the connection ended.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Asked>> {
    loop {
        let Some(asked) = head_of(buffer) else {
            buffer.reserve(READ_BYTES);
            if stream.read_buf(buffer).await? == 0 {
                return Ok(None);
            }
            continue;
        };
        let end = asked.body_at + asked.body_bytes;
        if asked.body_bytes <= KEPT_BYTES_MAX {
            while buffer.len() < end {
                buffer.reserve(READ_BYTES);
                if stream.read_buf(buffer).await? == 0 {
                    return Ok(None);
                }
            }
            return Ok(Some(asked));
        }
        let mut missing = end.saturating_sub(buffer.len());
        let mut piece = vec![0; LARGE_READ_BYTES];
        while missing > 0 {
            let room = missing.min(piece.len());
            let read = stream
                .read(piece.get_mut(..room).unwrap_or_default())
                .await?;
            if read == 0 {
                return Ok(None);
            }
            missing -= read;
        }
        return Ok(Some(asked));
    }
}

/// What the first request of the buffer asks for, once its head is there.
fn head_of(buffer: &[u8]) -> Option<Asked> {
    let body_at = memmem::find(buffer, b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(buffer.get(..body_at)?).ok()?;
    let path = head.split(' ').nth(1)?;
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let body_bytes = fields
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.trim().parse::<usize>().ok())
        .unwrap_or_default();
    Some(Asked {
        is_billed: path == METERED_PATH,
        is_question: path == BILLED_PATH,
        body_at,
        body_bytes,
    })
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
fn json_answer(id: &str, amount: u64) -> String {
    let content = "All work and no play makes the ledger a dull book. ".repeat(7);
    let body = format!(
        r#"{{"id":"chatcmpl-{id}","object":"chat.completion","created":1700000000,"model":"auto","choices":[{{"index":0,"message":{{"role":"assistant","content":"{content}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":120,"completion_tokens":80,"total_tokens":200}}}}"#
    );
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         X-Request-Id: {id}\r\nX-Service-Billed: {amount}\r\n\
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
    amount: u64,
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
         : service-billed-micro-usd {amount}\n\
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

// === impl Books ===

impl Books {
    /// One thread writes; the order of its two counts is of no interest.
    fn bill(&self, amount: u64) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.micro_usd.fetch_add(amount, Ordering::Relaxed);
    }

    fn report(&self) -> String {
        let answers = self.answers.load(Ordering::Relaxed);
        let micro_usd = self.micro_usd.load(Ordering::Relaxed);
        let body = format!("{answers} {micro_usd}");
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    }
}
