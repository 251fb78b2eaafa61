//! An app's socket.
//!
//! Promise: a connection marked for reset ends with a TCP RST, never with a clean end; whether the app has left shows
//! however much it sent ahead; what an app does not take of an answer that flows is kept, within bounds, so that the
//! service need not wait for it; between two requests nothing is held but the socket.

mod kept;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::BytesMut;
use futures_util::FutureExt;
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::ioctl_fionread;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, Interest, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use self::kept::Kept;
use crate::apps::namespace::Namespace;
use crate::places::{Door, PLACE_BYTES};
use crate::proxy::purchase::client::AppProbe;

/// An accepted socket.
#[derive(Debug)]
pub enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The app's end of a connection, shared by the request that reads and writes it and by the task that
/// waits for the app to leave. Reading alone does not show it: behind bytes of a next request it
/// reads no further.
///
/// Linux answers every read behind a FIN with an end of input, also after the peer has refused what
/// was written since. Only the socket's pending error keeps a peer that closed apart from one that closed
/// its sending half, so an end of input is checked against it.
#[derive(Clone, Debug)]
pub struct Peer(Arc<Mutex<PeerState>>);

/// A look at a connection.
#[derive(Clone, Debug)]
pub struct PeerProbe(Weak<Mutex<PeerState>>);

#[derive(Debug)]
struct PeerState {
    socket: Socket,
    /// The app's address; `None` on a Unix socket.
    from: Option<SocketAddr>,
    /// An answer could not be completed, and closing would look complete.
    resets: bool,
    /// What the app sent behind a head, or was read while it was watched, and is not read yet.
    ahead: BytesMut,
    /// What the app has not taken. `None`: nothing is kept, and a write waits for the app.
    kept: Option<Kept>,
    /// Bytes that the app's socket has taken, ever.
    went: u64,
}

/// How much is read at once behind a request.
const AHEAD_READ_BYTES: usize = 1024;

/// Most that is read ahead of the request. An app that sends more behind a request may have left unseen,
/// and is suspected of it.
const AHEAD_BYTES_MAX: usize = PLACE_BYTES;

// === impl Socket ===

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl Socket {
    pub fn door(&self) -> Door {
        match self {
            Self::Tcp(_) => Door::Port,
            Self::Unix(_) => Door::Socket,
        }
    }

    fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
        }
    }

    /// Whether the runtime has heard that the input ended or the connection broke. It costs nothing to ask: with
    /// `PRIORITY` alone, tokio's end of reading is asked for, and not whether there are bytes.
    fn is_known_to_have_ended(&self) -> bool {
        let outcome = match self {
            Self::Tcp(stream) => stream.try_io(Interest::PRIORITY, || Ok(())),
            Self::Unix(stream) => stream.try_io(Interest::PRIORITY, || Ok(())),
        };
        outcome.is_ok()
    }

    /// Bytes wait to be read, as the kernel says.
    fn has_unread(&self) -> bool {
        let unread = match self {
            Self::Tcp(stream) => ioctl_fionread(stream.as_fd()),
            Self::Unix(stream) => ioctl_fionread(stream.as_fd()),
        };
        unread.is_ok_and(|bytes| bytes > 0)
    }

    fn pending_error(&self) -> Option<io::Error> {
        let error = match self {
            Self::Tcp(stream) => stream.take_error(),
            Self::Unix(stream) => stream.take_error(),
        };
        error.ok().flatten()
    }

    /// The same, asked of the kernel now.
    fn has_hung_up(&self) -> bool {
        let socket = match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
        };
        let mut looked = [PollFd::from_borrowed_fd(socket, PollFlags::RDHUP)];
        let outcome = poll(&mut looked, Some(&Timespec::default()));
        outcome.is_ok_and(|count| count > 0)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

// === impl PeerState ===

