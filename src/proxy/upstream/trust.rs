//! Which certificate authorities stand for the service: those of `[upstream] ca_file`, else this
//! machine's.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` take the machine's place where a user sets them; the shipped
//! systemd unit clears both.
//!
//! Promise: authorities that cannot be read, or that are none, get an error in words; what was read once is what
//! connections are made with; a service without TLS asks for none.

use std::sync::Arc;

use rustls::RootCertStore;
use rustls_native_certs::load_native_certs;

use crate::config::{Config, Upstream};

/// Longest text of the reader's own that is shown.
const WHY_BYTES_MAX: usize = 300;

/// What the service's certificate is verified against. Without TLS nobody is trusted.
#[derive(Clone, Debug)]
pub struct Authorities(Arc<RootCertStore>);

/// No service can be trusted with the key.
#[derive(Debug, thiserror::Error)]
#[error(
    "the certificate authorities that an https service is checked by {why}; look at SSL_CERT_FILE \
     and SSL_CERT_DIR, or name a PEM file in [upstream] ca_file"
)]
pub struct TrustError {
    why: String,
}

/// The configuration's authorities, else this machine's, which are read now.
pub fn authorities(config: &Config) -> Result<Authorities, TrustError> {
    let mut trusted = RootCertStore::empty();
    if config.upstream.base_url.tls {
        add(&mut trusted, &config.upstream).map_err(|why| TrustError { why })?;
    }
    Ok(Authorities(Arc::new(trusted)))
}

/// Adds at least one, or gives the reason why not.
fn add(trusted: &mut RootCertStore, upstream: &Upstream) -> Result<(), String> {
    let found = match &upstream.authorities {
        Some(authorities) => authorities.clone(),
        None => load_native_certs().map_err(|error| unreadable(&error))?,
    };
    for certificate in found {
        trusted
            .add(certificate)
            .map_err(|error| unreadable(&error))?;
    }
    match trusted.is_empty() {
        true => Err("are missing".to_owned()),
        false => Ok(()),
    }
}

fn unreadable(error: &dyn std::error::Error) -> String {
    let text = error.to_string();
    let text = text.chars().filter(|letter| !letter.is_control());
    format!(
        "cannot be read ({})",
        text.take(WHY_BYTES_MAX).collect::<String>()
    )
}

// === impl Authorities ===

impl Authorities {
    /// For a service without TLS.
    #[cfg(test)]
    pub fn none() -> Self {
        Self(Arc::new(RootCertStore::empty()))
    }

    pub fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.0)
    }
}

impl PartialEq for Authorities {
    fn eq(&self, other: &Self) -> bool {
        self.0.roots == other.0.roots
    }
}
