//! Row 15: too much of everything, and how much many connections may use.

use std::process::Stdio;

use super::case::{CHAT, Case, Sent, framed, get, hidden};
use super::stage::Stage;
use super::witness::Witness;
use crate::support::origin::json;
use crate::support::{Bursar, Origin, Step, Wire, chat, eventually};

const TOO_LARGE: &[&str] = &["head_too_large"];
const BODY: &[&str] = &["body_too_large"];

const MIB: usize = 1024 * 1024;

/// Connections that bursar serves at once.
const PLACES: usize = 640;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for count in [100, 256, 257, 2_000] {
        let fields: String = (0..count).map(|at| format!("X-{at}: y\r\n")).collect();
        let name = format!("{count} fields and a host");
        cases.push(Case::refused(
            15,
            &name,
            get("/v1/models", &fields),
            TOO_LARGE,
        ));
    }
    let one_name = "X: y\r\n".repeat(150);
    cases.push(Case::refused(
        15,
        "150 fields of one name",
        get("/v1/models", &one_name),
        TOO_LARGE,
    ));
    for bytes in [65_537, 200_000, 1_200_000] {
        let line = format!("X: {}\r\n", "y".repeat(bytes));
        let name = format!("a field of {bytes} bytes");
        cases.push(Case::refused(
            15,
            &name,
            get("/v1/models", &line),
            TOO_LARGE,
        ));
        let name = format!("a name of {bytes} bytes");
        let line = format!("{}: x\r\n", "y".repeat(bytes));
        cases.push(Case::refused(
            15,
            &name,
            get("/v1/models", &line),
            TOO_LARGE,
        ));
    }
    let tokens = format!("Connection: {}\r\n", "x,".repeat(35_000));
    cases.push(Case::refused(
        15,
        "35,000 nominations",
        get("/v1/models", &tokens),
        TOO_LARGE,
    ));
    for length in ["31457281", "999999999999999"] {
        let name = format!("a body of {length} bytes, announced");
        let bytes = framed(&format!("Content-Length: {length}\r\n"), b"");
        cases.push(Case::refused(15, &name, bytes, BODY).ending());
    }
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(MIB));
    let body = format!("{}0\r\n\r\n", chunk.repeat(31));
    let bytes = framed("Transfer-Encoding: chunked\r\n", body.as_bytes());
    cases.push(Case::refused(15, "a body of 31 MB in chunks", bytes, BODY).ending());
    let passes: String = (1..100).map(|at| format!("X-{at}: y\r\n")).collect();
    let sent = Sent::get("/v1/models").with("x-99", "y");
    cases.push(Case::relayed(
        15,
        "99 fields and a host",
        get("/v1/models", &passes),
        sent,
    ));
    cases
}

#[tokio::test]
async fn a_flood_of_tiny_chunks_is_read_as_one_body() {
    let stage = Stage::open().await;
    let body = chat(&"x".repeat(200_000));
    let chunks: String = body
        .chars()
        .map(|letter| format!("1\r\n{letter}\r\n"))
        .collect();
    let bytes = framed(
        "Transfer-Encoding: chunked\r\n",
        format!("{chunks}0\r\n\r\n").as_bytes(),
    );
    let case = Case::relayed(15, "tiny chunks", bytes, Sent::chat(body).ending());
    let entries = stage.judge(&case).await.expect("one body");
    stage.close(entries).await;
}

/// A connection without a place gets an answer that says so, but only as many at once as a machine
/// can bear; they never take the descriptors that the ledger and the service need.
#[tokio::test]
async fn connections_above_the_limit_take_a_bounded_number_of_descriptors() {
    let most_of_mine = may_open(3_100);
    let stage = Stage::before(Witness::stalling().await).await;
    let resting = stage.descriptors().unwrap_or_default();
    // A child begins with a table of the size that this process, with its other tests, needed when it was made.
    let table_max = stage.proc_number("status", "FDSize").max(2048);
    let connect = async || stage.daemon.connect().await;
    let mut inside = in_a_request(PLACES, connect, || stage.witness.count()).await;
    let mut outside = Vec::new();
    let mut most = 0;
    for _ in 0..most_of_mine - 2 * PLACES - 100 {
        outside.push(stage.daemon.connect().await);
        if outside.len() % 50 == 0 {
            most = most.max(stage.descriptors().unwrap_or_default());
        }
    }
    // Each inside has a connection to the service, too.
    let above = most.saturating_sub(resting + 2 * PLACES);
    assert!(above <= 90, "{above} descriptors for those without a place");
    // Grown to the next power of two, never shrunk, and readable by everybody.
    assert!(stage.proc_number("status", "FDSize") <= table_max);
    let refused = outside[0].answer().await;
    assert_eq!(
        (refused.status, refused.code()),
        (503, Some("connections_full"))
    );
    drop(outside);
    // Requests already inside are served all the while.
    stage.witness.answer(10 * PLACES);
    assert_eq!(inside[0].answer().await.status, 200);
    drop(inside);
    eventually("a place", || async {
        let answer = stage.daemon.connect().await.get("/v1/models").await;
        (answer.status == 200).then_some(())
    })
    .await;
    stage.close(0).await;
}

