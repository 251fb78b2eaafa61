//! What can be switched while the service runs, and the parts of it that a scenario, a step or the control
//! route may name.
//!
//! Promise: only data and how it is laid over other data; what a part does not name stays as it is.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// What can be switched while it runs; the control route shows it as it is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// What the receipt of a repeat that runs again, and is not billed again, shows.
    pub repeat_billed: RepeatBilled,
    /// Whether a stream whose client left is debited when its generation is complete.
    pub bill_aborted_stream: bool,
    /// The agent lane answers 404 when off.
    pub agent_enabled: bool,
    /// Whether an endpoint's id is a model on the chat route.
    pub endpoint_model: bool,
    /// How long each of the five stages of a deploy takes.
    pub endpoint_stage_ms: u64,
    /// From an endpoint's start to its being live.
    pub endpoint_warm_up_ms: u64,
    /// Which voice speaks.
    pub synthesis: Synthesis,
}

/// The settings in force; a change holds for every clone from then on.
#[derive(Clone, Debug)]
pub struct LiveSettings(Arc<Mutex<Settings>>);

/// The interface says that such a repeat "is not billed a second time", not what its receipt shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatBilled {
    /// The receipt of the repeat shows 0.
    #[default]
    Zero,
    /// The receipt of the repeat shows the amount that was debited once.
    Same,
}

/// What makes the sound of `/v1/audio/speech`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synthesis {
    /// espeak-ng when it is installed, else the built-in voice.
    #[default]
    Auto,
    /// The built-in voice: the same sound on every machine.
    BuiltIn,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsPart {
    pub in_flight: Option<usize>,
    pub per_minute: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingsPart {
    pub repeat_billed: Option<RepeatBilled>,
    pub bill_aborted_stream: Option<bool>,
    pub agent_enabled: Option<bool>,
    pub endpoint_model: Option<bool>,
    pub endpoint_stage_ms: Option<u64>,
    pub endpoint_warm_up_ms: Option<u64>,
    pub synthesis: Option<Synthesis>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            repeat_billed: RepeatBilled::Zero,
            bill_aborted_stream: true,
            agent_enabled: true,
            endpoint_model: true,
            endpoint_stage_ms: 50,
            endpoint_warm_up_ms: 2_000,
            synthesis: Synthesis::Auto,
        }
    }
}

// === impl LiveSettings ===

impl LiveSettings {
    pub fn new(settings: Settings) -> Self {
        Self(Arc::new(Mutex::new(settings)))
    }

    pub fn get(&self) -> Settings {
        *self.0.lock()
    }

    /// The settings after the change.
    pub fn change(&self, part: SettingsPart) -> Settings {
        let mut settings = self.0.lock();
        part.apply(&mut settings);
        *settings
    }
}

// === impl SettingsPart ===

impl SettingsPart {
    /// Changes the settings that are named.
    pub fn apply(self, settings: &mut Settings) {
        settings.repeat_billed = self.repeat_billed.unwrap_or(settings.repeat_billed);
        settings.bill_aborted_stream = self
            .bill_aborted_stream
            .unwrap_or(settings.bill_aborted_stream);
        settings.agent_enabled = self.agent_enabled.unwrap_or(settings.agent_enabled);
        settings.endpoint_model = self.endpoint_model.unwrap_or(settings.endpoint_model);
        settings.endpoint_stage_ms = self.endpoint_stage_ms.unwrap_or(settings.endpoint_stage_ms);
        settings.endpoint_warm_up_ms = self
            .endpoint_warm_up_ms
            .unwrap_or(settings.endpoint_warm_up_ms);
        settings.synthesis = self.synthesis.unwrap_or(settings.synthesis);
    }
}
