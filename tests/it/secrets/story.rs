//! The main story at the most verbose level, and then a search of everything that was written: logs,
//! both kinds of output, metrics, admin pages, the state directory with its quarantine, temporary files,
//! the process's arguments and environment, and what the command line prints.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::search::{Needle, Place, found};
use crate::support::daemon::{Signal, send};
use crate::support::origin::{self, chunk, last_chunk, stream_head};
use crate::support::wire::{Wire, request};
use crate::support::{
    Answer, KEY, Origin, Sandbox, Step, chat, chat_stream, eventually, messages_stream,
    responses_stream,
};

const CHAT: &str = "/v1/chat/completions";
const AGENT: &str = "/agent/v1/chat/completions";

/// The text that an app sends, the key of its own that it brings, and the text that a service
/// answers.
const PROMPT: &str = "marmalade-prompt-0815";

/// Host, origin and path of a request that is refused are names, which the log may have.
const NAMED: &str = "named.example";
const APP_KEY: &str = "sk-of-the-app-4711-abcdef";
const ANSWER: &str = "quince-answer-2342";

/// A daemon that writes all its output into files, and the folder around it.
struct House {
    directory: TempDir,
    child: Child,
    proxy: SocketAddr,
    admin: SocketAddr,
    /// What was asked of it over HTTP, and of its files by the command line.
    answers: Vec<Place>,
}

/// The configuration, for one upstream and one log format.
fn settings(upstream: &str, format: &str, attempts: u32) -> String {
    format!(
        "[upstream]\nbase_url = \"{upstream}\"\napi_key_file = \"api-key\"\n\
        [listen]\nproxy = [\"127.0.0.1:0\"]\nadmin = [\"127.0.0.1:0\"]\n\
        [ledger]\nstate_dir = \"state\"\n[retry]\nattempts = {attempts}\nbase_ms = 10\n\
        [log]\nlevel = \"trace\"\nformat = \"{format}\"\n"
    )
}

// === impl House ===

impl House {
    async fn build(upstream: &str, format: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("tmp")).expect("a directory");
        std::fs::write(at("config.toml"), settings(upstream, format, 3)).expect("a file");
        std::fs::write(at("api-key"), format!("{KEY}\n")).expect("a file");
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(at("api-key"), mode).expect("a mode");
        let (child, proxy, admin) = Self::launch(directory.path()).await;
        Self {
            directory,
            child,
            proxy,
            admin,
            answers: Vec::new(),
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn program(directory: &Path) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bursar"));
        command
            .env_clear()
            .env("RUST_LOG", "trace")
            .env("RUST_BACKTRACE", "full")
            .env("TMPDIR", directory.join("tmp"))
            .env("BURSAR_CONFIG", directory.join("config.toml"))
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }

    async fn launch(directory: &Path) -> (Child, SocketAddr, SocketAddr) {
        let output = |name: &str| {
            let file = std::fs::File::options()
                .create(true)
                .append(true)
                .open(directory.join(name));
            Stdio::from(file.expect("a file"))
        };
        let before = std::fs::read_to_string(directory.join("stdout")).unwrap_or_default();
        let mut command = Self::program(directory);
        command
            .arg("run")
            .stdout(output("stdout"))
            .stderr(output("stderr"));
        let child = command.spawn().expect("the daemon starts");
        let (proxy, admin) = eventually("the daemon to be ready", || async {
            let said = std::fs::read_to_string(directory.join("stdout")).expect("an output");
            let said = &said[before.len()..];
            let address = |what: &str| {
                let line = said.lines().find_map(|line| line.strip_prefix(what));
                line.and_then(|address| address.parse().ok())
            };
            Some((
                address("proxy listening on http://")?,
                address("admin listening on http://")?,
            ))
        })
        .await;
        (child, proxy, admin)
    }

    async fn restart(&mut self) {
        (self.child, self.proxy, self.admin) = Self::launch(self.directory.path()).await;
    }

    async fn stop(&mut self) {
        send(&self.child, Signal::TERM);
        let ended = self.child.wait().await.expect("an end");
        assert!(ended.success(), "{ended:?}");
    }

    async fn send(&self, path: &str, body: &str) -> Wire {
        let key = format!("Bearer {APP_KEY}");
        let mut app = Wire::tcp(self.proxy).await;
        app.send(request("POST", path, &[("Authorization", &key)], body))
            .await;
        app
    }

    async fn ask(&self, path: &str, body: &str) -> Answer {
        self.send(path, body).await.answer().await
    }

