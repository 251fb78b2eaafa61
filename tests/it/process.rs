//! The process: signals, drain, reload, readiness, its messages to systemd, and what its output
//! never contains.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::support::bursar::entries;
use crate::support::daemon::{Daemon, Signal, command, run_arguments, send};
use crate::support::origin::{self, Origin, Step};
use crate::support::wire::{Wire, request};
use crate::support::{KEY, Sandbox, chat, chat_stream, eventually};

#[tokio::test]
async fn sigterm_lets_a_running_stream_complete_and_then_exits_0() {
    let stream = vec![
        [origin::stream_head(), origin::chunk("data: {\"a\":1}\n\n")].concat(),
        [
            origin::chunk(": service-billed-micro-usd 42\n\n"),
            origin::chunk("data: [DONE]\n\n"),
            origin::last_chunk(),
        ]
        .concat(),
    ];
    let origin = Origin::start([Step::Pieces(stream)]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let mut daemon = Daemon::start(&origin.url(), &state, &[]).await;
    let mut app = daemon.connect().await;
    let body = chat_stream("a long one");
    app.send(request("POST", "/v1/chat/completions", &[], &body))
        .await;
    origin.go();
    let mut head = app.head().await;
    let first = app.chunk(&mut head).await.expect("the first chunk");
    assert_eq!(first, b"data: {\"a\":1}\n\n");

    daemon.signal(Signal::TERM);
    eventually("readiness to fall", || async {
        (daemon.admin_page("/readyz").await.status == 503).then_some(())
    })
    .await;
    // Readiness falls first, so that balancers stop sending before the door is shut.
    eventually("new connections to be refused while draining", || async {
        let tried = tokio::net::TcpStream::connect(daemon.proxy).await;
        tried.is_err().then_some(())
    })
    .await;
    origin.go();
    let mut rest = Vec::new();
    while let Some(chunk) = app.chunk(&mut head).await.filter(|chunk| !chunk.is_empty()) {
        rest.extend_from_slice(&chunk);
    }
    assert!(
        rest.ends_with(b"data: [DONE]\n\n"),
        "{}",
        rest.escape_ascii()
    );
    assert_eq!(daemon.ended().await.code(), Some(0));
    let entries = entries(&state);
    assert_eq!(
        entries[0].billed_micro_usd.map(|billed| billed.get()),
        Some(42)
    );
}

#[tokio::test]
async fn what_outlives_the_shutdown_timeout_is_in_doubt_and_the_app_sees_a_break() {
    let origin = Origin::start([Step::Stall]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, "[listen]\nshutdown_timeout_s = 1\n").expect("a file");
    let state = directory.path().join("state");
    let config = config.to_str().expect("a path").to_owned();
    let mut daemon = Daemon::start(&origin.url(), &state, &["--config", &config]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("x")))
        .await;
    eventually("the request to arrive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    daemon.signal(Signal::TERM);
    let answer = app.answer().await;
    assert_eq!(answer.code(), Some("shutting_down"), "{}", answer.text());
    assert_eq!(daemon.ended().await.code(), Some(0));
    let state_word = serde_json::to_string(&entries(&state)[0].state).expect("JSON");
    assert!(state_word.contains("shutdown"), "{state_word}");
}

/// The head of a whole answer carries the price, and it came.
#[tokio::test]
async fn an_amount_that_was_reported_before_a_shutdown_cut_the_answer_is_settled() {
    let begun = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Service-Billed: 42\r\n\
        Content-Length: 90\r\n\r\n{";
    let origin = Origin::start([Step::Answer(begun.to_vec())]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, "[listen]\nshutdown_timeout_s = 1\n").expect("a file");
    let state = directory.path().join("state");
    let config = config.to_str().expect("a path").to_owned();
    let mut daemon = Daemon::start(&origin.url(), &state, &["--config", &config]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("x")))
        .await;
    eventually("the request to arrive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    daemon.signal(Signal::TERM);
    let answer = app.answer().await;
    assert_eq!(answer.code(), Some("shutting_down"), "{}", answer.text());
    assert_eq!(daemon.ended().await.code(), Some(0));
    let entries = entries(&state);
    let billed = entries[0].billed_micro_usd.map(|billed| billed.get());
    assert_eq!(
        (entries[0].state.word().as_str(), billed),
        ("settled", Some(42))
    );
}

#[tokio::test]
async fn a_second_sigterm_exits_now() {
    let origin = Origin::start([Step::Stall]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let mut daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &[]).await;
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &chat("x")))
        .await;
    eventually("the request to arrive", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    daemon.signal(Signal::TERM);
    eventually("the drain to begin", || async {
        (daemon.admin_page("/readyz").await.status == 503).then_some(())
    })
    .await;
    daemon.signal(Signal::TERM);
    assert_ne!(daemon.ended().await.code(), Some(0));
}

#[tokio::test]
async fn spend_counters_are_restored_and_equal_the_books_to_the_micro_dollar() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    for n in 0..5 {
        let app = daemon.connect().await;
        let answer = app
            .post("/v1/chat/completions", &chat(&format!("number {n}")))
            .await;
        assert_eq!(answer.status, 200);
    }
    let before = billed_total(&daemon).await;
    daemon.kill().await;
    let daemon = Daemon::start(&sandbox.url(), &state, &[]).await;
    assert_eq!(billed_total(&daemon).await, before);
    assert_eq!(before, sandbox.debited().await);
    daemon.terminate().await;
}

