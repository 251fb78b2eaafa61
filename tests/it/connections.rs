//! Many connections on one daemon, as a server with many apps has them.
//!
//! Promise: thousands rest while a thousand streams flow, at a few KiB each, and none of them is refused or cut.

use std::process::Stdio;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::bursar::NO_LIMITS;
use crate::support::daemon::{self, Daemon};
use crate::support::origin::{chunk, json, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Origin, Step, Wire, eventually};

const IDLE: usize = 5_000;

const STREAMS: usize = 1_000;

/// What one that rests may take, of the memory that the kernel counts for the daemon.
const IDLE_KIB_MAX: u64 = 24;

/// Of this process: its ends of the connections, the service's, and those of the tests beside it.
const DESCRIPTORS: u64 = 20_000;

/// A number of `/proc/PID/status`.
fn status(daemon: &Daemon, line: &str) -> u64 {
    let pid = daemon.child.id().expect("a running child");
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let found = text.lines().find_map(|known| known.strip_prefix(line));
    let number = found.expect("the line").split_whitespace().nth(1);
    number.expect("a number").parse().expect("a number")
}

#[tokio::test]
async fn five_thousand_connections_rest_while_a_thousand_streams_flow() {
    let limit = getrlimit(Resource::Nofile);
    let current = limit
        .maximum
        .map_or(DESCRIPTORS, |most| most.min(DESCRIPTORS));
    let raised = Rlimit {
        current: Some(current),
        ..limit
    };
    setrlimit(Resource::Nofile, raised).expect("the limit");
    // Where this process may not hold so many, the daemon is shown fewer.
    let share = |of: usize| of * usize::try_from(current).expect("a number") / 20_000;
    let (idle_count, stream_count) = (share(IDLE), share(STREAMS));
    if stream_count < STREAMS {
        eprintln!(
            "SKIPPED in part: {idle_count} and {stream_count} of them, for `ulimit -Hn` is {current}"
        );
    }

    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let directory = tempfile::tempdir().expect("a directory");
    let config = directory.path().join("bursar.toml");
    std::fs::write(&config, NO_LIMITS).expect("a config");
    let state = directory.path().join("state");
    let url = origin.url();
    let mut arguments = daemon::run_arguments(&url, state.to_str().expect("a UTF-8 path"));
    arguments.extend(["--config", config.to_str().expect("a UTF-8 path")]);
    let mut command = daemon::command(&arguments);
    command.stderr(Stdio::null());
    let daemon = Daemon::launched(command).await.expect("the daemon starts");

    let is_served = async |wire: &mut Wire| {
        wire.send(request("GET", "/v1/models", &[], "")).await;
        wire.answer().await.status == 200
    };
    let mut first = daemon.connect().await;
    assert!(is_served(&mut first).await);
    let before = status(&daemon, "VmRSS");
    let mut idle = Vec::new();
    for _ in 0..idle_count {
        let mut wire = daemon.connect().await;
        assert!(is_served(&mut wire).await);
        idle.push(wire);
    }
    let took = status(&daemon, "VmRSS").saturating_sub(before);
    let each = took / u64::try_from(idle_count).expect("a number");
    assert!(each <= IDLE_KIB_MAX, "{each} KiB for each that rests");

    let body = r#"{"model":"auto","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let ask = request("POST", "/v1/chat/completions", &[], body);
    let mut streams = Vec::new();
    for _ in 0..stream_count {
        origin.push(Step::Pieces(vec![
            [stream_head(), chunk("data: {\"choices\":[]}\n\n")].concat(),
            [
                chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
                last_chunk(),
            ]
            .concat(),
        ]));
        let mut wire = daemon.connect().await;
        wire.send(&ask).await;
        streams.push(wire);
    }
    eventually("all of them at the service", || async {
        (origin.received().len() > idle_count + stream_count).then_some(())
    })
    .await;
    // Those that rest are served beside them.
    for wire in idle.iter_mut().step_by(97) {
        assert!(is_served(wire).await);
    }
    // All flow at once: each has its first bytes before any has its last.
    let go = || (0..stream_count).for_each(|_| origin.go());
    go();
    let mut begun = Vec::new();
    for wire in &mut streams {
        let mut answer = wire.head().await;
        assert_eq!(answer.status, 200);
        wire.chunk(&mut answer).await.expect("its first bytes");
        begun.push(answer);
    }
    go();
    for (wire, answer) in streams.iter_mut().zip(&mut begun) {
        wire.rest(answer).await;
        assert!(answer.complete && answer.text().ends_with("data: [DONE]\n\n"));
    }
    for wire in idle.iter_mut().step_by(97) {
        assert!(is_served(wire).await);
    }
}
