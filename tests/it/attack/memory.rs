//! Row 15: bodies of 30 MB from many clients. What bursar keeps of them is one budget of 256 MiB.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use bursar::apps::AppAdd;
use bursar::clock::ManualClock;

use super::case::CHAT;
use super::stage::Stage;
use super::witness::Witness;
use crate::support::origin::billed;
use crate::support::wire::request;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, eventually};

const MIB: usize = 1024 * 1024;

/// The largest body, less a little.
const BODY_BYTES: usize = 30 * MIB - 1024;

/// As many of them as the budget holds.
const FITTING: usize = 8;

/// As many, short of whole, as leave no room for another.
const DRIPPING: usize = 9;

/// The bodies' budget, 64 MiB for the connections, and 80 MiB for the process itself, its ledger and
/// the memory that its allocator keeps.
const RESIDENT_MAX_KIB: u64 = (256 + 64 + 80) * 1024;

/// A form: a route whose body is neither parsed nor booked.
fn large() -> Vec<u8> {
    let head = format!(
        "POST /v1/eval-sets HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=x\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    );
    [head.as_bytes(), &vec![b'x'; BODY_BYTES]].concat()
}

async fn send(address: SocketAddr, bytes: Arc<Vec<u8>>) -> Answer {
    let mut wire = Wire::tcp(address).await;
    wire.try_send(&*bytes).await;
    wire.answer().await
}

#[tokio::test]
async fn bodies_of_30_mb_from_many_clients_wait_or_are_refused_and_memory_is_bounded() {
    let stage = Stage::before(Witness::stalling().await).await;
    let bytes = Arc::new(large());
    let mut clients = JoinSet::new();
    for _ in 0..FITTING {
        clients.spawn(send(stage.daemon.proxy, Arc::clone(&bytes)));
    }
    eventually("the budget to be full", || async {
        (stage.witness.count() == FITTING).then_some(())
    })
    .await;
    // As many again: they wait, and cost no memory while they do.
    for _ in 0..FITTING {
        clients.spawn(send(stage.daemon.proxy, Arc::clone(&bytes)));
    }
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(
            stage.witness.count(),
            FITTING,
            "more than fit are on their way"
        );
    }
    // A small one needs none of the budget.
    stage.witness.answer(1_000);
    let small = stage
        .daemon
        .connect()
        .await
        .post(CHAT, &chat("small"))
        .await;
    assert_eq!(small.status, 200);
    let (mut served, mut refused) = (0, 0);
    while let Some(answer) = clients.join_next().await {
        let answer = answer.expect("a client");
        match (answer.status, answer.code()) {
            (200, None) => served += 1,
            (503, Some("memory_full")) => refused += 1,
            _ => panic!("{} {}", answer.status, answer.text()),
        }
    }
    assert!(
        served > FITTING,
        "{served} served, {refused} asked to come again"
    );
    // Later ones pass.
    let later = send(stage.daemon.proxy, bytes).await;
    assert_eq!(later.status, 200);
    let peak = stage.proc_number("status", "VmHWM");
    assert!(peak <= RESIDENT_MAX_KIB, "{} MiB resident", peak / 1024);
    stage.close(1).await;
}

/// A body that waits in vain for ten seconds is refused in a way that makes its client retry: memory is
/// not taken from bodies that are complete.
#[tokio::test]
async fn a_body_that_waits_in_vain_for_memory_is_asked_to_come_again() {
    let witness = Witness::stalling().await;
    let bursar = Bursar::before(&witness.url()).await;
    let bytes = Arc::new(large());
    let mut holding = JoinSet::new();
    for _ in 0..FITTING {
        holding.spawn(send(bursar.address, Arc::clone(&bytes)));
    }
    eventually("the budget to be full", || async {
        (witness.count() == FITTING).then_some(())
    })
    .await;
    let sent = Arc::new(AtomicUsize::new(0));
    let late = begin(
        bursar.address,
        Arc::clone(&bytes),
        26 * MIB,
        Arc::clone(&sent),
    );
    let late = tokio::spawn(late);
    tokio::task::yield_now().await;
    // Time advances when no task can continue.
    tokio::time::pause();
    let text = late.await.expect("the late one");
    tokio::time::resume();
    assert!(text.starts_with("http/1.1 503"), "{text:?}");
    assert!(text.contains("x-bursar-error: memory_full\r\n"), "{text}");
    assert!(text.contains("retry-after: 1\r\n"), "{text}");
    assert!(!text.contains("x-should-retry"), "{text}");
    assert_eq!(witness.count(), FITTING);
    assert_eq!(bursar.entries().len(), 0);
}