/// That many connections with requests at the service, which stalls; `at_service` returns how many are
/// there.
async fn in_a_request(
    count: usize,
    connect: impl AsyncFn() -> Wire,
    at_service: impl Fn() -> usize,
) -> Vec<Wire> {
    let before = at_service();
    let mut inside = Vec::new();
    for _ in 0..count {
        let mut wire = connect().await;
        wire.send(get("/v1/models", "")).await;
        inside.push(wire);
    }
    eventually("all of them at the service", || async {
        (at_service() >= before + count).then_some(())
    })
    .await;
    inside
}

/// Raises this process's limit on descriptors, and returns the new one.
fn may_open(wanted: usize) -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::try_from(wanted).expect("a number");
    let most = limit.maximum.map_or(wanted, |most| most.min(wanted));
    if limit.current.is_some_and(|now| now < most) {
        let current = Some(most);
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("the limit");
    }
    usize::try_from(most).expect("a number")
}

/// The command, run by a shell with such a limit on descriptors.
fn below(limit: &str, command: tokio::process::Command) -> tokio::process::Command {
    let command = command.into_std();
    let mut shell = tokio::process::Command::new("/bin/sh");
    let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
    let environment = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    shell
        .args(["-c", &script])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    shell
}

/// 768 apps and their connections to the service need more than the 1024 descriptors that a shell
/// grants: the daemon raises its limit as far as it may.
#[tokio::test]
async fn the_daemon_raises_its_limit_on_descriptors() {
    let stage = Stage::with(Witness::start().await, |command| below("-Sn 256", command)).await;
    let hard = rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum;
    let wanted = hard.map_or(2304, |hard| hard.min(2304));
    assert_eq!(stage.proc_number("limits", "Max open files"), wanted);
    stage.close(0).await;
}

/// 1024 descriptors are 128 connections, 21 of them for Unix sockets alone.
#[tokio::test]
async fn where_descriptors_are_few_as_many_connections_are_served_as_fit_and_the_log_says_so() {
    let wrap = |command| below("-n 1024", command);
    let stage = Stage::with(Witness::stalling().await, wrap).await;
    let connect = async || stage.daemon.connect().await;
    let mut inside = in_a_request(107, connect, || stage.witness.count()).await;
    let refused = stage.daemon.connect().await.answer().await;
    assert_eq!(refused.code(), Some("connections_full"));
    let said = stage.logged();
    let said: Vec<_> = said
        .lines()
        .filter(|line| line.contains("at most 128 connections"))
        .collect();
    assert_eq!(said.len(), 1, "{}", stage.logged());
    assert!(said[0].contains("LimitNOFILE") && said[0].contains("connections_max"));
    stage.witness.answer(10 * 107);
    for wire in &mut inside {
        assert_eq!(wire.answer().await.status, 200);
    }
    stage.close(0).await;
}

async fn with_models() -> (Origin, Bursar) {
    let origin = Origin::always(Step::Answer(json(200, &[], "{}"))).await;
    let bursar = Bursar::before(&origin.url()).await;
    (origin, bursar)
}

async fn is_served(wire: &mut Wire) -> bool {
    wire.send(get("/v1/models", "")).await;
    wire.answer().await.status == 200
}

/// A silent connection keeps no place that another one needs, on any socket; one that has been
/// answered keeps its own as long as there are silent ones.
#[tokio::test]
async fn silent_connections_on_all_places_keep_no_app_out() {
    let (_origin, bursar) = with_models().await;
    let mut kept = bursar.connect().await;
    assert!(is_served(&mut kept).await);
    let mut silent = Vec::new();
    for _ in 0..PLACES + 100 {
        silent.push(bursar.connect().await);
    }
    for _ in 0..20 {
        let mut wire = bursar.connect().await;
        assert!(is_served(&mut wire).await, "the connection that comes");
        assert!(
            is_served(&mut kept).await,
            "the one that was answered before"
        );
        let mut wire = Wire::unix(&bursar.socket).await;
        assert!(is_served(&mut wire).await, "a user of the Unix socket");
    }
    assert!(silent[0].ends().await, "the eldest went first");
    let last = silent.last_mut().expect("a connection");
    assert!(is_served(last).await, "the last has its place");
    let refusals = bursar.metric("bursar_refusals_total", "error=\"connections_full\"");
    assert!(refusals >= 100.0, "{refusals} are counted");
}

