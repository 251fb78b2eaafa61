//! Response bodies that are made while they flow, and that can break.
//!
//! A producer task sends frames; the body hands them to the connection. A cut becomes an error of the body,
//! on which hyper drops the connection without an end mark.
//! Promise: what was sent before a cut reaches the socket before the connection ends; a client that leaves
//! stops the frames, never the producer.

pub mod writer;

use crate::connection::ConnectionEnd;
use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use futures_util::{Stream, stream};
use http::header;
use tokio::sync::mpsc;

/// Frames on their way; small, so that a slow client holds the producer back.
const FRAMES_MAX: usize = 4;

#[derive(Debug)]
pub enum Frame {
    Bytes(Bytes),
    /// Ends the connection here.
    Cut,
}

#[derive(Clone, Debug)]
pub struct FrameSender {
    frames: mpsc::Sender<Frame>,
}

#[derive(Debug, thiserror::Error)]
#[error("the connection was cut by a fault")]
pub struct CutByFault;

// === impl FrameSender ===

impl FrameSender {
    /// False when the client has left.
    pub async fn send(&self, bytes: Bytes) -> bool {
        self.frames.send(Frame::Bytes(bytes)).await.is_ok()
    }

    /// Whether the client has left.
    pub fn is_closed(&self) -> bool {
        self.frames.is_closed()
    }

    pub async fn cut(&self) {
        let _ = self.frames.send(Frame::Cut).await;
    }
}

/// A body and the sender that fills it.
pub fn body(end: ConnectionEnd) -> (FrameSender, Body) {
    let (frames, receiver) = mpsc::channel(FRAMES_MAX);
    (
        FrameSender { frames },
        Body::from_stream(flow(receiver, end)),
    )
}

/// The head of an event stream over its body.
pub fn response(body: Body) -> Response {
    let head = [
        (header::CONTENT_TYPE, "text/event-stream; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (head, body).into_response()
}

/// A body that yields these bytes and then breaks.
pub fn broken_after(bytes: Bytes, end: ConnectionEnd) -> Body {
    let (frames, receiver) = mpsc::channel(FRAMES_MAX);
    // Two frames into a new channel of four: neither can fail.
    let _ = frames.try_send(Frame::Bytes(bytes));
    let _ = frames.try_send(Frame::Cut);
    Body::from_stream(flow(receiver, end))
}

fn flow(
    receiver: mpsc::Receiver<Frame>,
    end: ConnectionEnd,
) -> impl Stream<Item = Result<Bytes, CutByFault>> {
    stream::unfold(Some(receiver), move |receiver| {
        let end = end.clone();
        async move {
            let mut receiver = receiver?;
            match receiver.recv().await? {
                Frame::Bytes(bytes) => Some((Ok(bytes), Some(receiver))),
                Frame::Cut => {
                    // Pending lets hyper write its buffer out before it learns of the cut.
                    for _ in 0..3 {
                        tokio::task::yield_now().await;
                    }
                    end.mark_cut();
                    Some((Err(CutByFault), None))
                }
            }
        }
    })
}
