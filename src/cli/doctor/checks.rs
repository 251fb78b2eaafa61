//! The checks: what each looks at, when it fails, and what helps then. The table stands in docs/operations.md, too.
//!
//! Promise: a check judges facts and asks for nothing; what cannot be known is skipped, never passed.

use std::time::Duration;

use super::facts::{CLOCK_SLACK_MS, Configuration, Daemon, Facts, StateDirectory};
use super::ports::Port;
use super::service::{Clocks, ServiceProbe};
use super::unit::{Manager, ServiceUnit, Units};
use crate::calendar;
use crate::cli::cells::counted;
use crate::config::{BaseUrl, ListenAddr};
use crate::ledger::entry::AttemptEnd;
use crate::ledger::query::{EntryView, ReceiptWord};
use crate::protocol::receipt::ReceiptSource;
use crate::protocol::routes::{ReceiptFrom, RouteTable};
use crate::protocol::{Lane, Operation};

/// Less is too little for a ledger that is to grow.
const FREE_BYTES_MIN: u64 = 256 << 20;

/// A paid request waits for two commits.
const COMMIT_MAX: Duration = Duration::from_millis(50);

/// A stream that took longer is judged.
const STREAM_MS_MIN: u64 = 2000;

/// So many of the newest streams, and of the newest answers, are judged.
const JUDGED: usize = 20;

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    Pass(String),
    /// The table's remedy helps.
    Fail(String),
    /// This one does.
    Treatable {
        found: String,
        remedy: String,
    },
    /// It does not apply, or cannot be known here.
    Skip(String),
}

/// One row.
pub struct DoctorCheck {
    pub name: &'static str,
    pub what: &'static str,
    pub remedy: &'static str,
    judge: fn(&Facts) -> CheckVerdict,
}

pub const CHECKS: [DoctorCheck; 14] = [
    DoctorCheck {
        name: "daemon",
        what: "a daemon that has the ledger answers, and is not stopping",
        remedy: "see `journalctl -u bursar`, or the log of `bursar run`, and start it again",
        judge: daemon,
    },
    DoctorCheck {
        name: "configuration",
        what: "flags, environment and file are without a mistake, and nothing in the file waits for a restart",
        remedy: "`bursar check` prints every mistake with its line",
        judge: configuration,
    },
    DoctorCheck {
        name: "state directory",
        what: "the ledger's directory is private (0700), its user's, and can be written or made",
        remedy: "give it back to bursar's user with mode 0700, or name another with --state-dir DIR",
        judge: state_directory,
    },
    DoctorCheck {
        name: "port",
        what: "the daemon answers at its addresses for apps; without a daemon its addresses are free",
        remedy: "stop what has it, or name another address: [listen] proxy and admin, or --listen",
        judge: port,
    },
    DoctorCheck {
        name: "unit",
        what: "the service, the user's own or the system's, runs and has been read by systemd where it is installed",
        remedy: "`journalctl -u bursar -n 20` says why",
        judge: unit,
    },
    DoctorCheck {
        name: "upstream",
        what: "the service answers at base_url, with the scheme that stands there and a certificate that is trusted",
        remedy: "correct [upstream] base_url, or the network between",
        judge: upstream,
    },
    DoctorCheck {
        name: "self-reference",
        what: "base_url is not an address of bursar's own",
        remedy: "set [upstream] base_url to the service's address",
        judge: self_reference,
    },
    DoctorCheck {
        name: "key",
        what: "the service takes the organization's key, by one free GET; nothing is bought",
        remedy: "`bursar key set` (with sudo for the system service) checks another one and writes it",
        judge: key,
    },
    DoctorCheck {
        name: "balance",
        what: "no paid request got 402 (empty balance) since one last succeeded; nothing is bought",
        remedy: "pay in at the service: within 5 s of the next paid request bursar knows whether it is enough",
        judge: balance,
    },
    DoctorCheck {
        name: "clock",
        what: "the clock is within a minute of the service's and 5 s of the fleet's, and no entry of the ledger lies in the future",
        remedy: "let the machine's clock be set: `timedatectl set-ntp true`",
        judge: clock,
    },
    DoctorCheck {
        name: "disk",
        what: "the ledger can be written, and 256 MiB are free beside it",
        remedy: "make room where the ledger is, or move it (docs/operations.md); `bursar ledger compact` shortens it",
        judge: disk,
    },
    DoctorCheck {
        name: "fsync",
        what: "a commit of the running daemon's journal takes 50 ms or less on average; nothing is written for it",
        remedy: "move the state directory to a faster disk; [ledger] durability = \"process\" does without fsync",
        judge: fsync,
    },
    DoctorCheck {
        name: "streaming",
        what: "of the last 20 streams that took over 2 s, half or more had their first byte within 90 % of their time",
        remedy: "a hop before the service buffers: switch that off there (nginx: proxy_buffering off), or go around it",
        judge: streaming,
    },
    DoctorCheck {
        name: "receipts",
        what: "of the last 20 answers on routes that report a price, half or more had one that could be read",
        remedy: "set service_name to the word in the service's X-…-Billed header; a hop before it must not take headers away",
        judge: receipts,
    },
];