/// The same of heads that are begun and not ended, and of connections between two requests.
#[tokio::test]
async fn slow_heads_and_idle_connections_give_way_and_the_silent_before_them() {
    let (_origin, bursar) = with_models().await;
    let mut idle = Vec::new();
    for _ in 0..PLACES / 2 {
        let mut wire = bursar.connect().await;
        assert!(is_served(&mut wire).await);
        idle.push(wire);
    }
    let mut slow = Vec::new();
    for _ in 0..PLACES / 2 - 1 {
        let mut wire = bursar.connect().await;
        wire.send("GET /v1/mod").await;
        slow.push(wire);
    }
    let mut silent = bursar.connect().await;
    // A head is on its way for a moment.
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    tokio::time::resume();
    // In turn: the silent one, the heads, the idle ones, the longest first.
    let mut inside = Vec::new();
    for at in 0..PLACES {
        let mut wire = bursar.connect().await;
        assert!(is_served(&mut wire).await, "{at}");
        inside.push(wire);
        match at {
            0 => assert!(silent.ends().await),
            1 => assert!(slow[0].ends().await),
            320 => assert!(idle[0].ends().await),
            _ => {}
        }
        if at == 2 {
            let last = slow.last_mut().expect("a connection");
            last.send("els HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
            assert_eq!(last.answer().await.status, 200, "a slow one that goes on");
        }
    }
}

/// The same for requests whose bodies never complete; none of them was executed. An upload that
/// continues keeps its place as long as others are idle.
#[tokio::test]
async fn bodies_that_never_come_keep_no_app_out_and_an_upload_that_goes_on_ends() {
    let (_origin, bursar) = with_models().await;
    let body = chat(&"x".repeat(200_000));
    let head = format!("Content-Length: {}\r\n", body.len());
    let mut upload = bursar.connect().await;
    upload.send(framed(&head, &body.as_bytes()[..50_000])).await;
    let mut begun = Vec::new();
    for _ in 1..PLACES {
        let mut wire = bursar.connect().await;
        wire.send(framed(&head, &body.as_bytes()[..1])).await;
        begun.push(wire);
    }
    // For a moment each may still be sent.
    // Meanwhile all heads are read.
    for _ in 0..20 {
        assert!(is_served(&mut Wire::unix(&bursar.socket).await).await);
    }
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    tokio::time::resume();
    upload.send(&body[50_000..150_000]).await;
    let mut inside = Vec::new();
    for at in 0..PLACES / 2 {
        let mut wire = bursar.connect().await;
        assert!(is_served(&mut wire).await, "{at}");
        inside.push(wire);
    }
    assert!(begun[0].ends().await, "the eldest went first");
    upload.send(&body[150_000..]).await;
    assert_eq!(upload.answer().await.status, 200);
    let last = begun.last_mut().expect("a connection");
    last.send(&body[1..]).await;
    assert_eq!(
        last.answer().await.status,
        200,
        "one that goes on after all"
    );
    assert_eq!(bursar.entries().len(), 2, "what gave way was never begun");
}

/// A request being served is never cut for a new connection, and a Unix socket's users have room of
/// their own.
#[tokio::test]
async fn a_connection_in_a_request_never_gives_way_and_unix_sockets_have_their_own_room() {
    may_open(4_096);
    let (origin, bursar) = with_models().await;
    let at_service = || origin.received().len();
    let stall = |count| {
        for _ in 0..count {
            origin.push(Step::Pieces(vec![json(200, &[], "{}")]));
        }
    };
    stall(PLACES);
    let mut inside = in_a_request(PLACES, || bursar.connect(), at_service).await;
    let user = || Wire::unix(&bursar.socket);
    for _ in 0..20 {
        let refused = bursar.connect().await.get("/v1/models").await;
        assert_eq!(refused.code(), Some("connections_full"));
        assert!(is_served(&mut user().await).await);
    }
    // The sockets' room is no more than theirs, and it is no room for a port.
    stall(128);
    let mut users = in_a_request(128, user, at_service).await;
    for _ in 0..PLACES + 128 {
        origin.go();
    }
    for wire in inside.iter_mut().chain(&mut users) {
        assert_eq!(wire.answer().await.status, 200);
    }
}

#[tokio::test]
async fn the_admin_listener_outlives_heads_and_connections_without_end() {
    let stage = Stage::open().await;
    let resting = stage.descriptors().unwrap_or_default();
    let endless = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}",
        "y".repeat(100_000)
    );
    let calls = [
        hidden(),
        b"\r\n".repeat(10_000),
        endless.into_bytes(),
        vec![0; 50_000],
    ];
    // More connections than there are places, one after the other: each has to free its place.
    for round in 0..80 {
        for bytes in &calls {
            let mut wire = Wire::tcp(stage.daemon.admin).await;
            wire.try_send(bytes).await;
            if round % 2 == 0 {
                wire.half_close_if_open().await;
                assert_ne!(wire.head().await.status, 200);
            }
        }
    }
    assert_eq!(stage.daemon.admin_page("/healthz").await.status, 200);
    eventually("its descriptors", || async {
        (stage.descriptors().unwrap_or_default() <= resting + 5).then_some(())
    })
    .await;
    assert_eq!(stage.witness.count(), 0);
    let answer = stage.daemon.connect().await.post(CHAT, &chat("x")).await;
    assert_eq!(answer.status, 200);
    stage.close(1).await;
}
