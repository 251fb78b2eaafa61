//! A sandbox on port 0 and a client that sees bytes.
//!
//! One thread runs both, so that a state seen through the control route is settled: nothing moves while a
//! test looks. Promise: every wait ends in 10 s, with the test failed.

use bursar_sandbox::{Clock, Options};
use serde_json::{Value, json};
use std::{future::Future, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::oneshot,
    task::JoinHandle,
};

pub const CHAT: &str = "/v1/chat/completions";
pub const AGENT: &str = "/agent/v1/chat/completions";

pub struct Sandbox {
    pub address: SocketAddr,
    pub clock: Clock,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
}

#[derive(Debug)]
pub struct Reply {
    /// 0 when the connection ended before a head.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The body had its end: its length, or the last chunk.
    pub complete: bool,
    pub error: Option<std::io::ErrorKind>,
}

// === impl Sandbox ===

impl Sandbox {
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub async fn start_with(options: Options) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let clock = options.clock.clone();
        let shutdown = async { drop(stopped.await) };
        let serving = tokio::spawn(bursar_sandbox::serve(listener, options, shutdown));
        Self {
            address,
            clock,
            stop: Some(stop),
            serving,
        }
    }

    /// One that runs in another process; it cannot be stopped from here.
    pub fn at(address: SocketAddr) -> Self {
        Self {
            address,
            clock: Clock::system(),
            stop: None,
            serving: tokio::spawn(async { Ok(()) }),
        }
    }

    pub async fn stop(mut self) {
        drop(self.stop.take());
        within(self.serving).await.unwrap().unwrap();
    }

    pub async fn post(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
        self.send("POST", path, headers, Some(body.to_string().into_bytes()))
            .await
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], None).await
    }

    /// One request on one connection; the default key unless a header says otherwise.
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> Reply {
        within(async {
            let mut socket = self.open(method, path, headers, body).await;
            let mut bytes = Vec::new();
            let mut error = None;
            let mut buffer = vec![0; 16 * 1024];
            loop {
                match socket.read(&mut buffer).await {
                    Ok(0) => break,
                    Ok(n) => bytes.extend_from_slice(&buffer[..n]),
                    Err(broken) => {
                        error = Some(broken.kind());
                        break;
                    }
                }
            }
            parse(&bytes, error)
        })
        .await
    }

    /// A POST whose content type is among the headers.
    pub async fn post_typed(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        within(async {
            let length = body.len().to_string();
            let mut headers = headers.to_vec();
            headers.push(("Content-Length", &length));
            let mut socket = self.open("POST", path, &headers, None).await;
            socket.write_all(&body).await.unwrap();
            let mut bytes = Vec::new();
            let error = socket.read_to_end(&mut bytes).await.err();
            parse(&bytes, error.map(|error| error.kind()))
        })
        .await
    }

    /// Sends the request and gives the socket, nothing read.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<Vec<u8>>,
    ) -> TcpStream {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nHost: sandbox\r\nConnection: close\r\n");
        let named = |name: &str| {
            headers
                .iter()
                .any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        if !named("authorization") {
            head.push_str("Authorization: Bearer sandbox-key\r\n");
        }
        if let Some(body) = &body {
            if !named("content-type") {
                head.push_str("Content-Type: application/json\r\n");
            }
            if !named("content-length") {
                head.push_str(&format!("Content-Length: {}\r\n", body.len()));
            }
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(body.unwrap_or_default());
        let mut socket = TcpStream::connect(self.address).await.unwrap();
        socket.write_all(&bytes).await.unwrap();
        socket
    }

    pub async fn control(&self, path: &str, body: Value) -> Value {
        let reply = self.post(&format!("/sandbox/{path}"), &[], &body).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        reply.json()
    }

    pub async fn fault(&self, fault: Value) {
        self.control("faults", json!({"fault": fault})).await;
    }

    pub async fn books(&self) -> Value {
        self.get("/sandbox/books").await.json()
    }

    /// The amounts debited, in order.
    pub async fn debits(&self) -> Vec<i64> {
        let books = self.books().await;
        books["debits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|d| d["amount_micro_usd"].as_i64().unwrap())
            .collect()
    }

    /// Waits until so many requests are in flight.
    pub async fn until_in_flight(&self, n: u64) {
        self.until("limits", |limits| limits["in_flight"] == n)
            .await;
    }

    pub async fn until(&self, path: &str, holds: impl Fn(&Value) -> bool) {
        within(async {
            while !holds(&self.get(&format!("/sandbox/{path}")).await.json()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

// === impl Reply ===

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self
            .headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub fn header_count(&self, name: &str) -> usize {
        self.headers
            .iter()
            .filter(|(other, _)| other.eq_ignore_ascii_case(name))
            .count()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub fn billed(&self) -> i64 {
        self.header("x-service-billed")
            .expect("a receipt")
            .parse()
            .unwrap()
    }

    pub fn content(&self) -> String {
        self.json()["choices"][0]["message"]["content"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// The `data:` lines of a stream.
    pub fn data(&self) -> Vec<String> {
        self.text()
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(str::to_owned)
            .collect()
    }

    pub fn chunks(&self) -> Vec<Value> {
        self.data()
            .iter()
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    pub fn comments(&self) -> Vec<String> {
        self.text()
            .lines()
            .filter(|line| line.starts_with(':'))
            .map(str::to_owned)
            .collect()
    }

    pub fn comment(&self, name: &str) -> Option<String> {
        let start = format!(": {name} ");
        self.comments()
            .iter()
            .find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    }

    pub fn streamed_content(&self) -> String {
        self.chunks()
            .iter()
            .filter_map(|chunk| {
                chunk["choices"][0]["delta"]["content"]
                    .as_str()
                    .map(str::to_owned)
            })
            .collect()
    }
}

pub async fn within<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(10), work)
        .await
        .expect("ended within 10 s")
}

/// A chat request with one user message and a fixed answer.
pub fn ask(text: &str) -> Value {
    json!({"model": "auto", "temperature": 0, "messages": [{"role": "user", "content": text}]})
}

pub fn ask_stream(text: &str) -> Value {
    with(ask(text), "stream", json!(true))
}

pub fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

fn parse(bytes: &[u8], error: Option<std::io::ErrorKind>) -> Reply {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
    let Some(end) = end else {
        return Reply {
            status: 0,
            headers: Vec::new(),
            body: bytes.to_vec(),
            complete: false,
            error,
        };
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status = lines
        .next()
        .unwrap()
        .split(' ')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let find = |name: &str| {
        headers
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.clone())
    };
    let raw = &bytes[end + 4..];
    let (body, complete) = match find("content-length") {
        Some(length) => (raw.to_vec(), raw.len() == length.parse::<usize>().unwrap()),
        None => unchunk(raw),
    };
    Reply {
        status,
        headers,
        body,
        complete,
        error,
    }
}

fn unchunk(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(at) = raw.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let Ok(size) = usize::from_str_radix(std::str::from_utf8(&raw[..at]).unwrap(), 16) else {
            return (body, false);
        };
        if size == 0 {
            return (body, true);
        }
        let data = &raw[at + 2..];
        if data.len() < size + 2 {
            body.extend_from_slice(&data[..size.min(data.len())]);
            return (body, false);
        }
        body.extend_from_slice(&data[..size]);
        raw = &data[size + 2..];
    }
}
