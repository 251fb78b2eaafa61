//! A model server of the user's own, as configured: `[[model]]` of a scenario file.
//!
//! Any server that speaks the OpenAI protocol (vLLM, Ollama, …) can replace a built-in model.
//! Promise: settings that cannot work are refused when the sandbox starts, by the name of the field; a key is
//! never part of an error.

use crate::{
    models::{Category, roster},
    money::Price,
};
use reqwest::Url;
use serde::Deserialize;
use std::{fmt, path::PathBuf};

const TIMEOUT_S_MAX: u64 = 3600;
const KEY_FILE_BYTES_MAX: u64 = 16 * 1024;

/// One server and the model that it replaces. It holds a key, so its `Debug` shows none.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelServer {
    pub role: Role,
    /// Of a specialist: the category it serves; without it, every category that no other specialist
    /// serves.
    #[serde(default)]
    pub category: Option<String>,
    /// Of a frontier model: the id of the roster it replaces; without it, every id that no other
    /// replaces.
    #[serde(default)]
    pub id: Option<String>,
    /// With the version in its path, as OpenAI clients expect: `http://127.0.0.1:11434/v1`.
    pub base_url: String,
    #[serde(default)]
    pub api_key: Option<String>,
    /// A file that holds the key alone; white space around it is ignored.
    #[serde(default)]
    pub api_key_file: Option<PathBuf>,
    /// The name by which the server knows the model; put in the place of `auto`.
    pub model: String,
    /// Both or neither. Without them the built-in model's price applies.
    #[serde(default)]
    pub prompt_micro_usd_per_million: Option<u64>,
    #[serde(default)]
    pub completion_micro_usd_per_million: Option<u64>,
    /// Of a specialist: above this many prompt tokens, as counted here, the frontier model serves at once;
    /// without it, the context window.
    #[serde(default)]
    pub prompt_tokens_max: Option<u64>,
    /// The deadline of a whole answer; of a relayed stream, the longest silence.
    #[serde(default)]
    pub timeout_s: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Specialist,
    Frontier,
    Judge,
    Reasoner,
    Transcription,
}

/// What is wrong with a `[[model]]`.
#[derive(Debug, thiserror::Error)]
#[error("[[model]] {role}: {field}: {problem}")]
pub struct ModelServerError {
    role: &'static str,
    field: &'static str,
    problem: String,
}

/// A server that can be called: checked, its key read.
pub struct Checked {
    pub base_url: Url,
    pub key: Option<String>,
    pub price: Option<Price>,
    pub category: Option<Category>,
    /// An id of the roster.
    pub id: Option<&'static str>,
}

// === impl Role ===

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Specialist => "specialist",
            Self::Frontier => "frontier",
            Self::Judge => "judge",
            Self::Reasoner => "reasoner",
            Self::Transcription => "transcription",
        }
    }
}

// === impl ModelServer ===

impl ModelServer {
    /// Reads the key file as well, so that a missing one is reported at the start.
    pub fn check(&self) -> Result<Checked, ModelServerError> {
        let billed = matches!(self.role, Role::Specialist | Role::Frontier);
        if self.model.trim().is_empty() {
            return Err(self.wrong("model", "must not be empty"));
        }
        if let Some(timeout_s) = self.timeout_s
            && !(1..=TIMEOUT_S_MAX).contains(&timeout_s)
        {
            return Err(self.wrong("timeout_s", "must be from 1 to 3600"));
        }
        if self.prompt_tokens_max.is_some() && self.role != Role::Specialist {
            return Err(self.wrong("prompt_tokens_max", "only a specialist has one"));
        }
        let price = match (
            self.prompt_micro_usd_per_million,
            self.completion_micro_usd_per_million,
        ) {
            (None, None) => None,
            // Interface, Metering: orchestration overhead is never billed.
            (Some(_), _) | (_, Some(_)) if !billed => {
                return Err(self.wrong(
                    "prompt_micro_usd_per_million",
                    "only a specialist and a frontier model have a price",
                ));
            }
            (Some(prompt_per_million), Some(completion_per_million)) => Some(Price {
                prompt_per_million,
                completion_per_million,
            }),
            (Some(_), None) => {
                return Err(self.wrong("completion_micro_usd_per_million", "is missing"));
            }
            (None, Some(_)) => return Err(self.wrong("prompt_micro_usd_per_million", "is missing")),
        };
        Ok(Checked {
            base_url: self.url()?,
            key: self.key()?,
            price,
            category: self.served_category()?,
            id: self.replaced_id()?,
        })
    }

    fn url(&self) -> Result<Url, ModelServerError> {
        let url = Url::parse(self.base_url.trim_end_matches('/'))
            .map_err(|error| self.wrong("base_url", &error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(self.wrong("base_url", "must be http://… or https://…"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(self.wrong("base_url", "must hold no user name; use api_key"));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(self.wrong("base_url", "must hold no query and no fragment"));
        }
        Ok(url)
    }

    fn key(&self) -> Result<Option<String>, ModelServerError> {
        let key = match (&self.api_key, &self.api_key_file) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(self.wrong("api_key_file", "api_key is given, too"));
            }
            (Some(key), None) => key.clone(),
            (None, Some(path)) => {
                let wrong = |error: std::io::Error| self.wrong("api_key_file", &error.to_string());
                let length = std::fs::metadata(path).map_err(wrong)?.len();
                if length > KEY_FILE_BYTES_MAX {
                    return Err(self.wrong("api_key_file", "is over 16 KiB"));
                }
                std::fs::read_to_string(path)
                    .map_err(wrong)?
                    .trim()
                    .to_owned()
            }
        };
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(self.wrong("api_key", "must be printable ASCII without spaces"));
        }
        Ok(Some(key))
    }

    fn served_category(&self) -> Result<Option<Category>, ModelServerError> {
        match (&self.category, self.role) {
            (None, _) => Ok(None),
            (Some(name), Role::Specialist) => Category::by_name(name)
                .map(Some)
                .ok_or_else(|| self.wrong("category", &format!("one of {}", Category::names()))),
            (Some(_), _) => Err(self.wrong("category", "only a specialist has one")),
        }
    }

    fn replaced_id(&self) -> Result<Option<&'static str>, ModelServerError> {
        match (&self.id, self.role) {
            (None, _) => Ok(None),
            (Some(id), Role::Frontier) => roster::by_id(id)
                .map(|model| Some(model.id))
                .ok_or_else(|| self.wrong("id", "no such frontier model in the roster")),
            (Some(_), _) => Err(self.wrong("id", "only a frontier model has one")),
        }
    }

    pub fn wrong(&self, field: &'static str, problem: &str) -> ModelServerError {
        ModelServerError {
            role: self.role.as_str(),
            field,
            problem: problem.to_owned(),
        }
    }
}

impl fmt::Debug for ModelServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelServer")
            .field("role", &self.role)
            .field("category", &self.category)
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
