//! bursar as a child process: what a crash, a signal or a bad configuration does can only be seen
//! from outside.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use super::KEY;
use super::wire::Wire;

pub use rustix::process::Signal;

/// A running daemon. Dropping it kills it.
pub struct Daemon {
    pub child: Child,
    pub proxy: SocketAddr,
    pub admin: SocketAddr,
    _stdout: Lines<BufReader<ChildStdout>>,
}

/// `bursar` with nothing of this machine's environment.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
    command
        .args(arguments)
        .env_clear()
        .env("BURSAR_API_KEY", KEY)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The arguments of a daemon on free ports.
pub fn run_arguments<'a>(upstream: &'a str, state_dir: &'a str) -> Vec<&'a str> {
    vec![
        "run",
        "--upstream",
        upstream,
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        state_dir,
    ]
}

/// Sends a signal to a child. Not by the program `kill`, which a bare Debian lacks.
pub fn send(child: &Child, signal: Signal) {
    let pid = child.id().expect("a running child");
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    kill_process(pid.expect("a pid"), signal).expect("the signal is sent");
}

impl Daemon {
    /// Most memory that the process has held, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let pid = self.child.id().expect("a running child");
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.expect("a peak").trim().trim_end_matches(" kB");
        kib.parse().expect("a number")
    }

    /// Starts and waits until it is ready.
    pub async fn start(upstream: &str, state_dir: &Path, more: &[&str]) -> Self {
        let state_dir = state_dir.to_str().expect("a UTF-8 path");
        let mut arguments = run_arguments(upstream, state_dir);
        arguments.extend_from_slice(more);
        Self::ready(command(&arguments)).await
    }

    /// Starts a command and waits for its two addresses.
    pub async fn ready(mut command: Command) -> Self {
        command.stderr(Stdio::null());
        Self::launched(command).await.expect("the daemon went on")
    }

    /// Starts a command and waits for its two addresses, or for its end: then it is answered.
    pub async fn launched(command: Command) -> Result<Self, Child> {
        Self::launched_within(command, Duration::from_secs(20)).await
    }

    /// The same for a start that may take its time.
    pub async fn launched_within(mut command: Command, patience: Duration) -> Result<Self, Child> {
        let mut child = command.spawn().expect("the daemon starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut lines = BufReader::new(stdout).lines();
        let (mut proxy, mut admin) = (None, None);
        while proxy.is_none() || admin.is_none() {
            let line = timeout(patience, lines.next_line())
                .await
                .expect("the daemon is ready in time")
                .expect("a line");
            let Some(line) = line else {
                return Err(child);
            };
            if let Some(address) = line.strip_prefix("proxy listening on http://") {
                proxy = address.parse().ok();
            }
            if let Some(address) = line.strip_prefix("admin listening on http://") {
                admin = address.parse().ok();
            }
        }
        Ok(Self {
            child,
            proxy: proxy.expect("a proxy address"),
            admin: admin.expect("an admin address"),
            _stdout: lines,
        })
    }

    pub fn signal(&self, signal: Signal) {
        send(&self.child, signal);
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        timeout(Duration::from_secs(30), self.child.wait())
            .await
            .expect("the daemon ends within 30 s")
            .expect("a status")
    }

    /// kill -9, and its end.
    pub async fn kill(mut self) {
        self.child.kill().await.expect("the child is killed");
    }

    /// SIGTERM, and a clean end.
    pub async fn terminate(mut self) {
        self.signal(Signal::TERM);
        let status = self.ended().await;
        assert_eq!(status.code(), Some(0), "a drained daemon exits 0");
    }

    pub async fn connect(&self) -> Wire {
        Wire::tcp(self.proxy).await
    }

    /// An admin page's text.
    pub async fn admin_page(&self, path: &str) -> super::Answer {
        Wire::tcp(self.admin).await.get(path).await
    }
}
