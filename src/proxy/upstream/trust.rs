//! Which certificate authorities stand for the service: those of `[upstream] ca_file`, else this
//! machine's.
//!
//! `SSL_CERT_FILE` and `SSL_CERT_DIR` take the machine's place where a user sets them; the shipped
//! systemd unit clears both.
//!
//! Promise: a machine whose authorities cannot be read, or that has none, gets an error in words; a
//! service without TLS asks for none.

use rustls::RootCertStore;
use rustls_native_certs::load_native_certs;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;

use crate::config::{Config, Upstream};

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
/// (`ca_file` was checked with the configuration.)
pub fn check(config: &Config) -> Result<(), TrustError> {
    let upstream = &config.upstream;
    if !upstream.base_url.tls || upstream.ca_file.is_some() {
        return Ok(());
    }
    authorities(upstream).map(|_| ())
}

/// What the service's certificate is verified against. Without TLS nobody is trusted.
pub fn authorities(upstream: &Upstream) -> Result<RootCertStore, TrustError> {
    let mut trusted = RootCertStore::empty();
    if !upstream.base_url.tls {
        return Ok(trusted);
    }
    let found = match &upstream.ca_file {
        Some(path) => CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unreadable(&error))?,
        None => load_native_certs().map_err(|error| unreadable(&error))?,
    };
    for certificate in found {
        trusted
            .add(certificate)
            .map_err(|error| unreadable(&error))?;
    }
    if trusted.is_empty() {
        return Err(TrustError {
            why: "are missing".to_owned(),
        });
    }
    Ok(trusted)
}

fn unreadable(error: &dyn std::error::Error) -> TrustError {
    let text = error.to_string();
    let text = text.chars().filter(|letter| !letter.is_control());
    TrustError {
        why: format!(
            "cannot be read ({})",
            text.take(WHY_BYTES_MAX).collect::<String>()
        ),
    }
}
