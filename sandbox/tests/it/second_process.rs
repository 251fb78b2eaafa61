//! The sandbox in a process of its own, so that it can be killed, and its disk can fail.
//!
//! It is this very test binary, started for [`serves_until_killed`] alone. Promise: it ends with the test that
//! started it.

use crate::support::Sandbox;
use bursar_sandbox::Options;
use std::{
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};
use tokio::{io::AsyncReadExt, net::TcpListener};

const STATE_DIR: &str = "SANDBOX_TEST_STATE_DIR";

pub struct Process {
    child: Child,
    pub address: SocketAddr,
}

// === impl Process ===

impl Process {
    pub fn start(directory: &Path) -> Self {
        Self::started(directory, Command::new(std::env::current_exe().unwrap()))
    }

    /// One that a write over its limit is an error for, and not the end.
    pub fn start_with_limits(directory: &Path) -> Self {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap());
        Self::started(directory, shell)
    }

    fn started(directory: &Path, mut command: Command) -> Self {
        let mut child = command
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("second_process::serves_until_killed")
            .env(STATE_DIR, directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let address = output
            .lines()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("address=")?.1.trim().parse().ok())
            .expect("the process prints its address");
        Self { child, address }
    }

    pub fn sandbox(&self) -> Sandbox {
        Sandbox::at(self.address)
    }

    /// Lets no file be written, or lets it again: what a full disk does, for this process alone.
    pub fn set_disk_full(&self, is_full: bool) {
        let most = if is_full { "0" } else { "unlimited" };
        let limited = Command::new("prlimit")
            .arg(format!("--pid={}", self.child.id()))
            .arg(format!("--fsize={most}:unlimited"))
            .status()
            .unwrap();
        assert!(limited.success());
    }

    /// SIGKILL: the process gets no notice.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// No test: the body of [`Process`]. Without its variable it does nothing.
#[tokio::test]
#[ignore = "not a test: what some tests run in another process"]
#[expect(
    clippy::disallowed_methods,
    reason = "how a test gives another process its directory"
)]
async fn serves_until_killed() {
    let Some(directory) = std::env::var_os(STATE_DIR) else {
        return;
    };
    let options = Options {
        state_dir: Some(directory.into()),
        per_minute_max: 100_000,
        ..Options::default()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("\naddress={}", listener.local_addr().unwrap());
    // Ends with its parent, whose end of the pipe closes then.
    let parent_gone = async {
        let mut byte = [0];
        let _ = tokio::io::stdin().read(&mut byte).await;
    };
    bursar_sandbox::serve(listener, options, parent_gone)
        .await
        .unwrap();
}
