//! Sockets that were opened for us (systemd's socket activation): they stay open while bursar
//! restarts, so that no connection is refused meanwhile, and one of them can be a Unix socket of a group.
//!
//! Promise: what is given is taken as it is or not at all: a stream socket that listens, on a loopback
//! address or a path. The file of a socket that was given is not ours to remove.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use listenfd::ListenFd;
use rustix::net::sockopt::socket_acceptconn;
use tokio::net::{TcpListener, UnixListener};

use super::{Bound, SocketFile};
use crate::config::{Env, LISTEN_FDNAMES};

/// The first descriptor that systemd gives.
const FIRST_DESCRIPTOR: usize = 3;

/// `FileDescriptorName=` of sockets for apps. Without one it is the unit's name; other activators
/// give none, or `unknown`.
const PROXY_NAMES: [&str; 4] = ["proxy", "bursar.socket", "unknown", ""];
const ADMIN_NAME: &str = "admin";

/// The sockets that were given; none by default.
#[derive(Debug, Default)]
pub struct Given {
    /// They stand in for `[listen] proxy`.
    pub proxy: Vec<GivenSocket>,
    /// Ports stand in for `[listen] admin`; Unix sockets are beside it, for users who may not enter the state
    /// directory. The socket in there is bound all the same.
    pub admin: Vec<GivenSocket>,
}

/// A socket that listens, and that its opener keeps.
#[derive(Debug)]
pub enum GivenSocket {
    Tcp(std::net::TcpListener, SocketAddr),
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

/// A descriptor that cannot be used. What gives it has to be set right.
#[derive(Debug, thiserror::Error)]
#[error("the socket that was given as descriptor {descriptor} {why}")]
pub struct GivenError {
    descriptor: usize,
    why: String,
}

/// Hands given sockets to the runtime, with a word on what they are for.
pub fn take_over(given: Vec<GivenSocket>, key: &str) -> io::Result<Vec<Bound>> {
    let bound: Vec<Bound> = given
        .into_iter()
        .map(GivenSocket::bound)
        .collect::<io::Result<_>>()?;
    for socket in &bound {
        tracing::info!(socket = %socket.address(), "a socket was given, for {key}");
    }
    Ok(bound)
}

// === impl Given ===

impl Given {
    /// Takes what `LISTEN_FDS` promises to this process; to be called once, before there are threads.
    /// The variables are removed, and no child gets the descriptors.
    pub fn take(env: &Env) -> Result<Self, GivenError> {
        let names = env.get(LISTEN_FDNAMES).unwrap_or_default();
        let names = names.to_string_lossy();
        let mut names = names.split(':');
        let mut descriptors = ListenFd::from_env();
        let mut given = Self::default();
        for at in 0..descriptors.len() {
            let wrong = |why: String| GivenError {
                descriptor: FIRST_DESCRIPTOR + at,
                why,
            };
            let name = names.next().unwrap_or_default();
            let socket = GivenSocket::take(&mut descriptors, at).map_err(wrong)?;
            if name == ADMIN_NAME {
                given.admin.push(socket);
            } else if PROXY_NAMES.contains(&name) {
                given.proxy.push(socket);
            } else {
                return Err(wrong(format!(
                    "is named {name:?}; FileDescriptorName= is proxy or {ADMIN_NAME}"
                )));
            }
        }
        Ok(given)
    }

    /// Whether one of them stands in for the configured admin addresses.
    pub fn has_admin_port(&self) -> bool {
        let mut given = self.admin.iter();
        given.any(|socket| matches!(socket, GivenSocket::Tcp(..)))
    }
}

// === impl GivenSocket ===

impl GivenSocket {
    fn take(descriptors: &mut ListenFd, at: usize) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot be used: {error}");
        if let Ok(Some(listener)) = descriptors.take_tcp_listener(at) {
            must_listen(&listener)?;
            let address = listener.local_addr().map_err(failed)?;
            if !address.ip().to_canonical().is_loopback() {
                return Err(format!(
                    "listens on {address}, where other machines reach it; bursar takes loopback addresses (127.0.0.1, [::1]) and Unix sockets"
                ));
            }
            listener.set_nonblocking(true).map_err(failed)?;
            return Ok(Self::Tcp(listener, address));
        }
        let Ok(Some(listener)) = descriptors.take_unix_listener(at) else {
            return Err("is no TCP socket and no Unix stream socket".to_owned());
        };
        must_listen(&listener)?;
        let address = listener.local_addr().map_err(failed)?;
        let Some(path) = address.as_pathname() else {
            return Err("is a Unix socket without a path, which no permission guards".to_owned());
        };
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self::Unix(listener, SocketFile::of_another(path)))
    }

    /// Hands it to the runtime.
    fn bound(self) -> io::Result<Bound> {
        Ok(match self {
            Self::Tcp(listener, address) => Bound::Tcp(TcpListener::from_std(listener)?, address),
            Self::Unix(listener, file) => Bound::Unix(UnixListener::from_std(listener)?, file),
        })
    }
}

/// A connection that was accepted already (`Accept=yes`) is no listener.
fn must_listen(socket: impl AsFd) -> Result<(), String> {
    match socket_acceptconn(socket) {
        Ok(true) => Ok(()),
        Ok(false) => Err("does not listen; a socket unit of bursar has Accept=no".to_owned()),
        Err(error) => Err(format!("cannot be used: {error}")),
    }
}
