//! The service's vocabulary, as this side spells it (docs/interface.md). The sandbox spells it a
//! second time on purpose: a name misspelt in shared code would keep every test green.
//!
//! Promise: nothing here does I/O. What a proxy does not parse it cannot break, so only the few
//! fields that rules need are ever read.

pub mod body;
pub mod browser;
pub mod echo;
pub mod names;
pub mod receipt;
pub mod routes;
pub mod sse;
pub mod tags;
pub mod trace;
pub mod translate;

use serde::{Deserialize, Serialize};

/// Declares a closed set of words that is spelled once: in JSON, in metric labels and in print.
macro_rules! closed_set {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$vmeta])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The word as the journal, metric labels and printed text have it.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The reverse of [`Self::as_str`]; `None` for a word outside the set.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use closed_set;

closed_set! {
    /// The surfaces of the interface: `/v1` chat and its siblings, `/agent/v1`, everything else.
    Lane {
        Inference => "inference",
        Agent => "agent",
        Control => "control",
    }
}

closed_set! {
    /// What an app's request is written in. Column `spoken` of the ledger, metric label.
    #[derive(Default)]
    Dialect {
        /// As the service has it.
        #[default]
        Chat => "chat",
        Responses => "responses",
        Messages => "messages",
        /// OpenAI's form of the speech routes; its errors are as in chat.
        Audio => "openai_audio",
    }
}

closed_set! {
    /// What a request does, one word a route family. Metric label and ledger field.
    Operation {
        Chat => "chat",
        AgentTurn => "agent_turn",
        Embeddings => "embeddings",
        Rerank => "rerank",
        ImageGeneration => "image_generation",
        ImageEdit => "image_edit",
        Transcription => "transcription",
        Speech => "speech",
        FrontierComparison => "frontier_comparison",
        EvalRun => "eval_run",
        EvalRunRead => "eval_run_read",
        EvalSets => "eval_sets",
        Models => "models",
        Tasks => "tasks",
        AutoMetrics => "auto_metrics",
        FrontierRoster => "frontier_roster",
        Deploy => "deploy",
        Endpoints => "endpoints",
        EndpointChat => "endpoint_chat",
        Extra => "extra",
    }
}

closed_set! {
    /// `X-Service-Served-By`: "`specialist` or `frontier`; `none` on a clarification response". Any
    /// other value counts as `other`, so that the label set stays closed.
    ServedBy {
        Specialist => "specialist",
        Frontier => "frontier",
        None => "none",
        Other => "other",
    }
}

closed_set! {
    /// Whether a specialist's answer was followed by a frontier one. Streams do not report it.
    #[derive(Default)]
    Escalated {
        True => "true",
        False => "false",
        #[default]
        Unknown => "unknown",
    }
}

/// A value that the service may report. Absent, malformed and present are three different things
/// (rule I5): zero is a fact, absence is an alarm, and an unreadable value is never guessed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reported<T> {
    #[default]
    Absent,
    Malformed,
    Value(T),
}

// === impl Dialect ===

impl Dialect {
    /// For serde: what is left out where it is the rule.
    pub fn is_chat(&self) -> bool {
        *self == Self::Chat
    }
}

// === impl Operation ===

impl Operation {
    /// "Speech routes bill per minute of audio": their answers report seconds.
    pub fn is_speech(self) -> bool {
        matches!(self, Self::Transcription | Self::Speech)
    }
}

// === impl Reported ===

impl<T: Copy> Reported<T> {
    pub fn value(&self) -> Option<T> {
        match self {
            Self::Value(value) => Some(*value),
            Self::Absent | Self::Malformed => None,
        }
    }
}

impl<T> Reported<T> {
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// Token counts of an answer's `usage` object. Each may be missing on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
}
