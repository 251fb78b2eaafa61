//! What one durable write costs here: bursar makes two of them for each request, shared by all
//! that wait at the time. Measured alone, and by a process of its own beside a load.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::child::Process;
use crate::clock::nanoseconds;
use crate::numbers::Spread;
use crate::procfs::Tree;

/// An append with its fdatasync.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct DiskCost {
    pub writes: u64,
    pub wall: Spread,
    /// CPU of the process that writes, in microseconds a write.
    pub cpu_us: f64,
}

/// About what a line of the journal takes.
const WRITE_BYTES: usize = 1024;

const WRITES_MAX: usize = 20_000;

/// This program started again to write beside a load.
pub struct DiskBeside {
    process: Process,
}

/// Appends and waits for the disk, again and again.
pub fn cost(directory: &Path, span: Duration) -> io::Result<DiskCost> {
    let path = directory.join(format!("fdatasync-{}", std::process::id()));
    let mut file = OpenOptions::new().create(true).append(true).open(&path)?;
    let block = [b'x'; WRITE_BYTES];
    let own = Tree::only(std::process::id());
    let cpu_before = own.cpu_ns();
    let began = Instant::now();
    let mut took = Vec::new();
    while took.len() < WRITES_MAX && began.elapsed() < span {
        let write = Instant::now();
        file.write_all(&block)?;
        file.sync_data()?;
        took.push(nanoseconds(write.elapsed()));
    }
    let cpu_ns = own.cpu_ns().saturating_sub(cpu_before);
    std::fs::remove_file(&path)?;
    Ok(DiskCost {
        writes: took.len() as u64,
        cpu_us: cpu_ns as f64 / 1000.0 / took.len().max(1) as f64,
        wall: Spread::of(took),
    })
}

// === impl DiskBeside ===

impl DiskBeside {
    pub fn start(directory: &Path, span: Duration) -> io::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .arg("--disk-ms")
            .arg(span.as_millis().to_string())
            .arg("--directory")
            .arg(directory)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        Ok(Self {
            process: Process::start(&mut command, &directory.join("disk.log"))?,
        })
    }

    /// Waits for its end.
    pub fn end(mut self) -> io::Result<DiskCost> {
        let mut text = String::new();
        if let Some(out) = self.process.child().stdout.as_mut() {
            out.read_to_string(&mut text)?;
        }
        Ok(serde_json::from_str(&text)?)
    }
}
