//! A scripted origin on a raw socket: it refuses, resets, cuts and stalls on cue, and keeps what it
//! received byte for byte.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What the origin does with the next request.
#[derive(Clone, Debug)]
pub enum Step {
    /// Writes these bytes and keeps the connection.
    Answer(Vec<u8>),
    /// Writes these bytes and closes.
    AnswerAndClose(Vec<u8>),
    /// Writes these bytes and resets the connection.
    AnswerAndReset(Vec<u8>),
    /// Reads the request and closes without an answer.
    Close,
    /// Reads the request and resets the connection.
    Reset,
    /// Reads the request and never answers.
    Stall,
    /// Writes the pieces, each when [`Origin::go`] is called, and keeps the connection.
    Pieces(Vec<Vec<u8>>),
    /// As `Pieces`, then closes.
    PiecesAndClose(Vec<Vec<u8>>),
    /// Writes the first bytes, then the second ones every 50 ms, until the reader is gone.
    Drip(Vec<u8>, Vec<u8>),
    /// Writes the first bytes, then the second ones that many times without a pause, and keeps the
    /// connection; the bytes that the kernel took are counted.
    Flood(Vec<u8>, Vec<u8>, usize),
}

/// One request as received.
#[derive(Clone, Debug)]
pub struct Received {
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    pub head: String,
    pub body: Vec<u8>,
    /// When it had been read.
    pub at: Instant,
}

#[derive(Default)]
struct Shared {
    steps: Mutex<VecDeque<Step>>,
    otherwise: Mutex<Option<Step>>,
    resets_before_body: Mutex<usize>,
    received: Mutex<Vec<Received>>,
    connections: Mutex<usize>,
    written: AtomicUsize,
    go: Notify,
}

/// The origin. Steps are taken in order, over all connections; without a step it answers 500.
pub struct Origin {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

impl Origin {
    pub async fn start(steps: impl IntoIterator<Item = Step>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        shared.steps.lock().extend(steps);
        let serving = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = {
                    let mut count = serving.connections.lock();
                    *count += 1;
                    *count - 1
                };
                tokio::spawn(serve(stream, connection, Arc::clone(&serving)));
            }
        });
        Self { address, shared }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn push(&self, step: Step) {
        self.shared.steps.lock().push_back(step);
    }

    /// What is done where no step is left, instead of the 500.
    pub async fn always(step: Step) -> Self {
        let origin = Self::start([]).await;
        *origin.shared.otherwise.lock() = Some(step);
        origin
    }

    /// The next `count` requests are reset when their head was read and their body was not.
    pub fn reset_before_body(&self, count: usize) {
        *self.shared.resets_before_body.lock() += count;
    }

    /// Releases the next piece.
    pub fn go(&self) {
        self.shared.go.notify_one();
    }

    pub fn received(&self) -> Vec<Received> {
        self.shared.received.lock().clone()
    }

    /// Bytes of pieces that the kernel has taken, on all connections.
    pub fn written(&self) -> usize {
        self.shared.written.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        *self.shared.connections.lock()
    }
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.split("\r\n").skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub fn request_line(&self) -> &str {
        self.head.split("\r\n").next().unwrap_or_default()
    }
}

async fn serve(mut stream: TcpStream, connection: usize, shared: Arc<Shared>) {
    let mut unread = Vec::new();
    while let Some(received) = read_request(&mut stream, &mut unread, connection, &shared).await {
        shared.received.lock().push(received);
        let step = shared.steps.lock().pop_front();
        let step = step.or_else(|| shared.otherwise.lock().clone());
        let step = step.unwrap_or_else(|| Step::Answer(json(500, &[], r#"{"detail":"no step"}"#)));
        match step {
            Step::Answer(bytes) => {
                if stream.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::AnswerAndClose(bytes) => {
                stream.write_all(&bytes).await.ok();
                return;
            }
            Step::AnswerAndReset(bytes) => {
                stream.write_all(&bytes).await.ok();
                stream.set_zero_linger().ok();
                return;
            }
            Step::Close => return,
            Step::Reset => {
                stream.set_zero_linger().ok();
                return;
            }
            Step::Stall => {
                let mut rest = Vec::new();
                stream.read_to_end(&mut rest).await.ok();
                return;
            }
            Step::Pieces(pieces) => {
                if !write_pieces(&mut stream, pieces, &shared).await {
                    return;
                }
            }
            Step::PiecesAndClose(pieces) => {
                write_pieces(&mut stream, pieces, &shared).await;
                return;
            }
            Step::Drip(first, drop) => {
                let mut next = first;
                while stream.write_all(&next).await.is_ok() {
                    next.clone_from(&drop);
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                }
                return;
            }
            Step::Flood(first, piece, times) => {
                let mut written = stream.write_all(&first).await;
                for _ in 0..times {
                    if written.is_err() {
                        return;
                    }
                    written = stream.write_all(&piece).await;
                    shared.written.fetch_add(piece.len(), Ordering::SeqCst);
                }
            }
        }
    }
}

async fn write_pieces(stream: &mut TcpStream, pieces: Vec<Vec<u8>>, shared: &Shared) -> bool {
    for piece in pieces {
        shared.go.notified().await;
        let mut rest = piece.as_slice();
        while !rest.is_empty() {
            let Ok(written) = stream.write(rest).await else {
                return false;
            };
            shared.written.fetch_add(written, Ordering::SeqCst);
            rest = &rest[written..];
        }
    }
    true
}

async fn read_request(
    stream: &mut TcpStream,
    unread: &mut Vec<u8>,
    connection: usize,
    shared: &Shared,
) -> Option<Received> {
    let mut buffer = vec![0; 64 * 1024];
    let head_end = loop {
        if let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        let read = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        unread.extend_from_slice(&buffer[..read]);
    };
    let head = String::from_utf8(unread.drain(..head_end).collect()).expect("an ASCII head");
    let mut received = Received {
        connection,
        head,
        body: Vec::new(),
        at: Instant::now(),
    };
    let resets = {
        let mut left = shared.resets_before_body.lock();
        let resets = *left > 0;
        *left = left.saturating_sub(1);
        resets
    };
    if resets {
        shared.received.lock().push(received);
        stream.set_zero_linger().ok();
        return None;
    }
    let length: usize = received
        .header("content-length")
        .map_or(0, |length| length.parse().expect("a length"));
    while unread.len() < length {
        let read = stream
            .read(&mut buffer)
            .await
            .ok()
            .filter(|read| *read > 0)?;
        unread.extend_from_slice(&buffer[..read]);
    }
    received.body = unread.drain(..length).collect();
    received.at = Instant::now();
    Some(received)
}

/// A JSON answer with its length.
pub fn json(status: u16, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A 200 with an amount.
pub fn billed(micro_usd: u64) -> Vec<u8> {
    json(
        200,
        &[
            ("X-Service-Billed", &micro_usd.to_string()),
            ("X-Service-Served-By", "specialist"),
        ],
        r#"{"id":"c1","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#,
    )
}

/// The head of a chunked event stream.
pub fn stream_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        .to_vec()
}

/// One chunk of a chunked body.
pub fn chunk(bytes: &str) -> Vec<u8> {
    format!("{:x}\r\n{bytes}\r\n", bytes.len()).into_bytes()
}

/// The end of a chunked body.
pub fn last_chunk() -> Vec<u8> {
    b"0\r\n\r\n".to_vec()
}
