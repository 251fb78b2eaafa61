use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;

const SERVICE: u64 = 1;
const ELSEWHERE: u64 = 2;

fn connections() -> Connections {
    Connections::trusting(Authorities::none())
}

/// Keeps a connection to the service; its far end.
fn keep(connections: &Connections, pool_key: u64) -> DuplexStream {
    let (own, far) = duplex(64);
    connections.keep(Box::new(own), pool_key);
    far
}

/// Writes on what is taken, so that its far end can be told.
async fn mark(connections: &Connections, pool_key: u64) -> bool {
    let Some(mut stream) = connections.take(pool_key) else {
        return false;
    };
    stream.write_all(b"!").await.expect("it is open");
    true
}

async fn is_marked(far: &mut DuplexStream) -> bool {
    let mut byte = [0];
    timeout(Duration::ZERO, far.read_exact(&mut byte))
        .await
        .is_ok_and(|read| read.is_ok())
}

async fn is_closed(far: &mut DuplexStream) -> bool {
    let mut byte = [0];
    let read = timeout(Duration::ZERO, far.read(&mut byte)).await;
    matches!(read, Ok(Ok(0)))
}

#[tokio::test]
async fn a_connection_serves_one_request_of_its_own_peer_the_latest_first() {
    let connections = connections();
    let mut first = keep(&connections, SERVICE);
    let mut second = keep(&connections, SERVICE);
    let mut other = keep(&connections, ELSEWHERE);
    assert!(mark(&connections, SERVICE).await);
    assert!(is_marked(&mut second).await);
    assert!(mark(&connections, SERVICE).await);
    assert!(is_marked(&mut first).await);
    assert!(!mark(&connections, SERVICE).await, "none is left");
    assert!(!is_marked(&mut other).await);
    assert!(mark(&connections, ELSEWHERE).await);
}

#[tokio::test]
async fn what_the_service_closed_or_wrote_to_unasked_is_not_used_again() {
    let connections = connections();
    let mut sound = keep(&connections, SERVICE);
    let mut speaks = keep(&connections, SERVICE);
    speaks
        .write_all(b"HTTP/1.1 200 OK")
        .await
        .expect("it is open");
    drop(keep(&connections, SERVICE));
    assert!(mark(&connections, SERVICE).await);
    assert!(is_marked(&mut sound).await);
    assert!(connections.take(SERVICE).is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed_after_its_time_and_one_that_the_service_closed_before() {
    let connections = connections();
    let mut early = keep(&connections, SERVICE);
    sleep(IDLE_MAX - SWEEP).await;
    let mut late = keep(&connections, SERVICE);
    drop(keep(&connections, SERVICE));
    sleep(2 * SWEEP).await;
    assert!(is_closed(&mut early).await);
    assert!(!is_closed(&mut late).await);
    assert_eq!(connections.idle.lock().waiting.len(), 1);
    sleep(IDLE_MAX).await;
    assert!(is_closed(&mut late).await);
    sleep(SWEEP).await;
    assert!(
        !connections.idle.lock().has_sweeper,
        "nobody waits for nothing"
    );
    let mut again = keep(&connections, SERVICE);
    sleep(IDLE_MAX + SWEEP).await;
    assert!(is_closed(&mut again).await);
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_is_not_used_before_it_is_closed() {
    let connections = connections();
    let _far = keep(&connections, SERVICE);
    tokio::time::advance(IDLE_MAX).await;
    assert!(connections.take(SERVICE).is_none());
}

#[tokio::test]
async fn the_connection_that_waits_longest_makes_room_for_one_more() {
    let connections = connections();
    let mut first = keep(&connections, ELSEWHERE);
    let _others: Vec<_> = (0..IDLE_CONNECTIONS_MAX)
        .map(|_| keep(&connections, SERVICE))
        .collect();
    assert!(is_closed(&mut first).await);
    assert_eq!(connections.idle.lock().waiting.len(), IDLE_CONNECTIONS_MAX);
}

/// The runtime gives each task a share of reads; a look beyond it is still a look.
#[tokio::test]
async fn a_closed_connection_is_noticed_by_a_task_that_has_read_a_lot() {
    let connections = connections();
    for _ in 0..IDLE_CONNECTIONS_MAX {
        drop(keep(&connections, SERVICE));
    }
    assert!(connections.take(SERVICE).is_none());
}

/// Connects by HTTP/2 and keeps the connection; its far end, which takes streams as long as it is open.
async fn share(connections: &Connections) -> JoinHandle<()> {
    let (own, far) = duplex(64 * 1024);
    let far = tokio::spawn(async move {
        let served = h2::server::handshake(far).await;
        let mut served = served.expect("a handshake");
        let mut streams = Vec::new();
        while let Some(stream) = served.accept().await {
            streams.extend(stream);
        }
    });
    let mut settings = H2HandshakeSettings::new();
    settings.max_streams = HTTP2_STREAMS_MAX;
    let connection = handshake(Box::new(own), settings).await;
    connections.share(connection.expect("a handshake"), SERVICE);
    far
}

#[tokio::test(start_paused = true)]
async fn a_shared_connection_is_closed_its_time_after_its_last_stream_and_not_before() {
    let connections = connections();
    let idle = share(&connections).await;
    sleep(IDLE_MAX + 2 * SWEEP).await;
    assert!(idle.is_finished(), "it was never used");

    let used = share(&connections).await;
    let stream = connections.idle.lock().take_stream(SERVICE);
    assert!(stream.is_some());
    sleep(3 * IDLE_MAX).await;
    assert!(!used.is_finished(), "a stream of it is open");
    drop(stream);
    sleep(IDLE_MAX - 2 * SWEEP).await;
    assert!(!used.is_finished(), "its time is not over");
    sleep(4 * SWEEP).await;
    assert!(used.is_finished());
    assert!(connections.idle.lock().take_stream(SERVICE).is_none());
}
