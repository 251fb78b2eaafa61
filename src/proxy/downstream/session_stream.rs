//! What pingora's HTTP session writes to and reads from, for one request.
//!
//! Promise: head and body of an answer leave in one write where the kernel takes them: small writes are gathered
//! until the session flushes, and a large one goes out with what is gathered before it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::connection::Peer;
use crate::places::PLACE_BYTES;

/// The stream under the HTTP session of one request.
#[derive(Debug)]
pub struct AppConnection {
    peer: Peer,
    /// Written by the session, and not flushed.
    gathered: Vec<u8>,
    /// So much of it is gone.
    gone: usize,
}

/// Gathers a head and a small body; a larger write goes out with what is gathered before it.
const GATHERED_BYTES_MAX: usize = PLACE_BYTES;

/// Room for a head, at first.
const GATHERED_BYTES: usize = 1024;

// === impl AppConnection ===

impl AppConnection {
    pub fn new(peer: Peer) -> Self {
        Self {
            peer,
            gathered: Vec::new(),
            gone: 0,
        }
    }

    fn gather(&mut self, buf: &[u8]) {
        if self.gathered.capacity() == 0 {
            self.gathered.reserve(GATHERED_BYTES.max(buf.len()));
        }
        self.gathered.extend_from_slice(buf);
    }

    fn holds(&self) -> usize {
        self.gathered.len().saturating_sub(self.gone)
    }

    /// So much of what is gathered went out; the rest is of what was written with it.
    fn has_gone(&mut self, count: usize) -> usize {
        let own = count.min(self.holds());
        self.gone = self.gone.saturating_add(own);
        if self.holds() == 0 {
            self.gathered.clear();
            self.gone = 0;
        }
        count.saturating_sub(own)
    }

    /// Hands out what is gathered.
    fn poll_gathered(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.holds() > 0 {
            let first = self.gathered.get(self.gone..).unwrap_or_default();
            match std::task::ready!(Pin::new(&mut self.peer).poll_write(cx, first))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                went => self.has_gone(went),
            };
        }
        Poll::Ready(Ok(()))
    }

    /// Hands out a write that is too large to be gathered, behind what is.
    fn poll_large(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        while self.holds() > 0 {
            let first = self.gathered.get(self.gone..).unwrap_or_default();
            let second = bufs.iter().find(|buf| !buf.is_empty());
            let both = [
                io::IoSlice::new(first),
                io::IoSlice::new(second.map_or(&[], |buf| &**buf)),
            ];
            let written = Pin::new(&mut self.peer).poll_write_vectored(cx, &both);
            match std::task::ready!(written)? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                went => match self.has_gone(went) {
                    0 => {}
                    of_these => return Poll::Ready(Ok(of_these)),
                },
            }
        }
        Pin::new(&mut self.peer).poll_write_vectored(cx, bufs)
    }
}

impl AsyncRead for AppConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.peer).poll_read(cx, buf)
    }
}

impl AsyncWrite for AppConnection {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let these: usize = bufs.iter().map(|buf| buf.len()).sum();
        if these >= GATHERED_BYTES_MAX {
            return self.poll_large(cx, bufs);
        }
        if self.holds().saturating_add(these) > GATHERED_BYTES_MAX {
            std::task::ready!(self.poll_gathered(cx))?;
        }
        for buf in bufs {
            self.gather(buf);
        }
        Poll::Ready(Ok(these))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_gathered(cx))?;
        Pin::new(&mut self.peer).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_gathered(cx))?;
        Pin::new(&mut self.peer).poll_shutdown(cx)
    }
}

#[async_trait]
impl Shutdown for AppConnection {
    async fn shutdown(&mut self) {
        // A peer that has gone already is what shutting down wants.
        AsyncWriteExt::shutdown(self).await.ok();
    }
}

impl UniqueID for AppConnection {
    fn id(&self) -> UniqueIDType {
        self.peer.raw_descriptor()
    }
}

impl Ssl for AppConnection {}

impl Peek for AppConnection {}

impl GetTimingDigest for AppConnection {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for AppConnection {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for AppConnection {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}

#[cfg(test)]
mod tests;
