//! `service_name` and `[upstream]`: which service, and the key for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};

use super::env;
use super::errors::{At, Location};
use super::key::{ApiKey, KeyError, KeyFile};
use super::reader::{Need, Reader};
use super::value::{BaseUrl, extra_route};
use super::written::quoted;
use crate::protocol::names::ServiceNames;
use crate::protocol::routes::ExtraRoute;

/// `[upstream]`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    pub base_url: BaseUrl,
    pub api_key: ApiKey,
    /// What `ca_file` holds, read with the configuration: the authorities that are trusted instead of the system's.
    pub authorities: Option<Vec<CertificateDer<'static>>>,
    pub connect_timeout: Duration,
    pub read_timeout: Duration,
    pub extra_routes: Vec<ExtraRoute>,
}

/// Where the organization's key is read from, by the order of flag, environment, file and credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPlace {
    /// Also systemd's credential, where the environment has its directory.
    File(PathBuf),
    /// `BURSAR_API_KEY`
    Variable,
    Nowhere,
}

/// The names that are made from `service_name`.
pub fn names(reader: &mut Reader<'_>) -> Option<ServiceNames> {
    reader.enter("");
    let given = reader.text("service_name")?;
    reader.set("service_name", quoted(&given.value));
    ServiceNames::new(&given.value)
        .map_err(|error| reader.refuse(&given.place, format!("{:?}: {error}", given.value)))
        .ok()
}

// === impl Upstream ===

impl Upstream {
    /// `None` for the table where a mistake, or no need, left out what it cannot be without.
    pub fn read(reader: &mut Reader<'_>) -> (Option<Self>, KeyPlace) {
        reader.enter("upstream");
        let base_url = base_url(reader);
        let (place, source) = key_place(reader);
        let api_key = match reader.need() {
            Need::Everything => api_key(reader, &place, &source),
            Need::EverythingWith(key) => Some(key.clone()),
            Need::Whereabouts | Need::KeyPlace => None,
        };
        let authorities = ca_file(reader);
        let connect_timeout = reader.seconds("connect_timeout_s");
        let read_timeout = reader.seconds("read_timeout_s");
        let extra_routes = reader.each("extra_routes", extra_route);
        let upstream = base_url.zip(api_key).map(|(base_url, api_key)| Self {
            base_url,
            api_key,
            authorities,
            connect_timeout,
            read_timeout,
            extra_routes,
        });
        (upstream, source)
    }
}

fn base_url(reader: &mut Reader<'_>) -> Option<BaseUrl> {
    let in_file = reader.text("base_url");
    let from_flag = reader.overrides().upstream.clone();
    let from_flag = from_flag.map(|value| At::named("--upstream", value));
    let from_env = reader.variable(env::BURSAR_UPSTREAM);
    let Some(given) = from_flag.or(from_env).or(in_file) else {
        // A value that was given and could not be taken is reported already.
        if !reader.has_refused_key("base_url") {
            reader.refuse(
                &Location::default(),
                "no upstream: set base_url in [upstream] of the configuration file, BURSAR_UPSTREAM, or --upstream URL; without an account, `bursar sandbox` is the service on this machine (http://127.0.0.1:8329, key sandbox-key)",
            );
        }
        return None;
    };
    match BaseUrl::parse(&given.value) {
        Ok(base_url) => {
            reader.set("base_url", quoted(&base_url.to_string()));
            Some(base_url)
        }
        Err(why) => {
            reader.refuse(&given.place, why);
            None
        }
    }
}

/// The first of: flag, `BURSAR_API_KEY_FILE`, `BURSAR_API_KEY`, file, systemd credential. The
/// first that is given counts, readable or not: a key that was meant is never replaced.
fn key_place(reader: &mut Reader<'_>) -> (Location, KeyPlace) {
    let file = |place, path| (place, KeyPlace::File(path));
    let flag = reader.overrides().api_key_file.clone();
    let env = reader.env();
    let in_file = reader.text("api_key_file");
    if let Some(path) = flag {
        return file(Location::named("--api-key-file"), path);
    }
    if let Some(path) = env.path(env::BURSAR_API_KEY_FILE) {
        return file(Location::named(env::BURSAR_API_KEY_FILE), path);
    }
    if env.get(env::BURSAR_API_KEY).is_some() {
        return (Location::named(env::BURSAR_API_KEY), KeyPlace::Variable);
    }
    if let Some(given) = in_file {
        let At { value, place } = reader.whole_path(given);
        return file(place, value);
    }
    let directory = env.path(env::CREDENTIALS_DIRECTORY);
    let credential = directory.map(|directory| directory.join("api-key"));
    match credential.filter(|path| path.exists()) {
        Some(path) => file(Location::named("$CREDENTIALS_DIRECTORY/api-key"), path),
        None => (Location::default(), KeyPlace::Nowhere),
    }
}

fn api_key(reader: &mut Reader<'_>, place: &Location, source: &KeyPlace) -> Option<ApiKey> {
    let key = match source {
        KeyPlace::File(path) => ApiKey::from_file(path, KeyFile::at(path, reader.env())),
        KeyPlace::Variable => {
            reader.warn(format!(
                "the key came in {}, where root and everything that started this process can read it as long as it runs; a file (--api-key-file) or systemd's credential keeps it closer",
                env::BURSAR_API_KEY
            ));
            let text = reader.env().get(env::BURSAR_API_KEY).unwrap_or_default();
            ApiKey::from_text(text.as_encoded_bytes())
        }
        // A path that was given and could not be taken is reported already.
        KeyPlace::Nowhere if reader.has_refused_key("api_key_file") => return None,
        KeyPlace::Nowhere => {
            reader.refuse(
                place,
                "no API key: put it into a file and set api_key_file in [upstream] of the configuration file, BURSAR_API_KEY_FILE, or --api-key-file FILE; `bursar key set` asks for it and writes that file",
            );
            return None;
        }
    };
    key.map_err(|error| match error {
        KeyError::Missing { .. } => reader.refuse(
            place,
            format!("{error}; `bursar key set` asks for the key and writes it"),
        ),
        other => reader.refuse(place, other.to_string()),
    })
    .ok()
}

/// A file of certificates, each one that can be trusted: with an empty file, or one that cannot be read, no
/// server is.
fn ca_file(reader: &mut Reader<'_>) -> Option<Vec<CertificateDer<'static>>> {
    let At { value: path, place } = reader.path("ca_file")?;
    if !reader.is_needed() || reader.has_refused(&place) {
        return None;
    }
    let why = match authorities(&path) {
        Ok(authorities) => return Some(authorities),
        Err(why) => why,
    };
    reader.refuse(&place, format!("{} {why}", path.display()));
    None
}

/// Reads a PEM file that holds certificates and nothing else.
fn authorities(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let parts = <(SectionKind, Vec<u8>)>::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot be read as PEM: {error}"))?;
    if parts.is_empty() {
        let wanted = "it has to be a PEM file of certificate authorities";
        return Err(format!("holds no certificate; {wanted}"));
    }
    let mut authorities = Vec::new();
    let mut trusted = RootCertStore::empty();
    for (number, (kind, bytes)) in (1..).zip(parts) {
        if kind != SectionKind::Certificate {
            return Err(format!(
                "holds something other than certificates (part {number}); nothing else belongs in it"
            ));
        }
        let authority = CertificateDer::from(bytes);
        trusted
            .add(authority.clone())
            .map_err(|error| format!("cannot be used: part {number} is no certificate: {error}"))?;
        authorities.push(authority);
    }
    Ok(authorities)
}
