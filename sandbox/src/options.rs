//! What a sandbox is started with.
//!
//! Promise: `Options::default()` is the service of the interface: its limits, its rules, a funded
//! organization. Everything else is a requested deviation. Contradictory options (two organizations with one
//! key would start, and one of them pay for both) are refused at the start, with a text that names the setting
//! and no key.

use crate::{
    clock::Clock, fault::FaultRule, remote::settings::ModelServer, settings::Settings, spec,
    steps::Step,
};
use serde::Deserialize;
use std::{collections::BTreeSet, path::PathBuf};

/// The organization of [`Options::api_key`].
pub const FIRST_ORG: &str = "org-1";

/// Start values; those marked *live* can be changed later through the control route.
///
/// It holds a key, so it has no `Debug`.
#[derive(Clone)]
pub struct Options {
    /// Seed of the built-in models: same seed, same answers.
    pub seed: u64,
    /// The organization's secret key, sent as `Authorization: Bearer <api_key>`.
    pub api_key: String,
    /// Keys that are authenticated but not allowed: 403.
    pub forbidden_keys: Vec<String>,
    /// Further organizations, each with its own key, balance and idempotency keys.
    pub more_organizations: Vec<Organization>,
    /// Balance of every organization at start, in micro-USD. Live.
    pub balance_micro_usd: u64,
    pub clock: Clock,
    /// Inference requests in flight before 429 with `Retry-After: 5`. Live.
    pub in_flight_max: usize,
    /// Inference requests in 60 s before 429 with `Retry-After: 15`. Live.
    pub per_minute_max: u32,
    /// Live.
    pub settings: Settings,
    /// Where the state is kept, so that a restart continues from it; without it the state lives in
    /// memory.
    pub state_dir: Option<PathBuf>,
    /// Model servers in the place of built-in models.
    pub models: Vec<ModelServer>,
    /// Faults in force from the first request on.
    pub faults: Vec<FaultRule>,
    /// What happens at which request or time; see [`crate::steps`].
    pub steps: Vec<Step>,
}

/// One more organization: its name in the books and its key.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Organization {
    pub name: String,
    pub api_key: String,
}

/// A contradiction among the options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OptionsError {
    #[error("{0}: a key must not be empty or hold white space")]
    UnusableKey(String),
    #[error("organization: the name must have 1 to 100 characters")]
    UnusableName,
    #[error("organization {0}: the name stands twice")]
    NameTwice(String),
    #[error(
        "organization {FIRST_ORG}: this is the organization of the first api_key; choose another name"
    )]
    FirstName,
    #[error("{0}: another organization has this api_key")]
    KeyTwice(String),
    #[error("forbidden_keys: one is the api_key of {0}, which could then not be used")]
    ForbiddenKey(String),
}

// === impl Options ===

impl Options {
    /// The first contradiction.
    pub fn check(&self) -> Result<(), OptionsError> {
        let mut keys = vec![("api_key".to_owned(), FIRST_ORG, &self.api_key)];
        let mut names = BTreeSet::new();
        for organization in &self.more_organizations {
            let name = organization.name.as_str();
            if name.is_empty() || name.chars().count() > 100 {
                return Err(OptionsError::UnusableName);
            }
            if name == FIRST_ORG {
                return Err(OptionsError::FirstName);
            }
            if !names.insert(name) {
                return Err(OptionsError::NameTwice(name.to_owned()));
            }
            keys.push((format!("organization {name}"), name, &organization.api_key));
        }
        let mut seen = BTreeSet::new();
        for (place, _, key) in &keys {
            check_key(place, key)?;
            if !seen.insert(*key) {
                return Err(OptionsError::KeyTwice(place.clone()));
            }
        }
        for forbidden in &self.forbidden_keys {
            check_key("forbidden_keys", forbidden)?;
            if let Some((_, name, _)) = keys.iter().find(|(_, _, key)| *key == forbidden) {
                return Err(OptionsError::ForbiddenKey((*name).to_owned()));
            }
        }
        Ok(())
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 1,
            api_key: "sandbox-key".to_owned(),
            forbidden_keys: Vec::new(),
            more_organizations: Vec::new(),
            balance_micro_usd: 100_000_000,
            clock: Clock::system(),
            in_flight_max: spec::IN_FLIGHT_MAX,
            per_minute_max: spec::PER_MINUTE_MAX,
            settings: Settings::default(),
            state_dir: None,
            models: Vec::new(),
            faults: Vec::new(),
            steps: Vec::new(),
        }
    }
}

/// In a header a key follows `Bearer `, and is cut at its white space there.
fn check_key(place: &str, key: &str) -> Result<(), OptionsError> {
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(OptionsError::UnusableKey(place.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
