//! A client that speaks bytes: what it sends is what the test says, and it reads an answer by its
//! framing, noticing when the framing is not kept.

use std::net::SocketAddr;
use std::path::Path;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// One connection.
pub struct Wire {
    io: Box<dyn Io>,
    unread: Vec<u8>,
    /// Its own port; `None` on a Unix socket.
    port: Option<u16>,
}

/// One answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body ended as its framing says.
    pub complete: bool,
    /// The connection was reset, not closed.
    pub reset: bool,
}

impl Wire {
    pub async fn tcp(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self::over_tcp(stream)
    }

    /// A connection that ends with a reset when it is dropped.
    pub async fn tcp_that_resets(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        stream.set_zero_linger().expect("a reset at the end");
        Self::over_tcp(stream)
    }

    pub async fn unix(path: &Path) -> Self {
        Self::over(UnixStream::connect(path).await.expect("a connection"))
    }

    pub fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Self {
        Self {
            io: Box::new(io),
            unread: Vec::new(),
            port: None,
        }
    }

    fn over_tcp(stream: TcpStream) -> Self {
        let port = stream.local_addr().expect("an address").port();
        Self {
            port: Some(port),
            ..Self::over(stream)
        }
    }

    /// Closes the connection. Returns the port that it had.
    pub fn hang_up(self) -> u16 {
        self.port.expect("a connection by TCP")
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.io
            .write_all(bytes.as_ref())
            .await
            .expect("bytes are sent");
        self.io.flush().await.expect("bytes are flushed");
    }

    /// Sends what the other side may already have refused to read.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.io.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Ends the sending half.
    pub async fn half_close(&mut self) {
        self.io.shutdown().await.expect("the half is closed");
    }

    /// The same where the other side may have closed or reset the connection already.
    pub async fn half_close_if_open(&mut self) {
        self.io.shutdown().await.ok();
    }

    pub async fn post(mut self, path: &str, body: &str) -> Answer {
        self.send(request("POST", path, &[], body)).await;
        self.answer().await
    }

    pub async fn get(mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"))
            .await;
        self.answer().await
    }

    /// Reads one answer to its end. 1xx heads are skipped.
    pub async fn answer(&mut self) -> Answer {
        loop {
            let mut answer = self.head().await;
            if (100..200).contains(&answer.status) {
                continue;
            }
            self.body(&mut answer).await;
            return answer;
        }
    }

    /// The answer to a HEAD request: no body follows.
    pub async fn head_answer(&mut self) -> Answer {
        let mut answer = self.head().await;
        answer.complete = true;
        answer
    }

    /// Reads a response head; status 0 when the connection ended before it.
    pub async fn head(&mut self) -> Answer {
        let mut answer = Answer::default();
        let end = loop {
            if let Some(end) = find(&self.unread, b"\r\n\r\n") {
                break end;
            }
            match self.more().await {
                Ok(true) => {}
                Ok(false) => return answer,
                Err(()) => {
                    answer.reset = true;
                    return answer;
                }
            }
        };
        let head: Vec<u8> = self.unread.drain(..end + 4).collect();
        let head = String::from_utf8(head).expect("an ASCII head");
        let mut lines = head.split("\r\n");
        let status_line = lines.next().expect("a status line");
        answer.status = status_line
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok())
            .expect("a status");
        for line in lines.filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(':').expect("a header");
            answer
                .headers
                .push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        answer
    }

    /// At least that many bytes, as they come, whatever their framing.
    pub async fn bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert_eq!(self.more().await, Ok(true), "{count} bytes are to come");
        }
        std::mem::take(&mut self.unread)
    }

    /// The body of an answer whose head was read.
    pub async fn rest(&mut self, answer: &mut Answer) {
        self.body(answer).await;
    }

    async fn body(&mut self, answer: &mut Answer) {
        if matches!(answer.status, 204 | 304 | 0) {
            answer.complete = answer.status != 0;
            return;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk(answer).await {
                if chunk.is_empty() {
                    answer.complete = true;
                    return;
                }
                answer.body.extend_from_slice(&chunk);
            }
            return;
        }
        if let Some(length) = answer.header("content-length") {
            let length: usize = length.parse().expect("a length");
            while self.unread.len() < length {
                match self.more().await {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(()) => {
                        answer.reset = true;
                        break;
                    }
                }
            }
            let taken = length.min(self.unread.len());
            answer.body = self.unread.drain(..taken).collect();
            answer.complete = taken == length;
            return;
        }
        loop {
            match self.more().await {
                Ok(true) => {}
                Ok(false) => {
                    answer.complete = true;
                    break;
                }
                Err(()) => {
                    answer.reset = true;
                    break;
                }
            }
        }
        answer.body = std::mem::take(&mut self.unread);
    }

    /// One chunk of a chunked body; empty for the last; `None` when the connection ended.
    pub async fn chunk(&mut self, answer: &mut Answer) -> Option<Vec<u8>> {
        let line_end = self.until(b"\r\n", answer).await?;
        let line: Vec<u8> = self.unread.drain(..line_end + 2).collect();
        let size = String::from_utf8(line).expect("a chunk size");
        let size = usize::from_str_radix(size.trim(), 16).expect("a hexadecimal size");
        while self.unread.len() < size + 2 {
            match self.more().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(()) => {
                    answer.reset = true;
                    return None;
                }
            }
        }
        let mut chunk: Vec<u8> = self.unread.drain(..size + 2).collect();
        chunk.truncate(size);
        Some(chunk)
    }

    async fn until(&mut self, mark: &[u8], answer: &mut Answer) -> Option<usize> {
        loop {
            if let Some(at) = find(&self.unread, mark) {
                return Some(at);
            }
            match self.more().await {
                Ok(true) => {}
                Ok(false) => return None,
                Err(()) => {
                    answer.reset = true;
                    return None;
                }
            }
        }
    }

    /// True when the connection ends without another byte.
    pub async fn ends(&mut self) -> bool {
        self.unread.is_empty() && !matches!(self.more().await, Ok(true))
    }

    async fn more(&mut self) -> Result<bool, ()> {
        let mut buffer = vec![0; 64 * 1024];
        let read = tokio::time::timeout(
            std::time::Duration::from_secs(20),
            self.io.read(&mut buffer),
        )
        .await
        .expect("an answer within 20 s");
        match read {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.unread.extend_from_slice(&buffer[..read]);
                Ok(true)
            }
            Err(_) => Err(()),
        }
    }
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {}", self.text()))
    }

    /// bursar's own code, if it answered by itself.
    pub fn code(&self) -> Option<&str> {
        self.header("x-bursar-error")
    }
}

/// A request with a JSON body, and headers of the test's own.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    let has = |name: &str| {
        headers
            .iter()
            .any(|(known, _)| known.eq_ignore_ascii_case(name))
    };
    if !has("host") {
        head.push_str("Host: localhost\r\n");
    }
    if !has("content-type") && !body.is_empty() {
        head.push_str("Content-Type: application/json\r\n");
    }
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}