/// The sum over `bursar_billed_usd_total`, in micro-USD, from the decimals as they are printed.
async fn billed_total(daemon: &Daemon) -> u64 {
    let page = daemon.admin_page("/metrics").await;
    assert_eq!(page.status, 200);
    page.text()
        .lines()
        .filter(|line| line.starts_with("bursar_billed_usd_total{"))
        .map(|line| {
            let value = line.rsplit(' ').next().expect("a value");
            let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
            let fraction = format!("{fraction:0<6}");
            whole.parse::<u64>().expect("digits") * 1_000_000
                + fraction.parse::<u64>().expect("digits")
        })
        .sum()
}

#[tokio::test]
async fn health_and_readiness_are_served_on_the_admin_port_alone() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&sandbox.url(), &directory.path().join("state"), &[]).await;
    assert_eq!(daemon.admin_page("/healthz").await.status, 200);
    assert_eq!(daemon.admin_page("/readyz").await.status, 200);
    assert_eq!(daemon.admin_page("/").await.status, 200);
    assert_eq!(
        daemon.connect().await.get("/metrics").await.code(),
        Some("route_unknown")
    );
    let mut rebinding = Wire::tcp(daemon.admin).await;
    rebinding
        .send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        .await;
    assert_eq!(rebinding.answer().await.status, 403);
    daemon.terminate().await;
}

/// Whoever took the wrong one of two ports is told the right one, in the form that the app reads.
#[tokio::test]
async fn the_admin_port_as_base_url_is_answered_with_the_address_of_apps() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let daemon = Daemon::start(&origin.url(), &directory.path().join("state"), &[]).await;
    let address = format!("http://{}/v1", daemon.proxy);
    for (path, is_anthropics) in [
        ("/v1/chat/completions", false),
        ("/chat/completions", false),
        ("/v1/responses", false),
        ("/agent/v1/responses", false),
        ("/v1/audio/speech", false),
        ("/v1/messages", true),
        ("/agent/v1/messages", true),
        ("/v1/threads/thread_1/messages", false),
    ] {
        let wire = Wire::tcp(daemon.admin).await;
        let answer = wire.post(path, &chat("x")).await;
        let body = answer.json();
        let text = body["error"]["message"].as_str().expect("a text");
        assert_eq!(answer.status, 404, "{path}: {text}");
        assert!(text.contains(&address), "{path}: {text}");
        assert_eq!(body["type"] == "error", is_anthropics, "{path}: {body}");
        assert!(
            is_anthropics || body["error"]["code"] == "admin_address",
            "{body}"
        );
    }
    let read = Wire::tcp(daemon.admin).await.get("/v1/models").await;
    assert!(read.text().contains(&address), "{}", read.text());
    assert!(origin.received().is_empty());
    daemon.terminate().await;
}

