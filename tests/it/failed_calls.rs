//! A call that failed can be understood from bursar alone: by its line in the log, its entry and `bursar explain`. None of
//! them repeats the request.

mod echo;
mod journal;

use std::fs::File;
use std::path::Path;

use serde_json::Value;
use tokio::process::Command;

use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Quick retries, and lines of JSON.
const LINES: &str = "[retry]\nbase_ms = 1\ncap_ms = 1\n[log]\nformat = \"json\"\n";

/// A daemon and its log.
struct Logged {
    daemon: Daemon,
    directory: tempfile::TempDir,
}

impl Logged {
    async fn start(upstream: &str, lines: &str) -> Self {
        Self::start_by(upstream, lines, |_, _| ()).await
    }

    /// `more` is done to the command, which logs to this file.
    async fn start_by(upstream: &str, lines: &str, more: impl FnOnce(&mut Command, &Path)) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let state = directory.path().join("state");
        let config = directory.path().join("config.toml");
        std::fs::write(&config, lines).expect("a config");
        let mut arguments = run_arguments(upstream, state.to_str().expect("a path"));
        arguments.extend(["--config", config.to_str().expect("a path")]);
        let mut daemon = command(&arguments);
        let log = directory.path().join("log");
        daemon.stderr(File::create(&log).expect("a log"));
        more(&mut daemon, &log);
        let daemon = Daemon::launched(daemon).await.expect("it went on");
        Self { daemon, directory }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).expect("a log")
    }

    fn state(&self) -> String {
        let state = self.directory.path().join("state");
        state.to_str().expect("a path").to_owned()
    }

    /// The access line with this value of this member.
    async fn line(&self, name: &str, value: &Value) -> Value {
        eventually("its line in the log", || async {
            let log = self.log();
            let lines = log.lines();
            let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
            lines.find(|line| line["target"] == "bursar::access" && line[name] == *value)
        })
        .await
    }

    /// What `bursar explain` prints of an entry, and its document.
    async fn explained(&self, id: &str) -> (String, Value) {
        let state = self.state();
        let asked = ["explain", "--state-dir", &state, id];
        let print = |more: Option<&'static str>| {
            let mut command = command(&asked);
            command.args(more);
            async move {
                let done = command.output().await.expect("it runs");
                assert_eq!(done.status.code(), Some(0), "{done:?}");
                String::from_utf8(done.stdout).expect("text")
            }
        };
        let document = print(Some("--json")).await;
        let document: Value = serde_json::from_str(&document).expect("JSON");
        (print(None).await, document["entries"][0].clone())
    }
}

#[tokio::test]
async fn log_ledger_and_explain_report_what_the_service_said_where_and_in_what_time() {
    let said = r#"{"detail":"engine fell over"}"#;
    let origin = Origin::start((0..3).map(|_| Step::Answer(json(500, &[], said)))).await;
    let bursar = Logged::start(&origin.url(), LINES).await;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let headers = [("traceparent", parent.as_str())];
    let mut app = bursar.daemon.connect().await;
    app.send(request("POST", CHAT, &headers, &chat("hi"))).await;
    let answer = app.answer().await;
    assert_eq!(answer.status, 500, "{}", answer.text());
    let id = answer.header("x-bursar-entry").expect("an id").to_owned();

    let line = bursar.line("entry", &Value::from(id.clone())).await;

    assert_eq!(line["level"], "WARN", "{line}");
    let table = [
        ("method", "POST"),
        ("route", CHAT),
        ("operation", "chat"),
        ("model", "auto"),
        ("detail", "engine fell over"),
        ("state", "failed"),
        ("trace_id", TRACE),
    ];
    for (name, wanted) in table {
        assert_eq!(line[name], wanted, "{name} in {line}");
    }
    let peer = line["peer"].as_str().expect("a peer");
    assert!(peer.starts_with("127.0.0.1:"), "{peer}");
    let (printed, entry) = bursar.explained(&id).await;
    for wanted in [
        "3. ",
        ": 500, failed at the service, took ",
        "refused with  engine fell over\n",
        &format!("trace         {TRACE}\n"),
    ] {
        assert!(printed.contains(wanted), "{wanted:?} in\n{printed}");
    }
    assert_eq!(entry["service_detail"], "engine fell over");
    assert_eq!(entry["trace_id"], TRACE);
    for time in ["total_ms", "queue_ms", "first_byte_ms", "own_us"] {
        assert_eq!(entry["timings"][time], line[time], "{time}");
    }
    bursar.daemon.terminate().await;
}

