//! How an attempt ended that brought no response head, and why: the words of the ledger and the log.
//!
//! Promise: *not sent* means that the service cannot have run the request; everything else may cost money.

/// An attempt that ended without a response head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    NotSent(Cause),
    /// Sent, or possibly sent.
    NoHead(Cause),
    /// As `NoHead`, on a pooled connection that the service had closed: not worth a wait.
    StaleConnection,
}

/// The word for a failure in the ledger and the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Name,
    Connect,
    ConnectTimeout,
    Tls,
    /// What answered is no TLS.
    NoTls,
    Certificate,
    Write,
    Refused,
    Closed,
    Reset,
    Timeout,
    Protocol,
}

// === impl Lost ===

impl Lost {
    pub fn cause(self) -> Cause {
        match self {
            Self::NotSent(cause) | Self::NoHead(cause) => cause,
            Self::StaleConnection => Cause::Closed,
        }
    }
}

// === impl Cause ===

impl Cause {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Connect => "connect",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls | Self::NoTls => "tls",
            Self::Certificate => "certificate",
            Self::Write => "write",
            Self::Refused => "refused",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
        }
    }
}