/// What a body waits for memory here is bursar's own time, not its app's.
#[tokio::test]
async fn a_wait_for_memory_is_no_time_of_the_app() {
    let witness = Witness::stalling().await;
    let clock = ManualClock::at(1_790_000_000_000);
    let shared = Arc::new(clock.clone());
    let bursar = Bursar::with_clock(&witness.url(), "", shared).await;
    let bytes = Arc::new(large());
    let mut holding = JoinSet::new();
    for _ in 0..FITTING {
        holding.spawn(send(bursar.address, Arc::clone(&bytes)));
    }
    eventually("the budget to be full", || async {
        (witness.count() == FITTING).then_some(())
    })
    .await;
    let body = chat(&"x".repeat(26 * MIB));
    let bytes = request("POST", CHAT, &[], &body).into_bytes();
    let (sent, count) = (Arc::new(AtomicUsize::new(0)), bytes.len());
    let late = begin(bursar.address, Arc::new(bytes), count, Arc::clone(&sent));
    let late = tokio::spawn(late);
    everything_stands_still(&sent, 2 * MIB).await;
    clock.advance(Duration::from_secs(7));
    witness.answer(100);
    eventually("its answer", || async {
        (bursar.billed() > 0).then_some(())
    })
    .await;
    let own = || bursar.metric("bursar_overhead_seconds_sum", "lane=\"inference\"");
    eventually("its own time", || async { (own() > 0.0).then_some(()) }).await;
    assert!((own() - 7.0).abs() < 1e-6, "{} s", own());
    late.abort();
}

