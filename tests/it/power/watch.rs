//! Between bursar and the sandbox: passes bytes on, and notes how much was recorded on bursar's disk
//! when a key reached the service.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Key → position.
type Sent = Arc<Mutex<HashMap<String, u64>>>;

/// A forwarder that runs as long as its runtime.
pub struct Watch {
    address: SocketAddr,
    sent: Sent,
}

// === impl Watch ===

impl Watch {
    pub async fn start(
        service: SocketAddr,
        position: impl Fn() -> u64 + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let sent = Sent::default();
        let noted = Arc::clone(&sent);
        tokio::spawn(async move {
            while let Ok((from, _)) = listener.accept().await {
                let (sent, position) = (Arc::clone(&noted), position.clone());
                tokio::spawn(async move {
                    let Ok(to) = TcpStream::connect(service).await else {
                        return;
                    };
                    let (mut requests, mut answers) = from.into_split();
                    let (mut back, mut there) = to.into_split();
                    let answering = tokio::io::copy(&mut back, &mut answers);
                    let asking = async {
                        let mut unread = String::new();
                        let mut buffer = vec![0; 16 * 1024];
                        while let Ok(read @ 1..) = requests.read(&mut buffer).await {
                            unread.push_str(&String::from_utf8_lossy(&buffer[..read]));
                            note(&mut unread, &sent, &position);
                            if there.write_all(&buffer[..read]).await.is_err() {
                                return;
                            }
                        }
                    };
                    // A hang-up ends both directions.
                    tokio::select! {
                        _ = answering => {}
                        () = asking => {}
                    }
                });
            }
        });
        Self { address, sent }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The keys that arrived.
    pub fn sent(&self) -> HashMap<String, u64> {
        self.sent.lock().clone()
    }
}

/// Removes whole key lines from the bytes read.
fn note(unread: &mut String, sent: &Sent, position: &impl Fn() -> u64) {
    const NAME: &str = "idempotency-key:";
    while let Some(at) = unread.to_ascii_lowercase().find(NAME) {
        let Some(end) = unread[at..].find("\r\n") else {
            return;
        };
        let key = unread[at + NAME.len()..at + end].trim().to_owned();
        sent.lock().entry(key).or_insert_with(position);
        unread.drain(..at + end);
    }
    // A name may be cut between two reads.
    let surplus = unread.len().saturating_sub(NAME.len());
    let surplus = (0..=surplus)
        .rev()
        .find(|at| unread.is_char_boundary(*at))
        .unwrap_or_default();
    unread.drain(..surplus);
}
