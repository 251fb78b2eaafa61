//! `bursar doctor`: every condition is really there, and its line names what helps; nothing is bought.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::support::daemon::{Daemon, command};
use crate::support::{Sandbox, chat, chat_stream};
use crate::tls::certs::{Authority, NOW};

const CHAT: &str = "/v1/chat/completions";

struct Place {
    folder: tempfile::TempDir,
}

/// What one run of the command found.
struct Found {
    code: Option<i32>,
    passed: bool,
    rows: Vec<Value>,
}

// === impl Place ===

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        Self { folder }
    }

    fn path(&self, name: &str) -> String {
        let path = self.folder.path().join(name);
        path.to_str().expect("UTF-8").to_owned()
    }

    /// A configuration on free ports with these lines before the tables, and below `[listen]`.
    fn config(&self, first: &str, listen: &str) -> String {
        let path = self.path("config.toml");
        let listen = match listen {
            "" => "proxy = [\"127.0.0.1:0\"]",
            listen => listen,
        };
        let text = format!("{first}\n[listen]\nadmin = [\"127.0.0.1:0\"]\n{listen}\n");
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// Without a daemon, before this service.
    async fn alone(&self, upstream: &str, more: &[&str]) -> Found {
        let (config, state) = (self.config("", ""), self.path("state"));
        let mut named = vec!["--config", &config, "--upstream", upstream];
        if !more.contains(&"--state-dir") {
            named.extend(["--state-dir", &state]);
        }
        Found::of(&[&named, more].concat()).await
    }
}

// === impl Found ===

impl Found {
    async fn of(arguments: &[&str]) -> Self {
        let mut command = command(&[&["doctor", "--json"], arguments].concat());
        Self::in_output(&command.output().await.expect("it runs"))
    }

    fn in_output(output: &Output) -> Self {
        let text = String::from_utf8_lossy(&output.stdout);
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|error| {
            panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr))
        });
        let found = Self {
            code: output.status.code(),
            passed: document["passed"].as_bool().expect("a verdict"),
            rows: document["checks"].as_array().expect("checks").clone(),
        };
        assert_eq!(found.code == Some(0), found.passed, "{:#?}", found.rows);
        found
    }

    /// Verdict, and what was found with its remedy.
    fn of_check(&self, name: &str) -> (String, String) {
        let row = self.rows.iter().find(|row| row["check"] == name);
        let row = row.unwrap_or_else(|| panic!("no {name}: {:#?}", self.rows));
        let verdict = row["verdict"].as_str().expect("a word").to_owned();
        let remedy = row["remedy"].as_str().unwrap_or_default();
        assert_eq!(verdict == "fail", !remedy.is_empty(), "{row}");
        (
            verdict,
            format!("{} | {remedy}", row["found"].as_str().expect("words")),
        )
    }

    fn must_fail(&self, name: &str, parts: &[&str]) {
        let (verdict, words) = self.of_check(name);
        assert_eq!(verdict, "fail", "{name}: {words}");
        for part in parts {
            assert!(words.contains(part), "{name}: {part:?} is not in {words}");
        }
        assert_eq!(self.code, Some(1));
    }

    fn must_be(&self, verdict: &str, names: &[&str]) {
        for name in names {
            let (found, words) = self.of_check(name);
            assert_eq!(found, verdict, "{name}: {words}");
        }
    }
}

/// A port that nobody listens on at this moment.
async fn free_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    listener.local_addr().expect("an address")
}

#[tokio::test]
async fn where_nothing_is_wrong_it_passes_and_buys_nothing() {
    let sandbox = Sandbox::start().await;
    let place = Place::new();
    let found = place.alone(&sandbox.url(), &[]).await;
    assert_eq!(found.code, Some(0), "{:#?}", found.rows);
    let sound = [
        "configuration",
        "state directory",
        "port",
        "upstream",
        "self-reference",
        "key",
    ];
    found.must_be("pass", &sound);
    found.must_be("skip", &["daemon", "fsync", "streaming", "receipts"]);
    assert!(
        !std::path::Path::new(&place.path("state")).exists(),
        "it wrote"
    );

    let state = place.path("state");
    let daemon = Daemon::start(&sandbox.url(), std::path::Path::new(&state), &[]).await;
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.status, 200);
    let paid = sandbox.debited().await;
    for named in [
        ["--state-dir", &state],
        ["--admin", &daemon.admin.to_string()],
    ] {
        let found = Found::of(&named).await;
        // The service's clock is in the answer that the daemon got of it.
        found.must_be("pass", &["daemon", "receipts", "clock"]);
        let is_named = named[0] == "--admin";
        let sound = &sound[usize::from(is_named)..];
        found.must_be("pass", sound);
        let (_, words) = found.of_check("port");
        assert!(words.contains(&daemon.proxy.to_string()), "{words}");
        let (_, words) = found.of_check("fsync");
        assert!(words.contains("commits"), "the daemon's own: {words}");
    }
    assert_eq!(sandbox.debited().await, paid);

    let output = command(&["doctor", "--state-dir", &state]).output().await;
    let text = String::from_utf8(output.expect("it runs").stdout).expect("UTF-8");
    // One line each, and the count.
    assert_eq!(text.lines().count(), 15, "{text}");
    daemon.terminate().await;
}

