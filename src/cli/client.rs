//! A small HTTP client over TCP or a Unix socket: the reading commands ask the running daemon with
//! it, and the demo spends through the door with it.
//!
//! One request, one connection: nothing is pooled, nothing is retried, redirects are not followed.
//! Promise: an answer arrives chunk by chunk as it is sent; with a deadline no peer that hangs is waited for
//! longer, and a stream that is read piece by piece is never cut by it; dropping the request or the answer
//! closes the connection at once, as an app that leaves would.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::config::ListenAddr;

/// How long a connection may take. Everything asked here is on this machine.
const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

/// How long a daemon may take for what it has at hand, and for an order.
pub const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

/// Asks one server.
#[derive(Clone, Debug)]
pub struct Client {
    address: ListenAddr,
    headers: HeaderMap,
    /// `None`: as long as it takes.
    answer_within: Option<Duration>,
    /// The users whose socket is spoken to; `None`: anybody's.
    peers: Option<Vec<u32>>,
}

/// An answer whose body has not been read yet.
#[derive(Debug)]
pub struct Response {
    status: StatusCode,
    headers: HeaderMap,
    body: Incoming,
    /// Whose it is, and how long a body that is read whole may pause.
    patience: Option<(ListenAddr, Duration)>,
    /// Closes the connection when the answer is dropped.
    _connection: Connection,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("cannot connect to {address}: {cause}")]
    Connect {
        address: ListenAddr,
        cause: io::Error,
    },
    #[error("{address} did not take a connection within {} s", CONNECT_DEADLINE.as_secs())]
    ConnectTimeout { address: ListenAddr },
    #[error("{address} takes connections and does not answer: {} s have passed", within.as_secs())]
    Silent {
        address: ListenAddr,
        within: Duration,
    },
    #[error(
        "{address} is a socket of {user}, and neither root's, nor yours, nor that of the ledger's owner: nothing was sent to it"
    )]
    Peer { address: ListenAddr, user: String },
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    #[error("the connection to {address} broke: {cause}")]
    Broken {
        address: ListenAddr,
        cause: hyper::Error,
    },
    #[error("the answer broke off: {0}")]
    Body(#[from] hyper::Error),
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the answer is not the JSON that was expected: {0}")]
    Json(#[from] serde_json::Error),
}

/// The task that moves a connection's bytes; ends with this value.
#[derive(Debug)]
struct Connection(JoinHandle<()>);

// === impl ClientError ===

impl ClientError {
    /// No daemon listens at the address. A socket of another user's, which may not be entered, does not
    /// count.
    pub fn means_no_daemon(&self) -> bool {
        use io::ErrorKind::{ConnectionRefused, NotFound};
        matches!(self, Self::Connect { cause, .. } if matches!(cause.kind(), NotFound | ConnectionRefused))
    }

    /// A daemon listens and does not answer in time.
    pub fn means_silence(&self) -> bool {
        match self {
            Self::Silent { .. } | Self::ConnectTimeout { .. } => true,
            // A Unix socket whose line is full says so instead of letting one wait.
            Self::Connect { cause, .. } => cause.kind() == io::ErrorKind::WouldBlock,
            _ => false,
        }
    }

    /// The socket is another user's.
    pub fn means_forbidden(&self) -> bool {
        matches!(self, Self::Connect { cause, .. } if cause.kind() == io::ErrorKind::PermissionDenied)
    }
}

// === impl Client ===

impl Client {
    pub fn new(address: ListenAddr) -> Self {
        Self {
            address,
            headers: HeaderMap::new(),
            answer_within: None,
            peers: None,
        }
    }

    /// Speaks to a Unix socket only where one of these users listens on it: another user may have put one there.
    #[must_use]
    pub fn of_users(mut self, users: Vec<u32>) -> Self {
        self.peers = Some(users);
        self
    }

    pub fn address(&self) -> &ListenAddr {
        &self.address
    }

    /// Sends this header with every request.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// Waits no longer for the head of an answer, nor for the next piece of a body that is read whole.
    #[must_use]
    pub fn answering_within(mut self, deadline: Duration) -> Self {
        self.answer_within = Some(deadline);
        self
    }

    /// Waits as long as it takes.
    #[must_use]
    pub fn without_deadline(mut self) -> Self {
        self.answer_within = None;
        self
    }

    pub async fn get(&self, path_and_query: &str) -> Result<Response, ClientError> {
        self.send(Method::GET, path_and_query, HeaderMap::new(), Bytes::new())
            .await
    }

    /// Posts a JSON document.
    pub async fn post_json(
        &self,
        path_and_query: &str,
        body: impl Into<Bytes>,
    ) -> Result<Response, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.send(Method::POST, path_and_query, headers, body.into())
            .await
    }

    /// Sends one request and waits for the head of its answer.
    pub async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, ClientError> {
        let mut request = Request::builder()
            .method(method)
            .uri(path_and_query)
            .header(HOST, self.host());
        if let Some(to) = request.headers_mut() {
            to.extend(self.headers.clone());
            to.extend(headers);
            if !body.is_empty() {
                to.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
            }
        }
        let request = request.body(Full::new(body))?;
        let asked = async {
            match &self.address {
                ListenAddr::Tcp(address) => {
                    let stream = self.connect(TcpStream::connect(*address)).await?;
                    self.exchange(stream, request).await
                }
                ListenAddr::Unix(path) => {
                    let stream = self.connect(UnixStream::connect(path)).await?;
                    self.must_be_trusted(&stream)?;
                    self.exchange(stream, request).await
                }
            }
        };
        match self.answer_within {
            None => asked.await,
            Some(within) => match timeout(within, asked).await {
                Ok(answered) => answered,
                Err(_) => Err(ClientError::Silent {
                    address: self.address.clone(),
                    within,
                }),
            },
        }
    }

    fn must_be_trusted(&self, stream: &UnixStream) -> Result<(), ClientError> {
        let Some(users) = &self.peers else {
            return Ok(());
        };
        let user = stream.peer_cred().ok().map(|peer| peer.uid());
        if user.is_some_and(|user| users.contains(&user)) {
            return Ok(());
        }
        Err(ClientError::Peer {
            address: self.address.clone(),
            user: user.map_or_else(
                || "an unknown user".to_owned(),
                |user| format!("user {user}"),
            ),
        })
    }

    fn host(&self) -> String {
        match &self.address {
            ListenAddr::Tcp(address) => address.to_string(),
            ListenAddr::Unix(_) => "localhost".to_owned(),
        }
    }

    async fn connect<S>(
        &self,
        connecting: impl Future<Output = io::Result<S>>,
    ) -> Result<S, ClientError> {
        match timeout(CONNECT_DEADLINE, connecting).await {
            Ok(connected) => connected.map_err(|cause| ClientError::Connect {
                address: self.address.clone(),
                cause,
            }),
            Err(_) => Err(ClientError::ConnectTimeout {
                address: self.address.clone(),
            }),
        }
    }

    async fn exchange<S>(
        &self,
        stream: S,
        request: Request<Full<Bytes>>,
    ) -> Result<Response, ClientError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let broken = |cause| ClientError::Broken {
            address: self.address.clone(),
            cause,
        };
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(broken)?;
        // What breaks the connection is reported by the request or by the body, too.
        let connection = Connection(tokio::spawn(async move {
            let _ = connection.await;
        }));
        let answer = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = answer.into_parts();
        Ok(Response {
            status: head.status,
            headers: head.headers,
            body,
            patience: self
                .answer_within
                .map(|within| (self.address.clone(), within)),
            _connection: connection,
        })
    }
}

