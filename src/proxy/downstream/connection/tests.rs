use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use super::*;

/// A connection and the app's end of it.
async fn connected() -> (Peer, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let app = TcpStream::connect(address).await.expect("a connection");
    let (accepted, _) = listener.accept().await.expect("the connection");
    (Peer::new(Socket::Tcp(accepted), None), app)
}

/// The runtime hears of it once its events are taken.
async fn hears_of_the_end(peer: &Peer) {
    while !peer.is_known_to_have_ended() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_end_of_input_is_heard_of_behind_bytes_that_nothing_reads() {
    let (mut peer, mut app) = connected().await;
    assert!(!peer.is_known_to_have_ended());
    app.write_all(b"GET / HTTP/1.1\r\n").await.expect("room");
    peer.speaks().await.expect("bytes");
    assert!(!peer.is_known_to_have_ended() && !peer.has_hung_up());
    app.shutdown().await.expect("an end of input");
    hears_of_the_end(&peer).await;
    assert!(peer.has_hung_up() && !peer.is_broken());
    let mut read = BytesMut::new();
    assert_eq!(peer.try_read(&mut read, 5).expect("bytes").ok(), Some(5));
    assert_eq!(&read[..], b"GET /");
}

#[tokio::test]
async fn a_reset_is_heard_of() {
    let (peer, app) = connected().await;
    app.set_zero_linger().expect("a reset at the end");
    drop(app);
    hears_of_the_end(&peer).await;
    assert!(peer.is_broken());
}

#[tokio::test]
async fn what_was_read_ahead_is_read_first_and_its_buffer_goes_with_its_last_byte() {
    let (mut peer, mut app) = connected().await;
    app.write_all(b"third").await.expect("room");
    peer.unread(BytesMut::from(&b"second"[..]));
    peer.unread(BytesMut::from(&b"first "[..]));
    assert_eq!(&peer.0.lock().take_ahead(6)[..], b"first ");
    let mut read = BytesMut::new();
    assert_eq!(peer.try_read(&mut read, 100).expect("bytes").ok(), Some(6));
    assert_eq!(peer.0.lock().ahead.capacity(), 0);
    peer.speaks().await.expect("bytes");
    let mut read = BytesMut::new();
    assert_eq!(peer.try_read(&mut read, 100).expect("bytes").ok(), Some(5));
    assert_eq!(&read[..], b"third");
}
