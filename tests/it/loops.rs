//! A bursar whose service is bursar: itself, or one that leads back to it. Its requests would wait for one
//! another without end.
//!
//! Promise: if the configuration shows the loop, nothing is started; if only the requests do, the first
//! that comes back is refused, and nothing is billed; a chain over another bursar is served.

use std::net::{SocketAddr, TcpListener as BlockingListener};
use std::sync::Arc;

use bursar::ledger::entry::State;
use parking_lot::Mutex;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

use crate::activation::activated;
use crate::support::daemon::{Daemon, Signal, command};
use crate::support::origin::{billed, json};
use crate::support::wire::request;
use crate::support::{Bursar, Origin, Step, chat, eventually};

const CHAT: &str = "/v1/chat/completions";

/// A forwarder whose target is set later: it hides from bursar where its service is.
struct Tunnel {
    address: SocketAddr,
    target: Arc<Mutex<Option<SocketAddr>>>,
}

// === impl Tunnel ===

impl Tunnel {
    async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let target = Arc::new(Mutex::new(None));
        let leads_to = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let target: Option<SocketAddr> = *leads_to.lock();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(target.expect("a target"))
                        .await
                        .expect("it is there");
                    // One side ends before the other.
                    copy_bidirectional(&mut near, &mut far).await.ok();
                });
            }
        });
        Self { address, target }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn leads_to(&self, target: SocketAddr) {
        *self.target.lock() = Some(target);
    }
}

/// A paid and a free request come back as 508, and cost nothing.
async fn refuses_the_circle(bursar: &Bursar) {
    let answer = bursar.post(CHAT, &chat("round")).await;
    assert_eq!(answer.status, 508, "{}", answer.text());
    let error = answer.json()["error"].clone();
    assert_eq!(error["code"], "upstream_loop");
    let text = error["message"].as_str().expect("a text");
    assert!(text.contains("base_url"), "{text}");
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let free = bursar.connect().await.get("/v1/models").await;
    assert_eq!(free.status, 508, "{}", free.text());
    let entries = bursar.settled(1).await;
    assert_eq!((entries.len(), entries[0].state), (1, State::Failed));
}

#[tokio::test]
async fn a_request_that_comes_back_by_a_tunnel_is_refused_and_costs_nothing() {
    let tunnel = Tunnel::open().await;
    let bursar = Bursar::before(&tunnel.url()).await;
    tunnel.leads_to(bursar.address);
    refuses_the_circle(&bursar).await;
}

#[tokio::test]
async fn a_circle_of_two_bursars_is_refused_by_the_first() {
    let tunnel = Tunnel::open().await;
    let first = Bursar::before(&tunnel.url()).await;
    let second = Bursar::before(&format!("http://{}", first.address)).await;
    tunnel.leads_to(second.address);
    refuses_the_circle(&first).await;
    let passed = second.settled(1).await;
    assert_eq!(passed[0].state, State::Failed);
}

#[tokio::test]
async fn a_chain_over_another_bursar_is_served_and_shows_the_service_ids_alone() {
    let origin = Origin::start([Step::Answer(billed(7)), Step::Answer(json(200, &[], "{}"))]).await;
    let second = Bursar::before(&origin.url()).await;
    let first = Bursar::before(&format!("http://{}", second.address)).await;
    let of_app = format!("evil, {:032x}", 0xab);
    let mut wire = first.connect().await;
    let headers = [("X-Bursar-Via", of_app.as_str())];
    wire.send(request("POST", CHAT, &headers, &chat("chain")))
        .await;
    let answer = wire.answer().await;
    assert_eq!(
        (answer.status, answer.header("x-service-billed")),
        (200, Some("7"))
    );
    for bursar in [&first, &second] {
        let entries = bursar.settled(1).await;
        assert_eq!(
            entries[0].billed_micro_usd.map(|billed| billed.get()),
            Some(7)
        );
    }
    assert_eq!(first.connect().await.get("/v1/models").await.status, 200);
    let ids: Vec<Vec<String>> = origin
        .received()
        .iter()
        .map(|received| {
            let via = received.header("x-bursar-via").expect("on loopback");
            via.split(", ").map(str::to_owned).collect()
        })
        .collect();
    let [paid, free] = ids.as_slice() else {
        panic!("two requests: {ids:?}");
    };
    assert_eq!(paid.len(), 3, "{paid:?}");
    assert_eq!(paid[0], format!("{:032x}", 0xab));
    assert_eq!(&paid[1..], free.as_slice(), "one id for each process");
    assert_ne!(free[0], free[1]);
}

