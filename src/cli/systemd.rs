//! systemd, asked by its own program.
//!
//! Promise: it is asked and told nothing; one that does not answer is not waited for longer than a moment.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

/// It is there where systemd has started the machine.
const BOOTED: &str = "/run/systemd/system";

const ANSWER_DEADLINE: Duration = Duration::from_secs(5);

/// systemd has started this machine.
pub fn is_here() -> bool {
    Path::new(BOOTED).is_dir()
}

/// What `systemctl` prints, or why it does not.
pub async fn answer(mut systemctl: Command) -> Result<String, String> {
    let asked = systemctl.stdin(Stdio::null()).kill_on_drop(true).output();
    match timeout(ANSWER_DEADLINE, asked).await {
        Ok(Ok(output)) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(Ok(output)) => Err(format!("systemctl ended with {}", output.status)),
        Ok(Err(error)) => Err(format!("systemctl cannot be run: {error}")),
        Err(_) => Err("systemctl does not answer".to_owned()),
    }
}
