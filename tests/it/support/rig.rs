//! A disk that fails on demand, under a real daemon: `tests/rig/shim.c`, compiled here and loaded
//! with `LD_PRELOAD`. It fails chosen calls below the state directory, and records what reached the
//! disk for simulated power cuts.
//!
//! Promise: nothing of the ledger is replaced; what fails is the system call.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::daemon::{self, Daemon};

pub const EIO: u64 = 5;
pub const ENOSPC: u64 = 28;
pub const EROFS: u64 = 30;
pub const EDQUOT: u64 = 122;

/// A kind of call, in the order of the shim's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Write,
    Fdatasync,
    Fsync,
    Ftruncate,
    Rename,
    Create,
    Fallocate,
    Unlink,
}

impl Call {
    pub const ALL: [Self; 8] = [
        Self::Write,
        Self::Fdatasync,
        Self::Fsync,
        Self::Ftruncate,
        Self::Rename,
        Self::Create,
        Self::Fallocate,
        Self::Unlink,
    ];
}

/// Words of the control file, in the order of the shim's list.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
enum Word {
    Mask,
    From,
    Times,
    Errno,
    Short,
    Journal,
    ReadOnly,
    Budget,
    Seen,
    Failed,
    Events,
    Kinds,
    Hang = 31,
}

/// Words of the control file in all.
const WORDS: u64 = 32;

/// Which calls fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub call: Call,
    pub errno: u64,
    /// The first call that fails, counted from 1. 0: calls are only counted.
    pub from: u64,
    /// How many fail from there on; `u64::MAX` until the fault is lifted.
    pub times: u64,
    /// A failing write first writes half of its bytes.
    pub short: bool,
    /// Only calls below `journal/`.
    pub journal: bool,
}

/// One state directory on such a disk.
pub struct Rig {
    directory: TempDir,
    control: File,
    recorded: bool,
}

// === impl Rig ===

impl Rig {
    pub fn new() -> Self {
        Self::with(false)
    }

    /// The same, and every change is recorded.
    pub fn recorded() -> Self {
        Self::with(true)
    }

    fn with(recorded: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("control");
        std::fs::write(&path, [0; 8 * WORDS as usize]).expect("a control file");
        let control = File::options().read(true).write(true).open(&path);
        if recorded {
            File::create(directory.path().join("log")).expect("a log");
        }
        Self {
            control: control.expect("a control file"),
            directory,
            recorded,
        }
    }

    pub fn state_dir(&self) -> PathBuf {
        self.directory.path().join("state")
    }

    /// Beside the state directory, on a sound disk.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// `bursar run` on this disk. What it logs goes to the file that [`Self::logged`] reads.
    pub fn command(&self, upstream: &str, more: &[&str]) -> Command {
        let state_dir = self.state_dir();
        let state_dir = state_dir.to_str().expect("a UTF-8 path");
        let mut arguments = daemon::run_arguments(upstream, state_dir);
        arguments.extend_from_slice(more);
        let mut command = daemon::command(&arguments);
        command
            .env("LD_PRELOAD", shim())
            .env("RIG_DIR", state_dir)
            .env("RIG_CONTROL", self.outside("control"))
            .stderr(self.log_file());
        if self.recorded {
            command.env("RIG_LOG", self.outside("log"));
        }
        command
    }

    /// Starts a daemon on this disk and waits until it is ready.
    pub async fn start(&self, upstream: &str, more: &[&str]) -> Daemon {
        match Daemon::launched(self.command(upstream, more)).await {
            Ok(daemon) => daemon,
            Err(mut child) => {
                let status = child.wait().await;
                panic!("the daemon ended ({status:?}): {}", self.logged())
            }
        }
    }

    /// Starts a daemon, or answers how it ended.
    pub async fn try_start(&self, upstream: &str) -> Result<Daemon, Child> {
        Daemon::launched(self.command(upstream, &[])).await
    }