fn daemon(facts: &Facts) -> CheckVerdict {
    match &facts.daemon {
        Daemon::Runs(status, _) if status.draining => {
            CheckVerdict::Fail(format!("process {} is stopping", status.pid))
        }
        Daemon::Runs(status, at) => CheckVerdict::Pass(format!(
            "{} runs, process {}, asked at {at}",
            status.version, status.pid
        )),
        Daemon::Silent(why) => CheckVerdict::Fail(why.clone()),
        Daemon::Hangs(pid) => CheckVerdict::Treatable {
            found: format!("process {pid} has the ledger, and does not answer"),
            remedy: format!(
                "`kill -CONT {pid}` where it is stopped; `kill -9 {pid}` ends it, and loses nothing that was billed"
            ),
        },
        Daemon::None => CheckVerdict::Skip(
            match &facts.configuration {
                Configuration::Mistaken(_) => {
                    "none answers at the default places; the configuration, which may name another, has mistakes"
                }
                _ => "none answers; this is what the next one would find",
            }
            .to_owned(),
        ),
    }
}

fn configuration(facts: &Facts) -> CheckVerdict {
    if let (Configuration::Sound(_), Daemon::Runs(status, _)) =
        (&facts.configuration, &facts.daemon)
        && !status.waits_for_restart.is_empty()
    {
        return CheckVerdict::Treatable {
            found: format!(
                "changed in the file and not in force: {}",
                status.waits_for_restart.join(", ")
            ),
            remedy: "restart bursar; with bursar.socket no app is refused meanwhile".to_owned(),
        };
    }
    match &facts.configuration {
        Configuration::Sound(Some(path)) => CheckVerdict::Pass(path.display().to_string()),
        Configuration::Sound(None) => CheckVerdict::Pass("no mistake".to_owned()),
        Configuration::Unknown => CheckVerdict::Skip(
            "that of a daemon which was named by its address is not known".to_owned(),
        ),
        Configuration::Mistaken(lines) => {
            let more = match lines.len() {
                0 | 1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            let first = lines.first().map(String::as_str).unwrap_or_default();
            CheckVerdict::Fail(format!("{first}{more}"))
        }
    }
}

fn state_directory(facts: &Facts) -> CheckVerdict {
    let path = facts.state_dir.display();
    if facts.state_dir.as_os_str().is_empty() {
        return CheckVerdict::Skip("it is not known without a configuration".to_owned());
    }
    match &facts.place {
        StateDirectory::Sound => CheckVerdict::Pass(path.to_string()),
        StateDirectory::ToBeMade => {
            CheckVerdict::Pass(format!("{path} will be made at the first start"))
        }
        StateDirectory::Unsound(why) => CheckVerdict::Fail(why.clone()),
        StateDirectory::Hidden => {
            CheckVerdict::Skip(format!("{path} may be looked at by its user: use sudo"))
        }
    }
}

fn port(facts: &Facts) -> CheckVerdict {
    let held_open = matches!(
        facts.units,
        Units::Known {
            is_socket_open: true,
            ..
        }
    );
    if let Daemon::Hangs(pid) = facts.daemon
        && facts.ports.iter().any(|(_, port)| port.is_of(pid))
    {
        return CheckVerdict::Skip(format!("process {pid} has them, and does not answer"));
    }
    let wrong = facts.ports.iter().find_map(|(address, port)| {
        Some(match port {
            Port::Answers | Port::Free | Port::Unknown(_) => return None,
            // systemd has it for the service.
            Port::Taken(_) if held_open => return None,
            Port::Foreign => format!("what answers at {address} is not bursar"),
            Port::Taken(who) => format!("{address} is taken by {who}"),
            Port::Missing => format!("this machine has no address {address}"),
            Port::Silent(why) => why.clone(),
        })
    });
    if let Some(wrong) = wrong {
        return CheckVerdict::Fail(wrong);
    }
    let is_known = |(_, port): &&(ListenAddr, Port)| !matches!(port, Port::Unknown(_));
    let known = facts.ports.iter().filter(is_known);
    let known: Vec<String> = known.map(|(address, _)| address.to_string()).collect();
    match (&facts.daemon, known.join(", ")) {
        (_, known) if known.is_empty() => {
            CheckVerdict::Skip("no address of it can be tried".to_owned())
        }
        (Daemon::Runs(status, _), known) if status.anonymous => CheckVerdict::Pass(format!(
            "{known}; any local process may spend there: `bursar app add NAME` ends that"
        )),
        (Daemon::Runs(..), known) => CheckVerdict::Pass(format!("{known}; a token is needed")),
        (_, known) if held_open => {
            CheckVerdict::Pass(format!("{known}: held open by bursar.socket"))
        }
        (_, known) => CheckVerdict::Pass(format!("{known}: free")),
    }
}

fn unit(facts: &Facts) -> CheckVerdict {
    let service = match &facts.units {
        Units::NoSystemd => {
            return CheckVerdict::Skip("systemd did not start this machine".to_owned());
        }
        Units::Unknown(why) => return CheckVerdict::Skip(why.clone()),
        Units::Known { service, .. } => service,
    };
    let other_daemon = matches!(facts.daemon, Daemon::Runs(..));
    judge_unit(service, other_daemon)
}

fn judge_unit(service: &ServiceUnit, other_daemon: bool) -> CheckVerdict {
    if !service.is_installed {
        return CheckVerdict::Skip("bursar is not installed as a service".to_owned());
    }
    let remedies = service.manager.remedies();
    let treatable = |found: String, remedy: &str| CheckVerdict::Treatable {
        found,
        remedy: remedy.to_owned(),
    };
    if service.needs_reload {
        let found = "its files are newer than what systemd has read".to_owned();
        return treatable(found, remedies.reread);
    }
    let why = remedies.why;
    match (&*service.active, &*service.sub) {
        ("failed", _) => treatable(format!("it has failed: {}", service.result), why),
        ("activating", "auto-restart") => {
            let found = format!("it starts in vain, every 5 s: {}", service.result);
            treatable(found, why)
        }
        ("inactive", _) if other_daemon => {
            CheckVerdict::Skip("installed and not started; another daemon answers".to_owned())
        }
        ("inactive", _) if !service.has_key => {
            let found = "installed, and its key is not there".to_owned();
            treatable(found, remedies.key)
        }
        ("inactive", _) => treatable("installed and not started".to_owned(), remedies.start),
        (active, _) => CheckVerdict::Pass(match service.manager {
            Manager::System => active.to_owned(),
            Manager::Own => format!("{active}, a service of this user's own"),
        }),
    }
}

fn upstream(facts: &Facts) -> CheckVerdict {
    let Some(base_url) = &facts.base_url else {
        return CheckVerdict::Skip("no service is known".to_owned());
    };
    let how = match base_url.tls {
        true => "its certificate holds",
        false => "unencrypted, on this machine",
    };
    match &facts.service {
        ServiceProbe::Took(_) | ServiceProbe::Refuses(_) | ServiceProbe::Answered(_) => {
            CheckVerdict::Pass(format!("{base_url} answers; {how}"))
        }
        ServiceProbe::Unreached(why) => CheckVerdict::Treatable {
            found: format!("{base_url}: {why}"),
            remedy: way_to(base_url, why).to_owned(),
        },
        ServiceProbe::NoKey(_) => {
            CheckVerdict::Skip(format!("{base_url} is not asked without a key"))
        }
        ServiceProbe::Unasked(why) => {
            CheckVerdict::Skip(format!("{base_url} was not asked: {why}"))
        }
    }
}

/// What helps where there was no answer, by how far it came.
fn way_to(base_url: &BaseUrl, why: &str) -> &'static str {
    if why.contains("speaks no TLS") {
        return "correct [upstream] base_url: the port of the service's TLS, or http:// where it is on this machine";
    }
    if why.contains("TLS with") {
        return "correct the name in [upstream] base_url, or name the service's own authority in ca_file";
    }
    if why.contains("does not resolve") {
        return "correct the name in [upstream] base_url, or the machine's resolver";
    }
    if !base_url.tls && !why.contains("was not connected") {
        return "what listens there does not speak plain HTTP: write https:// in [upstream] base_url";
    }
    "correct [upstream] base_url, start the service, or mend the network between"
}

