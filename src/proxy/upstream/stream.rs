//! A connection to the service, as bytes: plain or with TLS.
//!
//! Why not pingora's: it has buffers of 64 KiB, through which each piece is copied, and a thread of its own for the
//! time that connecting may take, which wakes a hundred times a second from then on.
//!
//! Promise: what is read from or written to a plain one is the socket's, without a copy between; a path that forgets
//! silent connections is kept open.

use std::fmt::Debug;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use rustix::net::sockopt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

pub type ServiceStream = Box<dyn ServiceBytes>;

/// What a connection to the service can do: a `TcpStream`, or [`super::tls::Secured`].
pub trait ServiceBytes: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin> ServiceBytes for T {}

/// An answer is thought about for minutes, in silence. What lies between forgets a silent connection, some
/// after one minute; so the other side is asked. A path may be broken for 100 s without a loss: it may have
/// been silent for `KEEPALIVE_IDLE` before, and is asked again within `KEEPALIVE_INTERVAL` after. Linux gives up when
/// `USER_TIMEOUT` has passed since the last segment that came, whatever `KEEPALIVE_COUNT` says. Over HTTP/2 there are
/// pings beside it.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_COUNT: u32 = 12;
const USER_TIMEOUT_MS: u32 = 150_000;

/// Connects to the service's address.
pub async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    sockopt::set_socket_keepalive(&stream, true)?;
    sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(&stream, KEEPALIVE_COUNT)?;
    sockopt::set_tcp_user_timeout(&stream, USER_TIMEOUT_MS)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
