//! `bursar exec`: a real child with its own token and limit, in front of a real daemon and the sandbox.
//!
//! The children are Python programs of the standard library alone. They write a line and wait for one
//! where the test has to do something between.

mod launch;
mod restart;
mod signals;

use std::path::Path;
use std::process::{Output, Stdio};

use bursar::ledger::query::EntryView;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, Signal, command, send};
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, KEY, Origin, Sandbox, Step, chat, eventually, within};

/// What every child begins with: `ask(prompt)` answers the status and the body.
const PREAMBLE: &str = r#"
import json, os, signal, sys, threading, time, urllib.error, urllib.request
def ask(prompt):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({"model": "auto", "messages": [{"role": "user", "content": prompt}]}).encode()
    headers = {"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
def say(*words):
    print(*words, flush=True)
"#;

/// A daemon with an app `nightly` in front of a service.
struct Place {
    folder: tempfile::TempDir,
    daemon: Daemon,
}

/// A running `bursar exec`, and the pipes to its child.
struct Talk {
    exec: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Place {
    async fn before(upstream: &str) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        let daemon = Daemon::start(upstream, &folder.path().join("state"), &[]).await;
        let place = Self { folder, daemon };
        let added = place.bursar(&["app", "add", "nightly"]).output().await;
        assert!(added.expect("it ends").status.success());
        place
    }

    fn state(&self) -> String {
        let state = self.folder.path().join("state");
        state.to_str().expect("a UTF-8 path").to_owned()
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a child of the test finds Python where the test would"
    )]
    fn bursar(&self, arguments: &[&str]) -> Command {
        let state = self.state();
        let (before, after) = match arguments.iter().position(|word| *word == "--") {
            Some(at) => arguments.split_at(at),
            None => (arguments, &[][..]),
        };
        let mut command = command(&[before, &["--state-dir", &state], after].concat());
        // Where Python is.
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    fn exec(&self, options: &[&str], script: &str) -> Command {
        let script = format!("{PREAMBLE}{script}");
        let whole = [
            &["exec", "--app", "nightly"],
            options,
            &["--", "python3", "-c", &script],
        ];
        self.bursar(&whole.concat())
    }

    async fn done(&self, options: &[&str], script: &str) -> Output {
        let output = self.exec(options, script).output().await;
        output.expect("exec ends")
    }

    fn talk(&self, options: &[&str], script: &str) -> Talk {
        let mut command = self.exec(options, script);
        command.stdin(Stdio::piped());
        let mut exec = command.spawn().expect("exec starts");
        Talk {
            input: exec.stdin.take().expect("a pipe"),
            output: BufReader::new(exec.stdout.take().expect("a pipe")).lines(),
            exec,
        }
    }

    fn entries(&self) -> Vec<EntryView> {
        entries(Path::new(&self.state()))
    }

    /// A run whose child waits for a line, and its token.
    async fn waiting_run(&self) -> (Talk, String) {
        let script = "say(os.environ['OPENAI_API_KEY'])\nsys.stdin.readline()\n";
        let mut talk = self.talk(&[], script);
        let token = talk.line().await;
        (talk, token)
    }

    /// The code of the answer to one request with this token.
    async fn code(&self, token: &str) -> Option<String> {
        let answer = ask(&self.daemon, token, "mine").await;
        answer.code().map(str::to_owned)
    }
}

async fn ask(daemon: &Daemon, token: &str, prompt: &str) -> Answer {
    let mut wire = daemon.connect().await;
    let shown = format!("Bearer {token}");
    let headers = [("Authorization", shown.as_str())];
    wire.send(request(
        "POST",
        "/v1/chat/completions",
        &headers,
        &chat(prompt),
    ))
    .await;
    wire.answer().await
}

impl Talk {
    async fn line(&mut self) -> String {
        let line =
            tokio::time::timeout(std::time::Duration::from_secs(20), self.output.next_line());
        let line = line.await.expect("a line within 20 s").expect("a pipe");
        line.expect("a line")
    }

    async fn go(&mut self) {
        self.input.write_all(b"go\n").await.expect("a line is sent");
    }

    /// Its exit, and its standard error.
    async fn end(mut self) -> (Option<i32>, String) {
        drop(self.input);
        let status = self.exec.wait().await.expect("a status");
        let mut said = String::new();
        let mut stderr = self.exec.stderr.take().expect("a pipe");
        stderr.read_to_string(&mut said).await.expect("UTF-8");
        (status.code(), said)
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The receipt that `--json` prints on standard error.
fn receipt(said: &str) -> Value {
    let line = said.lines().find(|line| line.starts_with('{'));
    serde_json::from_str(line.unwrap_or_else(|| panic!("no receipt: {said}"))).expect("JSON")
}

#[tokio::test]
async fn a_command_spends_as_the_app_and_leaves_a_receipt() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    let script = r#"
say(sys.stdin.read())
for number in range(3):
    status, body = ask(f"question {number}")
    assert status == 200, body
say(json.dumps(dict(os.environ)))
sys.exit(7)
"#;
    let mut exec = place.exec(&["--json", "--max-usd", "2"], script);
    exec.env("HTTP_PROXY", "http://127.0.0.1:9")
        .env("NO_PROXY", "corp.example");
    exec.stdin(Stdio::piped());
    let mut exec = exec.spawn().expect("exec starts");
    let mut input = exec.stdin.take().expect("a pipe");
    input.write_all(b"from the terminal").await.expect("input");
    drop(input);
    let output = exec.wait_with_output().await.expect("exec ends");

    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    let mut lines = printed.lines();
    assert_eq!(lines.next(), Some("from the terminal"));
    let environment: Value = serde_json::from_str(lines.next().expect("a line")).expect("JSON");
    assert_eq!(
        environment["OPENAI_BASE_URL"],
        format!("http://{}/v1", place.daemon.proxy)
    );
    assert_eq!(
        environment["OPENAI_API_BASE"],
        environment["OPENAI_BASE_URL"]
    );
    assert_eq!(
        environment["NO_PROXY"],
        "corp.example,127.0.0.1,localhost,::1"
    );
    assert!(!printed.contains(KEY), "the organization's key");
    assert!(environment.get("BURSAR_API_KEY").is_none());

    let receipt = receipt(&said(&output));
    let debited = sandbox.debited().await;
    assert_eq!(receipt["app"], "nightly");
    assert_eq!(receipt["requests"], 3);
    assert_eq!(receipt["billed_micro_usd"], debited);
    assert_eq!(receipt["run"], environment["BURSAR_RUN"]);
    let compared = receipt["compared"].as_u64().expect("a count");
    let saved = receipt["saved_micro_usd"].as_u64();
    let estimates: u64 = place
        .entries()
        .iter()
        .filter_map(|entry| entry.would_have_cost_micro_usd)
        .map(|sum| sum.get())
        .sum();
    assert_eq!(compared, 3, "the sandbox reports both prices");
    assert_eq!(saved, estimates.checked_sub(debited));
    for entry in place.entries() {
        assert_eq!(&*entry.app, "nightly");
        assert_eq!(entry.run.as_deref(), environment["BURSAR_RUN"].as_str());
    }
    // The token ended with the run.
    let token = environment["OPENAI_API_KEY"].as_str().expect("a token");
    let code = place.code(token).await;
    // A request that had passed the door is refused because its run has ended.
    let refused = [Some("token_refused"), Some("run_ended")];
    assert!(refused.contains(&code.as_deref()), "{code:?}");
    place.daemon.terminate().await;
}

#[tokio::test]
async fn at_its_limit_a_run_gets_402_and_passes_it_by_one_request_at_most() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    // Eight threads that continue until they are refused; some questions are hard, and dearer.
    let script = r#"
refused = []
def work(thread):
    for number in range(1000):
        hard = "hard: prove it" if number % 3 == 0 else "What is 2 + 3?"
        status, body = ask(f"{hard} {thread} {number}")
        if status != 200:
            refused.append((status, json.loads(body)))
            return
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert {status for status, _ in refused} == {402}, refused
say(refused[0][1]["error"]["code"])
say(refused[0][1]["error"]["message"])
"#;
    let max = 2_000;
    let output = place.done(&["--json", "--max-usd", "0.002"], script).await;

    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let receipt = receipt(&said(&output));
    let run = receipt["run"].as_str().expect("a run");
    let printed = String::from_utf8(output.stdout.clone()).expect("UTF-8");
    assert!(printed.starts_with("cap_reached\n"), "{printed}");
    assert!(
        printed.contains(run) && printed.contains("nightly") && printed.contains("$0.002000"),
        "{printed}"
    );
    let debits = sandbox.debits().await;
    let amounts: Vec<u64> = debits
        .iter()
        .filter_map(|debit| debit["amount_micro_usd"].as_u64())
        .collect();
    let (debited, dearest) = (
        amounts.iter().sum::<u64>(),
        amounts.iter().max().copied().expect("a debit"),
    );
    assert!(debited >= max, "the run stops at {debited} of {max}");
    assert!(
        debited <= max + dearest,
        "{debited} of {max}, the dearest {dearest}"
    );
    assert_eq!(receipt["billed_micro_usd"], debited);
    // The next run has a limit of its own.
    let output = place
        .done(&["--max-usd", "0.002"], "assert ask('again')[0] == 200")
        .await;
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_limit_of_nothing_sends_nothing() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let script = r#"
status, body = ask("x")
say(status)
with urllib.request.urlopen(urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/models",
        headers={"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]})) as answer:
    say(answer.status)
"#;
    let output = place.done(&["--max-usd", "0"], script).await;

    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "402\n200\n",
        "{}",
        said(&output)
    );
    assert_eq!(origin.received().len(), 1, "what is free goes on");
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_killed_exec_takes_its_token_along() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let (mut talk, token) = place.waiting_run().await;
    assert_eq!(place.code(&token).await, None);

    talk.exec.kill().await.expect("exec is killed");

    within(
        std::time::Duration::from_secs(10),
        "the token to end",
        || async { (place.code(&token).await.as_deref() == Some("token_refused")).then_some(()) },
    )
    .await;
    place.daemon.terminate().await;
}

#[tokio::test]
async fn signals_reach_the_child_once_and_its_end_is_ours() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let script = r#"
signals = {signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
say("ready")
for _ in range(4):
    say("got", int(signal.sigwait(signals)))
sys.exit(44 if not signal.sigpending() else 1)
"#;
    let mut talk = place.talk(&[], script);
    assert_eq!(talk.line().await, "ready");
    for (sent, number) in [
        (Signal::INT, 2),
        (Signal::HUP, 1),
        (Signal::QUIT, 3),
        (Signal::TERM, 15),
    ] {
        send(&talk.exec, sent);
        assert_eq!(talk.line().await, format!("got {number}"));
    }
    assert_eq!(talk.end().await.0, Some(44));

    // A child that dies of a signal.
    let mut talk = place.talk(
        &[],
        "signal.signal(signal.SIGTERM, signal.SIG_DFL)\nsay('ready')\nsignal.pause()\n",
    );
    assert_eq!(talk.line().await, "ready");
    send(&talk.exec, Signal::TERM);
    assert_eq!(talk.end().await.0, Some(128 + 15));
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_child_that_forks_spends_with_its_children() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let script = r#"
for number in range(3):
    if os.fork() == 0:
        assert ask(f"child {number}")[0] == 200
        os._exit(0)
for number in range(3):
    assert os.wait()[1] == 0
assert ask("parent")[0] == 200
"#;
    let output = place.done(&["--json"], script).await;

    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let receipt = receipt(&said(&output));
    assert_eq!(
        (&receipt["requests"], &receipt["billed_micro_usd"]),
        (&4.into(), &28.into())
    );
    place.daemon.terminate().await;
}

#[tokio::test]
async fn a_run_outlives_its_daemon_and_keeps_its_limit() {
    let origin = Origin::always(Step::Answer(billed(700_000))).await;
    let place = Place::before(&origin.url()).await;
    let script = r#"
say(ask("first")[0])
sys.stdin.readline()
while True:
    try:
        status = ask("second")[0]
    except urllib.error.URLError:
        continue
    if status != 401:
        break
say(status)
say(ask("third")[0])
"#;
    let mut talk = place.talk(&["--json", "--max-usd", "1"], script);
    assert_eq!(talk.line().await, "200");
    let address = place.daemon.proxy.to_string();
    let (folder, daemon) = (place.folder, place.daemon);
    daemon.kill().await;
    let state = folder.path().join("state");
    let url = origin.url();
    let again = [
        "run",
        "--upstream",
        &url,
        "--listen",
        &address,
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        state.to_str().expect("a UTF-8 path"),
    ];
    let daemon = Daemon::ready(command(&again)).await;
    talk.go().await;
    assert_eq!(talk.line().await, "200", "0.70 of 1.00 were spent");
    assert_eq!(talk.line().await, "402", "1.40 of 1.00 are");
    let (code, said) = talk.end().await;
    assert_eq!(code, Some(0), "{said}");
    let receipt = receipt(&said);
    assert_eq!(receipt["requests"], 2, "{receipt}");
    assert_eq!(receipt["billed_micro_usd"], 1_400_000);
    daemon.terminate().await;
}

#[tokio::test]
async fn what_cannot_run_says_so() {
    let origin = Origin::always(Step::Answer(billed(7))).await;
    let place = Place::before(&origin.url()).await;
    let run = |app: &'static str, program: &'static str| {
        let mut exec = place.bursar(&["exec", "--app", app, "--", program]);
        async move { exec.output().await.expect("it ends") }
    };
    for (app, program, code, part) in [
        ("nobody", "true", 1, "there is no app \"nobody\""),
        ("default", "true", 1, "there is no app \"default\""),
        ("nightly", "no-such-program", 127, "cannot be started"),
        ("nightly", "/", 126, "cannot be started"),
        ("nightly", "/etc/passwd", 126, "cannot be started"),
    ] {
        let output = run(app, program).await;
        assert_eq!(
            output.status.code(),
            Some(code),
            "{app} {program}: {}",
            said(&output)
        );
        assert!(said(&output).contains(part), "{}", said(&output));
    }
    let output = place
        .bursar(&["exec", "--app", "nightly"])
        .output()
        .await
        .expect("it ends");
    assert_eq!(output.status.code(), Some(2), "a command is wanted");
    // An app that is removed ends the run in the middle.
    let mut talk = place.talk(
        &[],
        "say(ask('a')[0])\nsys.stdin.readline()\nsay(ask('b')[0])\n",
    );
    assert_eq!(talk.line().await, "200");
    let removed = place.bursar(&["app", "remove", "nightly"]).output().await;
    assert!(removed.expect("it ends").status.success());
    talk.go().await;
    assert_eq!(talk.line().await, "401");
    assert_eq!(talk.end().await.0, Some(0));

    let (folder, daemon) = (place.folder, place.daemon);
    daemon.terminate().await;
    let state = folder.path().join("state");
    let state = state.to_str().expect("a UTF-8 path");
    let alone = [
        "exec",
        "--app",
        "nightly",
        "--state-dir",
        state,
        "--",
        "true",
    ];
    let output = command(&alone).output().await.expect("it ends");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said(&output).contains("no daemon runs"),
        "{}",
        said(&output)
    );
}

/// A run waits for others only as long as its app does.
#[tokio::test]
async fn a_request_that_waits_for_its_run_goes_when_there_is_room() {
    let origin = Origin::start([
        Step::Pieces(vec![billed(700_000)]),
        Step::Answer(billed(200_000)),
    ])
    .await;
    let place = Place::before(&origin.url()).await;
    let script = r#"
results = []
threads = [threading.Thread(target=lambda n=n: results.append(ask(f"number {n}")[0])) for n in range(2)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
say(results)
"#;
    let mut talk = place.talk(&["--json", "--max-usd", "1"], script);
    eventually("one of the two to be sent", || async {
        (origin.received().len() == 1).then_some(())
    })
    .await;
    origin.go();
    assert_eq!(talk.line().await, "[200, 200]");
    let (code, said) = talk.end().await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(receipt(&said)["billed_micro_usd"], 900_000);
    place.daemon.terminate().await;
}

/// A long key is bought under for little, then dear requests go out under a text that was its hash in the
/// ledger of an older bursar.
#[tokio::test]
async fn no_spelling_of_a_key_passes_max_usd() {
    let sandbox = Sandbox::start().await;
    let place = Place::before(&sandbox.url()).await;
    let long = |round| format!("{round}{}", "k".repeat(299));
    let hashes: Vec<String> = (0..6)
        .map(|round| blake3::hash(long(round).as_bytes()).to_hex().to_string())
        .collect();
    let script = format!(
        r#"
def own(prompt, key):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    body = json.dumps({{"model": "auto", "messages": [{{"role": "user", "content": prompt}}]}}).encode()
    headers = {{"Content-Type": "application/json", "Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
        "Idempotency-Key": key}}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
for at, hash in enumerate({hashes:?}):
    say(own("hi", str(at) + "k" * 299), own("Tell me all of it. " * 300, "h:" + hash))
"#
    );

    let done = place.done(&["--json", "--max-usd", "0.001"], &script).await;

    let printed = String::from_utf8_lossy(&done.stdout);
    let said = said(&done);
    assert!(
        printed.contains("200") && printed.contains("402"),
        "{printed}\n{said}"
    );
    let billed: u64 = place
        .entries()
        .iter()
        .filter_map(|entry| entry.billed_micro_usd)
        .map(bursar::money::MicroUsd::get)
        .sum();
    assert_eq!(billed, sandbox.debited().await, "{printed}\n{said}");
    let receipt = receipt(&said);
    assert_eq!(receipt["billed_micro_usd"], billed);
    place.daemon.terminate().await;
}