fn self_reference(facts: &Facts) -> CheckVerdict {
    match (&facts.itself, &facts.base_url) {
        (Some(why), _) => CheckVerdict::Fail(why.clone()),
        (None, Some(base_url)) => CheckVerdict::Pass(format!("{base_url} is another address")),
        (None, None) => CheckVerdict::Skip("no service is known".to_owned()),
    }
}

fn key(facts: &Facts) -> CheckVerdict {
    if let Daemon::Runs(status, _) = &facts.daemon
        && status
            .traffic
            .held_back_by
            .iter()
            .any(|cause| cause == "key")
    {
        return CheckVerdict::Fail(
            "the service refuses it, and holds paid requests back".to_owned(),
        );
    }
    match &facts.service {
        ServiceProbe::Took(_) => CheckVerdict::Pass("the service takes it".to_owned()),
        ServiceProbe::Refuses(why) => CheckVerdict::Fail(why.clone()),
        ServiceProbe::NoKey(why) => CheckVerdict::Fail(why.clone()),
        ServiceProbe::Answered(why) | ServiceProbe::Unreached(why) | ServiceProbe::Unasked(why) => {
            CheckVerdict::Skip(format!("not known: {why}"))
        }
    }
}

/// What the ledger's newest attempts say, and what the running daemon saw since its start.
fn balance(facts: &Facts) -> CheckVerdict {
    let empty =
        |at: &str| CheckVerdict::Fail(format!("the service said it is empty (402), at {at}"));
    if let Daemon::Runs(status, _) = &facts.daemon
        && let Some(at) = &status.key.balance_empty
    {
        return empty(at);
    }
    let entries = match &facts.entries {
        Ok(entries) => entries,
        Err(why) => return CheckVerdict::Skip(why.clone()),
    };
    let attempts = entries.iter().rev().flat_map(|entry| {
        let attempts = entry.attempts.iter().rev();
        attempts.map(|attempt| (entry.at_ms, attempt))
    });
    for (at_ms, attempt) in attempts {
        match (attempt.end, attempt.status) {
            (_, Some(402)) => return empty(&calendar::rfc3339(at_ms).unwrap_or_default()),
            (AttemptEnd::Answered, _) => {
                let at = calendar::rfc3339(at_ms).unwrap_or_default();
                return CheckVerdict::Pass(format!("a paid request succeeded at {at}"));
            }
            _ => {}
        }
    }
    CheckVerdict::Skip("no paid request has shown it yet".to_owned())
}

