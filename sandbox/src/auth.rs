//! Who is calling: bearer key to organization.
//!
//! Interface, Authentication: missing or invalid key 401; authenticated but not allowed 403.
//! Promise: a key is compared by its hash and is written to no log, error or record.

use crate::{error::ServiceError, options::Options};
use http::{HeaderMap, header};
use sha2::{Digest, Sha256};
use std::collections::HashMap;

/// The organization of `Options::api_key`.
pub const FIRST_ORG: &str = "org-1";

#[derive(Debug)]
pub struct Auth {
    by_hash: HashMap<[u8; 32], Grant>,
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
        Self { by_hash }
    }

    /// The organization whose key this is.
    pub fn org(&self, headers: &HeaderMap) -> Result<String, ServiceError> {
        let key = bearer(headers).ok_or(ServiceError::Unauthorized)?;
        match self.by_hash.get(&hash(key)) {
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
    Sha256::digest(key.as_bytes()).into()
}
