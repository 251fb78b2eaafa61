//! TLS to the service, by rustls.
//!
//! Why not by pingora's connector: it makes a configuration for each connection, ends the process when authorities
//! cannot be read, and says in text alone why a handshake failed.
//!
//! Promise: nothing is sent before the service's certificate holds for its name; there is no way around that.

use std::io;
use std::os::fd::AsRawFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use rustls::{ClientConfig, Error as RustlsError, InvalidMessage};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::trust::Authorities;
use crate::proxy::purchase::lost::Cause;

/// What is trusted, and the sessions that are resumed.
pub struct Tls(TlsConnector);

/// A connection whose service has shown its certificate.
#[derive(Debug)]
pub struct Secured(TlsStream<BufReader<TcpStream>>);

/// A handshake that failed.
#[derive(Debug)]
pub struct Insecure {
    pub cause: Cause,
    pub words: String,
}

/// A whole record of TLS in one read: rustls by itself asks for 4 KiB at a time.
const RECORD_BYTES: usize = 16 * 1024 + 5 + 256;

/// As a handshake names HTTP/2.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

// === impl Tls ===

impl Tls {
    pub fn trusting(authorities: &Authorities) -> Self {
        let mut config = ClientConfig::builder()
            .with_root_certificates(authorities.roots())
            .with_no_client_auth();
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Self(TlsConnector::from(Arc::new(config)))
    }

    /// Speaks TLS with `host` on this connection.
    pub async fn connect(&self, stream: TcpStream, host: &str) -> Result<Secured, Insecure> {
        let name = ServerName::try_from(host.to_owned()).map_err(|error| Insecure {
            cause: Cause::Tls,
            words: format!("{host} cannot stand in a certificate: {error}"),
        })?;
        let stream = BufReader::with_capacity(RECORD_BYTES, stream);
        match self.0.connect(name, stream).await {
            Ok(stream) => Ok(Secured(stream)),
            Err(error) => Err(Insecure {
                cause: cause(&error),
                words: format!("TLS with {host} failed: {error}"),
            }),
        }
    }
}

fn cause(error: &io::Error) -> Cause {
    let error = error.get_ref();
    match error.and_then(|error| error.downcast_ref::<RustlsError>()) {
        Some(RustlsError::InvalidCertificate(_)) => Cause::Certificate,
        Some(RustlsError::InvalidMessage(InvalidMessage::InvalidContentType)) => Cause::NoTls,
        _ => Cause::Tls,
    }
}

// === impl Secured ===

impl Secured {
    /// Both ends have agreed on HTTP/2.
    pub fn speaks_http2(&self) -> bool {
        let (_, connection) = self.0.get_ref();
        connection.alpn_protocol() == Some(HTTP2)
    }
}

impl AsyncRead for Secured {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Secured {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for Secured {
    async fn shutdown(&mut self) {
        // A peer that has gone already is what shutting down wants.
        AsyncWriteExt::shutdown(self).await.ok();
    }
}

impl UniqueID for Secured {
    fn id(&self) -> UniqueIDType {
        self.0.get_ref().0.get_ref().as_raw_fd()
    }
}

impl Ssl for Secured {}

impl Peek for Secured {}

impl GetTimingDigest for Secured {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Secured {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for Secured {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}
