//! Which certificate authorities stand for the service: those of `[upstream] ca_file`, else this
//! machine's. pingora's connector ends the whole process when it cannot read them, so they are read
//! once before it does.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` take the machine's place where a user sets them; the shipped
//! systemd unit clears both.
//!
//! Promise: a machine whose authorities cannot be read, or that has none, gets an error in words; a
//! service without TLS asks for none.

use pingora::connectors::ConnectorOptions;
use pingora::tls::{RootCertStore, load_platform_certs_incl_env_into_store};

use crate::config::{Config, Upstream};

/// Idle connections of HTTP/2 kept; each has room for many requests.
const POOLED_CONNECTIONS_MAX: usize = 128;

/// What an empty store is read from: where no TLS is spoken, no certificate is trusted.
const EMPTY_STORE: &str = "/dev/null";

/// Longest text of the reader's own that is shown.
const WHY_BYTES_MAX: usize = 300;

/// No service can be trusted with the key.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate authorities that an https service is checked by {why}; look at SSL_CERT_FILE \
     and SSL_CERT_DIR, or name a PEM file in [upstream] ca_file"
)]
pub struct TrustError {
    why: String,
}

/// Whether certificates can prove which service answers; to be asked before a gateway is made or reloaded.
/// Reads what the connector is going to read. (`ca_file` was checked with the configuration.)
pub fn check(config: &Config) -> Result<(), TrustError> {
    let upstream = &config.upstream;
    if !upstream.base_url.tls || upstream.ca_file.is_some() {
        return Ok(());
    }
    let mut trusted = RootCertStore::empty();
    load_platform_certs_incl_env_into_store(&mut trusted).map_err(|error| {
        let text: String = error.to_string();
        let text = text.chars().filter(|letter| !letter.is_control());
        TrustError {
            why: format!(
                "cannot be read ({})",
                text.take(WHY_BYTES_MAX).collect::<String>()
            ),
        }
    })?;
    if trusted.is_empty() {
        return Err(TrustError {
            why: "are missing".to_owned(),
        });
    }
    Ok(())
}

/// Pool size and trust of the process-wide connector. The CA file belongs here and not to a peer:
/// with a peer's own CA every connection builds a new TLS client and loses resumption.
pub fn connector_options(upstream: &Upstream) -> ConnectorOptions {
    let mut options = ConnectorOptions::new(POOLED_CONNECTIONS_MAX);
    options.ca_file = if upstream.base_url.tls {
        let ca_file = upstream.ca_file.as_ref();
        ca_file.map(|path| path.display().to_string())
    } else {
        Some(EMPTY_STORE.to_owned())
    };
    options.debug_ssl_keylog = false;
    options
}