#[tokio::test]
async fn a_reload_takes_a_good_file_and_refuses_a_bad_one() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    let url = origin.url();
    let write = |rest: &str| {
        std::fs::write(&config, format!("[upstream]\n{rest}")).expect("a file");
    };
    write("");
    let path = config.to_str().expect("a path").to_owned();
    let state = directory.path().join("state");
    let daemon = Daemon::start(&url, &state, &["--config", &path]).await;
    let body = chat("x").replace("auto", "gpt-4o");
    let ask = || async {
        origin.push(Step::Answer(origin::billed(1)));
        let answer = daemon
            .connect()
            .await
            .post("/v1/chat/completions", &body)
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let sent = origin.received().pop().expect("a request");
        String::from_utf8(sent.body).expect("a text")
    };
    assert!(ask().await.contains("gpt-4o"));

    write("[models]\naliases = { \"gpt-4o\" = \"auto\" }\n");
    daemon.signal(Signal::HUP);
    reloads(&daemon, "bursar_config_reloads_total{result=\"ok\"} 1").await;
    assert!(!ask().await.contains("gpt-4o"));

    write("[models]\naliasses = 1\n");
    daemon.signal(Signal::HUP);
    reloads(&daemon, "bursar_config_reloads_total{result=\"refused\"} 1").await;
    assert!(
        !ask().await.contains("gpt-4o"),
        "the old settings stay in force"
    );

    // Well-formed PEM around what is no certificate.
    let authority = directory.path().join("ca.pem");
    let garbage = "-----BEGIN CERTIFICATE-----\nAAECAwQFBgcICQ==\n-----END CERTIFICATE-----\n";
    std::fs::write(&authority, garbage).expect("a file");
    write("ca_file = \"ca.pem\"\n");
    daemon.signal(Signal::HUP);
    reloads(&daemon, "bursar_config_reloads_total{result=\"refused\"} 2").await;
    assert!(
        !ask().await.contains("gpt-4o"),
        "the old settings stay in force"
    );
    daemon.terminate().await;
}

/// What a running process can change is in force, and the rest is named to every reader until it is taken back.
#[tokio::test]
async fn a_reload_applies_what_it_can_and_names_the_keys_that_wait_for_a_restart() {
    let origin = Origin::start([]).await;
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("notify.sock");
    let notify = UnixDatagram::bind(&socket).expect("a socket");
    notify.set_nonblocking(true).expect("nonblocking");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, "").expect("a file");
    let (state, url) = (directory.path().join("state"), origin.url());
    let mut arguments = run_arguments(&url, state.to_str().expect("a path"));
    arguments.extend(["--config", config.to_str().expect("a path")]);
    let mut command = command(&arguments);
    command.env("NOTIFY_SOCKET", &socket);
    let daemon = Daemon::ready(command).await;

    let aliases = "[models]\naliases = { \"gpt-4o\" = \"auto\" }\n";
    let fixed = "[listen]\nconnections_max = 9\n[log]\nformat = \"json\"\n";
    std::fs::write(&config, format!("{aliases}{fixed}")).expect("a file");
    daemon.signal(Signal::HUP);
    let keys = "[listen] connections_max, [log] format";
    expect_notice(
        &notify,
        &format!("STATUS=reloaded; waits for a restart: {keys}"),
    )
    .await;
    origin.push(Step::Answer(origin::billed(1)));
    let body = chat("x").replace("auto", "gpt-4o");
    let mut app = daemon.connect().await;
    app.send(request("POST", "/v1/chat/completions", &[], &body))
        .await;
    assert_eq!(app.answer().await.status, 200);
    let sent = origin.received().pop().expect("a request");
    assert!(
        !String::from_utf8_lossy(&sent.body).contains("gpt-4o"),
        "the alias is in force"
    );
    let status = daemon.admin_page("/api/status").await.text();
    let wanted = r#""waits_for_restart":["[listen] connections_max","[log] format"]"#;
    assert!(status.contains(wanted), "{status}");
    reloads(&daemon, "bursar_config_keys_waiting_for_restart 2").await;

    std::fs::write(&config, aliases).expect("a file");
    daemon.signal(Signal::HUP);
    expect_notice(&notify, "STATUS=").await;
    reloads(&daemon, "bursar_config_keys_waiting_for_restart 0").await;
    daemon.terminate().await;
}

