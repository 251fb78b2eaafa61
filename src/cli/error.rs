//! Why a command did not do what it was asked, and the exit code that says so.
//!
//! Promise: 0 done, 1 failed, 2 usage, 78 configuration; a command that was run gives its own code.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::client::ClientError;
use crate::apps::AppsError;
use crate::calendar::WhenError;
use crate::config::{ConfigErrors, ListenAddr};
use crate::ledger::LedgerError;
use crate::server::ServerError;
use crate::server::listen::GivenError;

/// sysexits.h: something is wrong with the configuration. systemd does not restart after it.
const EXIT_CONFIG: u8 = 78;
const EXIT_FAILED: u8 = 1;
pub const EXIT_USAGE: u8 = 2;

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error(transparent)]
    Given(#[from] GivenError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    #[error(transparent)]
    Apps(#[from] AppsError),
    #[error(transparent)]
    Client(#[from] ClientError),
    /// A daemon listens and does not answer; it was asked for no change.
    #[error("{error}. Nothing was changed. {what_helps}")]
    Silent {
        error: ClientError,
        /// Of the ledger that it has.
        state_dir: PathBuf,
        what_helps: String,
    },
    /// A daemon did what it was asked, and its document lacks or has what this release does not know.
    #[error(
        "the daemon at {address} gave an answer that bursar {} cannot read: {cause}. Daemon and command are of two \
         releases: restart the daemon with this bursar, or run the command with the daemon's",
        env!("CARGO_PKG_VERSION")
    )]
    OtherRelease {
        address: ListenAddr,
        cause: serde_json::Error,
    },
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("{0}")]
    When(#[from] WhenError),
    #[error("{0}")]
    Usage(String),
    /// A file of settings that is not the configuration is wrong.
    #[error("{0}")]
    Settings(String),
    #[error("{0}")]
    Failed(String),
    /// The command that was run ended so.
    #[error("the command ended with {0}")]
    Child(u8),
    /// Everything was said already; only the exit code is left.
    #[error("failed")]
    Said,
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// The reader of our output has seen enough.
    #[error("the reader has gone")]
    ReaderGone,
}

// === impl CliError ===

impl CliError {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_)
            | Self::Settings(_)
            | Self::Given(_)
            | Self::Server(
                ServerError::Trust(_)
                | ServerError::UpstreamIsItself(_)
                | ServerError::NoAppCouldCall,
            ) => EXIT_CONFIG,
            // A disk may be well again at the next start; what the files say stays.
            Self::Server(ServerError::Apps(AppsError::Ledger(_) | AppsError::Random(_))) => {
                EXIT_FAILED
            }
            Self::Server(ServerError::Apps(_)) => EXIT_CONFIG,
            Self::Usage(_) | Self::When(_) => EXIT_USAGE,
            Self::ReaderGone => 0,
            Self::Child(code) => *code,
            _ => EXIT_FAILED,
        }
    }

    pub fn usage(text: impl fmt::Display) -> Self {
        Self::Usage(text.to_string())
    }
}
