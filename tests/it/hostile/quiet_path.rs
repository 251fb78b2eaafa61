//! A path to the service on which nothing moves: an answer takes minutes, and a hop in between forgets
//! silent connections.
//!
//! Promise: the kernel probes the other side while an answer is awaited, and a gap of 100 s on the way
//! loses no answer.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::sockopt;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, Wire, chat, eventually};

/// What a path may swallow without a word.
const GAP: Duration = Duration::from_secs(100);

/// The time before the gap: the first probe is sent after 30 s of silence.
const QUIET_BEFORE: Duration = Duration::from_secs(29);

/// The sockets of this process that are connected to `address`.
fn connected_to(address: SocketAddr) -> Vec<OwnedFd> {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).expect("this process");
    let open = std::fs::read_dir("/proc/self/fd").expect("descriptors");
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let numbers: Vec<i32> = numbers.collect();
    let copies = numbers
        .into_iter()
        .filter_map(|number| pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).ok());
    copies
        .filter(|copy| {
            let peer = rustix::net::getpeername(copy).ok().flatten();
            peer.and_then(|peer| SocketAddr::try_from(peer).ok()) == Some(address)
        })
        .collect()
}

#[tokio::test]
async fn a_connection_to_the_service_is_kept_alive_and_outlives_a_gap_of_100_s() {
    let origin = Origin::always(Step::Stall).await;
    let bursar = Bursar::before(&origin.url()).await;
    let mut wire = bursar.connect().await;
    wire.send(request("POST", "/v1/chat/completions", &[], &chat("think")))
        .await;
    eventually("the request", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    let sockets = connected_to(origin.address);
    assert!(!sockets.is_empty(), "a connection");
    for socket in &sockets {
        assert!(sockopt::socket_keepalive(socket).expect("an option"));
        let idle = sockopt::tcp_keepidle(socket).expect("an option");
        let interval = sockopt::tcp_keepintvl(socket).expect("an option");
        let count = sockopt::tcp_keepcnt(socket).expect("an option");
        let user_timeout = sockopt::tcp_user_timeout(socket).expect("an option");
        let user_timeout = Duration::from_millis(u64::from(user_timeout));
        // Before a NAT that forgets after a minute.
        assert_eq!(idle, Duration::from_secs(30));
        assert_eq!(interval, Duration::from_secs(10));
        // Linux gives a connection up if probes went unanswered and `TCP_USER_TIMEOUT` has passed since it
        // last heard the other side, which may have been silent for `idle` before the gap; the next probe
        // comes within `interval` after it. Without that timeout, the number of unanswered probes decides.
        let needed = idle + GAP + interval;
        assert!(user_timeout >= needed, "{user_timeout:?} of {needed:?}");
        assert!(idle + interval * count >= needed, "{count} probes");
    }
}

/// Set for the test's own program in a network of its own.
const INSIDE: &str = "BURSAR_TEST_OWN_NETWORK";

/// The path is cut for 100 s, in a network of the test's own, while an answer is waited for: shortly before
/// the first probe, so that the other side was last heard as long ago as can be.
#[tokio::test]
#[ignore = "140 s; `make test-all` runs it"]
async fn a_path_that_is_cut_for_100_s_loses_no_answer() {
    #[expect(clippy::disallowed_methods, reason = "a test has no config to read it")]
    let is_inside = std::env::var_os(INSIDE).is_some();
    if is_inside {
        return wait_over_the_gap().await;
    }
    let mut can = tokio::process::Command::new("unshare");
    let can = can
        .args(["--net", "--map-root-user", "true"])
        .status()
        .await;
    assert!(
        can.is_ok_and(|done| done.success()),
        "no network namespace can be made here (unshare --net --map-root-user): nothing was tested"
    );
    let own = std::env::current_exe().expect("this program");
    let name = "hostile::quiet_path::a_path_that_is_cut_for_100_s_loses_no_answer";
    let inside = tokio::process::Command::new("unshare")
        .args(["--net", "--map-root-user"])
        .arg(own)
        .args(["--exact", name, "--ignored", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .await
        .expect("unshare is there");
    let said = String::from_utf8_lossy(&inside.stdout);
    let errors = String::from_utf8_lossy(&inside.stderr);
    assert!(inside.status.success(), "{said}\n{errors}");
    assert!(said.contains("1 passed"), "{said}");
}

async fn loopback(state: &str) {
    let mut ip = tokio::process::Command::new("ip");
    let done = ip.args(["link", "set", "lo", state]).status().await;
    assert!(done.expect("ip is there").success());
}

async fn wait_over_the_gap() {
    loopback("up").await;
    let origin = Origin::start([Step::Pieces(vec![billed(7)])]).await;
    let bursar = Bursar::before(&origin.url()).await;
    // The app's own way is not the one that is cut.
    let mut wire = Wire::unix(&bursar.socket).await;
    wire.send(request("POST", "/v1/chat/completions", &[], &chat("think")))
        .await;
    eventually("the request", || async {
        (!origin.received().is_empty()).then_some(())
    })
    .await;
    tokio::time::sleep(QUIET_BEFORE).await;
    loopback("down").await;
    tokio::time::sleep(GAP).await;
    loopback("up").await;
    origin.go();
    let answer = wire.answer().await;
    assert_eq!((answer.status, bursar.billed()), (200, 7));
    assert_eq!(origin.received().len(), 1, "nothing was asked again");
}
