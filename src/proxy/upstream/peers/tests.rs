use std::net::Ipv4Addr;
use std::sync::atomic::AtomicUsize;

use super::*;
use crate::clock::ManualClock;
use crate::config::{ApiKey, BaseUrl};

/// A documentation address that counts as this machine's.
const OWN: &str = "203.0.113.5";

static LOOKS: AtomicUsize = AtomicUsize::new(0);

fn is_own(address: IpAddr) -> bool {
    LOOKS.fetch_add(1, Ordering::SeqCst);
    address.to_string() == OWN
}

fn peers(base_url: &str, clock: &ManualClock) -> Peers {
    sharing(base_url, clock, Pooled::default())
}

fn sharing(base_url: &str, clock: &ManualClock, pooled: Pooled) -> Peers {
    let upstream = Upstream {
        base_url: BaseUrl::parse(base_url).expect("a URL"),
        api_key: ApiKey::from_text(b"sk-test").expect("a key"),
        authorities: None,
        connect_timeout: Duration::from_secs(1),
        read_timeout: Duration::from_secs(1),
        extra_routes: Vec::new(),
    };
    Peers {
        is_of_this_machine: is_own,
        ..Peers::new(&upstream, Arc::new(clock.clone()), pooled)
    }
}

async fn leads_back(peers: &Peers) -> bool {
    let candidates = peers.candidates(false).await.expect("it resolves");
    candidates[0].may_lead_back
}

#[tokio::test]
async fn a_request_may_come_back_from_near_addresses_and_from_public_ones_of_this_machine() {
    let clock = ManualClock::at(0);
    for (base_url, wanted) in [
        ("http://127.0.0.1:9", true),
        ("http://localhost:9", true),
        ("https://10.0.0.7", true),
        ("https://203.0.113.5:8443", true),
        ("https://203.0.113.6:8443", false),
        ("https://[2001:db8::1]", false),
    ] {
        let peers = peers(base_url, &clock);
        assert_eq!(leads_back(&peers).await, wanted, "{base_url}");
    }
    // The kernel is asked once for many requests, and anew when an address may have moved.
    let peers = peers("https://203.0.113.6", &clock);
    let before = LOOKS.load(Ordering::SeqCst);
    for _ in 0..100 {
        assert!(!leads_back(&peers).await);
    }
    assert_eq!(LOOKS.load(Ordering::SeqCst), before + 1);
    clock.advance(ANSWER_FRESH);
    assert!(!leads_back(&peers).await);
    assert_eq!(LOOKS.load(Ordering::SeqCst), before + 2);
}

/// The address that the kernel would send from is one of ours.
#[test]
fn the_kernel_knows_this_machines_addresses() {
    assert!(is_of_this_machine(Ipv4Addr::LOCALHOST.into()));
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // Sends nothing. Without a way out there is only loopback to look at.
    if socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).is_ok() {
        let own = socket.local_addr().expect("an address").ip();
        assert!(is_of_this_machine(own), "{own}");
    }
    assert!(!is_of_this_machine(Ipv4Addr::new(198, 51, 100, 1).into()));
}

/// A reload makes peers anew, beside the connections there are.
#[tokio::test]
async fn connections_that_were_turned_away_from_stay_so_for_peers_that_come_later() {
    let (clock, pooled) = (ManualClock::at(0), Pooled::default());
    let pool_key = async || {
        let peers = sharing("https://203.0.113.6", &clock, pooled.clone());
        let candidates = peers.candidates(false).await.expect("it resolves");
        candidates[0].pool_key
    };
    let before = pool_key().await;
    assert_eq!(pool_key().await, before);
    pooled.turn();
    let after = pool_key().await;
    assert_ne!(after, before);
    assert_eq!(pool_key().await, after);
}
