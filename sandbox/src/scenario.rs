//! A scenario file: how the sandbox starts, written down.
//!
//! Promise: unknown names are refused, and what is left out is the default of [`Options`].

use crate::{
    fault::Rule, money::MicroUsd, options::Options, options::Organization, options::RepeatBilled,
};
use serde::Deserialize;

/// TOML, for example:
///
/// ```toml
/// seed = 7
/// balance_micro_usd = 5_000_000
///
/// [limits]
/// in_flight = 2
/// per_minute = 20
///
/// [settings]
/// repeat_billed = "same"
/// bill_aborted_stream = false
///
/// [[organization]]
/// name = "org-2"
/// api_key = "second-key"
///
/// [[fault]]
/// match = { path = "/v1/chat/completions", stream = false }
/// times = 2
/// fault = { status = 503, retry_after = "1" }
/// ```
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
    #[serde(rename = "fault")]
    pub faults: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsPart {
    pub in_flight: Option<usize>,
    pub per_minute: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsPart {
    pub repeat_billed: Option<RepeatBilled>,
    pub bill_aborted_stream: Option<bool>,
    pub agent_enabled: Option<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    #[error("balance_micro_usd: more than the books can hold")]
    BalanceTooLarge,
}

// === impl Scenario ===

impl Scenario {
    pub fn from_toml_str(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text)?;
        match scenario.balance_micro_usd {
            Some(balance) if MicroUsd::new(balance).is_none() => {
                Err(ScenarioError::BalanceTooLarge)
            }
            _ => Ok(scenario),
        }
    }

    /// The options with what the file says put over them.
    pub fn apply(self, mut options: Options) -> Options {
        options.seed = self.seed.unwrap_or(options.seed);
        options.api_key = self.api_key.unwrap_or(options.api_key);
        options.forbidden_keys.extend(self.forbidden_keys);
        options.balance_micro_usd = self.balance_micro_usd.unwrap_or(options.balance_micro_usd);
        options.in_flight_max = self.limits.in_flight.unwrap_or(options.in_flight_max);
        options.per_minute_max = self.limits.per_minute.unwrap_or(options.per_minute_max);
        options.repeat_billed = self.settings.repeat_billed.unwrap_or(options.repeat_billed);
        options.bill_aborted_stream = self
            .settings
            .bill_aborted_stream
            .unwrap_or(options.bill_aborted_stream);
        options.agent_enabled = self.settings.agent_enabled.unwrap_or(options.agent_enabled);
        options.more_organizations.extend(self.organizations);
        options.faults.extend(self.faults);
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scenario_changes_what_it_names_and_nothing_else() {
        let text = r#"
            seed = 7
            [limits]
            in_flight = 2
            [settings]
            repeat_billed = "same"
            [[fault]]
            match = { path = "/v1/chat/completions", stream = false }
            times = 2
            fault = { status = 503, retry_after = "1" }
        "#;

        let options = Scenario::from_toml_str(text)
            .unwrap()
            .apply(Options::default());

        assert_eq!(
            (options.seed, options.in_flight_max, options.per_minute_max),
            (7, 2, 120)
        );
        assert_eq!(options.repeat_billed, RepeatBilled::Same);
        assert_eq!(options.faults.len(), 1);
        assert_eq!(options.api_key, "sandbox-key");
    }

    #[test]
    fn a_misspelt_name_is_refused() {
        assert!(Scenario::from_toml_str("sed = 1").is_err());
        assert!(Scenario::from_toml_str("[[fault]]\nfault = { statsu = 503 }").is_err());
        assert!(Scenario::from_toml_str(&format!("balance_micro_usd = {}", i64::MAX)).is_ok());
    }
}
