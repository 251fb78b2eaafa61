//! Socket activation: the sockets are opened by another process, this test in systemd's place, and
//! outlive the daemon.
//!
//! Promise: a connection is never refused, whether the daemon is not there yet, stops, or starts again;
//! and a descriptor of the wrong kind is refused by name.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bursar_sandbox::Options;
use tokio::process::Command;
use tokio::time::timeout;

use crate::support::bursar::NO_LIMITS;
use crate::support::daemon::{Daemon, Signal, command, run_arguments};
use crate::support::origin::{self, billed, chunk, last_chunk, stream_head};
use crate::support::wire::{Wire, request};
use crate::support::{Origin, Sandbox, Step, chat, chat_stream, eventually};

const CHAT: &str = "/v1/chat/completions";

/// Descriptor 3 from standard input and, for two, 4 from standard error; the process id is known only
/// to the shell that becomes the daemon.
const ACTIVATE: &str = r#"exec 3<&0 </dev/null; [ "$LISTEN_FDS" = 1 ] || exec 4<&2 2>/dev/null
LISTEN_PID=${PID_OF_ANOTHER:-$$} exec "$@""#;

/// `bursar run` with these sockets passed to it.
pub fn activated(upstream: &str, state: &Path, given: Vec<OwnedFd>, names: &str) -> Command {
    let state = state.to_str().expect("a path");
    let own = command(&run_arguments(upstream, state));
    let own = own.as_std();
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-c", ACTIVATE, "sh"])
        .arg(own.get_program())
        .args(own.get_args())
        .env_clear()
        .envs(
            own.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("LISTEN_FDS", given.len().to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    if !names.is_empty() {
        shell.env("LISTEN_FDNAMES", names);
    }
    let mut given = given.into_iter();
    if let Some(first) = given.next() {
        shell.stdin(Stdio::from(first));
    }
    if let Some(second) = given.next() {
        shell.stderr(Stdio::from(second));
    }
    shell
}

fn copy(listener: &TcpListener) -> OwnedFd {
    listener.try_clone().expect("a descriptor").into()
}

/// The addresses that the daemon prints.
async fn launched(command: Command) -> Daemon {
    Daemon::launched(command).await.expect("the daemon went on")
}

#[tokio::test]
async fn a_connection_made_before_the_daemon_is_there_waits_and_is_answered() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start([Step::Answer(billed(7))]).await;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut early = Wire::tcp(address).await;
    early.send(request("POST", CHAT, &[], &chat("early"))).await;

    let state = directory.path().join("state");
    for name in ["", "proxy", "bursar.socket", "unknown"] {
        let command = activated(&origin.url(), &state, vec![copy(&listener)], name);
        let daemon = launched(command).await;
        assert_eq!(daemon.proxy, address, "{name:?}: it listens nowhere else");
        if name.is_empty() {
            assert_eq!(early.answer().await.status, 200);
        }
        // No child would get it.
        let pid = daemon.child.id().expect("a pid");
        let fdinfo = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/3"));
        let fdinfo = fdinfo.expect("descriptor 3");
        let flags = fdinfo.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = i64::from_str_radix(flags.expect("flags").trim(), 8).expect("octal");
        assert_ne!(flags & 0o2_000_000, 0, "closed on exec");
        daemon.terminate().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_connection_is_refused_while_the_daemon_restarts() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let slow = vec![
        [stream_head(), chunk("data: {}\n\n")].concat(),
        [
            chunk(": service-billed-micro-usd 42\n\n"),
            chunk("data: [DONE]\n\n"),
            last_chunk(),
        ]
        .concat(),
    ];
    let models = origin::json(200, &[], r#"{"data":[]}"#);
    let origin = Origin::always(Step::Answer(models)).await;
    origin.push(Step::Pieces(slow));
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let start = || {
        launched(activated(
            &origin.url(),
            &state,
            vec![copy(&listener)],
            "proxy",
        ))
    };
    let mut daemon = start().await;
    let mut stream = daemon.connect().await;
    stream
        .send(request("POST", CHAT, &[], &chat_stream("slow")))
        .await;
    origin.go();
    let mut head = stream.head().await;
    stream.chunk(&mut head).await.expect("the first chunk");

    let goes_on = Arc::new(AtomicBool::new(true));
    let clients: Vec<_> = (0..3)
        .map(|_| {
            let goes_on = Arc::clone(&goes_on);
            tokio::spawn(async move {
                let mut answered = 0;
                // Before, between and after the restarts, however slow the machine is.
                while goes_on.load(Ordering::SeqCst) || answered < 3 {
                    let answer = Wire::tcp(address).await.get("/v1/models").await;
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    answered += 1;
                }
            })
        })
        .collect();
    for _ in 0..2 {
        daemon.signal(Signal::TERM);
        // While it drains, new connections wait in the socket.
        if head.complete {
            assert_eq!(daemon.ended().await.code(), Some(0));
        } else {
            eventually("the drain to begin", || async {
                (daemon.admin_page("/readyz").await.status == 503).then_some(())
            })
            .await;
            let waiting = TcpStream::connect_timeout(&address, Duration::from_secs(5));
            assert!(waiting.is_ok(), "{waiting:?}");
            origin.go();
            while let Some(chunk) = stream
                .chunk(&mut head)
                .await
                .filter(|chunk| !chunk.is_empty())
            {
                head.body.extend_from_slice(&chunk);
            }
            head.complete = head.body.ends_with(b"data: [DONE]\n\n");
            assert!(head.complete, "the stream came to its end");
            assert_eq!(daemon.ended().await.code(), Some(0));
        }
        daemon = start().await;
    }
    goes_on.store(false, Ordering::SeqCst);
    for client in clients {
        client.await.expect("no client was refused");
    }
    daemon.terminate().await;
}

/// A connection accepted just before the stop is not closed before it could send its request.
#[tokio::test]
async fn a_connection_that_was_accepted_before_a_stop_may_still_ask() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let state = directory.path().join("state");
    let mut daemon = Daemon::start(&origin.url(), &state, &[]).await;
    let mut silent = daemon.connect().await;
    // Connections are accepted in their order: when this one is answered, that one is inside.
    let mut idle = daemon.connect().await;
    idle.send("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .await;
    assert_eq!(idle.answer().await.status, 200);

    daemon.signal(Signal::TERM);
    assert!(idle.ends().await, "the stop ends what is idle");
    silent
        .send(request("POST", CHAT, &[], &chat("just in time")))
        .await;

    assert_eq!(silent.answer().await.status, 200);
    assert_eq!(daemon.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_unix_socket_that_was_given_keeps_its_mode_and_stays() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::always(Step::Answer(billed(3))).await;
    let path = directory.path().join("apps.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mode = std::fs::Permissions::from_mode(0o660);
    std::fs::set_permissions(&path, mode).expect("a mode");
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let state = directory.path().join("state");
    for _ in 0..2 {
        let given = vec![
            listener.try_clone().expect("a descriptor").into(),
            copy(&proxy),
        ];
        let command = activated(&origin.url(), &state, given, "proxy:proxy");
        let daemon = launched(command).await;
        let app = Wire::unix(&path).await;
        assert_eq!(app.post(CHAT, &chat("over the path")).await.status, 200);
        daemon.terminate().await;
        let left = std::fs::metadata(&path).expect("the socket stays");
        assert_eq!(left.permissions().mode() & 0o777, 0o660);
    }
}

#[tokio::test]
async fn a_socket_named_admin_is_where_the_status_page_is() {
    let directory = tempfile::tempdir().expect("a directory");
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let admin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let state = directory.path().join("state");
    let given = vec![copy(&proxy), copy(&admin)];
    let command = activated("http://127.0.0.1:9", &state, given, "proxy:admin");
    let daemon = launched(command).await;
    assert_eq!(daemon.admin, admin.local_addr().expect("an address"));
    assert_eq!(daemon.admin_page("/readyz").await.status, 200);
    // The command line's way in is there all the same.
    let inside = Wire::unix(&state.join("admin.sock")).await;
    assert_eq!(inside.get("/readyz").await.status, 200);
    daemon.terminate().await;
}

#[tokio::test]
async fn sockets_for_another_process_are_left_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let state = directory.path().join("state");
    let mut command = activated("http://127.0.0.1:9", &state, vec![copy(&listener)], "proxy");
    command.env("PID_OF_ANOTHER", "1");
    let daemon = launched(command).await;
    assert_ne!(daemon.proxy, listener.local_addr().expect("an address"));
    daemon.terminate().await;
}

#[tokio::test]
async fn a_descriptor_that_is_not_what_it_should_be_is_refused_by_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a port");
    let everywhere = TcpListener::bind("0.0.0.0:0").expect("a port");
    let everywhere_6 = TcpListener::bind("[::]:0").map(OwnedFd::from);
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let behind = listener();
    let connected = TcpStream::connect(behind.local_addr().expect("an address"));
    let file = std::fs::File::create(directory.path().join("file")).expect("a file");
    let (one_of_two, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    let nameless = rustix::net::SocketAddrUnix::new_abstract_name(
        directory.path().to_string_lossy().as_bytes(),
    );
    let abstract_one = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .expect("a socket");
    rustix::net::bind(&abstract_one, &nameless.expect("a name")).expect("it is bound");
    rustix::net::listen(&abstract_one, 8).expect("it listens");
    let mut cases: Vec<(&str, OwnedFd, &str, &str)> = vec![
        (
            "every address",
            everywhere.into(),
            "proxy",
            "where other machines reach it",
        ),
        (
            "a datagram socket",
            udp.into(),
            "proxy",
            "is no TCP socket and no Unix",
        ),
        (
            "a connection",
            connected.expect("a connection").into(),
            "proxy",
            "does not listen",
        ),
        ("a pair", one_of_two.into(), "proxy", "does not listen"),
        (
            "a file",
            file.into(),
            "proxy",
            "is no TCP socket and no Unix",
        ),
        ("an abstract name", abstract_one, "proxy", "without a path"),
        (
            "another name",
            listener().into(),
            "metrics",
            "is named \"metrics\"",
        ),
    ];
    if let Ok(everywhere_6) = everywhere_6 {
        cases.push((
            "every address",
            everywhere_6,
            "proxy",
            "where other machines reach it",
        ));
    }
    for (what, given, name, why) in cases {
        let state = directory.path().join("state");
        let mut command = activated("http://127.0.0.1:9", &state, vec![given], name);
        let done = command.stderr(Stdio::piped()).output();
        let done = timeout(Duration::from_secs(20), done).await;
        let done = done.unwrap_or_else(|_| panic!("{what} is listened on"));
        let done = done.expect("an output");
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(78), "{what}: {said}");
        let wanted = format!("the socket that was given as descriptor 3 {why}");
        assert!(
            said.contains("bursar: the socket that was given as descriptor 3 ")
                && said.contains(why),
            "{what}: {said} is not {wanted}"
        );
        assert_eq!(said.lines().count(), 1, "{what}: {said}");
        assert!(!state.exists(), "{what}: nothing was begun");
    }
}

/// Apps that give up while no daemon is there: their abandoned tries wait beside their retries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_apps_gave_up_before_the_daemon_was_there_is_not_bought_beside_their_retries() {
    const APPS: usize = 30;
    for stream in [false, true] {
        let directory = tempfile::tempdir().expect("a directory");
        let sandbox = Sandbox::with(Options {
            in_flight_max: 1000,
            per_minute_max: 1_000_000,
            ..Options::default()
        })
        .await;
        let config = directory.path().join("config.toml");
        std::fs::write(&config, NO_LIMITS).expect("the config is written");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut waiting = Vec::new();
        for app in 0..APPS {
            let prompt = format!("the wish of app {app}");
            let body = if stream {
                chat_stream(&prompt)
            } else {
                chat(&prompt)
            };
            let ask = request("POST", CHAT, &[], &body);
            let mut given_up = Wire::tcp(address).await;
            given_up.send(&ask).await;
            drop(given_up);
            let mut retry = Wire::tcp(address).await;
            retry.send(&ask).await;
            waiting.push(retry);
        }
        let state = directory.path().join("state");
        let mut command = activated(&sandbox.url(), &state, vec![copy(&listener)], "");
        command.args(["--config", config.to_str().expect("a path")]);
        let daemon = launched(command).await;
        for mut retry in waiting {
            let answer = retry.answer().await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(answer.complete);
        }
        daemon.terminate().await;
        assert_eq!(sandbox.debits().await.len(), APPS, "one debit each");
    }
}

/// What `systemd/bursar-admin.socket` opens: the command line's way in, beside the port that Prometheus reads.
#[tokio::test]
async fn a_socket_for_the_command_line_is_beside_the_admin_port() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start([]).await;
    let path = directory.path().join("given.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    let state = directory.path().join("state");
    let daemon = activated(&origin.url(), &state, vec![listener.into()], "admin");
    let daemon = launched(daemon).await;

    assert_eq!(daemon.admin_page("/healthz").await.status, 200);
    let address = format!("unix:{}", path.display());
    let mut list = command(&["app", "list", "--json", "--admin", &address]);
    let listed = list.output().await.expect("it runs");
    assert!(
        listed.status.success(),
        "{}",
        String::from_utf8_lossy(&listed.stderr)
    );
    daemon.terminate().await;
    assert!(path.exists(), "its opener keeps it");
}
