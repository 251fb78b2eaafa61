//! The addresses: whether the daemon answers at them, or whether one could listen on them.
//!
//! Promise: nothing is listened on and nothing is connected to that is not the running daemon's: a socket that
//! systemd holds would start the service.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::net::TcpSocket;

use crate::cli::client::{Client, ClientError};
use crate::config::ListenAddr;

/// What an answer of bursar's own has one of.
const MARKS: [&str; 2] = ["x-bursar-entry", "x-bursar-error"];

/// How long a daemon may take for a page that costs nothing.
const ANSWER_DEADLINE: Duration = Duration::from_secs(3);

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Port {
    /// bursar's proxy.
    Answers,
    /// Something else than bursar answers.
    Foreign,
    /// Nothing can be listened on there: who has it, as far as this user may know.
    Taken(String),
    Free,
    /// The machine has no such address.
    Missing,
    /// Neither is known, and why.
    Unknown(String),
    Silent(String),
}

impl Port {
    /// It is taken by this process.
    pub fn is_of(&self, pid: u32) -> bool {
        matches!(self, Self::Taken(who) if who.starts_with(&format!("process {pid} (")))
    }
}

/// An address of a running daemon.
pub async fn of_daemon(address: &ListenAddr) -> Port {
    let client = Client::new(address.clone()).answering_within(ANSWER_DEADLINE);
    match client.get("/").await {
        Ok(answer) if MARKS.iter().any(|name| answer.header(name).is_some()) => Port::Answers,
        Ok(_) => Port::Foreign,
        Err(error) if error.means_forbidden() => Port::Unknown("another user's".to_owned()),
        Err(ClientError::Broken { .. }) => Port::Foreign,
        Err(error) => Port::Silent(error.to_string()),
    }
}

/// An address that a daemon is to listen on.
pub fn to_listen_on(address: &ListenAddr) -> Port {
    match address {
        ListenAddr::Tcp(address) => tcp(*address),
        ListenAddr::Unix(path) => match fs::symlink_metadata(path) {
            Ok(_) => Port::Unknown("a file is there".to_owned()),
            Err(error) if error.kind() == ErrorKind::NotFound => match path.parent() {
                Some(folder) if !folder.is_dir() => Port::Missing,
                _ => Port::Free,
            },
            Err(error) => Port::Unknown(error.to_string()),
        },
    }
}

/// Bound as the daemon would, and not listened on.
fn tcp(address: SocketAddr) -> Port {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    };
    let bound = socket.and_then(|socket| {
        socket.set_reuseaddr(true)?;
        socket.bind(address)
    });
    match bound {
        Ok(()) => Port::Free,
        Err(error) => match error.kind() {
            ErrorKind::AddrInUse => Port::Taken(holder(address.port())),
            ErrorKind::AddrNotAvailable | ErrorKind::Unsupported => Port::Missing,
            ErrorKind::PermissionDenied => Port::Taken("root alone (a port below 1024)".to_owned()),
            _ => Port::Unknown(error.to_string()),
        },
    }
}

/// The process that listens on a port, as the kernel's tables name it.
fn holder(port: u16) -> String {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let lines = tables.map(|table| fs::read_to_string(table).unwrap_or_default());
    let found = lines
        .iter()
        .flat_map(|text| text.lines())
        .find_map(|line| listener(line, port));
    let Some((user, inode)) = found else {
        return "another program".to_owned();
    };
    let process = process_with(&format!("socket:[{inode}]"));
    process.unwrap_or_else(|| format!("a program of user {user}"))
}

/// The user and the inode of a line of the table, where it is one that listens on the port.
fn listener(line: &str, port: u16) -> Option<(&str, &str)> {
    const LISTENS: &str = "0A";
    let mut words = line.split_whitespace();
    let local = words.nth(1)?;
    let state = words.nth(1)?;
    let user = words.nth(3)?;
    let inode = words.nth(1)?;
    let (_, its_port) = local.rsplit_once(':')?;
    let is_it = u16::from_str_radix(its_port, 16) == Ok(port) && state == LISTENS;
    is_it.then_some((user, inode))
}

/// `process 7 (nginx)`. `None`: it is another user's.
fn process_with(link: &str) -> Option<String> {
    let mut processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok);
    processes.find_map(|process| {
        let path = process.path();
        let pid: u32 = process.file_name().to_str()?.parse().ok()?;
        let mut descriptors = fs::read_dir(path.join("fd")).ok()?.filter_map(Result::ok);
        let has_it = descriptors.any(|descriptor| {
            let target = fs::read_link(descriptor.path());
            target.is_ok_and(|target| target == Path::new(link))
        });
        let name = has_it.then(|| fs::read_to_string(path.join("comm")).unwrap_or_default())?;
        Some(format!("process {pid} ({})", name.trim()))
    })
}

#[cfg(test)]
mod tests;
