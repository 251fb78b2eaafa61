//! Row 15: bodies of 30 MB from many clients. What bursar keeps of them is one budget of 256 MiB.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::case::CHAT;
use super::stage::Stage;
use super::witness::Witness;
use crate::support::origin::billed;
use crate::support::{Answer, Bursar, Origin, Step, Wire, chat, eventually};

const MIB: usize = 1024 * 1024;

/// The largest body, less a little.
const BODY_BYTES: usize = 30 * MIB - 1024;

/// As many of them as the budget holds.
const FITTING: usize = 8;

/// The bodies' budget, 64 MiB for the connections, and 80 MiB for the process itself, its ledger and
/// what its allocator does not give back.
const RESIDENT_MAX_KIB: u64 = (256 + 64 + 80) * 1024;

/// A form: a route on which a body is neither looked into nor booked.
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
async fn bodies_of_30_mb_from_many_clients_wait_or_are_told_and_memory_is_bounded() {
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
    let (mut served, mut told) = (0, 0);
    while let Some(answer) = clients.join_next().await {
        let answer = answer.expect("a client");
        match (answer.status, answer.code()) {
            (200, None) => served += 1,
            (503, Some("memory_full")) => told += 1,
            _ => panic!("{} {}", answer.status, answer.text()),
        }
    }
    assert!(
        served > FITTING,
        "{served} served, {told} told to come again"
    );
    // Later ones pass.
    let later = send(stage.daemon.proxy, bytes).await;
    assert_eq!(later.status, 200);
    let peak = stage.told("status", "VmHWM");
    assert!(peak <= RESIDENT_MAX_KIB, "{} MiB resident", peak / 1024);
    stage.close(1).await;
}

/// Who waits in vain for ten seconds is told so, in a way that makes its client come again. Eight
/// hold nearly all of the budget and send no more: it is given back when they are refused.
#[tokio::test]
async fn who_waits_in_vain_for_memory_is_told_to_come_again() {
    let origin = Origin::always(Step::Answer(billed(1))).await;
    let bursar = Bursar::before(&origin.url()).await;
    let bytes = Arc::new(large());
    let sent = Arc::new(AtomicUsize::new(0));
    let mut holding = JoinSet::new();
    for _ in 0..FITTING {
        let (bytes, sent) = (Arc::clone(&bytes), Arc::clone(&sent));
        holding.spawn(begin(bursar.address, bytes, 29 * MIB, sent));
    }
    everything_is_taken(&sent, FITTING * 29 * MIB).await;
    // Two more than are left; they wait in the sockets.
    let late = begin(
        bursar.address,
        Arc::clone(&bytes),
        26 * MIB,
        Arc::clone(&sent),
    );
    let late = tokio::spawn(late);
    everything_is_taken(&sent, (FITTING * 29 + 26) * MIB).await;
    // Time runs when nobody can go on: ten seconds for who waits, thirty for who holds.
    tokio::time::pause();
    let told = late.await.expect("the late one");
    assert!(told.starts_with("http/1.1 503"), "{told:?}");
    assert!(told.contains("x-bursar-error: memory_full\r\n"), "{told}");
    assert!(told.contains("retry-after: 1\r\n"), "{told}");
    assert!(!told.contains("x-should-retry"), "{told}");
    while let Some(told) = holding.join_next().await {
        let told = told.expect("a client");
        assert!(
            told.contains("x-bursar-error: body_too_slow\r\n"),
            "{told:?}"
        );
    }
    tokio::time::resume();
    assert_eq!(origin.connections(), 0);
    assert_eq!(send(bursar.address, bytes).await.status, 200);
    assert_eq!(bursar.entries().len(), 0);
}

/// Ten together want more than there is, and each holds a part already: none waits for the others.
#[tokio::test]
async fn bodies_that_grow_together_are_all_served() {
    const CLIENTS: usize = 10;
    // Nobody's rest fits into what all parts together leave.
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

/// Sends the first `count` bytes, counts them, and reads what comes until the connection ends.
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
    let mut told = String::new();
    stream.read_to_string(&mut told).await.ok();
    told.to_ascii_lowercase()
}

/// Waits until `count` bytes are sent and nobody has anything to do: all of them run on this thread.
async fn everything_is_taken(sent: &AtomicUsize, count: usize) {
    let mut looks = 0;
    eventually("all of it to be taken", || {
        let all = sent.load(Ordering::Relaxed) == count;
        looks = if all { looks + 1 } else { 0 };
        std::future::ready((looks >= 40).then_some(()))
    })
    .await;
}

/// As much was taken as there is room for: how much more the kernel keeps differs.
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