/// The next start, or a reload, would fail on it.
#[tokio::test]
async fn a_mistake_in_the_file_of_a_running_daemon_is_named() {
    let sandbox = Sandbox::start().await;
    let place = Place::new();
    let state = place.path("state");
    let daemon = Daemon::start(&sandbox.url(), std::path::Path::new(&state), &[]).await;
    let config = place.path("edited.toml");
    let named = ["--config", &config, "--state-dir", &state];
    std::fs::write(&config, "[retry]\nattempts = 1\n").expect("a configuration");
    Found::of(&named)
        .await
        .must_be("pass", &["daemon", "configuration"]);
    let edited = "[upstream]\nbase_url = \"http://example.com\"\n";
    std::fs::write(&config, edited).expect("a configuration");
    let found = Found::of(&named).await;
    found.must_be("pass", &["daemon"]);
    found.must_fail(
        "configuration",
        &["edited.toml:2", "unencrypted", "bursar check"],
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn each_condition_that_keeps_a_daemon_from_starting_is_named_with_its_remedy() {
    let sandbox = Sandbox::start().await;
    let url = sandbox.url();

    let place = Place::new();
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let found = place.alone(&url, &["--listen", &address]).await;
    let own = format!("process {}", std::process::id());
    found.must_fail("port", &[&address, &own, "--listen"]);
    let state = place.path("state");
    let run = [
        "run",
        "--upstream",
        &url,
        "--listen",
        &address,
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        &state,
    ];
    let output = command(&run).output().await.expect("it ends");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        words.contains("address in use") && words.contains("bursar doctor"),
        "{words}"
    );

    let itself = free_port().await.to_string();
    let upstream = format!("http://{itself}");
    let found = place.alone(&upstream, &["--listen", &itself]).await;
    found.must_fail("self-reference", &[&itself, "base_url"]);
    found.must_be("skip", &["key", "upstream"]);

    let found = place.alone(&url.replace("http:", "https:"), &[]).await;
    found.must_fail("upstream", &["speaks no TLS", "http://"]);
    found.must_be("skip", &["key"]);

    let found = place
        .alone(&format!("http://{}", tls_server().await), &[])
        .await;
    found.must_fail("upstream", &["https://"]);

    let nobody = free_port().await;
    let found = place.alone(&format!("http://{nobody}"), &[]).await;
    found.must_fail("upstream", &["was not connected", "start the service"]);

    let open = place.path("open");
    std::fs::create_dir(&open).expect("a directory");
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    let found = place.alone(&url, &["--state-dir", &open]).await;
    found.must_fail("state directory", &["chmod 700", "--state-dir"]);
    std::fs::write(place.path("file"), "").expect("a file");
    let below = format!("{}/state", place.path("file"));
    let found = place.alone(&url, &["--state-dir", &below]).await;
    found.must_fail("state directory", &["Not a directory", "--state-dir"]);

    let config = place.config("servise_name = \"x\"", "");
    let found = Found::of(&["--config", &config, "--upstream", &url]).await;
    found.must_fail("configuration", &["servise_name", "bursar check"]);
}

#[tokio::test]
async fn a_key_that_is_refused_or_missing_is_named_beside_a_daemon_and_without_one() {
    let sandbox = Sandbox::start().await;
    let place = Place::new();
    let (config, state) = (place.config("", ""), place.path("state"));
    let url = sandbox.url();
    let named = [
        "doctor",
        "--json",
        "--config",
        &config,
        "--state-dir",
        &state,
        "--upstream",
        &url,
    ];
    let with_key = |key: Option<&str>| {
        let mut command = command(&named);
        match key {
            Some(key) => command.env("BURSAR_API_KEY", key),
            None => command.env_remove("BURSAR_API_KEY"),
        };
        command
    };
    let output = with_key(Some("sk-wrong")).output().await.expect("it runs");
    let found = Found::in_output(&output);
    found.must_fail("key", &["401", "bursar key set"]);
    found.must_be("pass", &["upstream"]);
    let output = with_key(None).output().await.expect("it runs");
    Found::in_output(&output).must_fail("key", &["no API key", "bursar key set"]);

    // The daemon's key is the one that counts, whatever this command has.
    let key = place.path("key");
    std::fs::write(&key, "sk-wrong\n").expect("a file");
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).expect("a mode");
    let more = ["--api-key-file", key.as_str()];
    let daemon = Daemon::start(&url, std::path::Path::new(&state), &more).await;
    let found = Found::of(&["--state-dir", &state]).await;
    found.must_fail("key", &["401", "bursar key set"]);
    found.must_be("pass", &["daemon", "upstream"]);
    daemon.terminate().await;
}

