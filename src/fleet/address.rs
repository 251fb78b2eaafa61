//! Where the fleet's database is, and how it is reached.
//!
//! Promise: beyond this machine only through TLS with a checked name, unless `insecure` is set; the password stands in
//! no text of this type.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres::config::{Host, SslMode};

use crate::config::{Env, UrlFileError, url_text};

/// Longest wait for a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// A database that can be connected to.
#[derive(Clone)]
pub struct Address {
    pub(super) config: tokio_postgres::Config,
    /// `None`: plain.
    pub(super) tls: Option<Arc<ClientConfig>>,
    shown: String,
}

/// What keeps an address from being used; no text repeats the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error(
        "it is no address of a PostgreSQL, such as postgresql://USER:PASSWORD@HOST/DATABASE?sslmode=verify-full"
    )]
    Malformed,
    #[error("it names no user; write postgresql://USER:PASSWORD@HOST/DATABASE")]
    NoUser,
    #[error("it names no host; write postgresql://USER:PASSWORD@HOST/DATABASE")]
    NoHost,
    #[error(
        "sslmode={0} does not check the server; write sslmode=verify-full, or set [fleet] insecure = true where the way \
         to the database is safe by other means"
    )]
    Weak(String),
    #[error("sslmode={0} is not known; write sslmode=verify-full")]
    UnknownMode(String),
    #[error("the certificates in {path} cannot be used: {why}")]
    Certificates { path: PathBuf, why: String },
}

/// What the URL's file holds: the URL, and below it the code that lets this ledger in, until that was used.
#[derive(Clone)]
pub struct UrlFile {
    pub url: String,
    pub code: Option<String>,
}

/// What an address asks of its connection.
#[derive(Default)]
struct TlsWish {
    mode: Option<String>,
    root_cert: Option<PathBuf>,
}

// === impl Address ===

impl Address {
    /// Of a URL. `ca_file` stands in for its `sslrootcert`.
    pub fn parse(
        text: &str,
        insecure: bool,
        ca_file: Option<PathBuf>,
    ) -> Result<Self, AddressError> {
        let (url, mut wish) = TlsWish::taken_from(text.trim());
        wish.root_cert = ca_file.or(wish.root_cert);
        let mut config =
            tokio_postgres::Config::from_str(&url).map_err(|_| AddressError::Malformed)?;
        if config.get_user().is_none() {
            return Err(AddressError::NoUser);
        }
        if config.get_hosts().is_empty() {
            return Err(AddressError::NoHost);
        }
        // A `hostaddr` is where the connection goes, whatever the host is called.
        let is_here = config.get_hosts().iter().all(is_this_machine)
            && config.get_hostaddrs().iter().all(IpAddr::is_loopback);
        let tls = match wish.mode.as_deref() {
            Some("verify-full") => Some(wish.trust()?),
            None if !is_here => Some(wish.trust()?),
            None => None,
            Some("disable" | "allow" | "prefer") if is_here || insecure => None,
            // Encrypted, and the server's name is checked all the same.
            Some("require" | "verify-ca") if is_here || insecure => Some(wish.trust()?),
            Some(mode @ ("disable" | "allow" | "prefer" | "require" | "verify-ca")) => {
                return Err(AddressError::Weak(mode.to_owned()));
            }
            Some(mode) => return Err(AddressError::UnknownMode(mode.to_owned())),
        };
        config
            .application_name("bursar")
            .connect_timeout(CONNECT_MAX)
            .ssl_mode(match tls {
                Some(_) => SslMode::Require,
                None => SslMode::Disable,
            });
        let shown = shown(&config, tls.is_some());
        Ok(Self { config, tls, shown })
    }
}

/// User, host and database: what may be printed.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

// === impl UrlFile ===

impl UrlFile {
    /// An error where other users could read it.
    pub fn read(path: &Path) -> Result<Self, UrlFileError> {
        url_text(path, &Env::from_process()).map(|text| Self::parse(&text))
    }

    pub fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self {
            url: lines.next().unwrap_or_default().to_owned(),
            code: lines.next().map(str::to_owned),
        }
    }
}

/// Shows neither.
impl fmt::Debug for UrlFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UrlFile")
    }
}

// === impl TlsWish ===

impl TlsWish {
    /// Takes its own parameters out of a URL, which the driver does not know all of.
    fn taken_from(text: &str) -> (String, Self) {
        let Some((url, query)) = text.split_once('?') else {
            return (text.to_owned(), Self::default());
        };
        let mut wish = Self::default();
        let left: Vec<&str> = query
            .split('&')
            .filter(|pair| match pair.split_once('=') {
                Some(("sslmode", mode)) => {
                    wish.mode = Some(mode.to_owned());
                    false
                }
                Some(("sslrootcert", path)) => {
                    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy();
                    // The system's own, as without it.
                    wish.root_cert = (path != "system").then(|| PathBuf::from(&*path));
                    false
                }
                _ => true,
            })
            .collect();
        let url = match left.is_empty() {
            true => url.to_owned(),
            false => format!("{url}?{}", left.join("&")),
        };
        (url, wish)
    }

    fn trust(&self) -> Result<Arc<ClientConfig>, AddressError> {
        let mut roots = RootCertStore::empty();
        match &self.root_cert {
            Some(path) => {
                let refuse = |why: String| AddressError::Certificates {
                    path: path.clone(),
                    why,
                };
                let certificates = CertificateDer::pem_file_iter(path)
                    .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                    .map_err(|error| refuse(error.to_string()))?;
                let (added, _) = roots.add_parsable_certificates(certificates);
                if added == 0 {
                    return Err(refuse("it holds none".to_owned()));
                }
            }
            None => {
                let native = rustls_native_certs::load_native_certs().unwrap_or_default();
                roots.add_parsable_certificates(native);
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| AddressError::Malformed)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config))
    }
}

fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            let address: Result<IpAddr, _> = name.trim_matches(['[', ']']).parse();
            name == "localhost" || address.is_ok_and(|address| address.is_loopback())
        }
    }
}

fn shown(config: &tokio_postgres::Config, is_encrypted: bool) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<String> = hosts.collect();
    let user = config.get_user().unwrap_or_default();
    let database = config.get_dbname().unwrap_or(user);
    let how = match is_encrypted {
        true => "",
        false => ", unencrypted",
    };
    format!("{database} at {} as {user}{how}", hosts.join(","))
}

#[cfg(test)]
mod tests;
