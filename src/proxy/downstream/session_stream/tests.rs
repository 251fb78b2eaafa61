use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::proxy::downstream::connection::Socket;

/// Pieces of all sizes around the bound, flushed now and then.
#[tokio::test]
async fn what_is_written_arrives_in_its_order_whatever_the_kernel_takes_at_once() {
    let (own, mut app) = UnixStream::pair().expect("a pair");
    let peer = Peer::new(Socket::Unix(own));
    let reading = tokio::spawn(async move {
        let mut read = Vec::new();
        app.read_to_end(&mut read).await.expect("an end");
        read
    });
    let mut connection = AppConnection::new(peer);
    let mut written = Vec::new();
    let sizes = [
        1, 500, 8_191, 8_192, 8_193, 3, 300_000, 7_000, 7_000, 0, 90_000,
    ];
    for (at, size) in sizes.iter().cycle().take(60).enumerate() {
        let letter = b'a' + u8::try_from(at % 26).expect("a letter");
        let piece = vec![letter; *size];
        connection.write_all(&piece).await.expect("a reader");
        written.extend(piece);
        if at % 7 == 0 {
            connection.flush().await.expect("a reader");
            assert_eq!(connection.holds(), 0);
        }
    }
    connection.flush().await.expect("a reader");
    drop(connection);
    assert!(reading.await.expect("the reader ends") == written);
}

#[tokio::test]
async fn a_head_goes_out_in_one_write_with_a_body_that_is_too_large_to_be_gathered() {
    let (own, mut app) = UnixStream::pair().expect("a pair");
    let mut connection = AppConnection::new(Peer::new(Socket::Unix(own)));
    connection.write_all(b"head").await.expect("a reader");
    assert_eq!(connection.holds(), 4, "it waits for its body");
    let body = vec![b'b'; 20_000];
    connection.write_all(&body).await.expect("a reader");
    let mut read = vec![0; 30_000];
    let first = app.read(&mut read).await.expect("bytes");
    assert!(first > 4, "{first} bytes came at once");
    assert_eq!(&read[..5], b"headb");
}