/// A refused list has places and reasons; a request that is refused here says why as well.
#[tokio::test]
async fn a_refused_form_and_a_refusal_of_bursars_own_say_why() {
    let list = r#"{"detail":[{"loc":["body","voice"],"type":"missing","msg":"Field required","input":{"text":"a prompt"}}]}"#;
    let origin = Origin::start([Step::Answer(json(422, &[], list))]).await;
    let bursar = Logged::start(&origin.url(), LINES).await;
    let connect = || bursar.daemon.connect();
    connect().await.post(CHAT, &chat("hi")).await;
    let line = bursar.line("status", &Value::from(422)).await;
    assert_eq!(line["detail"], "body.voice Field required (missing)");
    assert_eq!(line["level"], "INFO", "{line}");

    let table = [
        (
            "/v1/v1/models",
            &[][..],
            "base_path_doubled",
            "path",
            "/v1/v1/models",
        ),
        (
            "/v1/nothing?a=secret",
            &[],
            "route_unknown",
            "path",
            "/v1/nothing",
        ),
        ("/v1//models", &[], "path_refused", "path", "/v1//models"),
        (
            "http://user:secret@evil.example/v1/models?a=secret",
            &[],
            "path_refused",
            "path",
            "evil.example/v1/models",
        ),
        (
            "/v1/models#a=secret",
            &[],
            "path_refused",
            "path",
            "/v1/models",
        ),
        (
            "/v1/models",
            &[("Host", "evil.example:80")],
            "host_refused",
            "host",
            "evil.example:80",
        ),
        (
            "/v1/models",
            &[("Origin", "https://evil.example")],
            "origin_refused",
            "origin",
            "https://evil.example",
        ),
        (
            "/v1/models",
            &[("Sec-Fetch-Site", "cross-site")],
            "site_refused",
            "site",
            "cross-site",
        ),
        ("/models", &[], "base_path_missing", "path", "/models"),
        // The line to paste, which no quote has to be taken out of.
        (
            "/v1/models",
            &[("Origin", "app://obsidian.md")],
            "origin_refused",
            "remedy",
            "below [listen]: allowed_origins = ['app://obsidian.md']",
        ),
        (
            "/v1/models",
            &[("Origin", "null")],
            "origin_refused",
            "origin",
            "null",
        ),
    ];
    for (path, headers, code, part, wanted) in table {
        let mut app = connect().await;
        app.send(request("GET", path, headers, "")).await;
        let id = app.answer().await;
        let id = id.header("x-bursar-entry").expect("an id").to_owned();
        let line = bursar.line("entry", &Value::from(id)).await;
        assert_eq!(
            (&line["code"], &line[part]),
            (&code.into(), &wanted.into()),
            "{line}"
        );
        assert_eq!(line["method"], "GET", "{line}");
        assert!(!line.to_string().contains("secret"), "{line}");
        let has_remedy = headers
            .iter()
            .any(|(name, value)| *name == "Origin" && *value != "null");
        assert_eq!(line.get("remedy").is_some(), has_remedy, "{line}");
    }
    // Bounded, and one line whatever it holds.
    let mut app = connect().await;
    let long = format!("/v1/%1b{}", "x".repeat(5000));
    app.send(request("GET", &long, &[], "")).await;
    let id = app.answer().await;
    let line = bursar
        .line("entry", &id.header("x-bursar-entry").expect("an id").into())
        .await;
    let shown = line["path"].as_str().expect("a path");
    assert_eq!(shown.chars().count(), 128);
    assert!(shown.starts_with("/v1/%1bx"), "{line}");
    // The hello of TLS.
    let mut app = connect().await;
    app.try_send(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        .await;
    let line = bursar.line("code", &"head_malformed".into()).await;
    assert!(
        line["why"].as_str().expect("a reason").contains("TLS"),
        "{line}"
    );
    bursar.daemon.terminate().await;
}

/// Beside a large request the comparison takes long, and the service has no part in that.
#[tokio::test]
async fn the_time_in_which_the_services_words_are_compared_is_not_the_services() {
    let said = r#"{"detail":"engine fell over, sorry for that"}"#;
    let origin = Origin::start([Step::Answer(json(400, &[], said))]).await;
    let bursar = Logged::start(&origin.url(), LINES).await;
    let body = chat(&"a word and ".repeat(1 << 20));
    let answer = bursar.daemon.connect().await.post(CHAT, &body).await;
    let id = answer.header("x-bursar-entry").expect("an id").to_owned();
    let (_, entry) = bursar.explained(&id).await;
    assert!(entry["service_detail"].is_string(), "{entry}");
    let attempt_ms = entry["attempts"][0]["took_ms"].as_u64().expect("a time");
    let until_first_byte_ms = entry["timings"]["first_byte_ms"].as_u64().expect("a time");
    assert!(attempt_ms <= until_first_byte_ms, "{entry}");
    bursar.daemon.terminate().await;
}

#[tokio::test]
async fn a_service_that_is_not_reached_stands_in_the_calls_own_line() {
    let nobody = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let url = format!("http://{}", nobody.local_addr().expect("an address"));
    drop(nobody);
    let bursar = Logged::start(&url, LINES).await;
    let answer = bursar.daemon.connect().await.post(CHAT, &chat("hi")).await;
    assert_eq!(
        answer.code(),
        Some("upstream_unreachable"),
        "{}",
        answer.text()
    );
    let id = answer.header("x-bursar-entry").expect("an id").to_owned();
    let line = bursar.line("entry", &id.into()).await;
    assert_eq!(line["level"], "WARN", "{line}");
    assert!(
        line["cause"]
            .as_str()
            .is_some_and(|cause| !cause.is_empty()),
        "{line}"
    );
    bursar.daemon.terminate().await;
}

#[tokio::test]
async fn traceparent_passes_as_it_came_and_baggage_does_not() {
    let good = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let table = [
        (good.as_str(), Some(TRACE)),
        // Not of the W3C's form: none of bursar's business.
        ("00-trace-of-another-kind", None),
    ];
    for (parent, trace) in table {
        let origin = Origin::start([Step::Answer(billed(7))]).await;
        let bursar = Logged::start(&origin.url(), LINES).await;
        let mut app = bursar.daemon.connect().await;
        let headers = [
            ("traceparent", parent),
            ("tracestate", "vendor=opaque"),
            ("baggage", "user=alice"),
        ];
        app.send(request("POST", CHAT, &headers, &chat("hi"))).await;
        let answer = app.answer().await;
        let id = answer.header("x-bursar-entry").expect("an id").to_owned();
        let line = bursar.line("entry", &id.clone().into()).await;
        let (_, entry) = bursar.explained(&id).await;
        assert_eq!(line.get("trace_id").and_then(Value::as_str), trace);
        assert_eq!(entry.get("trace_id").and_then(Value::as_str), trace);
        let received = origin.received();
        assert_eq!(received[0].header("traceparent"), Some(parent));
        assert_eq!(received[0].header("tracestate"), Some("vendor=opaque"));
        assert_eq!(received[0].header("baggage"), None);
        bursar.daemon.terminate().await;
    }
}

/// The wait for what is in flight may be long, and a person at the terminal does not know of it.
#[tokio::test]
async fn the_first_interrupt_says_how_long_the_end_may_take_and_the_second_ends_it() {
    let origin = Origin::start([Step::Stall]).await;
    let lines = "[listen]\nshutdown_timeout_s = 77\n";
    let mut bursar = Logged::start(&origin.url(), lines).await;
    let mut app = bursar.daemon.connect().await;
    app.send(request("POST", CHAT, &[], &chat("x"))).await;
    eventually("the request to arrive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    bursar.daemon.signal(Signal::INT);
    eventually("what it says", || async {
        let log = bursar.log();
        let line = log.lines().find(|line| line.contains("stopping: "))?;
        (line.contains("up to 77 s") && line.contains("a second Ctrl-C")).then_some(())
    })
    .await;
    bursar.daemon.signal(Signal::INT);
    assert_eq!(bursar.daemon.ended().await.code(), Some(1));
}

/// A preflight of a listed page and the greeting are no requests of a route, and have no code: the path says what was
/// asked for, without its query.
#[tokio::test]
async fn a_request_that_the_door_answers_itself_has_its_path_in_its_line() {
    let origin = Origin::start([]).await;
    let lines = format!("{LINES}[listen]\nallowed_origins = [\"http://page.example\"]\n");
    let bursar = Logged::start(&origin.url(), &lines).await;
    let mut app = bursar.daemon.connect().await;
    app.send("GET /?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(app.answer().await.status, 200);
    let line = bursar.line("path", &Value::from("/")).await;
    assert_eq!(
        (&line["method"], &line["status"]),
        (&Value::from("GET"), &Value::from(200))
    );
    assert!(line["code"].is_null() && line["route"].is_null(), "{line}");

    let mut page = bursar.daemon.connect().await;
    let head =
        format!("OPTIONS {CHAT} HTTP/1.1\r\nHost: localhost\r\nOrigin: http://page.example\r\n");
    page.send(format!("{head}Access-Control-Request-Method: POST\r\n\r\n"))
        .await;
    let status = page.answer().await.status;
    let line = bursar.line("path", &Value::from(CHAT)).await;
    assert_eq!(line["method"], "OPTIONS");
    assert_eq!(line["status"], status);
    assert!(!bursar.log().contains("secret"));
    bursar.daemon.terminate().await;
}