fn clock(facts: &Facts) -> CheckVerdict {
    let entries = facts.entries.as_deref().unwrap_or_default();
    let newest_ms = entries.iter().map(|entry| entry.at_ms).max();
    if let Some(ahead_ms) = newest_ms.and_then(|newest_ms| newest_ms.checked_sub(facts.now_ms))
        && ahead_ms > CLOCK_SLACK_MS
    {
        return CheckVerdict::Fail(format!(
            "the ledger has an entry that lies {} s in the future",
            ahead_ms / 1000
        ));
    }
    if let Some(off) = facts.daemon.clock_off() {
        return CheckVerdict::Fail(off);
    }
    match &facts.service {
        ServiceProbe::Took(Some(Clocks { service_ms, own_ms })) => {
            let apart_ms = service_ms.abs_diff(*own_ms);
            let apart = format!("{} s apart from the service's", apart_ms / 1000);
            match apart_ms > CLOCK_SLACK_MS {
                true => CheckVerdict::Fail(apart),
                false => CheckVerdict::Pass(apart),
            }
        }
        _ if newest_ms.is_some() => CheckVerdict::Skip(
            "no entry of the ledger lies ahead of it; the service's clock is not known".to_owned(),
        ),
        _ => CheckVerdict::Skip("there is nothing to compare it with".to_owned()),
    }
}

fn disk(facts: &Facts) -> CheckVerdict {
    if let Daemon::Runs(status, _) = &facts.daemon
        && let Some(why) = &status.ledger.unavailable
    {
        return CheckVerdict::Fail(format!("the ledger cannot be written: {why}"));
    }
    match &facts.free_bytes {
        Ok(free) if *free < FREE_BYTES_MIN => {
            CheckVerdict::Fail(format!("{} MiB are free", free >> 20))
        }
        Ok(free) => CheckVerdict::Pass(format!("{} MiB are free", free >> 20)),
        Err(why) => CheckVerdict::Skip(why.clone()),
    }
}

fn fsync(facts: &Facts) -> CheckVerdict {
    let Some(commits) = facts.commits else {
        return CheckVerdict::Skip("a running daemon knows it".to_owned());
    };
    let Some(average) = commits.took.checked_div(commits.count) else {
        return CheckVerdict::Skip("the daemon has committed nothing yet".to_owned());
    };
    let micros = average.as_micros();
    let found = format!(
        "{}.{:03} ms on average of {}",
        micros / 1000,
        micros % 1000,
        counted(commits.count, "commit", "commits")
    );
    match average > COMMIT_MAX {
        true => CheckVerdict::Fail(found),
        false => CheckVerdict::Pass(found),
    }
}

