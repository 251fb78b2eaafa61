use bytes::BytesMut;

use super::{Chunked, Malformed, REQUEST_EXTRA_BYTES_MAX};

/// The body of these bytes, which come in pieces of so many, and what is left of them.
async fn read(bytes: &[u8], piece_bytes: usize) -> Result<Vec<u8>, Malformed> {
    let (mut sender, mut source) = tokio::io::duplex(piece_bytes);
    let bytes = bytes.to_vec();
    let sending = tokio::spawn(async move {
        // A reader that has refused does not take the rest.
        tokio::io::AsyncWriteExt::write_all(&mut sender, &bytes)
            .await
            .ok();
    });
    let mut chunked = Chunked::default();
    let mut body = BytesMut::new();
    let read = loop {
        match chunked.next(&mut source).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break Ok(body.to_vec()),
            Err(Malformed) => break Err(Malformed),
        }
    };
    drop(source);
    sending.await.expect("the sender ends");
    read
}

#[tokio::test]
async fn a_body_is_the_same_in_whatever_pieces_it_comes() {
    let whole = b"4;a=b\r\nWiki\r\n1\r\n\n\r\n0006 ; c = \"\\\"\"\r\npedia \r\n0\r\nX: y\r\n\r\n";
    for piece_bytes in 1..=whole.len() {
        assert_eq!(
            read(whole, piece_bytes).await,
            Ok(b"Wiki\npedia ".to_vec()),
            "{piece_bytes}"
        );
    }
    for end in 0..whole.len() {
        let cut = whole.get(..end).expect("a beginning");
        assert_eq!(read(cut, 64).await, Err(Malformed), "{end}");
    }
}

#[tokio::test]
async fn extensions_and_trailers_have_one_bound() {
    let extension = |bytes: usize| format!(";{}", "a".repeat(bytes.saturating_sub(1)));
    let half = REQUEST_EXTRA_BYTES_MAX / 2;
    let trailer = format!("X:{}", "y".repeat(half - 2));
    for (extension_bytes, fits) in [(half, true), (half + 1, false)] {
        let body = format!(
            "1{}\r\nx\r\n0\r\n{trailer}\r\n\r\n",
            extension(extension_bytes)
        );
        assert_eq!(read(body.as_bytes(), 4096).await.is_ok(), fits);
    }
    // A line without end is not waited for.
    let endless = format!("1{}", extension(2 * REQUEST_EXTRA_BYTES_MAX));
    assert_eq!(read(endless.as_bytes(), 4096).await, Err(Malformed));
}

#[tokio::test]
async fn a_size_that_no_machine_has_is_no_end() {
    assert_eq!(read(b"ffffffffffffffff\r\nx", 64).await, Err(Malformed));
    assert_eq!(read(b"10000000000000000\r\nx", 64).await, Err(Malformed));
}
