//! A process of the benchmark: started with its own directory, ended with all its descendants.
//!
//! Promise: nothing that was started here outlives the run, also when it fails.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::procfs::Tree;

/// A running process. Dropping it kills it.
pub struct Process {
    child: Child,
}

/// How long a process may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(10);

const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Process {
    /// Starts a program; its error output goes to `errors`.
    pub fn start(command: &mut Command, errors: &Path) -> io::Result<Self> {
        let errors = std::fs::File::create(errors)?;
        let child = command.stderr(Stdio::from(errors)).spawn();
        let name = command.get_program().to_string_lossy().into_owned();
        let child = child.map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")));
        Ok(Self { child: child? })
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// It has ended already, without being asked to.
    pub fn is_over(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Asks it to end, and waits until it has.
    pub async fn stop(mut self) -> io::Result<()> {
        signal(self.id(), Signal::TERM);
        let asked = Instant::now();
        while self.child.try_wait()?.is_none() {
            if asked.elapsed() > PATIENCE {
                return Err(io::Error::other("a process did not end when asked to"));
            }
            sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.is_over() {
            return;
        }
        for pid in Tree::of(self.id()).pids() {
            signal(*pid, Signal::KILL);
        }
        // Its status is of no interest any more.
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        // It may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}
