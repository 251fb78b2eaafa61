//! What a sandbox is started with.
//!
//! Promise: `Options::default()` is the service of the interface: its limits, its rules, a funded
//! organization. Everything else is a deviation somebody asked for.

mod contradictions;

pub use contradictions::OptionsError;

use crate::{clock::Clock, fault::Rule, remote::settings::ModelServer, spec, steps::Step};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

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
    /// What a repeat that runs again but is not billed again reports. Live.
    pub repeat_billed: RepeatBilled,
    /// Whether a stream whose client left is debited when its generation is complete. Live.
    pub bill_aborted_stream: bool,
    /// The agent lane answers 404 when off. Live.
    pub agent_enabled: bool,
    /// Whether an endpoint's id is a model on `/v1/chat/completions`. Live.
    pub endpoint_model: bool,
    /// How long each of the five stages of a deploy takes. Live.
    pub endpoint_stage_ms: u64,
    /// From an endpoint's start to its being live. Live.
    pub endpoint_warm_up_ms: u64,
    /// Which voice speaks. Live.
    pub synthesis: Synthesis,
    /// Where the state is kept, so that a restart goes on; without one it lives in memory.
    pub state_dir: Option<PathBuf>,
    /// Model servers in the place of built-in models.
    pub models: Vec<ModelServer>,
    /// Faults in force from the first request on.
    pub faults: Vec<Rule>,
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

/// The interface says that such a repeat "is not billed a second time", not what its receipt shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatBilled {
    /// The receipt of the repeat says 0.
    #[default]
    Zero,
    /// The receipt of the repeat says the amount that was debited once.
    Same,
}

/// Who makes the sound of `/v1/audio/speech`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Synthesis {
    /// espeak-ng when it is installed, else the built-in voice.
    #[default]
    Auto,
    /// The built-in voice: the same sound on every machine.
    BuiltIn,
}

// === impl Options ===

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
            repeat_billed: RepeatBilled::Zero,
            bill_aborted_stream: true,
            agent_enabled: true,
            endpoint_model: true,
            endpoint_stage_ms: 50,
            endpoint_warm_up_ms: 2_000,
            synthesis: Synthesis::Auto,
            state_dir: None,
            models: Vec::new(),
            faults: Vec::new(),
            steps: Vec::new(),
        }
    }
}