    async fn settle_on(&self, text: &str, reloads: u32) {
        std::fs::write(self.at("config.toml"), text).expect("a file");
        send(&self.child, Signal::HUP);
        let line = format!("bursar_config_reloads_total{{result=\"ok\"}} {reloads}");
        eventually("the reload", || async {
            let page = Wire::tcp(self.admin).await.get("/metrics").await.text();
            page.lines().any(|known| known == line).then_some(())
        })
        .await;
    }

    /// Everything that can be asked of the admin listener, and what `/proc` shows.
    async fn look(&mut self, entry: &str) {
        for path in [
            "/metrics",
            "/",
            "/healthz",
            "/readyz",
            "/api/spend",
            "/api/receipts",
            "/api/status",
            "/api/reconcile",
            &format!("/api/explain?id={entry}"),
            "/api/nothing",
        ] {
            let answer = Wire::tcp(self.admin).await.get(path).await;
            let head = format!("{:?}", answer.headers);
            self.answers
                .push(Place::new(path, [head.into_bytes(), answer.body].concat()));
        }
        let pid = self.child.id().expect("a pid");
        for file in ["cmdline", "environ", "comm", "limits", "mountinfo"] {
            let path = format!("/proc/{pid}/{file}");
            match std::fs::read(&path) {
                Ok(bytes) => self.answers.push(Place::new(path, bytes)),
                // Not root: what this process may not read it cannot search.
                Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied),
            }
        }
    }

    /// The output of a command. Only the configuration gives it the key.
    async fn run(&mut self, arguments: &[&str]) {
        let mut command = Self::program(self.directory.path());
        let done = command.args(arguments).output().await.expect("it runs");
        assert!(
            !done.stdout.is_empty() || !done.stderr.is_empty(),
            "{arguments:?} says nothing"
        );
        let said = [done.stdout, done.stderr].concat();
        self.answers.push(Place::new(arguments.join(" "), said));
    }

    fn places(mut self) -> Vec<Place> {
        let mut places = Place::below(&self.at("state"));
        places.extend(Place::below(&self.at("tmp")));
        places.push(Place::file(&self.at("stdout")));
        places.push(Place::file(&self.at("stderr")));
        places.append(&mut self.answers);
        places
    }
}

/// Where the words of an answer stand, in each dialect: of a whole one, and of the events of a stream.
const WORDS: [&str; 6] = [
    "/choices/0/message/content",
    "/choices/0/delta/content",
    "/output/0/content/0/text",
    "/response/output/0/content/0/text",
    "/content/0/text",
    "/delta/text",
];

/// The text of the service's own answers; the search looks for it as well.
fn words_of(answer: &Answer) -> Option<String> {
    let text = answer.text();
    let event = |line: &str| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok();
    let documents: Vec<Value> = match serde_json::from_str(&text) {
        Ok(document) => vec![document],
        Err(_) => text.lines().filter_map(event).collect(),
    };
    let said = |document: &Value| {
        let found = WORDS
            .iter()
            .find_map(|place| document.pointer(place)?.as_str());
        found.map(str::to_owned)
    };
    let words: String = documents.iter().filter_map(said).collect();
    (words.len() > 12).then_some(words)
}

/// Requests in another dialect, each whole and as a stream.
fn translated() -> Vec<(&'static str, String)> {
    let mut requests = Vec::new();
    for (path, stream) in [
        ("/v1/responses", responses_stream(PROMPT)),
        ("/agent/v1/responses", responses_stream(PROMPT)),
        ("/agent/v1/messages", messages_stream(PROMPT)),
    ] {
        let whole = stream.replace("\"stream\":true", "\"stream\":false");
        assert_ne!(whole, stream);
        requests.extend([(path, whole), (path, stream)]);
    }
    requests
}

