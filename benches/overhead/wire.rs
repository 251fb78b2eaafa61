//! The client's side of HTTP/1.1: sends a prepared request, reads the answer, and picks out what
//! the benchmark looks at: status, receipt, and the stamp in each chunk of a stream.
//!
//! Promise: an answer counts only when it is complete by its own framing.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::ask::Request;
use crate::clock::stamp_ns;
use crate::echo::{STAMP_DIGITS, STAMP_MARK};

const READ_BYTES: usize = 16 * 1024;
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// An open connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What an answer came to.
#[derive(Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// The amount was there, in a header or in a comment of the stream.
    pub has_receipt: bool,
    /// How long each stamped chunk was on its way, in nanoseconds.
    pub delays_ns: Vec<u64>,
    /// Of an answer that is no stream.
    pub text: String,
}

/// How the body ends.
enum Framing {
    Length(usize),
    Chunked,
}

impl Connection {
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// One request, one answer.
    pub async fn call(&mut self, request: &Request) -> io::Result<Answer> {
        for part in [request.head.as_slice(), request.filling, request.tail] {
            if !part.is_empty() {
                self.stream.write_all(part).await?;
            }
        }
        let head_end = loop {
            if let Some(at) = memmem::find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if self.buffer.len() > HEAD_BYTES_MAX {
                return Err(malformed("a head without end"));
            }
            self.read().await?;
        };
        let head: Vec<u8> = self.buffer.drain(..head_end).collect();
        let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
        let mut answer = Answer {
            status: status_of(&head).ok_or_else(|| malformed("no status"))?,
            has_receipt: header(&head, "x-service-billed").is_some(),
            ..Answer::default()
        };
        match framing_of(&head).ok_or_else(|| malformed("no framing"))? {
            Framing::Length(length) => {
                while self.buffer.len() < length {
                    self.read().await?;
                }
                let body: Vec<u8> = self.buffer.drain(..length).collect();
                answer.text = String::from_utf8_lossy(&body).into_owned();
            }
            Framing::Chunked => self.read_stream(&mut answer).await?,
        }
        Ok(answer)
    }

    /// Reads a chunked body; each chunk is looked at when it is there, so that its delay is its own.
    async fn read_stream(&mut self, answer: &mut Answer) -> io::Result<()> {
        // An event may lie in two chunks, so the rest of a line waits for its end.
        let mut lines = Vec::new();
        loop {
            let line_end = loop {
                match memchr::memchr(b'\n', &self.buffer) {
                    Some(at) => break at + 1,
                    None => self.read().await?,
                }
            };
            let size = self.buffer.get(..line_end).and_then(chunk_size);
            let size = size.ok_or_else(|| malformed("a chunk without size"))?;
            let end = line_end + size + 2;
            while self.buffer.len() < end {
                self.read().await?;
            }
            lines.extend(self.buffer.drain(..end).skip(line_end).take(size));
            if size == 0 {
                return Ok(());
            }
            look_at(&mut lines, answer);
        }
    }

    async fn read(&mut self) -> io::Result<()> {
        self.buffer.reserve(READ_BYTES);
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

/// Takes stamps and receipts from the complete lines.
fn look_at(lines: &mut Vec<u8>, answer: &mut Answer) {
    let Some(last) = memchr::memrchr(b'\n', lines) else {
        return;
    };
    let now = stamp_ns();
    let text: Vec<u8> = lines.drain(..=last).collect();
    for at in memmem::find_iter(&text, STAMP_MARK) {
        let from = at + STAMP_MARK.len();
        let digits = text.get(from..from + STAMP_DIGITS);
        let stamp = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
        if let Some(stamp) = stamp {
            answer.delays_ns.push(now.saturating_sub(stamp));
        }
    }
    answer.has_receipt |= memmem::find(&text, b": service-billed-micro-usd ").is_some();
}

fn status_of(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.parse().ok()
}

fn framing_of(head: &str) -> Option<Framing> {
    if header(head, "transfer-encoding") == Some("chunked") {
        return Some(Framing::Chunked);
    }
    header(head, "content-length")?
        .parse()
        .ok()
        .map(Framing::Length)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = head.lines().skip(1).filter_map(|line| line.split_once(':'));
    fields
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.trim())
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let line = std::str::from_utf8(line).ok()?;
    usize::from_str_radix(line.trim_end().split(';').next()?, 16).ok()
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
