//! A TLS server that counts: connections, completed handshakes, bytes read in the clear. HTTP/1.1
//! goes to a scripted origin behind it, HTTP/2 to a script of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{HandshakeKind, ServerConfig};
use tokio_rustls::server::TlsStream;

use super::http2::Http2;
use crate::support::Origin;

/// What a handshake contained: the requested name, the agreed protocol.
pub type Greeting = (Option<String>, Option<String>);

#[derive(Default)]
pub struct Seen {
    pub accepted: AtomicUsize,
    /// Connections that speak HTTP/2 and are open.
    pub http2_open: AtomicUsize,
    pub greetings: Mutex<Vec<Greeting>>,
    /// Handshakes that went on with an earlier session.
    pub resumed: AtomicUsize,
    /// Read after the handshake: what a key could be among.
    pub clear_bytes: AtomicUsize,
}

/// The server. Its certificate may be changed while it runs.
pub struct Front {
    pub address: SocketAddr,
    pub seen: Arc<Seen>,
    pub origin: Arc<Origin>,
    pub http2: Arc<Http2>,
}

// === impl Front ===

impl Front {
    pub async fn start(config: Arc<ServerConfig>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::new(Seen::default());
        let origin = Arc::new(Origin::start([]).await);
        let http2 = Arc::new(Http2::default());
        let front = Self {
            address,
            seen: Arc::clone(&seen),
            origin: Arc::clone(&origin),
            http2: Arc::clone(&http2),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                seen.accepted.fetch_add(1, Ordering::SeqCst);
                let acceptor = TlsAcceptor::from(Arc::clone(&config));
                let (seen, origin, http2) =
                    (Arc::clone(&seen), Arc::clone(&origin), Arc::clone(&http2));
                tokio::spawn(async move {
                    let Ok(tls) = acceptor.accept(stream).await else {
                        return;
                    };
                    if tls.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
                        seen.resumed.fetch_add(1, Ordering::SeqCst);
                    }
                    let greeting = greeting(&tls);
                    let speaks_http2 = greeting.1.as_deref() == Some("h2");
                    seen.greetings.lock().push(greeting);
                    if speaks_http2 {
                        seen.http2_open.fetch_add(1, Ordering::SeqCst);
                        http2.serve(tls).await;
                        seen.http2_open.fetch_sub(1, Ordering::SeqCst);
                    } else {
                        pass_on(tls, origin.address, &seen.clear_bytes).await;
                    }
                });
            }
        });
        front
    }

    /// `https://localhost:PORT`.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    pub fn accepted(&self) -> usize {
        self.seen.accepted.load(Ordering::SeqCst)
    }

    pub fn resumed(&self) -> usize {
        self.seen.resumed.load(Ordering::SeqCst)
    }

    pub fn http2_open(&self) -> usize {
        self.seen.http2_open.load(Ordering::SeqCst)
    }

    pub fn clear_bytes(&self) -> usize {
        self.seen.clear_bytes.load(Ordering::SeqCst)
    }

    pub fn greetings(&self) -> Vec<Greeting> {
        self.seen.greetings.lock().clone()
    }
}

fn greeting(tls: &TlsStream<TcpStream>) -> Greeting {
    let (_, connection) = tls.get_ref();
    let protocol = connection.alpn_protocol();
    (
        connection.server_name().map(str::to_owned),
        protocol.map(|name| String::from_utf8_lossy(name).into_owned()),
    )
}

/// Copies both ways until either side ends, and counts the client's bytes.
async fn pass_on(tls: TlsStream<TcpStream>, origin: SocketAddr, clear_bytes: &AtomicUsize) {
    let behind = TcpStream::connect(origin).await.expect("the origin");
    behind.set_nodelay(true).expect("no delay");
    let (mut from_app, mut to_app) = tokio::io::split(tls);
    let (mut from_origin, mut to_origin) = behind.into_split();
    let up = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from_app.read(&mut buffer).await {
            clear_bytes.fetch_add(read, Ordering::SeqCst);
            if to_origin.write_all(&buffer[..read]).await.is_err() {
                break;
            }
        }
    };
    let down = async {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from_origin.read(&mut buffer).await {
            let written = to_app.write_all(&buffer[..read]).await;
            if written.is_err() || to_app.flush().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
    }
    to_app.shutdown().await.ok();
}
