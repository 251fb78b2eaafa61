//! The receiver of the key: what the process's environment can change of it, and what a certificate
//! can put into the log. (`tls/trust.rs` holds which certificates are refused.)

use std::path::Path;

use tokio::io::AsyncReadExt;

use crate::support::daemon::{Daemon, command, run_arguments};
use crate::support::origin::{billed, json};
use crate::support::{KEY, Origin, Step, chat};
use crate::tls::certs::{Authority, NOW};
use crate::tls::front::Front;

use super::CHAT;

/// Cases of row 19 that take a process of their own.
pub const NAMES: &[&str] = &[
    "SSL_CERT_FILE that is missing",
    "SSL_CERT_FILE that holds no certificate",
    "SSL_CERT_FILE that is damaged",
    "SSL_CERT_DIR that is missing",
    "SSLKEYLOGFILE",
    "HTTPS_PROXY",
    "a redirect to plain http",
];

/// Starts a daemon that must not start; returns its standard error.
async fn refused(url: &str, state: &Path, variables: &[(&str, &Path)]) -> String {
    let mut starting = command(&run_arguments(url, state.to_str().expect("a path")));
    starting.envs(variables.iter().copied());
    let mut child = match Daemon::launched(starting).await {
        Ok(_) => panic!("the daemon started with {variables:?}"),
        Err(child) => child,
    };
    // `bursar check` says the same.
    let mut checking = command(&["check", "--upstream", url]);
    checking.envs(variables.iter().copied());
    let checked = checking.output().await.expect("it runs");
    assert_eq!(checked.status.code(), Some(78), "{variables:?}");
    let status = child.wait().await.expect("an end");
    let mut text = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut text).await.expect("text");
    assert_eq!(status.code(), Some(78), "{variables:?}: {text}");
    text
}

#[tokio::test]
async fn trust_that_cannot_be_read_is_reported_at_start_and_ends_no_process_by_a_panic() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    std::fs::write(place("empty.pem"), "").expect("a file");
    std::fs::write(place("text.pem"), "no certificate\n").expect("a file");
    let pem = Authority::new("tests").pem;
    std::fs::write(place("damaged.pem"), pem.replacen('M', "!", 3)).expect("a file");
    let wrong = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    std::fs::write(place("wrong.pem"), wrong).expect("a file");
    for (name, file) in [
        ("SSL_CERT_FILE", "missing.pem"),
        ("SSL_CERT_FILE", "empty.pem"),
        ("SSL_CERT_FILE", "text.pem"),
        ("SSL_CERT_FILE", "damaged.pem"),
        ("SSL_CERT_FILE", "wrong.pem"),
        ("SSL_CERT_DIR", "missing"),
    ] {
        let file = place(file);
        let text = refused("https://localhost:9", &place("state"), &[(name, &file)]).await;
        assert!(!text.contains("panicked"), "{name}: {text}");
        assert!(text.contains(name), "{name} is not named: {text}");
        assert!(text.contains("ca_file"), "{name}: {text}");
        assert!(
            !place("state").exists(),
            "{name}: a start that fails leaves nothing"
        );
    }
}

/// A service without TLS asks for no trust, so that none is read.
#[tokio::test]
async fn a_service_on_this_machine_needs_no_certificates() {
    let directory = tempfile::tempdir().expect("a directory");
    let missing = directory.path().join("missing.pem");
    let origin = Origin::start([Step::Answer(billed(7))]).await;
    let state = directory.path().join("state");
    let url = origin.url();
    let mut starting = command(&run_arguments(&url, state.to_str().expect("a path")));
    starting.env("SSL_CERT_FILE", &missing);
    let daemon = Daemon::ready(starting).await;
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    daemon.terminate().await;
}

/// Environment variables that other programs obey: no secret of a connection is written down, and
/// nothing is sent by way of another host.
#[tokio::test]
async fn the_environment_opens_no_connection_and_sends_nothing_elsewhere() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    let authority = Authority::new("tests");
    let front = Front::start(authority.signs(&["localhost"], &NOW).server(&["http/1.1"])).await;
    let elsewhere = Origin::always(Step::Answer(billed(9))).await;
    std::fs::write(place("ca.pem"), &authority.pem).expect("a file");
    let state = place("state");
    let url = front.url();
    let mut starting = command(&run_arguments(&url, state.to_str().expect("a path")));
    // What a user sets on purpose is obeyed: this authority is trusted.
    starting.env("SSL_CERT_FILE", place("ca.pem"));
    starting.env("SSLKEYLOGFILE", place("keys.log"));
    for name in [
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
    ] {
        starting.env(name, elsewhere.url());
    }
    let daemon = Daemon::ready(starting).await;
    front.origin.push(Step::Answer(billed(7)));
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("7"))
    );
    for status in [301, 302, 307, 308] {
        let target = format!("{}{CHAT}", elsewhere.url());
        let headers = [
            ("Location", target.as_str()),
            ("Refresh", &format!("0;url={target}")),
        ];
        front
            .origin
            .push(Step::Answer(json(status, &headers, "{}")));
        let answer = daemon
            .connect()
            .await
            .post(CHAT, &chat(&status.to_string()))
            .await;
        assert_eq!(answer.status, status);
        assert_eq!(
            (answer.header("location"), answer.header("refresh")),
            (None, None)
        );
    }
    daemon.terminate().await;
    assert!(elsewhere.received().is_empty() && elsewhere.connections() == 0);
    assert!(
        !place("keys.log").exists(),
        "the secrets of a connection were written down"
    );
}

/// Names in a refused certificate are arbitrary text of its maker; the log keeps one line for each
/// event.
#[tokio::test]
async fn a_certificates_names_forge_no_line_of_the_log() {
    let directory = tempfile::tempdir().expect("a directory");
    let authority = Authority::new("tests");
    let forged =
        "evil\n2026-01-01T00:00:00Z  INFO bursar::access: request status=200\u{1b}[2J.example";
    let long = "a.".repeat(60);
    let mut names = vec![forged.to_owned()];
    names.extend((0..300).map(|n| format!("{long}{n}.example")));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let front = Front::start(authority.signs(&names, &NOW).server(&["http/1.1"])).await;
    let ca = directory.path().join("ca.pem");
    std::fs::write(&ca, &authority.pem).expect("a file");
    let config = directory.path().join("config.toml");
    std::fs::write(
        &config,
        format!("[upstream]\nca_file = {:?}\n", ca.display().to_string()),
    )
    .expect("a file");
    let state = directory.path().join("state");
    let url = front.url();
    let mut arguments = run_arguments(&url, state.to_str().expect("a path"));
    arguments.extend(["--config", config.to_str().expect("a path")]);
    let Ok(mut daemon) = Daemon::launched(command(&arguments)).await else {
        panic!("the daemon did not start");
    };
    let mut stderr = daemon.child.stderr.take().expect("a pipe");
    let answer = daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.code(), Some("upstream_tls"), "{}", answer.text());
    daemon.terminate().await;
    let mut log = String::new();
    stderr.read_to_string(&mut log).await.expect("text");
    assert!(log.contains(" cause=TLS with "), "{log}");
    for line in log.lines() {
        assert!(
            line.starts_with("20") && !line.starts_with("2026-01-01T00:00:00Z"),
            "a forged line: {line:?}"
        );
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert!(line.len() < 2000, "a line of {} bytes", line.len());
    }
    assert!(!log.contains(KEY));
}