fn streaming(facts: &Facts) -> CheckVerdict {
    let entries = match &facts.entries {
        Ok(entries) => entries,
        Err(why) => return CheckVerdict::Skip(why.clone()),
    };
    let streams = entries
        .iter()
        .rev()
        .filter_map(StreamTiming::of)
        .take(JUDGED);
    let streams: Vec<StreamTiming> = streams.collect();
    let late = streams.iter().filter(|stream| stream.is_late()).count();
    if streams.is_empty() {
        return CheckVerdict::Skip("no stream of late took over 2 s".to_owned());
    }
    let found = format!(
        "the first byte came behind 90 % of the time in {late} of the last {}",
        counted(streams.len(), "stream over 2 s", "streams over 2 s")
    );
    // One that thought for long and had little to say is late, too; most are not.
    match late * 2 > streams.len() {
        true => CheckVerdict::Fail(found),
        false => CheckVerdict::Pass(found),
    }
}

/// When a stream began and ended, since its last attempt began.
struct StreamTiming {
    first_byte_ms: u64,
    took_ms: u64,
}

// === impl StreamTiming ===

impl StreamTiming {
    /// Of an entry that was streamed to its end, and took long enough to be judged.
    fn of(entry: &EntryView) -> Option<Self> {
        let timings = entry.timings?;
        let last = entry.attempts.last()?;
        // An agent turn that was bought whole, and streamed here.
        let is_made_here =
            entry.lane == Lane::Agent && entry.receipt_source == Some(ReceiptSource::Header);
        let is_whole = entry.stream == Some(true) && last.end == AttemptEnd::Answered;
        if !is_whole || is_made_here || last.took_ms < STREAM_MS_MIN {
            return None;
        }
        // What waited for a place, or for another attempt, is no part of it.
        let before_ms = timings.total_ms.saturating_sub(last.took_ms);
        Some(Self {
            first_byte_ms: timings.first_byte_ms?.saturating_sub(before_ms),
            took_ms: last.took_ms,
        })
    }

    fn is_late(&self) -> bool {
        self.first_byte_ms.saturating_mul(10) > self.took_ms.saturating_mul(9)
    }
}

fn receipts(facts: &Facts) -> CheckVerdict {
    let entries = match &facts.entries {
        Ok(entries) => entries,
        Err(why) => return CheckVerdict::Skip(why.clone()),
    };
    let table = RouteTable::new(&[]);
    let priced = |operation: Operation| {
        let mut rows = table.rows().iter();
        rows.any(|row| {
            row.operation == operation
                && matches!(
                    row.receipt,
                    ReceiptFrom::HeadersAndComments | ReceiptFrom::BodyCost
                )
        })
    };
    let is_answered = |entry: &&EntryView| {
        let last = entry.attempts.last();
        let is_stream_of_agent = entry.lane == Lane::Agent && entry.stream == Some(true);
        last.is_some_and(|last| last.end == AttemptEnd::Answered)
            && !is_stream_of_agent
            && priced(entry.operation)
    };
    let answers = entries.iter().rev().filter(is_answered).take(JUDGED);
    let answers: Vec<&EntryView> = answers.collect();
    let is_reported = |entry: &&&EntryView| entry.receipt == ReceiptWord::Reported;
    let reported = answers.iter().filter(is_reported).count();
    if answers.is_empty() {
        return CheckVerdict::Skip("there is no paid answer yet".to_owned());
    }
    let found = format!(
        "a price in {reported} of the last {}",
        counted(answers.len(), "answer", "answers")
    );
    match reported * 2 < answers.len() {
        true => CheckVerdict::Fail(found),
        false => CheckVerdict::Pass(found),
    }
}

// === impl DoctorCheck ===

impl DoctorCheck {
    pub fn look(&self, facts: &Facts) -> CheckVerdict {
        (self.judge)(facts)
    }
}

// === impl CheckVerdict ===

impl CheckVerdict {
    pub const PASS: &'static str = "pass";
    pub const FAIL: &'static str = "fail";
    pub const SKIP: &'static str = "skip";

    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass(_) => Self::PASS,
            Self::Fail(_) | Self::Treatable { .. } => Self::FAIL,
            Self::Skip(_) => Self::SKIP,
        }
    }
}

#[cfg(test)]
mod tests;
