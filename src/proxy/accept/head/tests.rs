use bytes::BytesMut;

use super::{LargeHeads, PLACE_BYTES, read_head};
use crate::proxy::refuse::Code;

/// Reads a head of bytes that come in pieces of so many; gives its length, and what it begins with.
async fn read(bytes: &[u8], piece_bytes: usize) -> Result<(usize, BytesMut), Code> {
    let (mut sender, mut stream) = tokio::io::duplex(piece_bytes);
    let bytes = bytes.to_vec();
    let sending = tokio::spawn(async move {
        // A reader that has refused does not take the rest.
        tokio::io::AsyncWriteExt::write_all(&mut sender, &bytes)
            .await
            .ok();
        sender
    });
    let mut unread = BytesMut::new();
    let read = read_head(&mut stream, &mut unread, &LargeHeads::default()).await;
    drop(stream);
    sending.await.expect("the sender ends");
    read.map(|head| (head.length, unread))
}

#[tokio::test]
async fn a_head_ends_at_its_blank_line_in_whatever_pieces_it_comes() {
    for (bytes, head) in [
        ("GET / HTTP/1.1\r\n\r\nGET", "GET / HTTP/1.1\r\n\r\n"),
        (
            "GET / HTTP/1.1\r\nA: b\r\n\r\n",
            "GET / HTTP/1.1\r\nA: b\r\n\r\n",
        ),
        ("\r\nGET / HTTP/1.1\r\n\r\n\r\n", "GET / HTTP/1.1\r\n\r\n"),
        // As a lenient parser sees it; the door refuses such a head.
        (
            "GET / HTTP/1.1\nA: b\n\nX: y\r\n\r\n",
            "GET / HTTP/1.1\nA: b\n\n",
        ),
        (
            "GET / HTTP/1.1\r\nA: b\n\r\n",
            "GET / HTTP/1.1\r\nA: b\n\r\n",
        ),
        (
            "GET / HTTP/1.1\r\nA: \u{e9}\0\r\r\n\r\n",
            "GET / HTTP/1.1\r\nA: \u{e9}\0\r\r\n\r\n",
        ),
    ] {
        for piece_bytes in 1..=bytes.len() {
            let (length, unread) = read(bytes.as_bytes(), piece_bytes).await.expect(bytes);
            assert_eq!(unread.get(..length), Some(head.as_bytes()), "{bytes:?}");
        }
    }
}

#[tokio::test]
async fn a_first_line_that_can_be_none_is_not_waited_for() {
    for bytes in [
        "\x16\x03\x01",
        "GET\t",
        "GET /\0",
        "GET /\x7f",
        "GET /\u{e9}",
        "GET /\rX",
        "\n",
        "\r\n\r\n",
    ] {
        let (mut sender, mut stream) = tokio::io::duplex(64);
        let sent = tokio::io::AsyncWriteExt::write_all(&mut sender, bytes.as_bytes());
        sent.await.expect("room");
        // The sender stays, and says nothing more.
        let large_heads = LargeHeads::default();
        let read = read_head(&mut stream, &mut BytesMut::new(), &large_heads).await;
        assert_eq!(read.err(), Some(Code::HeadMalformed), "{bytes:?}");
    }
}

#[tokio::test]
async fn large_heads_share_a_room_and_small_ones_need_none() {
    let large_heads = LargeHeads::default();
    let read = async |fields_bytes: usize| {
        let head = format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(fields_bytes));
        let mut unread = BytesMut::new();
        read_head(&mut head.as_bytes(), &mut unread, &large_heads).await
    };
    let mut kept = Vec::new();
    while let Ok(head) = read(2 * PLACE_BYTES).await {
        kept.push(head);
    }
    assert_eq!(kept.len(), 512);
    assert_eq!(read(2 * PLACE_BYTES).await.err(), Some(Code::MemoryFull));
    let small = read(PLACE_BYTES / 2).await.expect("a small head");
    assert!(small.room.is_none());
    kept.pop();
    assert!(read(2 * PLACE_BYTES).await.is_ok(), "one has ended");
}