// === impl Response ===

impl Response {
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The value of a header, where it is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The next bytes of the body as they arrive, however long that takes; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            match self.body.frame().await {
                None => return Ok(None),
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// The same, within the time that was given for an answer.
    pub async fn next_in_time(&mut self) -> Result<Option<Bytes>, ClientError> {
        let Some((address, within)) = self.patience.clone() else {
            return self.chunk().await;
        };
        match timeout(within, self.chunk()).await {
            Ok(chunk) => chunk,
            Err(_) => Err(ClientError::Silent { address, within }),
        }
    }

    /// The whole body, when it is at most so long.
    pub async fn bytes(mut self, bytes_max: usize) -> Result<Bytes, ClientError> {
        let mut whole = BytesMut::new();
        while let Some(chunk) = self.next_in_time().await? {
            if whole.len().saturating_add(chunk.len()) > bytes_max {
                return Err(ClientError::TooLarge { bytes_max });
            }
            whole.extend_from_slice(&chunk);
        }
        Ok(whole.freeze())
    }

    /// The whole body as text; bytes that are not UTF-8 show as `�`.
    pub async fn text(self, bytes_max: usize) -> Result<String, ClientError> {
        let bytes = self.bytes(bytes_max).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub async fn json<T: DeserializeOwned>(self, bytes_max: usize) -> Result<T, ClientError> {
        Ok(serde_json::from_slice(&self.bytes(bytes_max).await?)?)
    }
}

// === impl Connection ===

impl Drop for Connection {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests;