/// Answers that hold the key wherever an answer can hold something, and invalid heads.
fn echoes() -> Vec<Vec<u8>> {
    let bearer = format!("Bearer {KEY}");
    let detail = json!({"detail": format!("not for {bearer}: {PROMPT}")}).to_string();
    let headers = [
        ("X-Service-Billed", KEY),
        ("X-Service-Served-By", KEY),
        ("X-Service-Specialist", KEY),
        ("X-Service-Route-Version", KEY),
        ("X-Service-Input-Required", KEY),
        ("Idempotent-Replayed", KEY),
        ("x-request-id", KEY),
        ("Retry-After", KEY),
        ("WWW-Authenticate", bearer.as_str()),
    ];
    let answer = json!({
        "id": KEY,
        "choices": [{"message": {"content": ANSWER}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": KEY, "total_tokens": 7},
    });
    let stream = [
        stream_head(),
        chunk(&format!(
            ": service-billed-micro-usd {KEY}\n: service-served-by {KEY}\n\n"
        )),
        chunk(&format!(
            ": service-route-version {KEY}\n\ndata: {{\"x\":\"{ANSWER}\"}}\n\n"
        )),
        chunk("data: [DONE]\n\n"),
        last_chunk(),
    ];
    let raw = |text: String| text.into_bytes();
    vec![
        origin::json(500, &headers, &detail),
        origin::json(200, &headers, &answer.to_string()),
        origin::json(302, &[("Location", KEY)], &detail),
        stream.concat(),
        raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {KEY}\r\n\r\n{ANSWER}"
        )),
        raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: -1{ANSWER}\r\n\r\n{KEY}"
        )),
        raw(format!("HTTP/9.9 {KEY} {ANSWER}\r\n\r\n")),
        raw(format!("{KEY}: {ANSWER}\r\n\r\n")),
        raw(format!("HTTP/1.1 200 OK\r\n{KEY}\r\n\r\n{ANSWER}")),
        raw(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: {KEY}\r\n\r\n{ANSWER}"
        )),
        raw(format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{KEY}\r\n{ANSWER}"
        )),
        // More bytes than announced: a library logs that.
        raw(format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}{KEY}{ANSWER}"
        )),
        // Last, because nothing new is sent for 5 s after it.
        origin::json(401, &headers, &detail),
    ]
}

/// Heads that cannot be understood: what parsers like to print.
fn broken_heads() -> Vec<String> {
    let own = format!("Authorization: Bearer {APP_KEY}");
    vec![
        format!("GET / HTTP/9.9\r\n{own}\r\nX: {PROMPT}\r\n\r\n"),
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{own}\r\nContent-Length: {PROMPT}\r\n\r\n"
        ),
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{own}\r\nContent-Length: -7{PROMPT}\r\n\r\n"
        ),
        format!("POST {CHAT} HTTP/1.1\r\nHost: {NAMED}\r\n{own}\r\nContent-Length: 0\r\n\r\n"),
        format!(
            "POST /v1/{NAMED} HTTP/1.1\r\nHost: localhost\r\n{own}\r\nContent-Length: 0\r\n\r\n"
        ),
        format!("GET /v1/models?q={PROMPT} HTTP/1.1\r\nHost: localhost\r\n{own}\r\n\r\n"),
        format!(
            "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nOrigin: http://{NAMED}\r\n{own}\r\n\r\n"
        ),
        format!("{PROMPT} / HTTP/1.1\r\nHost: localhost\r\n{own}\r\n\r\n"),
        format!(
            "POST {CHAT} HTTP/1.1\r\nHost: localhost\r\n{own}\r\nContent-Type: {PROMPT}\r\nContent-Length: 2\r\n\r\n{{}}"
        ),
    ]
}

