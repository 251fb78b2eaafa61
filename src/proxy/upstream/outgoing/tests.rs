use http::Method;
use http::header::{CONTENT_LENGTH, HOST};
use tokio::io::{AsyncReadExt, duplex};

use super::*;

fn outgoing(body: Bytes) -> Outgoing {
    let mut header = RequestHeader::build_no_case(Method::POST, b"/v1/chat?a=b", None).unwrap();
    for (name, value) in [
        (HOST, "api.example.com".to_owned()),
        (X_BURSAR_VIA, "one".to_owned()),
        (CONTENT_LENGTH, body.len().to_string()),
    ] {
        header.insert_header(name, value).unwrap();
    }
    Outgoing {
        header,
        authorization: HeaderValue::from_static("Bearer sk-test"),
        body,
        fresh_connection: false,
        read_timeout: Duration::from_secs(1),
        whole_bytes_max: 1,
        whole_copies: 1,
        echoed_bytes: 0,
    }
}

/// What arrives through a connection that takes at most so many bytes at a time.
async fn sent(outgoing: &Outgoing, may_lead_back: bool, room: usize) -> Vec<u8> {
    let (near, mut far) = duplex(room);
    let mut stream: ServiceStream = Box::new(near);
    let mut arrived = Vec::new();
    let send = async {
        outgoing
            .send_http1(&mut stream, may_lead_back)
            .await
            .unwrap();
        drop(stream);
    };
    tokio::join!(send, async { far.read_to_end(&mut arrived).await.unwrap() });
    arrived
}

#[tokio::test]
async fn a_request_arrives_whole_whatever_pieces_the_connection_takes() {
    let body = Bytes::from(vec![b'x'; 5000]);
    for may_lead_back in [true, false] {
        let outgoing = outgoing(body.clone());
        let via = if may_lead_back {
            "x-bursar-via: one\r\n"
        } else {
            ""
        };
        let head = format!(
            "POST /v1/chat?a=b HTTP/1.1\r\nHost: api.example.com\r\n{via}Content-Length: 5000\r\n\
             Authorization: Bearer sk-test\r\n\r\n"
        );
        let expected = [head.as_bytes(), &body].concat();
        for room in [1, 7, 64, 10_000] {
            let arrived = sent(&outgoing, may_lead_back, room).await;
            assert_eq!(
                String::from_utf8_lossy(&arrived),
                String::from_utf8_lossy(&expected),
                "{room}"
            );
        }
    }
}

#[tokio::test]
async fn a_request_without_a_body_ends_with_its_head() {
    let arrived = sent(&outgoing(Bytes::new()), false, 10_000).await;
    assert!(arrived.ends_with(b"Authorization: Bearer sk-test\r\n\r\n"));
}

#[tokio::test]
async fn a_target_that_would_be_another_line_is_not_written() {
    let mut outgoing = outgoing(Bytes::new());
    let target = b"/v1/a b\r\nX: y";
    if outgoing.header.set_raw_path(target).is_ok() {
        let (near, _far) = duplex(1000);
        let mut stream: ServiceStream = Box::new(near);
        let sent = outgoing.send_http1(&mut stream, false).await;
        assert_eq!(sent, Err(Cause::Protocol));
    }
}