/// Nine uploads that start fast and then drip, never slower than a body may be, hold nearly all memory:
/// the slowest gives way to a waiting one, with an answer that asks for a retry.
#[tokio::test]
async fn uploads_that_drip_keep_no_other_body_out() {
    let origin = Origin::always(Step::Answer(billed(1))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let bytes = Arc::new(large());
    let sent = Arc::new(AtomicUsize::new(0));
    let mut dripping = JoinSet::new();
    for _ in 0..DRIPPING {
        let (bytes, sent) = (Arc::clone(&bytes), Arc::clone(&sent));
        dripping.spawn(drip(bursar.address, bytes, 28 * MIB, sent));
    }
    everything_is_taken(&sent, DRIPPING * 28 * MIB).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    for _ in 0..2 {
        let answer = send(bursar.address, Arc::clone(&bytes)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let took = began.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    let text = dripping.join_next().await.expect("one").expect("a client");
    tokio::time::resume();
    assert!(text.contains("x-bursar-error: memory_full\r\n"), "{text:?}");
    assert!(text.contains("came slowest"), "{text:?}");
    assert_eq!(bursar.entries().len(), 0);
}

/// One app that fills all the memory it may have leaves room for another's body.
#[tokio::test]
async fn an_app_that_holds_its_share_of_memory_keeps_no_other_app_out() {
    let witness = Witness::stalling().await;
    let bursar = Bursar::before(&witness.url()).await;
    let as_app = |name: &str| {
        let new = AppAdd {
            name: name.to_owned(),
            ..AppAdd::default()
        };
        let token = bursar.apps.add(&new, 1).expect("the app is added");
        let line = format!("\r\nAuthorization: Bearer {}\r\nHost:", token.reveal());
        let head = String::from_utf8(large()).expect("text");
        Arc::new(head.replacen("\r\nHost:", &line, 1).into_bytes())
    };
    let (greedy, other) = (as_app("greedy"), as_app("second"));
    let mut waiting = JoinSet::new();
    for _ in 0..FITTING - 2 {
        waiting.spawn(send(bursar.address, Arc::clone(&greedy)));
    }
    eventually("its share to be full", || async {
        (witness.count() == FITTING - 2).then_some(())
    })
    .await;
    for _ in 0..FITTING {
        waiting.spawn(send(bursar.address, Arc::clone(&greedy)));
    }
    for already in 0..2 {
        waiting.spawn(send(bursar.address, Arc::clone(&other)));
        eventually("the other app's body", || async {
            (witness.count() > FITTING - 2 + already).then_some(())
        })
        .await;
    }
    // Six of the one, two of the other.
    assert_eq!(witness.count(), FITTING);
}

/// Ten together want more than there is, and each holds a part already: none waits for the others.
#[tokio::test]
async fn bodies_that_grow_together_are_all_served() {
    const CLIENTS: usize = 10;
    // No body's remainder fits into what all parts together leave.
    const PART: usize = 254 * MIB / CLIENTS;
    let witness = Witness::start().await;
    let bursar = Bursar::before(&witness.url()).await;
    let bytes = Arc::new(large());
    let sent = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    let gate = Arc::new(Semaphore::new(0));
    for _ in 0..CLIENTS {
        let (bytes, sent) = (Arc::clone(&bytes), Arc::clone(&sent));
        let (gate, address) = (Arc::clone(&gate), bursar.address);
        clients.spawn(async move {
            let mut wire = Wire::tcp(address).await;
            for piece in bytes[..PART].chunks(64 * 1024) {
                wire.send(piece).await;
                sent.fetch_add(piece.len(), Ordering::Relaxed);
            }
            gate.acquire().await.expect("a gate").forget();
            wire.send(&bytes[PART..]).await;
            wire.answer().await
        });
    }
    everything_stands_still(&sent, CLIENTS * PART).await;
    gate.add_permits(CLIENTS);
    while let Some(answer) = clients.join_next().await {
        let answer = answer.expect("a client");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    assert_eq!(witness.count(), CLIENTS);
}

/// Sends the first `count` bytes, counts them, and reads until the connection ends.
async fn begin(
    address: SocketAddr,
    bytes: Arc<Vec<u8>>,
    count: usize,
    sent: Arc<AtomicUsize>,
) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    for piece in bytes[..count].chunks(64 * 1024) {
        stream.write_all(piece).await.expect("a piece is sent");
        sent.fetch_add(piece.len(), Ordering::Relaxed);
    }
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok();
    text.to_ascii_lowercase()
}

/// The same, and then a piece every half second: four times the required rate.
async fn drip(
    address: SocketAddr,
    bytes: Arc<Vec<u8>>,
    count: usize,
    sent: Arc<AtomicUsize>,
) -> String {
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    for piece in bytes[..count].chunks(64 * 1024) {
        stream.write_all(piece).await.expect("a piece is sent");
        sent.fetch_add(piece.len(), Ordering::Relaxed);
    }
    let (mut reads, mut writes) = stream.split();
    let mut text = String::new();
    let drops = async {
        while writes.write_all(&[b'x'; 2048]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        std::future::pending::<()>().await
    };
    let mut head = vec![0; 4096];
    tokio::select! {
        () = drops => {}
        read = reads.read(&mut head) => {
            text = String::from_utf8_lossy(&head[..read.unwrap_or(0)]).to_ascii_lowercase();
        }
    }
    text
}

/// Waits until `count` bytes are sent and no task has anything to do: all of them run on this
/// thread.
async fn everything_is_taken(sent: &AtomicUsize, count: usize) {
    let mut looks = 0;
    eventually("all of it to be taken", || {
        let all = sent.load(Ordering::Relaxed) == count;
        looks = if all { looks + 1 } else { 0 };
        std::future::ready((looks >= 40).then_some(()))
    })
    .await;
}

/// As much was taken as there is room for; how much more the kernel keeps varies.
async fn everything_stands_still(sent: &AtomicUsize, count: usize) {
    let (mut looks, mut before) = (0, 0);
    eventually("everything to stand still", || {
        let now = sent.load(Ordering::Relaxed);
        let stands = now == before && now >= count / 2;
        looks = if stands { looks + 1 } else { 0 };
        before = now;
        std::future::ready((looks >= 40).then_some(()))
    })
    .await;
}
