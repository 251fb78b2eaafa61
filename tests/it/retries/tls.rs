//! A server with a certificate that no authority signed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::generate_simple_self_signed;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Counts TLS handshakes and the bytes that arrive.
pub struct Impostor {
    address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    handshakes: AtomicUsize,
    bytes: AtomicUsize,
}

impl Impostor {
    pub async fn start() -> Self {
        let made = generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a server config");
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                counting.handshakes.fetch_add(1, Ordering::SeqCst);
                let mut buffer = [0; 1024];
                if let Ok(mut tls) = acceptor.accept(stream).await
                    && let Ok(read) = tls.read(&mut buffer).await
                {
                    counting.bytes.fetch_add(read, Ordering::SeqCst);
                }
            }
        });
        Self { address, counts }
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }

    pub fn handshakes(&self) -> usize {
        self.counts.handshakes.load(Ordering::SeqCst)
    }

    pub fn bytes_read(&self) -> usize {
        self.counts.bytes.load(Ordering::SeqCst)
    }
}
