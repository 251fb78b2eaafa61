//! Authentication: from a bearer key to its organization.
//!
//! Interface, Authentication: missing or invalid key 401; authenticated but not allowed 403.
//! Promise: a key is compared by its hash and is written to no log, error or record.

use crate::{
    error::ServiceError,
    fingerprint::sha256,
    keep::{Mutation, ORGANIZATIONS},
    options::{FIRST_ORG, Options},
};
use http::{HeaderMap, header};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// More organizations than any test has.
pub const ORGANIZATIONS_MAX: usize = 1_000;

#[derive(Debug)]
pub struct Auth {
    by_hash: RwLock<HashMap<[u8; 32], Grant>>,
    /// Those that were added while it ran.
    added: RwLock<Vec<KeptOrganization>>,
}

/// An organization that was added while it ran, as the state directory holds it: no key, only its hash.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptOrganization {
    pub name: String,
    key_sha256: [u8; 32],
}

#[derive(Clone, Debug)]
enum Grant {
    Org(String),
    Forbidden,
}

// === impl Auth ===

impl Auth {
    pub fn new(options: &Options) -> Self {
        let mut by_hash = HashMap::new();
        by_hash.insert(hash(&options.api_key), Grant::Org(FIRST_ORG.to_owned()));
        for org in &options.more_organizations {
            by_hash.insert(hash(&org.api_key), Grant::Org(org.name.clone()));
        }
        for key in &options.forbidden_keys {
            by_hash.insert(hash(key), Grant::Forbidden);
        }
        Self {
            by_hash: RwLock::new(by_hash),
            added: RwLock::default(),
        }
    }

    /// Adds an organization. The error says which part is taken.
    pub fn add(&self, name: &str, api_key: &str) -> Result<KeptOrganization, &'static str> {
        let kept = KeptOrganization {
            name: name.to_owned(),
            key_sha256: hash(api_key),
        };
        let mut by_hash = self.by_hash.write();
        if by_hash.len() >= ORGANIZATIONS_MAX {
            return Err("too many organizations");
        }
        if by_hash.contains_key(&kept.key_sha256) {
            return Err("api_key: another organization has it");
        }
        by_hash.insert(kept.key_sha256, Grant::Org(kept.name.clone()));
        self.added.write().push(kept.clone());
        Ok(kept)
    }

    /// An organization of an earlier process; a key that the options name is theirs.
    pub fn resume(&self, kept: KeptOrganization) {
        let mut by_hash = self.by_hash.write();
        let grant = Grant::Org(kept.name.clone());
        by_hash.entry(kept.key_sha256).or_insert(grant);
        self.added.write().push(kept);
    }

    /// What the state directory is to hold of them.
    pub fn kept(&self) -> Vec<Mutation> {
        let added = self.added.read();
        added
            .iter()
            .filter_map(|org| Mutation::put(ORGANIZATIONS, org.name.clone(), org))
            .collect()
    }

    /// The organization whose key this is.
    pub fn org(&self, headers: &HeaderMap) -> Result<String, ServiceError> {
        let key = bearer(headers).ok_or(ServiceError::Unauthorized)?;
        match self.by_hash.read().get(&hash(key)) {
            Some(Grant::Org(org)) => Ok(org.clone()),
            Some(Grant::Forbidden) => Err(ServiceError::Forbidden),
            None => Err(ServiceError::Unauthorized),
        }
    }

    /// The same, as a word for the request log.
    pub fn word(&self, headers: &HeaderMap) -> &'static str {
        if !headers.contains_key(header::AUTHORIZATION) {
            return "absent";
        }
        match self.org(headers) {
            Ok(_) => "ok",
            Err(ServiceError::Forbidden) => "forbidden",
            Err(_) => "bad",
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut all = headers.get_all(header::AUTHORIZATION).iter();
    let (one, None) = (all.next()?, all.next()) else {
        return None;
    };
    let (scheme, key) = one.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}

fn hash(key: &str) -> [u8; 32] {
    sha256(key.as_bytes())
}
