//! A scenario file: how the sandbox starts, written down.
//!
//! Promise: unknown names are refused, and a missing member has the default of [`Options`].

use crate::{
    fault::FaultRule,
    money::MicroUsd,
    options::{Options, Organization},
    remote::settings::{ModelServer, ModelServerError},
    settings::{LimitsPart, SettingsPart},
    steps::Step,
};
use serde::Deserialize;

/// The members of the TOML file; docs/sandbox.md shows one.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Scenario {
    pub seed: Option<u64>,
    pub api_key: Option<String>,
    pub forbidden_keys: Vec<String>,
    pub balance_micro_usd: Option<u64>,
    pub limits: LimitsPart,
    pub settings: SettingsPart,
    #[serde(rename = "organization")]
    pub organizations: Vec<Organization>,
    #[serde(rename = "model")]
    pub models: Vec<ModelServer>,
    #[serde(rename = "fault")]
    pub faults: Vec<FaultRule>,
    #[serde(rename = "step")]
    pub steps: Vec<Step>,
    pub state_dir: Option<std::path::PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("{0}")]
    Step(&'static str),
    #[error("{0}")]
    Fault(&'static str),
    #[error("balance_micro_usd: more than the books can hold")]
    BalanceTooLarge,
    #[error("{0}")]
    Model(#[from] ModelServerError),
}

// === impl Scenario ===

impl Scenario {
    pub fn from_toml_str(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text)?;
        for model in &scenario.models {
            model.check()?;
        }
        for step in &scenario.steps {
            step.check().map_err(ScenarioError::Step)?;
        }
        for rule in &scenario.faults {
            rule.check().map_err(ScenarioError::Fault)?;
        }
        match scenario.balance_micro_usd {
            Some(balance) if MicroUsd::new(balance).is_none() => {
                Err(ScenarioError::BalanceTooLarge)
            }
            _ => Ok(scenario),
        }
    }

    /// The options, overridden by the file's members.
    pub fn apply(self, mut options: Options) -> Options {
        options.seed = self.seed.unwrap_or(options.seed);
        options.api_key = self.api_key.unwrap_or(options.api_key);
        options.forbidden_keys.extend(self.forbidden_keys);
        options.balance_micro_usd = self.balance_micro_usd.unwrap_or(options.balance_micro_usd);
        options.in_flight_max = self.limits.in_flight.unwrap_or(options.in_flight_max);
        options.per_minute_max = self.limits.per_minute.unwrap_or(options.per_minute_max);
        self.settings.apply(&mut options.settings);
        options.more_organizations.extend(self.organizations);
        options.models.extend(self.models);
        options.faults.extend(self.faults);
        options.steps.extend(self.steps);
        options.state_dir = self.state_dir.or(options.state_dir);
        options
    }
}

#[cfg(test)]
mod tests;
