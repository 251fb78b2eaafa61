//! Binding sockets: all of them before anything is served, each failure one clear line.
//!
//! Promise: a Unix socket that another process answers on is never taken away; a file that is no socket is
//! never removed; only its owner can connect to a socket of ours, except to a proxy socket while apps are
//! known by their users and no other caller may spend.

mod given;

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream as BlockingUnixStream;
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::process::umask;
use tokio::net::{TcpListener, TcpSocket, UnixListener};

pub use self::given::{Given, GivenError, take_over};
use crate::config::ListenAddr;

/// Connections that wait to be accepted.
const BACKLOG: u32 = 4096;

/// Read and write for the owner.
const SOCKET_MODE: u32 = 0o600;

/// Read and write for all users: the door identifies each of them.
const SHARED_SOCKET_MODE: u32 = 0o666;

/// A socket that listens.
#[derive(Debug)]
pub enum Bound {
    Tcp(TcpListener, SocketAddr),
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket; removed when this is dropped, unless it became another's.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode. `None`: the file is not ours.
    identity: Option<(u64, u64)>,
}

/// A socket could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {address}: {why}")]
pub struct BindError {
    address: ListenAddr,
    why: String,
    /// The machine has no such address (IPv6 switched off, say).
    is_missing_address: bool,
}

/// Binds every address, or none. `skip_missing`: no configuration names these addresses, so one whose
/// family the machine lacks is skipped with a warning, as long as another is left.
pub fn bind_all(addresses: &[ListenAddr], skip_missing: bool) -> Result<Vec<Bound>, BindError> {
    let mut bound = Vec::new();
    let mut missing = None;
    for address in addresses {
        match bind(address) {
            Ok(listener) => bound.push(listener),
            Err(error) if skip_missing && error.is_missing_address => {
                tracing::warn!("{error}; going on without it");
                missing = Some(error);
            }
            Err(error) => return Err(error),
        }
    }
    match missing {
        Some(error) if bound.is_empty() => Err(error),
        _ => Ok(bound),
    }
}

fn bind(address: &ListenAddr) -> Result<Bound, BindError> {
    match address {
        ListenAddr::Tcp(tcp) => bind_tcp(*tcp).map_err(|error| BindError::of(address, &error)),
        ListenAddr::Unix(path) => bind_unix(path).map_err(|error| BindError::of(address, &error)),
    }
}

fn bind_tcp(address: SocketAddr) -> io::Result<Bound> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restart must not wait for the old connections' TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    let listener = socket.listen(BACKLOG)?;
    let bound_to = listener.local_addr()?;
    Ok(Bound::Tcp(listener, bound_to))
}

fn bind_unix(path: &Path) -> io::Result<Bound> {
    remove_stale(path)?;
    // The mask keeps others out between the bind and the chmod.
    let before = umask(Mode::from_raw_mode(0o777 & !SOCKET_MODE));
    let listener = UnixListener::bind(path);
    umask(before);
    let listener = listener?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    let file = SocketFile::of(path)?;
    Ok(Bound::Unix(listener, file))
}

/// Lets every user connect to a proxy's socket, or only this one. The door refuses users that are no app.
pub fn share(socket: &Path, with_everybody: bool) -> io::Result<()> {
    let mode = match with_everybody {
        true => SHARED_SOCKET_MODE,
        false => SOCKET_MODE,
    };
    fs::set_permissions(socket, fs::Permissions::from_mode(mode))
}

/// Removes a socket that no process answers on: what a killed process left.
fn remove_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(
            ErrorKind::AlreadyExists,
            "a file that is no socket is there; move it away",
        ));
    }
    match BlockingUnixStream::connect(path) {
        Ok(_) => Err(io::Error::from(ErrorKind::AddrInUse)),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(path),
        Err(error) => Err(error),
    }
}

// === impl Bound ===

impl Bound {
    /// Where it listens; a port 0 that was asked for is a real one here.
    pub fn address(&self) -> ListenAddr {
        match self {
            Self::Tcp(_, address) => ListenAddr::Tcp(*address),
            Self::Unix(_, file) => ListenAddr::Unix(file.path.clone()),
        }
    }
}

// === impl SocketFile ===

impl SocketFile {
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            identity: Some(identity(path)?),
        })
    }

    /// Its path, where the file is ours.
    pub fn own_path(&self) -> Option<&Path> {
        self.identity.map(|_| self.path.as_path())
    }

    /// The file of a socket that another process opened and keeps.
    fn of_another(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            identity: None,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let there = identity(&self.path).ok();
        if there.is_some() && there == self.identity {
            // What stays behind is removed at the next start.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Device and inode.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

// === impl BindError ===

impl BindError {
    fn of(address: &ListenAddr, error: &io::Error) -> Self {
        let why = match error.kind() {
            ErrorKind::AddrInUse if matches!(address, ListenAddr::Tcp(_)) => {
                "address in use: another program listens there, often another bursar; `bursar doctor` names \
                 it; --listen and --admin, or [listen], take another address"
                    .to_owned()
            }
            ErrorKind::AddrInUse => "address in use".to_owned(),
            ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
            ErrorKind::PermissionDenied => "permission denied".to_owned(),
            ErrorKind::NotFound => "its directory does not exist".to_owned(),
            _ => error.to_string(),
        };
        let family_missing =
            error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error());
        Self {
            address: address.clone(),
            why,
            is_missing_address: error.kind() == ErrorKind::AddrNotAvailable || family_missing,
        }
    }
}

#[cfg(test)]
mod tests;