/// A loopback port without a listener.
fn free_port() -> u16 {
    let listener = BlockingListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

#[tokio::test]
async fn a_base_url_that_is_an_own_address_is_exit_code_78_at_start_and_for_check() {
    let directory = tempfile::tempdir().expect("a directory");
    let state = directory.path().join("state");
    let state_dir = state.to_str().expect("a path");
    let (proxy, admin) = (free_port(), free_port());
    let listened = [format!("127.0.0.1:{proxy}"), format!("127.0.0.1:{admin}")];
    for (upstream, own) in [
        (format!("http://127.0.0.1:{proxy}"), &listened[0]),
        (format!("http://localhost:{proxy}"), &listened[0]),
        (
            format!("http://[::ffff:127.0.0.1]:{proxy}/pre"),
            &listened[0],
        ),
        (format!("https://0.0.0.0:{proxy}"), &listened[0]),
        (format!("http://localhost:{admin}"), &listened[1]),
    ] {
        let file = directory.path().join("bursar.toml");
        let text = format!(
            "[upstream]\nbase_url = {upstream:?}\n[listen]\nproxy = [{:?}]\nadmin = [{:?}]\n[ledger]\nstate_dir = {state_dir:?}\n",
            listened[0], listened[1]
        );
        std::fs::write(&file, text).expect("a file");
        let config = file.to_str().expect("a path");
        for word in ["run", "check"] {
            let output = command(&[word, "--config", config]).output().await;
            let output = output.expect("bursar ends by itself");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(78), "{word} {upstream}: {said}");
            assert!(said.contains(own.as_str()), "{word} {upstream}: {said}");
            assert!(said.contains("base_url"), "{word} {upstream}: {said}");
            assert!(!state.exists(), "{word} {upstream}: a state directory");
        }
    }
}

#[tokio::test]
async fn a_reload_to_an_own_address_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let origin = Origin::start([]).await;
    let file = directory.path().join("bursar.toml");
    let config = |upstream: &str| {
        let text = format!("[upstream]\nbase_url = {upstream:?}\n");
        std::fs::write(&file, text).expect("a file");
    };
    config(&origin.url());
    let state = directory.path().join("state");
    let arguments = [
        "run",
        "--config",
        file.to_str().expect("a path"),
        "--listen",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
        "--state-dir",
        state.to_str().expect("a path"),
    ];
    let daemon = Daemon::ready(command(&arguments)).await;
    config(&format!("http://localhost:{}", daemon.proxy.port()));
    daemon.signal(Signal::HUP);
    let refused = "bursar_config_reloads_total{result=\"refused\"} 1";
    eventually("the reload to be refused", || async {
        let page = daemon.admin_page("/metrics").await;
        page.text().contains(refused).then_some(())
    })
    .await;
    origin.push(Step::Answer(billed(3)));
    let answer = daemon.connect().await.post(CHAT, &chat("after")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    daemon.terminate().await;
}

#[tokio::test]
async fn a_socket_that_is_given_at_the_start_counts_as_an_own_address() {
    let directory = tempfile::tempdir().expect("a directory");
    let listener = BlockingListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let state = directory.path().join("state");
    // The configured addresses are others.
    let upstream = format!("http://localhost:{}", address.port());
    let command = &mut activated(&upstream, &state, vec![listener.into()], "");
    let output = command.output().await;
    let output = output.expect("bursar ends by itself");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(78), "{said}");
    assert!(said.contains(&address.to_string()), "{said}");
}
