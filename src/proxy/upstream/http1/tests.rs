use tokio::io::{AsyncWriteExt, duplex};

use super::*;

/// What came of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Came {
    /// Its status, where its head came.
    status: Option<u16>,
    body: Vec<u8>,
    end: Result<(), AnswerLost>,
    is_kept: bool,
}

/// How the pieces of an answer come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Closes,
    StaysOpen,
}

const SILENT: usize = 1 << 20;

async fn read(bytes: &[u8], piece_bytes: usize, then: Then, method: &Method) -> Came {
    let (own, mut far) = duplex(SILENT);
    let mut reader = AnswerReader::new(Box::new(own), method);
    let reading = async {
        let mut came = Came {
            status: None,
            body: Vec::new(),
            end: Ok(()),
            is_kept: false,
        };
        let head = loop {
            match reader.read_head().await {
                Ok(head) if head.status.is_informational() => {}
                Ok(head) => break head,
                Err(lost) => {
                    came.end = Err(lost);
                    return came;
                }
            }
        };
        came.status = Some(head.status.as_u16());
        loop {
            match reader.next_chunk().await {
                Ok(Some(chunk)) => {
                    assert!(!chunk.is_empty(), "a chunk has bytes");
                    came.body.extend_from_slice(&chunk);
                }
                Ok(None) => break,
                Err(lost) => {
                    came.end = Err(lost);
                    let again = reader.next_chunk().await;
                    assert_eq!(again, Err(lost), "a break stays one");
                    break;
                }
            }
        }
        came.is_kept = reader.may_be_kept();
        came
    };
    let sending = async {
        for piece in bytes.chunks(piece_bytes) {
            far.write_all(piece).await.ok();
            // The reader takes it before the next one comes.
            tokio::task::yield_now().await;
        }
        match then {
            Then::Closes => drop(far),
            Then::StaysOpen => std::future::pending().await,
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        came = reading => came,
        () = sending => unreachable!("it waits"),
    }
}

/// In whatever pieces.
async fn read_anyhow(bytes: &[u8], then: Then, method: &Method) -> Came {
    let whole = read(bytes, bytes.len().max(1), then, method).await;
    for piece_bytes in [1, 2, 3, 7, 64] {
        let pieces = read(bytes, piece_bytes, then, method).await;
        assert_eq!(
            Came {
                is_kept: whole.is_kept,
                ..pieces
            },
            whole,
            "{piece_bytes} B at once: {}",
            bytes.escape_ascii()
        );
    }
    whole
}

fn whole(status: u16, body: &str, is_kept: bool) -> Came {
    Came {
        status: Some(status),
        body: body.into(),
        end: Ok(()),
        is_kept,
    }
}

fn broken(body: &str, lost: AnswerLost) -> Came {
    Came {
        status: Some(200),
        body: body.into(),
        end: Err(lost),
        is_kept: false,
    }
}

fn none(lost: AnswerLost) -> Came {
    Came {
        status: None,
        body: Vec::new(),
        end: Err(lost),
        is_kept: false,
    }
}

/// RFC 9112, 6.3, and what 9.3 says of the connection.
#[tokio::test]
async fn a_body_ends_where_its_framing_says() {
    const TWO: &str = "Content-Length: 2\r\n\r\n{}";
    const CHUNKS: &str = "Transfer-Encoding: chunked\r\n\r\n";
    let rows = [
        // 6.3, 1: no body, whatever the head says.
        (
            "HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\n",
            whole(204, "", false),
        ),
        (
            "HTTP/1.1 204 X\r\nContent-Length: 0\r\n\r\n",
            whole(204, "", true),
        ),
        (
            "HTTP/1.1 304 X\r\nTransfer-Encoding: chunked\r\n\r\n",
            whole(304, "", true),
        ),
        ("HTTP/1.1 304 X\r\n\r\n", whole(304, "", true)),
        // 6.3, 4: the coding, also beside a length.
        (
            &format!("HTTP/1.1 200 X\r\n{CHUNKS}2\r\n{{}}\r\n0\r\n\r\n"),
            whole(200, "{}", true),
        ),
        (
            "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            whole(200, "{}", false),
        ),
        (
            "HTTP/1.0 200 X\r\nConnection: keep-alive\r\nTransfer-Encoding: Chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
            whole(200, "{}", false),
        ),
        // 6.3, 6: one length.
        (&format!("HTTP/1.1 200 X\r\n{TWO}"), whole(200, "{}", true)),
        (
            &format!("HTTP/1.1 200 X\r\nContent-Length: 2\r\n{TWO}"),
            whole(200, "{}", true),
        ),
        (
            "HTTP/1.1 200 X\r\nContent-Length: 2 ,\t2\r\n\r\n{}",
            whole(200, "{}", true),
        ),
        (
            "HTTP/1.1 200 X\r\nContent-Length: 0\r\n\r\n",
            whole(200, "", true),
        ),
        // 9.3: who keeps a connection.
        (
            &format!("HTTP/1.1 200 X\r\nConnection: x, Close\r\n{TWO}"),
            whole(200, "{}", false),
        ),
        (
            &format!("HTTP/1.1 200 X\r\nConnection: x\r\nConnection: close\r\n{TWO}"),
            whole(200, "{}", false),
        ),
        (&format!("HTTP/1.0 200 X\r\n{TWO}"), whole(200, "{}", false)),
        (
            &format!("HTTP/1.0 200 X\r\nConnection: Keep-Alive\r\n{TWO}"),
            whole(200, "{}", true),
        ),
        // Interim heads have no body; lines may end with a bare LF (2.2), and values may be folded (5.2).
        (
            &format!(
                "HTTP/1.1 100 X\r\nContent-Length: 5\r\n\r\nHTTP/1.1 103 X\r\n\r\nHTTP/1.1 200 X\r\n{TWO}"
            ),
            whole(200, "{}", true),
        ),
        (
            "HTTP/1.1 200\nContent-Length:\r\n 2\n\n{}",
            whole(200, "{}", true),
        ),
    ];
    for (bytes, expected) in rows {
        let came = read_anyhow(bytes.as_bytes(), Then::StaysOpen, &Method::POST).await;
        assert_eq!(came, expected, "{bytes:?}");
        let surplus = [bytes, "HTTP/1.1 200 OK\r\n\r\n"].concat();
        let came = read(
            surplus.as_bytes(),
            surplus.len(),
            Then::StaysOpen,
            &Method::POST,
        )
        .await;
        assert_eq!(
            came,
            Came {
                is_kept: false,
                ..expected
            },
            "{surplus:?}"
        );
    }
    // 6.3, 1 and 8.
    let head = "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\n";
    let came = read_anyhow(head.as_bytes(), Then::StaysOpen, &Method::HEAD).await;
    assert_eq!(came, whole(200, "", false));
    let came = read_anyhow(
        b"HTTP/1.1 200 X\r\n\r\nto the end",
        Then::Closes,
        &Method::GET,
    )
    .await;
    assert_eq!(came, whole(200, "to the end", false));
}

/// A token a chunk, each size filled up to the same width.
#[tokio::test]
async fn a_long_stream_of_padded_sizes_comes_whole() {
    let chunks = "1      \r\nx\r\n".repeat(20_000);
    let bytes = format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n");
    let came = read(bytes.as_bytes(), 5000, Then::StaysOpen, &Method::POST).await;
    assert_eq!(came, whole(200, &"x".repeat(20_000), true));
}

/// Hands out an error where bytes wait behind it, as TLS does with an alert; then a clean end.
#[derive(Debug)]
struct Breaks {
    errors: usize,
    waiting: &'static [u8],
}

impl AsyncRead for Breaks {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        if self.errors > 0 {
            self.errors -= 1;
            return Err(std::io::ErrorKind::ConnectionReset.into()).into();
        }
        room.put_slice(take(&mut self.waiting));
        Ok(()).into()
    }
}

