//! A notice on its way: posted to an address, or given to a program.
//!
//! Why a client of its own: those of the proxy carry the organization's key, which goes to one place (rule I9).
//!
//! Promise: bounded in time. No redirect is followed, no proxy variable read; a plain connection goes to this machine
//! alone, whatever a name resolves to. A program is started without a shell, with PATH and nothing else in its
//! environment, no file of this process open, and is killed with all that it started. No words hold the address's path.

use std::io;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustix::process::{Pid, Signal, kill_process_group};
use rustls::{ClientConfig, RootCertStore};
use rustls_native_certs::load_native_certs;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};
use tokio::process::{Child, Command};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::notice::Notice;
use crate::config::{NotifyUrl, NotifyWay};

/// From the look-up of the name to the head of the answer.
const POST_MAX: Duration = Duration::from_secs(5);

/// Before the second and the third try.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(4)];

/// How long a program may run.
const RUN_MAX: Duration = Duration::from_secs(10);

/// Where a program without a slash in its name is looked for.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Why a notice did not arrive, or may not have.
#[derive(Debug, thiserror::Error)]
pub enum Unsent {
    #[error("it cannot be written as JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("no connection: {0}")]
    Connect(io::Error),
    #[error("the certificate authorities of this machine cannot be read: {0}")]
    Authorities(String),
    #[error("the name is none that a certificate could be for")]
    Name,
    #[error("no answer: {0}")]
    Http(#[from] hyper::Error),
    #[error("the request cannot be written: {0}")]
    Request(#[from] http::Error),
    #[error("it answered {0}")]
    Status(StatusCode),
    #[error("it did not answer within {} s", POST_MAX.as_secs())]
    Slow,
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    #[error("it ended with {0}")]
    Ended(ExitStatus),
    #[error("it ran for {} s and was killed", RUN_MAX.as_secs())]
    Killed,
}

// === impl Unsent ===

impl Unsent {
    /// Another try may go better.
    fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Http(_) | Self::Slow => true,
            Self::Status(status) => {
                status.is_server_error()
                    || matches!(
                        *status,
                        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS
                    )
            }
            _ => false,
        }
    }
}

/// Sends it: to an address with up to three tries, to a program once.
pub async fn send(way: &NotifyWay, notice: &Notice) -> Result<(), Unsent> {
    send_with(way, notice, PAUSES).await
}

async fn send_with(way: &NotifyWay, notice: &Notice, pauses: [Duration; 2]) -> Result<(), Unsent> {
    for pause in pauses {
        match try_once(way, notice).await {
            Err(why) if why.is_passing() => sleep(pause).await,
            sent => return sent,
        }
    }
    try_once(way, notice).await
}

/// Sends it with one try.
pub async fn try_once(way: &NotifyWay, notice: &Notice) -> Result<(), Unsent> {
    let body = serde_json::to_vec(notice)?;
    match way {
        NotifyWay::Url(url) => match timeout(POST_MAX, post(url, Bytes::from(body))).await {
            Ok(posted) => posted,
            Err(_) => Err(Unsent::Slow),
        },
        NotifyWay::Command(words) => run(words, &body, RUN_MAX).await,
    }
}

async fn post(url: &NotifyUrl, body: Bytes) -> Result<(), Unsent> {
    let stream = connect(url).await.map_err(Unsent::Connect)?;
    let status = if url.tls {
        let name = ServerName::try_from(url.host.clone()).map_err(|_| Unsent::Name)?;
        let stream = tls().await?.connect(name, stream).await;
        exchange(stream.map_err(Unsent::Connect)?, url, body).await?
    } else {
        exchange(stream, url, body).await?
    };
    match status.is_success() {
        true => Ok(()),
        false => Err(Unsent::Status(status)),
    }
}

async fn connect(url: &NotifyUrl) -> io::Result<TcpStream> {
    let found = lookup_host((url.host.as_str(), url.port)).await?;
    let is_meant = |address: &SocketAddr| url.tls || address.ip().to_canonical().is_loopback();
    let mut failed = io::Error::new(
        io::ErrorKind::NotFound,
        "the name has no address that is allowed",
    );
    for address in found.filter(is_meant) {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// By this machine's authorities. They are read for each notice: there are few, and a daemon may run for a year.
async fn tls() -> Result<TlsConnector, Unsent> {
    let read = spawn_blocking(load_native_certs).await;
    let read = read.map_err(|_| Unsent::Authorities("reading failed".to_owned()))?;
    let read = read.map_err(|error| Unsent::Authorities(error.to_string()))?;
    let mut trusted = RootCertStore::empty();
    trusted.add_parsable_certificates(read);
    let config = ClientConfig::builder()
        .with_root_certificates(trusted)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// One request on one connection; of its answer the status is all that is read.
async fn exchange<S>(stream: S, url: &NotifyUrl, body: Bytes) -> Result<StatusCode, Unsent>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let request = Request::builder()
        .method(Method::POST)
        .uri(url.target())
        .header(HOST, url.authority())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, concat!("bursar/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(body))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let asked = async {
        let answer = sender.send_request(request).await?;
        Ok::<_, Unsent>(answer.status())
    };
    tokio::pin!(connection, asked);
    tokio::select! {
        biased;
        status = asked.as_mut() => return status,
        ended = connection.as_mut() => ended?,
    }
    // A receiver that closes behind its answer has answered; one that closes before it fails here.
    asked.await
}

async fn run(words: &[String], body: &[u8], limit: Duration) -> Result<(), Unsent> {
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| Unsent::Start(io::Error::new(io::ErrorKind::InvalidInput, "no program")))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(Unsent::Start)?;
    let group = Group::of(&child);
    let input = child.stdin.take();
    let told = async {
        if let Some(mut input) = input {
            // A program that does not read it may still do its work.
            input.write_all(body).await.ok();
        }
        child.wait().await
    };
    match timeout(limit, told).await {
        Ok(ended) => {
            // Its number may be another's by now.
            group.let_alone();
            match ended {
                Ok(status) if status.success() => Ok(()),
                Ok(status) => Err(Unsent::Ended(status)),
                Err(error) => Err(Unsent::Start(error)),
            }
        }
        Err(_) => Err(Unsent::Killed),
    }
}

/// A program and all that it started; killed when this is dropped, also where the task is.
struct Group(Option<Pid>);

// === impl Group ===

impl Group {
    /// Its leader is the program.
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// What it left behind may go on.
    fn let_alone(mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // It may have ended meanwhile.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