impl PeerState {
    /// Hands out what is kept. Ready: nothing is left of it.
    fn poll_kept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(first) = self.kept.as_ref().and_then(Kept::first) {
            let went = std::task::ready!(Pin::new(&mut self.socket).poll_write(cx, first))?;
            if went == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.has_gone(went);
            if let Some(kept) = &mut self.kept {
                kept.went(went);
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Writes, or keeps what its app does not take now.
    fn poll_out(
        &mut self,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.poll_kept(cx)?.is_ready() {
            let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
            if let Poll::Ready(written) = written {
                return Poll::Ready(written.inspect(|went| self.has_gone(*went)));
            }
        }
        let Some(kept) = &mut self.kept else {
            // The socket wakes.
            return Poll::Pending;
        };
        let mut taken = 0;
        for buf in bufs {
            let of_this = kept.take(buf);
            taken += of_this;
            if of_this < buf.len() {
                break;
            }
        }
        match taken {
            0 => Poll::Pending,
            taken => Poll::Ready(Ok(taken)),
        }
    }

    /// The last of what was read ahead is not kept as an empty rest of its buffer.
    fn take_ahead(&mut self, most: usize) -> BytesMut {
        match self.ahead.len() <= most {
            true => std::mem::take(&mut self.ahead),
            false => self.ahead.split_to(most),
        }
    }

    fn has_gone(&mut self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.went = self.went.saturating_add(count);
    }

    /// Reads the socket itself. An end of input is checked against the pending error.
    fn poll_socket(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let came = buf.filled().len().saturating_sub(before);
        if came > 0 {
            // Asking takes the error away: it is kept for the look that finds no more bytes.
            return Poll::Ready(Ok(came));
        }
        match self.socket.pending_error() {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(0)),
        }
    }
}

impl Drop for PeerState {
    fn drop(&mut self) {
        if !self.resets {
            return;
        }
        // A Unix socket has no reset: dropping it unread is all there is.
        if let Socket::Tcp(stream) = &self.socket
            && let Err(error) = stream.set_zero_linger()
        {
            tracing::debug!(%error, "a connection could not be reset");
        }
    }
}

// === impl PeerProbe ===

impl PeerProbe {
    /// Whether the app sent what is not read yet, asked of the kernel now.
    pub fn has_spoken(&self) -> bool {
        let shared = self.0.upgrade();
        shared.is_some_and(|shared| {
            let shared = shared.lock();
            !shared.ahead.is_empty() || shared.socket.has_unread()
        })
    }
}

impl AppProbe for PeerProbe {
    /// Asked of the kernel now: the task that waits for it may not have run yet.
    fn has_hung_up(&self) -> bool {
        self.0
            .upgrade()
            .is_none_or(|shared| shared.lock().socket.has_hung_up())
    }

    fn taken_bytes(&self) -> u64 {
        self.0.upgrade().map_or(0, |shared| shared.lock().went)
    }
}

// === impl Peer ===

impl Peer {
    pub fn new(socket: Socket, from: Option<SocketAddr>) -> Self {
        Self(Arc::new(Mutex::new(PeerState {
            socket,
            from,
            resets: false,
            ahead: BytesMut::new(),
            kept: None,
            went: 0,
        })))
    }

    pub fn raw_descriptor(&self) -> RawFd {
        match &self.0.lock().socket {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }

    /// Takes back what was read behind a head: it is read again, first.
    pub fn unread(&self, bytes: BytesMut) {
        if bytes.is_empty() {
            return;
        }
        let mut shared = self.0.lock();
        let later = std::mem::replace(&mut shared.ahead, bytes);
        shared.ahead.extend_from_slice(&later);
    }

    /// Its end is a reset: an answer cannot be completed, and closing would look complete.
    pub fn resets(&self) {
        self.0.lock().resets = true;
    }

    /// Where the app reached bursar; `None` on a Unix socket.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.0.lock().socket {
            Socket::Tcp(stream) => stream.local_addr().ok(),
            Socket::Unix(_) => None,
        }
    }

