//! The listener: one task per connection, hyper below, the router above.
//!
//! axum's own `serve` cannot end a connection before the head or with a reset, and a fault must.
//! Promise: after `shutdown` no connection is accepted, open ones finish their request, and the service
//! waits for work whose client has left (10 s at most).

use crate::{
    connection::{ConnectionEnd, HangUp},
    options::Options,
    routes::router,
    state::State,
    verdict::{self, Verdict},
};
use axum::{body::Body, extract::Request};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
};
use std::{
    convert::Infallible,
    future::Future,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tower::ServiceExt;

/// How long a connection may idle between two requests.
const IDLE: Duration = Duration::from_secs(75);

/// How long open connections and running work may take to end.
const DRAIN: Duration = Duration::from_secs(10);

/// Serves until `shutdown` ends.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    serve_and_judge(listener, options, shutdown, || {})
        .await
        .map(drop)
}

/// The same, and returns at the end what the request log says about the client. `ready` runs once
/// requests are answered, and not if the state cannot be opened.
pub async fn serve_and_judge(
    listener: TcpListener,
    options: Options,
    shutdown: impl Future<Output = ()> + Send + 'static,
    ready: impl FnOnce() + Send,
) -> io::Result<Verdict> {
    let state = State::new(&options).map_err(io::Error::other)?;
    state.evals.listens_on(listener.local_addr()?);
    crate::evals::resume(&state.evals).map_err(io::Error::other)?;
    state.checkpoint.commit().await.map_err(io::Error::other)?;
    let router = router(Arc::clone(&state));
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    tokio::pin!(shutdown);
    tracing::info!(address = ?listener.local_addr().ok(), "sandbox listening");
    ready();
    loop {
        while connections.try_join_next().is_some() {}
        let socket = tokio::select! {
            () = &mut shutdown => break,
            accepted = listener.accept() => match accepted {
                Ok((socket, _)) => socket,
                Err(error) => {
                    // Out of descriptors, or a client gone before accept: the next may do.
                    tracing::warn!(%error, "accept failed");
                    state.clock.sleep(Duration::from_millis(20)).await;
                    continue;
                }
            },
        };
        let _ = socket.set_nodelay(true);
        let connection_end = ConnectionEnd::default();
        let io = TokioIo::new(Socket {
            inner: socket,
            connection_end: connection_end.clone(),
        });
        let router = router.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let router = router.clone();
            let connection_end = connection_end.clone();
            async move {
                let mut request: Request = request.map(Body::new);
                request.extensions_mut().insert(connection_end.clone());
                let response = router
                    .oneshot(request)
                    .await
                    .unwrap_or_else(|never: Infallible| match never {});
                match response.extensions().get::<HangUp>() {
                    Some(HangUp) => {
                        connection_end.mark_cut();
                        Err(HangUp)
                    }
                    None => Ok(response),
                }
            }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .serve_connection(io, service);
        let watched = graceful.watch(connection);
        connections.spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }
    drop(listener);
    // A run of an eval set continues at the next start.
    state.evals.stop();
    state.closing.cancel();
    state.tasks.close();
    let drained = async {
        graceful.shutdown().await;
        state.tasks.wait().await;
    };
    if tokio::time::timeout(DRAIN, drained).await.is_err() {
        tracing::warn!("shut down with work still running");
    }
    // When this returns, the state's file is closed, and the next process may open it at once.
    connections.shutdown().await;
    state.commit_all().await.map_err(io::Error::other)?;
    Ok(verdict::judge(&state.books.requests().requests))
}

/// A socket that can end with a reset instead of an end of stream.
struct Socket {
    inner: TcpStream,
    connection_end: ConnectionEnd,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.connection_end.resets() {
            // A lingering time of zero makes the close a reset.
            let _ = self.inner.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.connection_end.resets() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
