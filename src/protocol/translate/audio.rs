//! OpenAI's form of the speech routes: a recording that comes as a form, and a text whose speech is wanted as
//! bytes. The service's own form is JSON with base64 both ways, on the same paths.
//!
//! Why: no program that was written for OpenAI's speech sends the service's JSON.
//!
//! Promise: as of the other translations ([`super`]). The length of the JSON is known before it is made, so what
//! the service would refuse as too large is not sent.

mod answer;
mod speech;
mod transcription;

use super::{Dropped, Untranslatable};

pub use self::answer::Rendered;
pub use self::speech::{Offer, speech};
pub use self::transcription::transcription;

/// A request as the service takes it.
#[derive(Debug)]
pub struct AudioRequest {
    /// Its JSON body.
    pub body: Vec<u8>,
    pub turn: Turn,
    /// That the app named; the service has none to choose from.
    pub model: Option<String>,
    /// What was left out.
    pub dropped: Dropped,
}

/// What the app is given of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    form: Form,
    /// The format of sound that was asked for by name.
    format: Option<String>,
}

/// The same, as far as it makes another purchase of an equal request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `{"text": …}`
    Json,
    /// The text alone.
    Text,
    /// With language and duration.
    VerboseJson,
    /// Bytes, of whatever format the service makes.
    Sound,
    /// Bytes of a format that was asked for.
    NamedSound,
}

/// Why a request is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsent {
    Untranslatable(Untranslatable),
    /// The recording would be too large in base64.
    TooLarge {
        /// The size of the file.
        file_bytes: usize,
        /// The largest one that fits.
        file_bytes_max: usize,
    },
}

/// Longest kept model name, in characters, as of other requests.
const MODEL_CHARS_MAX: usize = 128;

// === impl Turn ===

impl Turn {
    pub fn form(&self) -> Form {
        self.form
    }

    /// The answer is sound: it may be large.
    pub fn is_sound(&self) -> bool {
        matches!(self.form, Form::Sound | Form::NamedSound)
    }
}

impl From<Form> for Turn {
    fn from(form: Form) -> Self {
        Self { form, format: None }
    }
}

impl From<Untranslatable> for Unsent {
    fn from(untranslatable: Untranslatable) -> Self {
        Self::Untranslatable(untranslatable)
    }
}

fn model_name(model: &str) -> String {
    model.chars().take(MODEL_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests;
