//! The daemon as a child process before the witness, and the judging of one case.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::admin::AdminCase;
use super::case::{Case, May, Sent, get, hidden};
use super::witness::{Seen, Witness};
use crate::support::bursar::{FEW_CONNECTIONS, NO_LIMITS, entries};
use crate::support::daemon::{self, Daemon};
use crate::support::{Answer, KEY, Wire, chat};

/// Far more than any answer takes; a case that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(8);

/// A daemon under attack.
pub struct Stage {
    pub witness: Witness,
    pub daemon: Daemon,
    directory: TempDir,
}

/// The position of a case on its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// First on a connection over TCP, and alone.
    First,
    /// The same, directly followed by a request that spends.
    BeforeAnother,
    /// On a Unix socket, after a request that was served; it comes with the end of that one's body.
    Second,
}

/// A free request but for the last byte of its body.
const FIRST: &str = "POST /v1/tasks/match HTTP/1.1\r\nHost: localhost\r\n\
                     Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{";

// === impl Stage ===

impl Stage {
    pub async fn open() -> Self {
        Self::before(Witness::start().await).await
    }

    pub async fn before(witness: Witness) -> Self {
        Self::with(witness, |command| command).await
    }

    /// The same, and the command may be wrapped.
    pub async fn with(witness: Witness, wrap: impl Fn(Command) -> Command) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let url = witness.url();
        let config = directory.path().join("bursar.toml");
        // No request waits for a place at the service: the question here is which requests get
        // there.
        let lines = format!("{FEW_CONNECTIONS}{NO_LIMITS}");
        std::fs::write(&config, lines).expect("a config");
        let listened = format!("unix:{}", socket(&directory).display());
        let mut arguments = daemon::run_arguments(&url, state.to_str().expect("a UTF-8 path"));
        arguments.extend(["--config", config.to_str().expect("a UTF-8 path")]);
        arguments.extend(["--listen", &listened]);
        let mut command = wrap(daemon::command(&arguments));
        let log = File::create(directory.path().join("stderr")).expect("a file for the log");
        command.stderr(Stdio::from(log));
        let daemon = Daemon::launched(command).await.expect("the daemon starts");
        Self {
            witness,
            daemon,
            directory,
        }
    }

    /// Everything the daemon has logged.
    pub fn logged(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("stderr")).expect("a log")
    }

    pub fn entries(&self) -> usize {
        entries(&self.directory.path().join("state")).len()
    }

    /// The first number of a line of `/proc/PID/FILE`.
    pub fn proc_number(&self, file: &str, line: &str) -> u64 {
        let pid = self.daemon.child.id().expect("a running child");
        let text = std::fs::read_to_string(format!("/proc/{pid}/{file}")).expect("a file of /proc");
        let found = text.lines().find_map(|known| known.strip_prefix(line));
        let words = found.expect("the line").trim_start_matches(':');
        let number = words.split_whitespace().next().expect("a number");
        number.parse().expect("a number")
    }

    /// Descriptors that the daemon has open. `None`: the kernel reports them to root only, because
    /// the daemon keeps its memory private.
    pub fn descriptors(&self) -> Option<usize> {
        let pid = self.daemon.child.id().expect("a running child");
        let open = std::fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
        Some(open.count())
    }

    /// Judges a case; returns how many ledger entries it may have made.
    pub async fn judge(&self, case: &Case) -> Result<usize, String> {
        let mut made = self.trial(case, Place::First).await?;
        let second = self.trial(case, Place::Second).await;
        made += second.map_err(|why| format!("as the second request, on a Unix socket: {why}"))?;
        if !case.ends && !case.bytes.starts_with(b"HEAD ") {
            let behind = match &case.may {
                May::Refused(_) | May::Either(..) => true,
                May::Relayed(sent) => sent.ends,
                May::Local(_) => false,
            };
            if behind {
                let tried = self.trial(case, Place::BeforeAnother).await;
                made += tried.map_err(|why| format!("with a request behind it: {why}"))?;
            }
        }
        Ok(made)
    }

    async fn trial(&self, case: &Case, place: Place) -> Result<usize, String> {
        let mut before = self.witness.count();
        let mut wire = self.daemon.connect().await;
        let mut bytes = case.bytes.clone();
        let behind = place == Place::BeforeAnother;
        if behind {
            bytes.extend(hidden());
        }
        if place == Place::Second {
            wire = Wire::unix(&socket(&self.directory)).await;
            before += 1;
            wire.send(FIRST).await;
            bytes.insert(0, b'}');
        }
        let is_head = case.bytes.starts_with(b"HEAD ");
        let talk = async {
            wire.try_send(&bytes).await;
            if case.ends {
                wire.half_close_if_open().await;
            }
            if place == Place::Second {
                let first = wire.answer().await;
                if first.status != 200 {
                    return first;
                }
            }
            if is_head {
                wire.head_answer().await
            } else {
                wire.answer().await
            }
        };
        let answer = timeout(PATIENCE, talk).await.map_err(|_| "no answer")?;
        if format!("{answer:?}").contains(KEY) {
            return Err("the key in the answer".into());
        }
        let relayed = answer.code().is_none() && answer.status == 200;
        let judged = match &case.may {
            May::Refused(codes) => self.refused(&mut wire, &answer, codes, before).await,
            May::Either(codes, _) if !relayed => {
                self.refused(&mut wire, &answer, codes, before).await
            }
            May::Relayed(sent) | May::Either(_, sent) => {
                self.relayed(wire, &answer, sent, before, case, behind)
                    .await
            }
            May::Local(status) => {
                let came = self.witness.since(before);
                match answer.status == *status && came.is_empty() {
                    true => Ok(0),
                    false => Err(format!("{} and {came:?}", shown(&answer))),
                }
            }
        };
        let complaints = self.witness.complaints();
        if complaints.is_empty() {
            judged
        } else {
            Err(complaints.join("; "))
        }
    }

    async fn refused(
        &self,
        wire: &mut Wire,
        answer: &Answer,
        codes: &[&str],
        before: usize,
    ) -> Result<usize, String> {
        let code = answer.code().unwrap_or("no refusal");
        if !codes.contains(&code) {
            return Err(format!("{} instead of {codes:?}", shown(answer)));
        }
        let cors = |(name, _): &(String, String)| name.starts_with("access-control-");
        let fit = answer.complete
            && (400..600).contains(&answer.status)
            && answer.header("x-should-retry") == Some("false")
            && !answer.headers.iter().any(cors);
        if !fit {
            return Err(format!("not the form of a refusal: {answer:?}"));
        }
        wire.half_close_if_open().await;
        let ends = timeout(PATIENCE, wire.ends()).await;
        if ends != Ok(true) {
            return Err("the connection did not end behind the refusal".into());
        }
        let came = self.witness.since(before);
        if came.is_empty() {
            Ok(0)
        } else {
            Err(format!("refused, and reached the origin: {came:?}"))
        }
    }

    async fn relayed(
        &self,
        mut wire: Wire,
        answer: &Answer,
        sent: &Sent,
        before: usize,
        case: &Case,
        behind: bool,
    ) -> Result<usize, String> {
        let came = self.witness.since(before);
        let hid = came
            .iter()
            .any(|seen| seen.body == chat("hidden").as_bytes());
        if sent.ends && hid {
            return Err("what hid behind it reached the origin".into());
        }
        if answer.status != 200 || !answer.complete || came.is_empty() {
            return Err(format!("{} instead of its answer", shown(answer)));
        }
        check(&came[0], sent)?;
        if sent.ends {
            wire.half_close_if_open().await;
            if timeout(PATIENCE, wire.ends()).await != Ok(true) || came.len() != 1 {
                return Err(format!("more came behind it: {came:?}"));
            }
        } else if !case.ends {
            // In step: the next bytes on the connection are read as one request.
            if !behind {
                wire.send(get("/v1/models?next", "")).await;
            }
            let next = timeout(PATIENCE, wire.answer()).await;
            let next = next.map_err(|_| "no answer to the next request")?;
            let came = self.witness.since(before);
            let wanted = if behind {
                Sent::chat(chat("hidden"))
            } else {
                Sent::get("/v1/models?next")
            };
            let [_, second] = came.as_slice() else {
                return Err(format!("out of step: {} {came:?}", shown(&next)));
            };
            check(second, &wanted)?;
        } else {
            // The other bytes on the connection are not a request.
            while timeout(PATIENCE, wire.answer())
                .await
                .map_err(|_| "no end")?
                .status
                != 0
            {}
            let came = self.witness.since(before);
            if came.len() != 1 {
                return Err(format!("more came behind it: {came:?}"));
            }
        }
        Ok(usize::from(sent.metered) + usize::from(behind && !sent.ends))
    }

    /// Judges a case at the admin listener.
    pub async fn judge_admin(&self, case: &AdminCase) -> Result<(), String> {
        let mut wire = Wire::tcp(self.daemon.admin).await;
        let is_head = case.bytes.starts_with(b"HEAD ");
        let talk = async {
            wire.try_send(&case.bytes).await;
            if is_head {
                wire.head_answer().await
            } else {
                wire.answer().await
            }
        };
        let answer = timeout(PATIENCE, talk).await.map_err(|_| "no answer")?;
        if format!("{answer:?}").contains(KEY) {
            return Err("the key in the answer".into());
        }
        if !case.statuses.contains(&answer.status) {
            return Err(format!("{} instead of {:?}", shown(&answer), case.statuses));
        }
        let cors = |(name, _): &(String, String)| name.starts_with("access-control-");
        if answer.headers.iter().any(cors) {
            return Err("an Access-Control header".into());
        }
        // Names of metrics, and amounts. The type of bursar's errors begins like the former.
        let text = answer.text().replace("bursar_error", "");
        let leaks = text.contains("bursar_") || text.contains("billed");
        if answer.status != 200 && leaks {
            return Err(format!("shows: {}", answer.text()));
        }
        if self.witness.count() > 0 {
            return Err("reached the origin".into());
        }
        Ok(())
    }

    /// A clean request is answered; then the daemon ends in order, with the given number of entries
    /// and no panic.
    pub async fn close(self, entries: usize) {
        let answer = self
            .daemon
            .connect()
            .await
            .post(super::case::CHAT, &chat("clean"))
            .await;
        assert_eq!(answer.status, 200, "the daemon does not go on");
        assert_eq!(self.witness.complaints(), Vec::<String>::new());
        assert_eq!(self.entries(), entries + 1, "entries in the ledger");
        let logged = self.logged();
        assert!(!logged.contains("panicked"), "{logged}");
        assert!(!logged.contains(KEY), "the key in the log");
        self.daemon.terminate().await;
    }
}

/// The actual requests against the permitted ones.
fn check(seen: &Seen, sent: &Sent) -> Result<(), String> {
    if seen.line != sent.line || seen.body != sent.body {
        let body = seen.body[..seen.body.len().min(200)].escape_ascii();
        return Err(format!("the origin saw {} with {body}", seen.line));
    }
    for (name, value) in &sent.headers {
        let values = seen.all(name);
        let fits = match value {
            Some(value) => values == [value],
            None => values.is_empty(),
        };
        if !fits {
            return Err(format!("{name}: {values:?} instead of {value:?}"));
        }
    }
    Ok(())
}

fn socket(directory: &TempDir) -> PathBuf {
    directory.path().join("app.sock")
}

fn shown(answer: &Answer) -> String {
    let code = answer.code().unwrap_or("no code of bursar's");
    let text: String = answer.text().chars().take(120).collect();
    format!("{} ({code}) {text}", answer.status)
}