    fn log_file(&self) -> Stdio {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.outside("stderr"));
        Stdio::from(log.expect("a file for the log"))
    }

    /// Everything that daemons of this rig have logged.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(self.outside("stderr")).unwrap_or_default()
    }

    /// From now on these calls fail; what was counted is forgotten.
    pub fn fail(&self, fault: Fault) {
        self.put(Word::Mask, 0);
        self.put(Word::Errno, fault.errno);
        self.put(Word::Short, fault.short.into());
        self.put(Word::Journal, fault.journal.into());
        self.put(Word::Times, fault.times);
        self.put(Word::From, fault.from);
        self.put(Word::Seen, 0);
        self.put(Word::Mask, 1 << fault.call as u64);
    }

    /// The disk is sound again.
    pub fn heal(&self) {
        self.put(Word::From, 0);
        self.read_only(false);
        self.budget(0);
    }

    pub fn read_only(&self, is_read_only: bool) {
        self.put(Word::ReadOnly, is_read_only.into());
    }

    /// Most bytes that all files below the state directory may have together; 0: no bound.
    pub fn budget(&self, bytes: u64) {
        self.put(Word::Budget, bytes);
    }

    /// From now on a sync neither succeeds nor fails, until this is lifted.
    pub fn hang(&self, hangs: bool) {
        self.put(Word::Hang, hangs.into());
    }

    /// Calls that counted since [`Self::fail`].
    pub fn seen(&self) -> u64 {
        self.get(Word::Seen as u64)
    }

    /// Calls that failed for the rig.
    pub fn failed(&self) -> u64 {
        self.get(Word::Failed as u64)
    }

    /// Records in the log.
    pub fn events(&self) -> u64 {
        self.get(Word::Events as u64)
    }

    /// While nothing runs: how many records the log has.
    pub fn sets_events(&self, records: u64) {
        self.put(Word::Events, records);
    }

    /// A reader of [`Self::events`] for another task.
    pub fn counter(&self) -> impl Fn() -> u64 + Clone + Send + Sync + 'static {
        let control = std::sync::Arc::new(self.control.try_clone().expect("a descriptor"));
        move || word(&control, Word::Events as u64)
    }

    /// Calls of a kind so far.
    pub fn calls(&self, call: Call) -> u64 {
        self.get(Word::Kinds as u64 + call as u64)
    }

    fn put(&self, at: Word, value: u64) {
        self.control
            .write_all_at(&value.to_le_bytes(), at as u64 * 8)
            .expect("the control file is written");
    }

    fn get(&self, at: u64) -> u64 {
        word(&self.control, at)
    }
}

fn word(control: &File, at: u64) -> u64 {
    let mut bytes = [0; 8];
    control
        .read_exact_at(&mut bytes, at * 8)
        .expect("the control file is read");
    u64::from_le_bytes(bytes)
}

/// The size of all files below a directory, as the shim's budget counts them.
pub fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| {
            let entry = entry.expect("an entry");
            let found = entry.metadata().expect("its size");
            match found.is_dir() {
                true => size_of(&entry.path()),
                false if found.is_file() => found.len(),
                false => 0,
            }
        })
        .sum()
}

/// The compiled shim. It is compiled once for each version of its source.
fn shim() -> &'static Path {
    static SHIM: OnceLock<PathBuf> = OnceLock::new();
    SHIM.get_or_init(|| {
        let source = include_str!("../../rig/shim.c");
        let tag = source.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |tag, byte| {
            (tag ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let done = target.join(format!("rig-{tag:016x}.so"));
        if !done.exists() {
            // Compiled aside and renamed: several test processes may be here at once.
            let mut aside = tempfile::NamedTempFile::with_suffix_in(".c", target).expect("a file");
            aside.write_all(source.as_bytes()).expect("the source");
            let object = aside.path().with_extension("so");
            compile(aside.path(), &object);
            std::fs::rename(&object, &done).expect("the shim is put in its place");
        }
        done
    })
}

fn compile(source: &Path, object: &Path) {
    let compiled = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-o"])
        .args([object, source])
        .arg("-ldl")
        .output();
    let Output { status, stderr, .. } = compiled.unwrap_or_else(|error| {
        panic!("the disk rig needs the C compiler `cc`, with which cargo links, too: {error}")
    });
    let stderr = String::from_utf8_lossy(&stderr);
    assert!(
        status.success(),
        "cc cannot compile tests/rig/shim.c: {stderr}"
    );
}

/// How long a ledger may take to be written again once its disk is sound.
pub const RECOVERY: Duration = Duration::from_secs(20);
