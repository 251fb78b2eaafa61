//! What stands between the load and the far end: nothing, a plain proxy, or bursar with ledger and metrics on.
//!
//! Promise: each has a far end of its own, so that what was billed is compared with this ledger alone; what does
//! not start ends the run with its own words.

mod bursar;
mod plain;

use std::fmt;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use self::bursar::Ledger;
use crate::ask::Request;
use crate::child::Process;
use crate::echo::{BILLED_PATH, LISTENING};
use crate::meter::Meter;
use crate::procfs::Tree;
use crate::setting::Daemon;
use crate::wire::Connection;

/// What a target is. Several may be bursar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Direct,
    Nginx,
    Haproxy,
    PassThrough,
    Bursar,
}

/// One way to the far end.
#[derive(Clone, Debug)]
pub struct Target {
    pub name: String,
    pub kind: Kind,
    /// Not of `Direct`.
    pub program: PathBuf,
    /// Of bursar's ledger.
    pub durability: String,
    /// bursar's state directory, where it is not to begin with an empty one.
    pub state: Option<PathBuf>,
}

/// A target that accepts requests.
pub struct Running {
    pub name: String,
    pub kind: Kind,
    pub address: SocketAddr,
    pub meter: Meter,
    process: Option<Process>,
    ledger: Option<Ledger>,
    far_end: SocketAddr,
    // Ends with this value.
    _far_end_process: Process,
}

/// How many answers, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Billed {
    pub answers: u64,
    pub micro_usd: u64,
}

/// A proxy that was started.
struct Started {
    process: Process,
    address: SocketAddr,
    ledger: Option<Ledger>,
}

/// The key that a proxy puts in place of the app's.
const KEY: &str = "sk-of-the-organization";

const START_MAX: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How often the start of the packaged program is measured.
const STARTS: usize = 9;

/// Starts this program again as the far end; answers where it listens.
fn start_far_end(directory: &Path) -> io::Result<(Process, SocketAddr)> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--echo")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut process = Process::start(&mut command, &directory.join("echo.log"))?;
    let lines = first_lines(&mut process, 1)?;
    Ok((process, address_after(&lines, LISTENING)?))
}

/// The first lines of a process's output.
fn first_lines(process: &mut Process, count: usize) -> io::Result<Vec<String>> {
    let out = process.child().stdout.take();
    let out = out.ok_or_else(|| io::Error::other("no standard output"))?;
    BufReader::new(out).lines().take(count).collect()
}

fn address_after(lines: &[String], mark: &str) -> io::Result<SocketAddr> {
    let found = lines
        .iter()
        .find_map(|line| line.strip_prefix(mark)?.parse().ok());
    found.ok_or_else(|| io::Error::other(format!("no line with {mark:?} in {lines:?}")))
}

/// An address that was free a moment ago.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// Waits until a process accepts connections. `log`: where it says why it does not.
async fn accepts(process: &mut Process, address: SocketAddr, log: &Path) -> io::Result<()> {
    let began = Instant::now();
    while TcpStream::connect(address).is_err() {
        if process.is_over() || began.elapsed() > START_MAX {
            let why = fs::read_to_string(log).unwrap_or_default();
            return Err(io::Error::other(format!("it did not start: {why}")));
        }
        sleep(LOOK_EVERY).await;
    }
    // Another program may have taken the port first.
    match process.is_over() {
        true => Err(io::Error::other(format!(
            "{address} answers, and this proxy has ended: {}",
            fs::read_to_string(log).unwrap_or_default()
        ))),
        false => Ok(()),
    }
}

// === impl Kind ===

impl Kind {
    /// The name of a target of this kind, in arguments and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Nginx => "nginx",
            Self::Haproxy => "haproxy",
            Self::PassThrough => "BP",
            Self::Bursar => "bursar",
        }
    }
}

// === impl Target ===

impl Target {
    /// Starts it in front of a far end of its own, with everything it writes below `directory`.
    pub async fn start(&self, directory: &Path) -> io::Result<Running> {
        fs::create_dir_all(directory)?;
        let (far_end_process, far_end) = start_far_end(directory)?;
        let started = match self.kind {
            Kind::Direct => None,
            Kind::Nginx => Some(plain::start_nginx(&self.program, far_end, directory).await?),
            Kind::Haproxy => Some(plain::start_haproxy(&self.program, far_end, directory).await?),
            Kind::PassThrough => {
                Some(plain::start_pass_through(&self.program, far_end, directory).await?)
            }
            Kind::Bursar => {
                let state = self.state.clone();
                let ledger = Ledger::of(&self.program, state, directory)?;
                Some(bursar::start(ledger, &self.durability, far_end)?)
            }
        };
        let proxy = started
            .as_ref()
            .map(|started| Tree::of(started.process.id()));
        let meter = Meter::new(proxy, far_end_process.id());
        let address = started.as_ref().map_or(far_end, |started| started.address);
        let (process, ledger) = match started {
            Some(started) => (Some(started.process), started.ledger),
            None => (None, None),
        };
        Ok(Running {
            name: self.name.clone(),
            kind: self.kind,
            address,
            meter,
            process,
            ledger,
            far_end,
            _far_end_process: far_end_process,
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

// === impl Running ===

impl Running {
    /// Ends it. Answers how its ledger differs from what the far end billed; `None` where there is no ledger, or
    /// no difference.
    pub async fn stop(self) -> io::Result<Option<String>> {
        if let Some(process) = self.process {
            process.stop().await?;
        }
        let Some(ledger) = &self.ledger else {
            return Ok(None);
        };
        let mut connection = Connection::open(self.far_end).await?;
        let question = format!("GET {BILLED_PATH} HTTP/1.1\r\nHost: far-end\r\n\r\n");
        let answer = connection.call(&Request::plain(question)).await?;
        let billed = Billed::read(&answer.text);
        let billed = billed.ok_or_else(|| io::Error::other("the far end has no books"))?;
        ledger.difference(billed)
    }
}

// === impl Billed ===

impl Billed {
    fn read(text: &str) -> Option<Self> {
        let (answers, micro_usd) = text.split_once(' ')?;
        Some(Self {
            answers: answers.parse().ok()?,
            micro_usd: micro_usd.parse().ok()?,
        })
    }
}

/// Size of the packaged program, and how long it takes to listen on an empty ledger.
pub fn daemon(program: &Path, directory: &Path) -> io::Result<Daemon> {
    let mut ready_ms = Vec::new();
    for number in 0..STARTS {
        let below = directory.join(number.to_string());
        fs::create_dir_all(&below)?;
        let nobody = free_address()?;
        let began = Instant::now();
        let started = bursar::start(Ledger::of(program, None, &below)?, "power", nobody)?;
        ready_ms.push(began.elapsed().as_secs_f64() * 1_000.0);
        drop(started);
    }
    Ok(Daemon {
        bytes: fs::metadata(program)?.len(),
        ready_ms,
    })
}
