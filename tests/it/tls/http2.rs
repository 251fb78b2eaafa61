//! A scripted HTTP/2 service: it answers, streams on cue, refuses streams, and closes connections in
//! the ways that decide whether a request may have run.

use std::collections::VecDeque;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

/// What happens to the next request.
pub enum Reply {
    Json(u16, &'static [(&'static str, &'static str)], &'static str),
    /// An event stream; each piece goes when [`Http2::go`] is called.
    Events(Vec<&'static str>),
    Reset(Reason),
}

/// What happens to the next connection.
pub enum Conversation {
    /// Requests get their replies.
    Serve,
    /// GOAWAY once the first request has come whole, with this last stream and error; then the end.
    GoAway(u32, u32),
}

/// A request as received.
#[derive(Clone, Debug)]
pub struct Came {
    /// Counted from 0.
    pub connection: usize,
    pub method: String,
    pub uri: String,
    pub headers: http::HeaderMap,
    pub body: Vec<u8>,
}

#[derive(Default)]
pub struct Http2 {
    pub replies: Mutex<VecDeque<Reply>>,
    pub conversations: Mutex<VecDeque<Conversation>>,
    pub came: Mutex<Vec<Came>>,
    connections: Mutex<usize>,
    /// Requests received whole on connections that were closed.
    pub left_behind: Mutex<usize>,
    go: Notify,
}

const END_STREAM: u8 = 0x1;
const ACK: u8 = 0x1;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const PREFACE_BYTES: usize = 24;

// === impl Http2 ===

impl Http2 {
    pub fn push(&self, reply: Reply) {
        self.replies.lock().push_back(reply);
    }

    pub fn next_goes_away(&self, last_stream: u32, error: u32) {
        self.conversations
            .lock()
            .push_back(Conversation::GoAway(last_stream, error));
    }

    pub fn go(&self) {
        self.go.notify_one();
    }

    pub fn came(&self) -> Vec<Came> {
        self.came.lock().clone()
    }

    pub async fn serve(&self, io: impl AsyncRead + AsyncWrite + Unpin) {
        let connection = {
            let mut count = self.connections.lock();
            *count += 1;
            *count - 1
        };
        let conversation = self.conversations.lock().pop_front();
        match conversation.unwrap_or(Conversation::Serve) {
            Conversation::Serve => self.answer_requests(io, connection).await,
            Conversation::GoAway(last_stream, error) => {
                self.go_away(io, last_stream, error).await.ok();
            }
        }
    }

    async fn answer_requests(&self, io: impl AsyncRead + AsyncWrite + Unpin, connection: usize) {
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(4 << 20)
            .initial_connection_window_size(16 << 20);
        let Ok(mut accepting) = builder.handshake::<_, Bytes>(io).await else {
            return;
        };
        // One request at a time is enough for a script; the connection is driven meanwhile.
        let mut running = futures_util::stream::FuturesUnordered::new();
        loop {
            tokio::select! {
                accepted = accepting.accept() => match accepted {
                    Some(Ok((request, respond))) => running.push(self.reply(request, respond, connection)),
                    _ => return,
                },
                Some(()) = futures_util::StreamExt::next(&mut running) => {}
            }
        }
    }

    async fn reply(
        &self,
        request: Request<RecvStream>,
        mut respond: SendResponse<Bytes>,
        connection: usize,
    ) {
        let (parts, mut body) = request.into_parts();
        let mut whole = Vec::new();
        while let Some(Ok(piece)) = body.data().await {
            whole.extend_from_slice(&piece);
            body.flow_control().release_capacity(piece.len()).ok();
        }
        self.came.lock().push(Came {
            connection,
            method: parts.method.to_string(),
            uri: parts.uri.to_string(),
            headers: parts.headers,
            body: whole,
        });
        let reply = self.replies.lock().pop_front();
        match reply.unwrap_or(Reply::Json(500, &[], "{\"detail\":\"no reply\"}")) {
            Reply::Json(status, headers, body) => {
                let mut head = Response::builder()
                    .status(status)
                    .header("content-type", "application/json");
                for (name, value) in headers {
                    head = head.header(*name, *value);
                }
                let head = head
                    .header("content-length", body.len())
                    .body(())
                    .expect("a head");
                if let Ok(mut stream) = respond.send_response(head, false) {
                    stream
                        .send_data(Bytes::from_static(body.as_bytes()), true)
                        .ok();
                }
            }
            Reply::Events(pieces) => {
                let head = Response::builder().header("content-type", "text/event-stream");
                let Ok(mut stream) = respond.send_response(head.body(()).expect("a head"), false)
                else {
                    return;
                };
                let last = pieces.len().saturating_sub(1);
                for (at, piece) in pieces.into_iter().enumerate() {
                    self.go.notified().await;
                    stream
                        .send_data(Bytes::from_static(piece.as_bytes()), at == last)
                        .ok();
                }
            }
            Reply::Reset(reason) => respond.send_reset(reason),
        }
    }

    /// Frames by hand, because a library treats every stream that it has read as accepted.
    async fn go_away(
        &self,
        mut io: impl AsyncRead + AsyncWrite + Unpin,
        last_stream: u32,
        error: u32,
    ) -> std::io::Result<()> {
        io.read_exact(&mut [0; PREFACE_BYTES]).await?;
        io.write_all(&frame(SETTINGS, 0, &[])).await?;
        io.flush().await?;
        loop {
            let mut head = [0; 9];
            io.read_exact(&mut head).await?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let (kind, flags) = (head[3], head[4]);
            let mut payload = vec![0; usize::try_from(length).expect("a length")];
            io.read_exact(&mut payload).await?;
            if kind == SETTINGS && flags & ACK == 0 {
                io.write_all(&frame(SETTINGS, ACK, &[])).await?;
                io.flush().await?;
            }
            if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                *self.left_behind.lock() += 1;
                let payload = [last_stream.to_be_bytes(), error.to_be_bytes()].concat();
                io.write_all(&frame(GOAWAY, 0, &payload)).await?;
                io.flush().await?;
                io.shutdown().await?;
                let mut rest = Vec::new();
                io.read_to_end(&mut rest).await?;
                return Ok(());
            }
        }
    }
}

/// A frame of the connection (stream 0).
fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a small frame")
        .to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend([kind, flags, 0, 0, 0, 0]);
    bytes.extend_from_slice(payload);
    bytes
}
