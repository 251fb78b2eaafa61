use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Method;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::*;

/// As a connection with TLS whose service reads nothing: what was not written is to go out before the end.
#[derive(Debug)]
struct FullSocket;

impl AsyncRead for FullSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl AsyncWrite for FullSocket {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

/// It answered before it had read the request, and reads no more of it.
#[tokio::test(start_paused = true)]
async fn an_exchange_is_ended_although_the_service_reads_nothing() {
    let answering = Answering {
        head: ResponseHeader::build(StatusCode::SERVICE_UNAVAILABLE, None).unwrap(),
        is_unfit: false,
        on_kept_connection: false,
        reader: AnswerOver::Http1(AnswerReader::new(Box::new(FullSocket), &Method::GET)),
        candidate: Candidate::at("127.0.0.1:1".parse().expect("an address")),
        reusable: false,
        shared: None,
        silence: Silence::of(Duration::from_secs(1)),
    };
    let ended = timeout(Duration::from_secs(60), answering.abandon()).await;
    assert!(ended.is_ok(), "its end is not waited for");
}