#[tokio::test]
async fn what_was_understood_before_a_break_counts_and_a_break_stays_one() {
    let half = b"HTTP/1.1 200 X\r\n\r\n: receipt\n";
    for (waiting, came) in [(&half[..], Some(&b": receipt\n"[..])), (b"", None)] {
        let mut stream = Breaks { errors: 1, waiting };
        let mut is_reset = false;
        let mut unread = Bytes::new();
        let mut body = AnswerBody::UntilClose;
        let polled = poll_fn(|cx| {
            Poll::Ready(poll_came(&mut stream, &mut is_reset, cx, |came| {
                unread = Bytes::copy_from_slice(came);
            }))
        });
        let is_ready = matches!(polled.await, Poll::Ready(Ok(())));
        assert_eq!(is_ready, came.is_some());
        if let Some((head, length)) = head::parse(&unread).expect("no fault") {
            assert_eq!(head.status, 200);
            let rest = unread.slice(length..);
            let taken = body.take(&rest, Bytes::copy_from_slice, &mut true);
            assert_eq!(taken.expect("a piece"), came.expect("a body"));
        }
        let again = poll_fn(|cx| Poll::Ready(poll_came(&mut stream, &mut is_reset, cx, |_| ())));
        assert_eq!(again.await, Poll::Ready(Err(AnswerLost::Reset)));
    }
}