#[tokio::test]
async fn answers_without_a_price_name_the_service_name() {
    let sandbox = Sandbox::start().await;
    let place = Place::new();
    let config = place.config("service_name = \"other\"", "");
    let state = place.path("state");
    let more = ["--config", config.as_str()];
    let daemon = Daemon::start(&sandbox.url(), std::path::Path::new(&state), &more).await;
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.status, 200);
    let found = Found::of(&["--state-dir", &state]).await;
    found.must_fail(
        "receipts",
        &["a price in 0 of the last 1 answer", "service_name"],
    );
    daemon.terminate().await;
}

#[tokio::test]
async fn a_hop_that_buffers_streams_is_seen_and_one_that_lets_them_flow_is_not() {
    let sandbox = Sandbox::start().await;
    let rule = json!({"match": {"path": CHAT}, "fault": {"chunk_delay_ms": 60}});
    sandbox
        .control("/sandbox/faults", json!([rule.clone(), rule]))
        .await;
    let hop = buffering_hop(sandbox.address).await;
    let (url, hop) = (sandbox.url(), format!("http://{hop}"));
    let (straight, buffered) = tokio::join!(stream_through(&url), stream_through(&hop));
    straight.must_be("pass", &["streaming"]);
    buffered.must_fail("streaming", &["1 of the last 1 stream", "proxy_buffering"]);
}

/// A slow stream through a daemon before this service, and what is found then.
async fn stream_through(upstream: &str) -> Found {
    let place = Place::new();
    let state = place.path("state");
    let daemon = Daemon::start(upstream, std::path::Path::new(&state), &[]).await;
    let body =
        chat_stream("Tell me about rivers, bridges, ledgers, banks and the long way round them");
    let answer = daemon.connect().await.post(CHAT, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let found = Found::of(&["--state-dir", &state]).await;
    daemon.terminate().await;
    found
}

/// Gives a chunked answer on when it is whole.
async fn buffering_hop(service: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let far = TcpStream::connect(service).await.expect("the service");
                let (mut from_app, mut to_app) = near.into_split();
                let (mut from_service, mut to_service) = far.into_split();
                let asking = tokio::io::copy(&mut from_app, &mut to_service);
                let answering = async {
                    let (mut held, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
                    while let Ok(read) = from_service.read(&mut buffer).await {
                        if read == 0 {
                            break;
                        }
                        held.extend_from_slice(&buffer[..read]);
                        let text = String::from_utf8_lossy(&held).to_ascii_lowercase();
                        let is_chunked = text.contains("transfer-encoding: chunked");
                        if !is_chunked || held.ends_with(b"0\r\n\r\n") {
                            to_app.write_all(&held).await.ok();
                            held.clear();
                        }
                    }
                };
                tokio::select! {
                    _ = asking => {}
                    () = answering => {}
                }
            });
        }
    });
    address
}

/// A server that speaks TLS and nothing else.
async fn tls_server() -> SocketAddr {
    let identity = Authority::new("an authority").signs(&["localhost"], &NOW);
    let acceptor = TlsAcceptor::from(identity.server(&["http/1.1"]));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            acceptor.accept(stream).await.ok();
        }
    });
    address
}