async fn reloads(daemon: &Daemon, line: &str) {
    eventually(line, || async {
        let page = daemon.admin_page("/metrics").await;
        page.text().lines().any(|known| known == line).then_some(())
    })
    .await;
}

#[tokio::test]
async fn systemd_is_notified_when_it_is_ready_reloads_and_stops() {
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("notify.sock");
    let notify = UnixDatagram::bind(&socket).expect("a socket");
    notify.set_nonblocking(true).expect("nonblocking");
    let state = directory.path().join("state");
    let url = sandbox.url();
    let mut command = command(&run_arguments(&url, state.to_str().expect("a path")));
    command
        .env("NOTIFY_SOCKET", &socket)
        .env("WATCHDOG_USEC", "200000");
    let daemon = Daemon::ready(command).await;
    expect_notice(&notify, "READY=1").await;
    expect_notice(&notify, "WATCHDOG=1").await;
    daemon.signal(Signal::HUP);
    expect_notice(&notify, "RELOADING=1").await;
    expect_notice(&notify, "READY=1").await;
    daemon.signal(Signal::TERM);
    expect_notice(&notify, "STOPPING=1").await;
    let mut daemon = daemon;
    assert_eq!(daemon.ended().await.code(), Some(0));
}

async fn expect_notice(socket: &UnixDatagram, word: &str) {
    eventually(word, || async {
        let mut buffer = [0; 4096];
        let read = socket.recv(&mut buffer).ok()?;
        let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
        text.lines().any(|line| line == word).then_some(())
    })
    .await;
}

#[tokio::test]
async fn the_key_and_the_prompt_are_in_no_output_at_the_most_verbose_level() {
    let prompt = "a-very-private-prompt-0815";
    let sandbox = Sandbox::start().await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("config.toml");
    std::fs::write(&config, "[log]\nlevel = \"trace\"\nformat = \"json\"\n").expect("a file");
    let state = directory.path().join("state");
    let url = sandbox.url();
    let mut arguments = run_arguments(&url, state.to_str().expect("a path"));
    arguments.extend(["--config", config.to_str().expect("a path")]);
    let mut command = command(&arguments);
    command
        .env("RUST_LOG", "trace")
        .env("RUST_BACKTRACE", "full");
    let mut child = command.spawn().expect("the daemon starts");
    let mut stderr = child.stderr.take().expect("a pipe");
    let log = tokio::spawn(async move {
        let mut log = Vec::new();
        stderr.read_to_end(&mut log).await.expect("a log");
        log
    });
    let mut stdout = child.stdout.take().expect("a pipe");
    let (mut out, mut buffer) = (Vec::new(), [0; 4096]);
    let address = loop {
        let read = stdout.read(&mut buffer).await.expect("an output");
        assert!(read > 0, "the daemon went on");
        out.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&out);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("proxy listening on http://"));
        if let (Some(address), true) = (line, text.contains("admin listening on http://")) {
            break address.parse::<std::net::SocketAddr>().expect("an address");
        }
    };
    for body in [chat(prompt), chat_stream(prompt), "{broken".to_owned()] {
        Wire::tcp(address)
            .await
            .post("/v1/chat/completions", &body)
            .await;
    }
    // A head that cannot be parsed is what parsers like to print.
    let mut broken = Wire::tcp(address).await;
    broken
        .send(format!(
            "GET / HTTP/9.9\r\nAuthorization: Bearer {prompt}\r\n\r\n"
        ))
        .await;
    broken.answer().await;
    let pid = child.id().expect("a pid");
    let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).expect("arguments");
    send(&child, Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    ended.expect("an end").expect("a status");
    let log = log.await.expect("the log");
    assert!(log.len() > 1000, "trace logs something");
    let mut places = vec![("log", log), ("stdout", out), ("arguments", arguments)];
    for entry in walk(&state) {
        places.push(("ledger", std::fs::read(&entry).expect("a file")));
    }
    for (place, bytes) in places {
        for secret in [KEY, prompt] {
            let found = bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes());
            assert!(!found, "{secret} stands in the {place}");
        }
    }
}

fn walk(directory: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(walk(&path));
        } else if path.is_file() {
            files.push(path);
        }
    }
    files
}