/// RFC 9112, 7.1.
#[tokio::test]
async fn what_came_of_a_chunked_body_goes_before_its_break() {
    let rows = [
        ("2 \t\r\n{}\r\n0\r\n\r\n", whole(200, "{}", true)),
        (
            "1;a\r\n{\r\n01;b=\"c\" ; d\r\n}\r\n000\r\nX: y\r\n\r\n",
            whole(200, "{}", true),
        ),
        ("2\r\n{}\r\n", broken("{}", AnswerLost::Closed)),
        ("2\r\n{}\r\n0\r\n", broken("{}", AnswerLost::Closed)),
        ("5\r\n{}", broken("{}", AnswerLost::Closed)),
        ("", broken("", AnswerLost::Closed)),
        ("\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("zz\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("0x2\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("-2\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        (" 2\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("2 2\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("2;\r\r\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("2\n{}\r\n0\r\n\r\n", broken("", AnswerLost::Malformed)),
        ("10000000000000002\r\n{}", broken("", AnswerLost::Malformed)),
        ("ffffffffffffffff\r\n{}", broken("{}", AnswerLost::Closed)),
        ("2\r\n{}0\r\n\r\n", broken("{}", AnswerLost::Malformed)),
        ("2\r\n{}\r0\r\n\r\n", broken("{}", AnswerLost::Malformed)),
        (
            "2\r\n{}\r\n1\r\n{\r\nz\r\n",
            broken("{}{", AnswerLost::Malformed),
        ),
        ("2\r\n{}\r\n0\r\nno field\r\n\r\n", whole(200, "{}", true)),
    ];
    for (body, expected) in rows {
        let bytes = format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
        let came = read_anyhow(bytes.as_bytes(), Then::Closes, &Method::POST).await;
        assert_eq!(came, expected, "{body:?}");
    }
    for (extra_bytes, fits) in [(60_000, true), (70_000, false)] {
        let extra = "e".repeat(extra_bytes);
        for body in [
            format!("2;{extra}\r\n{{}}\r\n0\r\n\r\n"),
            format!("2\r\n{{}}\r\n0\r\nX: {extra}\r\n\r\n"),
            format!("2\r\n{{}}\r\n0\r\nX: {extra}"),
        ] {
            let bytes = format!("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n{body}");
            let came = read(bytes.as_bytes(), 5000, Then::Closes, &Method::POST).await;
            let is_refused = came.end == Err(AnswerLost::Malformed);
            assert_eq!(is_refused, !fits, "{extra_bytes}");
        }
    }
}

#[tokio::test]
async fn a_head_that_is_none_is_no_answer_and_one_that_did_not_come_is_told_apart() {
    let rows = [
        ("", AnswerLost::Unanswered),
        ("H", AnswerLost::Closed),
        ("HTTP/1.1 200 OK\r\nContent-Le", AnswerLost::Closed),
        ("HTTP/1.1 100 Go\r\n\r\n", AnswerLost::Closed),
        ("\r\nHTTP/1.1 200 OK\r\n\r\n", AnswerLost::Malformed),
        ("\n", AnswerLost::Malformed),
        ("SSH-2.0-x\r\n", AnswerLost::Malformed),
        ("HTTP/2.0 200 OK\r\n\r\n", AnswerLost::Malformed),
        ("HTTP/1.1 20 OK\r\n\r\n", AnswerLost::Malformed),
        ("HTTP/1.1 099 OK\r\n\r\n", AnswerLost::Malformed),
        ("HTTP/1.1 200 OK\r\nno field\r\n\r\n", AnswerLost::Malformed),
        ("HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\n", AnswerLost::Malformed),
        ("HTTP/1.1 200 OK\r\nX: a\0b\r\n\r\n", AnswerLost::Malformed),
    ];
    let lengths = [
        "",
        "+2",
        "-2",
        "0x2",
        "2.0",
        "2 2",
        "2, 3",
        "2,",
        ",",
        "2;",
        "99999999999999999999",
        "2\r\nContent-Length: 3",
    ];
    let lengths = lengths.map(|length| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        (head, AnswerLost::Malformed)
    });
    let rows = rows.map(|(head, lost)| (head.to_owned(), lost));
    for (head, lost) in rows.into_iter().chain(lengths) {
        let came = read_anyhow(head.as_bytes(), Then::Closes, &Method::POST).await;
        assert_eq!(came, none(lost), "{head:?}");
    }
    let fields = |count: usize| "X: y\r\n".repeat(count);
    for (lines, is_head) in [
        (fields(256), true),
        (fields(257), false),
        (format!("X: {}\r\n", "y".repeat(HEAD_BYTES_MAX / 2)), true),
        (
            format!("X: {}\r\n", "y".repeat(HEAD_BYTES_MAX + READ_BYTES)),
            false,
        ),
    ] {
        let bytes = format!("HTTP/1.1 204 X\r\n{lines}\r\n");
        let came = read(bytes.as_bytes(), 50_000, Then::Closes, &Method::POST).await;
        assert_eq!(came.status, is_head.then_some(204), "{} B", bytes.len());
    }
}

#[tokio::test]
async fn folded_lines_are_one_value_and_a_length_beside_chunks_is_taken_out() {
    let (own, mut far) = duplex(1024);
    let mut reader = AnswerReader::new(Box::new(own), &Method::POST);
    let sent = b"HTTP/1.1 200 X\r\nX-A: b\r\n\tX-C: 9\r\n  d \r\nX-E :f\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n";
    far.write_all(sent).await.expect("it is open");
    let head = reader.read_head().await.expect("a head");
    let fields: Vec<_> = head.headers.iter().collect();
    let value = |value| http::HeaderValue::from_static(value);
    assert_eq!(
        fields,
        [
            (&"x-a".parse().expect("a name"), &value("b X-C: 9 d")),
            (&"x-e".parse().expect("a name"), &value("f")),
            (&http::header::TRANSFER_ENCODING, &value("chunked")),
        ]
    );
    assert_eq!(reader.head_bytes(), sent.len());
}
