//! bursar as it comes, the service's ceilings aside; and its ledger, asked through its own command.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::{Billed, KEY, Started, address_after, first_lines};
use crate::child::Process;

/// The ledger of one bursar.
pub struct Ledger {
    program: PathBuf,
    directory: PathBuf,
    state: PathBuf,
    /// What was in it when this run began.
    before: Spend,
}

/// What `bursar spend --json` prints, as far as it is looked at.
#[derive(Clone, Copy, Default, Deserialize)]
struct Spend {
    requests: u64,
    settled: u64,
    billed_micro_usd: u64,
    damaged: u64,
}

/// Older than any entry of a run.
const SINCE: &str = "2d";

pub fn start(ledger: Ledger, durability: &str, far_end: SocketAddr) -> io::Result<Started> {
    // Its own time is what is measured, not the service's ceilings.
    let config = format!(
        "[upstream]\nbase_url = \"http://{far_end}\"\n[ledger]\ndurability = \"{durability}\"\n\
         [shaping]\nin_flight = 0\nper_minute = 0\n"
    );
    fs::write(ledger.config(), config)?;
    let mut command = ledger.command(&["run", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command
        .env("BURSAR_API_KEY", KEY)
        .env_remove("NOTIFY_SOCKET")
        .stdout(Stdio::piped());
    let log = ledger.directory.join("bursar.log");
    let mut process = Process::start(&mut command, &log)?;
    let lines = first_lines(&mut process, 2)?;
    let address = address_after(&lines, "proxy listening on http://").map_err(|_| {
        let why = fs::read_to_string(&log).unwrap_or_default();
        io::Error::other(format!("it did not start: {why}"))
    })?;
    Ok(Started {
        process,
        address,
        ledger: Some(ledger),
    })
}

// === impl Ledger ===

impl Ledger {
    /// `state`: a ledger that is there already.
    pub fn of(program: &Path, state: Option<PathBuf>, directory: &Path) -> io::Result<Self> {
        let has_past = state.is_some();
        let mut ledger = Self {
            program: program.to_owned(),
            directory: directory.to_owned(),
            state: state.unwrap_or_else(|| directory.join("state")),
            before: Spend::default(),
        };
        if has_past {
            fs::write(ledger.config(), "")?;
            ledger.before = ledger.spend()?;
        }
        Ok(ledger)
    }

    fn config(&self) -> PathBuf {
        self.directory.join("config.toml")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(words)
            .arg("--state-dir")
            .arg(&self.state)
            .arg("--config")
            .arg(self.config())
            .env_remove("BURSAR_API_KEY_FILE")
            .stdin(Stdio::null());
        command
    }

    /// How it differs from what the far end billed in this run, if it does. The daemon has ended.
    pub fn difference(&self, billed: Billed) -> io::Result<Option<String>> {
        let (before, now) = (self.before, self.spend()?);
        let requests = now.requests - before.requests;
        let settled = now.settled - before.settled;
        let micro_usd = now.billed_micro_usd - before.billed_micro_usd;
        let agrees = now.damaged == 0
            && requests == billed.answers
            && settled == billed.answers
            && micro_usd == billed.micro_usd;
        Ok((!agrees).then(|| {
            format!(
                "the ledger has {requests} requests, {settled} settled, {micro_usd} micro-USD ({} parts \
                 damaged); the far end billed {} answers, {} micro-USD",
                now.damaged, billed.answers, billed.micro_usd
            )
        }))
    }

    fn spend(&self) -> io::Result<Spend> {
        let printed = self
            .command(&["spend", "--json", "--since", SINCE])
            .output()?;
        if !printed.status.success() {
            let why = String::from_utf8_lossy(&printed.stderr).into_owned();
            return Err(io::Error::other(format!("spend: {why}")));
        }
        Ok(serde_json::from_slice(&printed.stdout)?)
    }
}
