use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use super::*;
use crate::proxy::downstream::connection::Socket;

fn pair() -> (Peer, UnixStream) {
    let (own, app) = UnixStream::pair().expect("a pair");
    (Peer::new(Socket::Unix(own), None), app)
}

fn head() -> ResponseHeader {
    let mut head = ResponseHeader::build(200, None).expect("a head");
    head.insert_header("X-Own", "a").expect("a field");
    head.insert_header(DATE, "the service's").expect("a field");
    head
}

/// Pieces of all sizes.
#[tokio::test]
async fn what_is_written_arrives_in_its_order_whatever_the_kernel_takes_at_once() {
    let (mut peer, mut app) = pair();
    let reading = tokio::spawn(async move {
        let mut read = Vec::new();
        app.read_to_end(&mut read).await.expect("an end");
        read
    });
    let mut writer = AnswerWriter::new();
    let end = BodyEnd::Connection { held: None };
    writer.head(&head(), end, false).expect("a head");
    let mut written = writer.gathered.clone();
    let sizes = [1, 500, 8_191, 8_193, 300_000, 7_000, 0, 90_000];
    for (at, size) in sizes.iter().cycle().take(40).enumerate() {
        let letter = b'a' + u8::try_from(at % 26).expect("a letter");
        let piece = vec![letter; *size];
        writer.piece(&mut peer, &piece).await.expect("a reader");
        written.extend(piece);
    }
    writer.finish(&mut peer).await.expect("a reader");
    peer.shutdown().await.expect("an end");
    drop(peer);
    assert!(reading.await.expect("the reader ends") == written);
}

#[tokio::test]
async fn a_head_leaves_with_its_body_in_one_write_and_says_how_it_ends() {
    let (mut peer, mut app) = pair();
    let mut writer = AnswerWriter::new();
    writer
        .head(&head(), BodyEnd::LastChunk, true)
        .expect("a head");
    let body = vec![b'b'; 20_000];
    writer.piece(&mut peer, &body).await.expect("a reader");
    let mut read = vec![0; 30_000];
    let first = app.read(&mut read).await.expect("bytes");
    let text = String::from_utf8_lossy(&read[..first]).into_owned();
    let (head, chunk) = text.split_once("\r\n\r\n").expect("a head");
    assert!(
        head.starts_with("HTTP/1.1 200 OK\r\nX-Own: a\r\n"),
        "{head}"
    );
    assert!(
        head.contains("\r\nTransfer-Encoding: chunked\r\n"),
        "{head}"
    );
    assert!(head.ends_with("\r\nConnection: keep-alive"), "{head}");
    assert_eq!(head.matches("Date: ").count(), 1, "{head}");
    assert!(!head.contains("the service's"), "{head}");
    assert!(chunk.starts_with("4e20\r\nbb"), "{}", &chunk[..20]);
    writer.finish(&mut peer).await.expect("a reader");
}

#[tokio::test]
async fn a_body_that_is_not_as_long_as_announced_has_no_clean_end_and_none_is_longer() {
    for (bytes, is_whole) in [(&b"abc"[..], false), (b"abcd", true), (b"abcde", false)] {
        let (mut peer, mut app) = pair();
        let mut writer = AnswerWriter::new();
        let end = BodyEnd::Length { left: 4 };
        writer.head(&head(), end, true).expect("a head");
        let written = writer.piece(&mut peer, bytes).await;
        assert_eq!(written.is_ok(), bytes.len() <= 4);
        assert_eq!(writer.finish(&mut peer).await.is_ok(), is_whole);
        drop(peer);
        let mut read = String::new();
        app.read_to_string(&mut read).await.expect("an end");
        let body = read.split_once("\r\n\r\n").map(|(_, body)| body.as_bytes());
        assert_eq!(body, (bytes.len() <= 4).then_some(bytes));
    }
}

#[tokio::test]
async fn an_answer_has_one_head_and_nothing_before_it() {
    let (mut peer, _app) = pair();
    let mut writer = AnswerWriter::new();
    assert!(writer.piece(&mut peer, b"body").await.is_err());
    assert!(writer.finish(&mut peer).await.is_err());
    let end = || BodyEnd::Length { left: 0 };
    assert!(writer.head(&head(), end(), true).is_some());
    assert!(writer.head(&head(), end(), true).is_none());
    assert!(writer.finish(&mut peer).await.is_ok());
}

#[tokio::test]
async fn a_head_goes_out_though_the_first_piece_behind_it_waits_for_its_successor() {
    let (mut peer, mut app) = pair();
    let mut writer = AnswerWriter::new();
    let end = BodyEnd::Connection { held: None };
    writer.head(&head(), end, false).expect("a head");
    assert!(writer.follow(Bytes::from_static(b"first")).is_none());
    writer.flush(&mut peer).await.expect("a reader");
    let mut read = vec![0; 1000];
    let came = app.read(&mut read).await.expect("bytes");
    assert!(read[..came].ends_with(b"\r\n\r\n"));
    assert_eq!(writer.held().map(|held| &held[..]), Some(&b"first"[..]));
}
