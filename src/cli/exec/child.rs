//! The child of `bursar exec`: its environment, its signals, its end.
//!
//! Signals: the terminal sends Ctrl-C and its like to every process in front, the child among them, so
//! they are not passed on then; everything else that is sent to this process alone is. A stop stops both,
//! and the run stays open meanwhile.
//!
//! Promise: no signal between start and end is lost, none reaches the child twice from one key press,
//! and the organization's key is not in its environment.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{
    Pid, Signal as Sent, WaitId, WaitIdOptions, getpgrp, getpid, kill_process, waitid,
};
use rustix::termios::tcgetpgrp;
use tokio::process::Command;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::error::CliError;
use crate::cli::output::remark;
use crate::config::{Env, NO_PROXY, PROXIES};

/// Exit codes of shells for a command that cannot be started.
const EXIT_NOT_EXECUTABLE: u8 = 126;
const EXIT_NOT_FOUND: u8 = 127;

/// How long a child may take to stop: so many looks, so far apart.
const STOP_LOOKS: u32 = 50;
const STOP_PAUSE: Duration = Duration::from_millis(20);

/// What a run's child finds around it.
pub(super) struct Surroundings<'a> {
    /// With `/v1`.
    pub base_url: String,
    pub token: &'a str,
    pub run: &'a str,
    /// Variables of the program itself, which win over the common ones.
    pub more: Vec<(&'static str, String)>,
    /// What is around this process.
    pub env: &'a Env,
}

/// A running child.
pub(super) struct Child {
    child: tokio::process::Child,
    passed: Passed,
}

/// Every signal that may be sent to this process and is meant for the command.
struct Passed {
    hangup: Signal,
    interrupt: Signal,
    quit: Signal,
    terminate: Signal,
    user1: Signal,
    user2: Signal,
    stop: Signal,
    go_on: Signal,
}

impl Surroundings<'_> {
    /// What every SDK of the OpenAI kind reads; the second is the name of older ones.
    fn variables(&self) -> Vec<(&'static str, OsString)> {
        let mut variables: Vec<(&'static str, OsString)> = vec![
            ("OPENAI_BASE_URL", OsString::from(&self.base_url)),
            ("OPENAI_API_BASE", OsString::from(&self.base_url)),
            ("OPENAI_API_KEY", OsString::from(self.token)),
            ("BURSAR_RUN", OsString::from(self.run)),
        ];
        // A proxy of the network is no way to this machine, and would see the token.
        if PROXIES.iter().any(|name| self.env.get(name).is_some()) {
            let before = NO_PROXY.iter().find_map(|name| self.env.get(name));
            let direct = directly(before);
            variables.extend(NO_PROXY.map(|name| (name, direct.clone())));
        }
        let more = self.more.iter();
        variables.extend(more.map(|(name, value)| (*name, OsString::from(value))));
        variables
    }
}

/// The names that are reached without a proxy, and this machine.
fn directly(before: Option<&OsStr>) -> OsString {
    let mut names = before.map(|names| {
        let mut names = names.to_owned();
        names.push(",");
        names
    });
    let names = names.get_or_insert_with(OsString::new);
    names.push("127.0.0.1,localhost,::1");
    std::mem::take(names)
}

// === impl Child ===

impl Child {
    pub(super) fn start(
        command: &[OsString],
        surroundings: &Surroundings<'_>,
    ) -> Result<Self, CliError> {
        let passed = Passed::catch()?;
        let [program, arguments @ ..] = command else {
            return Err(CliError::usage("a command is needed after --"));
        };
        let mut command = Command::new(program);
        command.args(arguments).envs(surroundings.variables());
        for name in [
            "BURSAR_API_KEY",
            "BURSAR_API_KEY_FILE",
            "CREDENTIALS_DIRECTORY",
        ] {
            command.env_remove(name);
        }
        let child = command.spawn().map_err(|error| {
            remark(format_args!(
                "bursar: {} cannot be started: {error}",
                program.display()
            ));
            CliError::Child(match error.kind() {
                io::ErrorKind::NotFound => EXIT_NOT_FOUND,
                _ => EXIT_NOT_EXECUTABLE,
            })
        })?;
        Ok(Self { child, passed })
    }

    /// Passes signals on until the child has ended; its exit code.
    pub(super) async fn ended(&mut self) -> Result<u8, CliError> {
        loop {
            let (sent, is_key) = tokio::select! {
                ended = self.child.wait() => {
                    let status = ended.map_err(|error| {
                        CliError::Failed(format!("the command cannot be waited for: {error}"))
                    })?;
                    return Ok(code(status));
                }
                passed = self.passed.next() => passed,
            };
            if !(is_key && is_in_front()) {
                self.send(sent);
            }
            if sent == Sent::TSTP && self.has_stopped().await {
                // As any process does that does not catch it. The signal that continues this process
                // continues the child too.
                let _ = kill_process(getpid(), Sent::STOP);
            }
        }
    }

    fn send(&self, sent: Sent) {
        if let Some(pid) = self.pid() {
            // One that has just ended needs no signal.
            let _ = kill_process(pid, sent);
        }
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(i32::try_from(self.child.id()?).ok()?)
    }

    /// Whether the child stops, as it was asked to. It may not: the system does not stop a process that no
    /// other could continue, such as the first of a container.
    async fn has_stopped(&self) -> bool {
        let only_look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        for _ in 0..STOP_LOOKS {
            let Some(pid) = self.pid() else { return false };
            if waitid(WaitId::Pid(pid), only_look).is_ok_and(|stopped| stopped.is_some()) {
                return true;
            }
            tokio::time::sleep(STOP_PAUSE).await;
        }
        false
    }
}

// === impl Passed ===

impl Passed {
    fn catch() -> Result<Self, CliError> {
        let caught = |kind| {
            signal(kind)
                .map_err(|error| CliError::Failed(format!("signals cannot be received: {error}")))
        };
        Ok(Self {
            hangup: caught(SignalKind::hangup())?,
            interrupt: caught(SignalKind::interrupt())?,
            quit: caught(SignalKind::quit())?,
            terminate: caught(SignalKind::terminate())?,
            user1: caught(SignalKind::user_defined1())?,
            user2: caught(SignalKind::user_defined2())?,
            stop: caught(SignalKind::from_raw(Sent::TSTP.as_raw()))?,
            go_on: caught(SignalKind::from_raw(Sent::CONT.as_raw()))?,
        })
    }

    /// The next signal, and whether a terminal sends it, which sends it to the child as well.
    async fn next(&mut self) -> (Sent, bool) {
        tokio::select! {
            _ = self.hangup.recv() => (Sent::HUP, true),
            _ = self.interrupt.recv() => (Sent::INT, true),
            _ = self.quit.recv() => (Sent::QUIT, true),
            _ = self.terminate.recv() => (Sent::TERM, false),
            _ = self.user1.recv() => (Sent::USR1, false),
            _ = self.user2.recv() => (Sent::USR2, false),
            _ = self.stop.recv() => (Sent::TSTP, true),
            // Twice does no harm.
            _ = self.go_on.recv() => (Sent::CONT, false),
        }
    }
}

/// Whether this process is in front at a terminal, which sends its keys to the child by itself.
fn is_in_front() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(terminal).ok() == Some(getpgrp()))
}

/// In the form that shells use.
fn code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => 128 + signal,
        (None, None) => 1,
    };
    u8::try_from(code).unwrap_or(1)
}

#[cfg(test)]
mod tests;