/// The story with the sandbox as the service: answers, streams, agents, translated requests, a retry,
/// kill -9 and what an app's repeat adopts after it.
async fn spend(house: &mut House, sandbox: &Sandbox, needles: &mut Vec<Needle>) -> String {
    let mut entry = String::new();
    for (path, body) in [
        (CHAT, chat(PROMPT)),
        (CHAT, chat_stream(PROMPT)),
        (AGENT, chat(PROMPT)),
        (AGENT, chat_stream(PROMPT)),
        // A model's name is kept.
        (CHAT, chat(PROMPT).replace("auto", "another-model")),
        (CHAT, format!("{{\"model\": \"auto\", {PROMPT}")),
        (
            "/v1/embeddings",
            json!({"model": "auto", "input": PROMPT}).to_string(),
        ),
    ] {
        let answer = house.ask(path, &body).await;
        if let Some(words) = words_of(&answer) {
            needles.push(Needle::new("an answer of the service", &words));
        }
        if let Some(id) = answer
            .header("x-bursar-entry")
            .filter(|_| answer.status == 200)
        {
            id.clone_into(&mut entry);
        }
    }
    for (path, body) in translated() {
        let answer = house.ask(path, &body).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let words = words_of(&answer).unwrap_or_else(|| panic!("{path}: {}", answer.text()));
        needles.push(Needle::new("a translated answer of the service", &words));
    }
    // A conversation that is not known: its words are refused.
    let unknown = json!({"model": "auto", "input": PROMPT, "previous_response_id": "resp_unknown"});
    let answer = house.ask("/v1/responses", &unknown.to_string()).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    let fault = json!({"times": 2, "fault": {"status": 503, "retry_after_ms": "10"}});
    sandbox.control("/sandbox/faults", fault).await;
    let answer = house.ask(CHAT, &chat(&format!("{PROMPT} again"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text());

    let hold = json!({"fault": {"hold": "first"}});
    sandbox.control("/sandbox/faults", hold).await;
    let body = chat(&format!("{PROMPT} and killed"));
    let app = house.send(CHAT, &body).await;
    eventually("the service to run it", || async {
        (sandbox.get("/sandbox/limits").await["in_flight"] == 1).then_some(())
    })
    .await;
    house.child.kill().await.expect("the daemon is killed");
    drop(app);
    house.restart().await;
    sandbox
        .control("/sandbox/release", json!({"hold": "first"}))
        .await;
    let adopted = house.ask(CHAT, &body).await;
    assert_eq!(adopted.status, 200, "{}", adopted.text());
    assert!(adopted.header("x-bursar-adopted").is_some());
    entry
}

/// A bit of the journal turned over while no daemon runs, so that there is a quarantine.
async fn damage(house: &mut House) {
    house.stop().await;
    let journal = house.at("state/journal/00000001.jsonl");
    let mut bytes = std::fs::read(&journal).expect("a journal");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&journal, bytes).expect("a journal");
    house.restart().await;
    let quarantine = house.at("state/quarantine");
    let held = std::fs::read_dir(quarantine).expect("a quarantine").count();
    assert!(held > 0, "what is damaged is set aside");
}

async fn main_story(format: &str) {
    let sandbox = Sandbox::start().await;
    let mut needles = vec![
        Needle::new("the key", KEY),
        Needle::new("the prompt", PROMPT),
        Needle::new("the app's own key", APP_KEY),
        Needle::new("the answer", ANSWER),
    ];
    let mut house = House::build(&sandbox.url(), format).await;
    let entry = spend(&mut house, &sandbox, &mut needles).await;
    house.look(&entry).await;
    damage(&mut house).await;

    // The same daemon before a service that reveals the key; a failure is not repeated.
    let origin = Origin::start([]).await;
    house
        .settle_on(&settings(&origin.url(), format, 1), 1)
        .await;
    for (number, echo) in echoes().into_iter().enumerate() {
        origin.push(Step::AnswerAndClose(echo));
        let body = match number % 2 {
            0 => chat(&format!("{PROMPT} {number}")),
            _ => chat_stream(&format!("{PROMPT} {number}")),
        };
        house.ask(CHAT, &body).await;
    }
    let received = origin.received();
    assert_eq!(received.len(), echoes().len());
    for sent in received {
        assert_eq!(
            sent.header("authorization"),
            Some(&*format!("Bearer {KEY}"))
        );
        assert!(String::from_utf8_lossy(&sent.body).contains(PROMPT));
    }
    for head in broken_heads() {
        let mut app = Wire::tcp(house.proxy).await;
        app.send(&head).await;
        app.answer().await;
    }
    house.look(&entry).await;
    for arguments in [
        &["check"] as &[&str],
        &["spend"],
        &["spend", "--json"],
        &["receipts"],
        &["receipts", "--json"],
        &["explain", &entry],
        &["explain", &entry, "--json"],
        &["reconcile"],
        &["ledger", "verify"],
        &["ledger", "export", "--format", "csv"],
        &["ledger", "export", "--format", "jsonl"],
    ] {
        house.run(arguments).await;
    }
    house.stop().await;
    for arguments in [
        &["receipts", "--state", "in-doubt"] as &[&str],
        &["explain", &entry],
        &["ledger", "rebuild"],
        &["ledger", "verify", "--json"],
    ] {
        house.run(arguments).await;
    }

    let log = std::fs::read_to_string(house.at("stderr")).expect("a log");
    assert!(log.contains("bursar::"), "{format}: trace logs something");
    let places = house.places();
    assert!(places.len() > 40, "{} places", places.len());
    let found = found(&places, &needles);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_main_story_leaves_no_secret_behind_with_a_text_log() {
    main_story("text").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_main_story_leaves_no_secret_behind_with_a_json_log() {
    main_story("json").await;
}
