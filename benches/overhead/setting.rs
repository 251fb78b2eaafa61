//! Where and with what a run was made: what one must know to repeat it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::target::{Kind, Target};

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Setting {
    pub date: String,
    pub arguments: String,
    pub cores: usize,
    pub cpu: String,
    pub kernel: String,
    pub rustc: String,
    /// Of what was there: name and version.
    pub versions: Vec<(String, String)>,
    pub span_s: f64,
    /// Of the open loops, where the pass-through holds them.
    pub rate: Option<u32>,
    pub rate_high: Option<u32>,
    pub daemon: Option<Daemon>,
}

/// The program as it is packaged: without the sandbox, stripped.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Daemon {
    pub bytes: u64,
    /// From its start to the line that it listens, on an empty ledger; each time.
    pub ready_ms: Vec<f64>,
}

/// What stands in the pass-through's manifest.
const PINGORA: &str = "0.9.1";

// === impl Setting ===

impl Setting {
    pub fn of(targets: &[Target]) -> Self {
        let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpu.lines().find_map(|line| line.strip_prefix("model name"));
        let model = model.and_then(|rest| rest.split_once(':'));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let versions = targets.iter().filter_map(|target| {
            let version = match target.kind {
                Kind::Nginx | Kind::Haproxy => first_line(&target.program, "-v")?,
                Kind::PassThrough => format!("pingora {PINGORA}"),
                Kind::Bursar => first_line(&target.program, "--version")?,
                Kind::Direct => return None,
            };
            Some((target.name.clone(), version))
        });
        Self {
            date: first_line(Path::new("date"), "+%Y-%m-%d").unwrap_or_default(),
            cores: available_parallelism().map_or(0, usize::from),
            cpu: model.map_or("", |(_, name)| name.trim()).to_owned(),
            kernel: kernel.trim().to_owned(),
            rustc: first_line(Path::new("rustc"), "-V").unwrap_or_default(),
            versions: versions.collect(),
            ..Self::default()
        }
    }
}

// === impl Daemon ===

impl Daemon {
    pub fn mib(&self) -> f64 {
        self.bytes as f64 / 1_048_576.0
    }
}

/// The first line that a program prints, wherever it prints it.
fn first_line(program: &Path, argument: &str) -> Option<String> {
    let printed = Command::new(program).arg(argument).output().ok()?;
    let text = [printed.stdout, printed.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().next().map(str::to_owned)
}
