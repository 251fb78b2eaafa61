//! `service_name` and `[upstream]`: which service, and the key for it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustls::RootCertStore;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::{PemObject, SectionKind};

use super::Check;
use crate::config::env;
use crate::config::errors::Place;
use crate::config::file::At;
use crate::config::key::{ApiKey, KeyError};
use crate::config::value::BaseUrl;
use crate::protocol::names::ServiceNames;

/// Where the key comes from. Nothing of it was read yet.
pub enum KeySource<'a> {
    File(PathBuf),
    Variable(&'a OsStr),
}

pub fn names(check: &mut Check<'_>, given: Option<At<String>>) -> Option<ServiceNames> {
    let given = given.unwrap_or_else(|| At {
        value: "service".to_owned(),
        place: Place::key("", "service_name"),
    });
    ServiceNames::new(&given.value)
        .map_err(|error| check.refuse(&given.place, format!("{:?}: {error}", given.value)))
        .ok()
}

pub fn base_url(check: &mut Check<'_>, in_file: Option<At<String>>) -> Option<BaseUrl> {
    let from_flag = check
        .overrides
        .upstream
        .clone()
        .map(|value| At::named("--upstream", value));
    let from_env = check.variable(env::BURSAR_UPSTREAM);
    let Some(given) = from_flag.or(from_env).or(in_file) else {
        // One that was given and could not be taken was told already.
        if check.has_refused_key("upstream", "base_url") {
            return None;
        }
        check.refuse(
            &Place::default(),
            "no upstream: set base_url in [upstream] of the configuration file, BURSAR_UPSTREAM, or --upstream URL",
        );
        return None;
    };
    BaseUrl::parse(&given.value)
        .map_err(|why| check.refuse(&given.place, why))
        .ok()
}

/// The first of: flag, `BURSAR_API_KEY_FILE`, `BURSAR_API_KEY`, file, systemd credential. The
/// first that is given counts, readable or not: a key that was meant is never replaced.
pub fn key_source<'a>(
    check: &mut Check<'a>,
    in_file: Option<At<String>>,
) -> Option<(Place, KeySource<'a>)> {
    let credential_dir = check.env().path(env::CREDENTIALS_DIRECTORY);
    if let Some(path) = &check.overrides().api_key_file {
        return Some((
            Place::named("--api-key-file"),
            KeySource::File(path.clone()),
        ));
    }
    if let Some(path) = check.env().path(env::BURSAR_API_KEY_FILE) {
        return Some((
            Place::named(env::BURSAR_API_KEY_FILE),
            KeySource::File(path),
        ));
    }
    if let Some(text) = check.env().get(env::BURSAR_API_KEY) {
        return Some((Place::named(env::BURSAR_API_KEY), KeySource::Variable(text)));
    }
    if let Some(given) = in_file {
        let place = given.place.clone();
        return Some((place, KeySource::File(check.path(given))));
    }
    let path = credential_dir.map(|directory| directory.join("api-key"));
    let path = path.filter(|path| path.exists())?;
    let place = Place::named("$CREDENTIALS_DIRECTORY/api-key");
    Some((place, KeySource::File(path)))
}

pub fn api_key(check: &mut Check<'_>, in_file: Option<At<String>>) -> Option<ApiKey> {
    let (place, key): (Place, Result<ApiKey, KeyError>) = match key_source(check, in_file) {
        Some((place, KeySource::File(path))) => {
            let key = ApiKey::from_file(&path, check.key_file_kind(&path));
            (place, key)
        }
        Some((place, KeySource::Variable(text))) => {
            check.warn(format!(
                "the key came in {}, where root and everything that started this process can read it as long as it runs; a file (--api-key-file) or systemd's credential keeps it closer",
                env::BURSAR_API_KEY
            ));
            (place, ApiKey::from_text(text.as_encoded_bytes()))
        }
        // One that was given and could not be taken was told already.
        None if check.has_refused_key("upstream", "api_key_file") => {
            return None;
        }
        None => {
            check.refuse(
                &Place::default(),
                "no API key: put it into a file and set api_key_file in [upstream] of the configuration file, BURSAR_API_KEY_FILE, or --api-key-file FILE",
            );
            return None;
        }
    };
    key.map_err(|error| check.refuse(&place, error.to_string()))
        .ok()
}

/// A file of certificates, each one that can be trusted: of an empty file the connector makes
/// that no server is trusted, and with one it cannot read it ends the whole process.
pub fn ca_file(check: &mut Check<'_>, given: At<String>) -> Option<PathBuf> {
    let place = given.place.clone();
    let path = check.path(given);
    if check.has_refused(&place) {
        return None;
    }
    let why = match authorities(&path) {
        Ok(()) => return Some(path),
        Err(why) => why,
    };
    check.refuse(&place, format!("{} {why}", path.display()));
    None
}

/// Reads a PEM file as the connector will, which ends the process at the first part it does not take.
fn authorities(path: &Path) -> Result<(), String> {
    let parts = <(SectionKind, Vec<u8>)>::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| format!("cannot be read as PEM: {error}"))?;
    if parts.is_empty() {
        let wanted = "it has to be a PEM file of certificate authorities";
        return Err(format!("holds no certificate; {wanted}"));
    }
    let mut trusted = RootCertStore::empty();
    for (number, (kind, bytes)) in (1..).zip(parts) {
        if kind != SectionKind::Certificate {
            return Err(format!(
                "holds something else than certificates (part {number}); leave the certificates alone in it"
            ));
        }
        trusted
            .add(CertificateDer::from(bytes))
            .map_err(|error| format!("cannot be used: part {number} is no certificate: {error}"))?;
    }
    Ok(())
}
