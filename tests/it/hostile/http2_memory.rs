//! Heads over HTTP/2 before a real child process. The library that reads them lets a head grow to 16 MiB and
//! skips any number of interim heads, and pingora 0.9.1 has no setting for less.
//!
//! Promise: such heads cost a bounded amount of memory, and the next request is served.

use super::CHAT;
use super::http2::{
    Attack, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, STATUS_200, answer_head, field,
    frame, listen,
};
use crate::support::chat;
use crate::support::daemon::Daemon;
use crate::tls::certs::Authority;

/// What one head, or a burst of interim ones that the library has read and not yet passed over, may cost.
const MORE_KIB: u64 = 160 * 1024;

/// A head of that many fields, of 135 bytes each as HTTP/2 counts them; the last frame ends it.
fn head_of(fields: usize) -> Vec<u8> {
    const IN_A_FRAME: usize = 600;
    let block = field("x-a", &"y".repeat(100)).repeat(IN_A_FRAME);
    let begin = [STATUS_200, &field("x-service-billed", "7")].concat();
    [
        frame(HEADERS, 0, 1, &begin),
        frame(CONTINUATION, 0, 1, &block).repeat(fields / IN_A_FRAME),
        frame(CONTINUATION, END_HEADERS, 1, &field("x-a", "z")),
        frame(DATA, END_STREAM, 1, b"{}"),
    ]
    .concat()
}

fn floods() -> Vec<Attack> {
    let broken: &[&str] = &["outcome_unknown", "upstream_broken", "upstream_timeout"];
    let interim = |value: &str| {
        let head = [field(":status", "103"), field("x-a", value).repeat(20)].concat();
        frame(HEADERS, END_HEADERS, 1, &head)
    };
    let flood = |name, first, again, times| Attack {
        name,
        first,
        again,
        times,
        sees: Err(broken),
    };
    vec![
        flood("a head of 200 KiB", head_of(1_500), Vec::new(), 0),
        flood("a head of 15 MiB", head_of(110_000), Vec::new(), 0),
        flood("a head above 16 MiB", head_of(200_000), Vec::new(), 0),
        flood(
            "small interim heads",
            Vec::new(),
            interim("").repeat(400),
            500,
        ),
        flood(
            "large interim heads",
            Vec::new(),
            interim(&"y".repeat(120)).repeat(20),
            500,
        ),
    ]
}

#[tokio::test]
async fn a_head_over_http2_costs_a_bounded_amount_of_memory() {
    let authority = Authority::new("tests");
    let (port, next) = listen(&authority).await;
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    std::fs::write(place("ca.pem"), &authority.pem).expect("a file");
    let lines = format!(
        "[upstream]\nca_file = {:?}\nread_timeout_s = 3\n{}",
        place("ca.pem").display().to_string(),
        super::ONCE
    );
    std::fs::write(place("config.toml"), lines).expect("a file");
    let config = place("config.toml");
    let config = config.to_str().expect("a path");
    let url = format!("https://localhost:{port}");
    let daemon = Daemon::start(&url, &place("state"), &["--config", config]).await;
    let warm = daemon.connect().await.post(CHAT, &chat("warm")).await;
    assert_eq!(warm.status, 200, "{}", warm.text());
    let before = daemon.peak_kib();
    for flood in floods() {
        let (name, sees) = (flood.name, flood.sees);
        *next.lock() = Some(flood);
        let answer = daemon.connect().await.post(CHAT, &chat(name)).await;
        let peak = daemon.peak_kib();
        eprintln!(
            "{name}: {:?}, peak {} KiB more",
            answer.code(),
            peak - before
        );
        let codes = sees.expect_err("refused");
        assert!(
            codes.contains(&answer.code().unwrap_or("-")),
            "{name}: {}",
            answer.text()
        );
        assert!(
            peak < before + MORE_KIB,
            "{name}: {before} KiB, then {peak} KiB"
        );
        let good = [answer_head(&[]), frame(DATA, END_STREAM, 1, b"{}")].concat();
        *next.lock() = Some(Attack {
            name: "a plain answer",
            first: good,
            again: Vec::new(),
            times: 0,
            sees: Ok(200),
        });
        let asks = chat(&format!("next after {name}"));
        let answer = daemon.connect().await.post(CHAT, &asks).await;
        assert_eq!(
            answer.status,
            200,
            "{name}: the next request: {}",
            answer.text()
        );
    }
    daemon.terminate().await;
}
