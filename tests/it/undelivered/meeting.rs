//! The end of an app's connection and the answer for it, both there before bursar wakes.
//!
//! Promise: whichever bursar notices first, an unread answer does not count as delivered, and the
//! retry that follows is not a second purchase.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tokio::sync::oneshot;

use super::{CHAT, ask};
use crate::support::origin::{billed, chunk, last_chunk, stream_head};
use crate::support::wire::request;
use crate::support::{Bursar, chat, chat_stream};

/// Repeated, because chance decides which of the two a waiting task takes.
#[tokio::test]
async fn an_answer_that_meets_the_end_of_its_connection_is_kept_for_the_retry() {
    let stream = [
        stream_head(),
        chunk("data: {\"n\":1}\n\n"),
        chunk(": service-billed-micro-usd 7\n\ndata: [DONE]\n\n"),
        last_chunk(),
    ]
    .concat();
    let rows = [
        ("json", chat("hi"), billed(7)),
        ("stream", chat_stream("hi"), stream),
    ];
    for (name, body, bytes) in rows {
        for round in 0..20 {
            let mut origin = OriginApart::start(Vec::new(), bytes.clone());
            let bursar = Bursar::before(&origin.url).await;
            let mut first = bursar.connect().await;
            first.send(request("POST", CHAT, &[], &body)).await;
            (&mut origin.received).await.expect("a request came");
            drop(first);
            // Nothing of this runtime runs meanwhile: bursar wakes with both before it.
            origin.answer();
            let second = ask(&bursar, &body, &[]).await;
            assert_eq!(second.status, 200, "{name} {round}: {}", second.text());
            assert!(second.complete, "{name} {round}: complete");
            assert!(
                second.header("x-bursar-adopted").is_some(),
                "{name} {round}: the purchase of the first"
            );
            assert_eq!(
                origin.connections.load(Ordering::SeqCst),
                1,
                "{name} {round}"
            );
        }
    }
}

/// The app has most of a picture when it hangs up, and the last bytes come after that: it does not have
/// the picture.
#[tokio::test]
async fn the_last_bytes_of_a_document_meet_the_end_of_its_connection() {
    const MIB: usize = 1024 * 1024;
    for round in 0..20 {
        let head = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Service-Billed: 7\r\nContent-Length: {}\r\n\r\n",
            2 * MIB + 1000
        );
        let most = [head.into_bytes(), vec![b'x'; 2 * MIB]].concat();
        let origin = OriginApart::start(most, vec![b'y'; 1000]);
        let bursar = Bursar::before(&origin.url).await;
        let body = r#"{"prompt": "a blue circle"}"#;
        let mut first = bursar.connect().await;
        first
            .send(request("POST", "/v1/images/generations", &[], body))
            .await;
        assert_eq!(first.head().await.status, 200);
        first.bytes(MIB).await;
        drop(first);
        origin.answer();
        let mut second = bursar.connect().await;
        second
            .send(request("POST", "/v1/images/generations", &[], body))
            .await;
        let answer = second.answer().await;
        assert_eq!(answer.body.len(), 2 * MIB + 1000, "{round}");
        assert!(
            answer.header("x-bursar-adopted").is_some(),
            "{round}: the purchase of the first"
        );
        assert_eq!(bursar.billed(), 7, "{round}");
    }
}

/// An origin on a thread of its own: it answers each connection once, the first one on cue.
struct OriginApart {
    url: String,
    received: oneshot::Receiver<()>,
    cue: SyncSender<()>,
    answered: Receiver<()>,
    connections: Arc<AtomicUsize>,
}

impl OriginApart {
    /// `at_once` comes without a cue.
    fn start(at_once: Vec<u8>, bytes: Vec<u8>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (report_received, received) = oneshot::channel();
        let (cue, cued) = sync_channel(0);
        let (report_answered, answered) = sync_channel(0);
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            let mut open = Vec::new();
            let mut first = Some((report_received, cued, report_answered));
            for connection in listener.incoming() {
                let mut connection = connection.expect("a connection");
                count.fetch_add(1, Ordering::SeqCst);
                let mut request = [0; 65536];
                // Head and body come in one write, or the head alone is enough to answer.
                let came = connection.read(&mut request).expect("a request");
                assert!(came > 0, "a request");
                let cues = first.take();
                connection.write_all(&at_once).expect("bursar reads");
                if let Some((report_received, cued, report_answered)) = cues {
                    report_received.send(()).expect("the test waits");
                    cued.recv().expect("a cue");
                    connection.write_all(&bytes).expect("bursar reads");
                    report_answered.send(()).expect("the test waits");
                } else {
                    connection.write_all(&bytes).expect("bursar reads");
                }
                // Closed with a body unread it would break the answer.
                open.push(connection);
            }
        });
        Self {
            url,
            received,
            cue,
            answered,
            connections,
        }
    }

    /// Answers the first request; returns when the answer has been written.
    fn answer(&self) {
        self.cue.send(()).expect("the origin waits");
        self.answered.recv().expect("the origin answers");
    }
}