    /// Where the app is; `None` on a Unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.lock().from
    }

    /// The user at the other end of a Unix socket, as the kernel noted it then (SO_PEERCRED). `None` also
    /// where this process's namespace hides the user.
    pub fn user(&self) -> Option<u32> {
        match &self.0.lock().socket {
            Socket::Tcp(_) => None,
            Socket::Unix(stream) => Namespace::own().user(stream.peer_cred().ok()?.uid()),
        }
    }

    /// Resolves when there seems to be something to read, be it the end. Nothing is read.
    pub async fn speaks(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| {
            let shared = self.0.lock();
            match shared.ahead.is_empty() {
                true => shared.socket.poll_read_ready(cx),
                false => Poll::Ready(Ok(())),
            }
        })
        .await
    }

    /// Reads what is there, at most so much; `None`: nothing is. By tokio's own way of reading: it notes that a read
    /// which did not fill its buffer took all there was, so the next one asks the kernel for nothing.
    pub fn try_read(&mut self, buf: &mut BytesMut, most: usize) -> Option<io::Result<usize>> {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        AsyncReadExt::take(self, most).read_buf(buf).now_or_never()
    }

    /// Resolves once the app's input ends, or with an error once the connection is broken. What
    /// comes before is kept for the request. Not to be awaited while the request reads.
    pub async fn left(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.poll_left(cx)).await
    }

    /// Whether the runtime has heard that the app's input ended or the connection is gone.
    pub fn is_known_to_have_ended(&self) -> bool {
        self.0.lock().socket.is_known_to_have_ended()
    }

    /// Whether the app's input has ended or the connection is gone, asked of the kernel: the runtime
    /// may not have heard yet.
    pub fn has_hung_up(&self) -> bool {
        self.0.lock().socket.has_hung_up()
    }

    /// Whether the connection is broken, asked of the kernel: the runtime may not have heard yet.
    pub fn is_broken(&self) -> bool {
        self.0.lock().socket.pending_error().is_some()
    }

    /// From now on what the app does not take is kept for it, within bounds: a write does not wait for
    /// it, and [`Self::taken`] does. Watching the app hands out what is kept.
    pub fn keeps(&self, app: &Arc<str>) {
        self.0.lock().kept.get_or_insert_with(|| Kept::of(app));
    }

    /// Bytes that the app's socket has taken, as [`AppProbe::taken_bytes`] says.
    pub fn went(&self) -> u64 {
        self.0.lock().went
    }

    /// A write waits for the app again. What was kept has been taken, or no app is there to take it.
    pub fn keeps_no_more(&self) {
        self.0.lock().kept = None;
    }

    /// Bytes that wait for the app.
    pub fn kept_bytes(&self) -> usize {
        self.0.lock().kept.as_ref().map_or(0, Kept::len)
    }

    /// Resolves when the app has taken all that was kept.
    pub async fn taken(&self) -> io::Result<()> {
        std::future::poll_fn(|cx| self.0.lock().poll_kept(cx)).await
    }

    /// A look at the connection for others, which does not keep it open.
    pub fn probe(&self) -> PeerProbe {
        PeerProbe(Arc::downgrade(&self.0))
    }

    fn poll_left(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.0.lock();
        if let Poll::Ready(Err(error)) = shared.poll_kept(cx) {
            return Poll::Ready(Err(error));
        }
        while shared.ahead.len() < AHEAD_BYTES_MAX {
            std::task::ready!(shared.socket.poll_read_ready(cx))?;
            let mut piece = [0; AHEAD_READ_BYTES];
            let mut piece = ReadBuf::new(&mut piece);
            match std::task::ready!(shared.poll_socket(cx, &mut piece))? {
                0 => return Poll::Ready(Ok(())),
                _ => shared.ahead.extend_from_slice(piece.filled()),
            }
        }
        match shared.socket.pending_error() {
            Some(error) => Poll::Ready(Err(error)),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncRead for Peer {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.0.lock();
        if shared.ahead.is_empty() {
            return shared.poll_socket(cx, buf).map_ok(|_| ());
        }
        let taken = shared.take_ahead(buf.remaining());
        buf.put_slice(&taken);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Peer {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_out(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().poll_out(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.0.lock();
        if shared.kept.is_some() {
            // What is kept is handed out while the app is watched.
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut shared.socket).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0.lock().socket).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
