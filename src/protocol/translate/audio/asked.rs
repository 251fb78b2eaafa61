//! What a request in OpenAI's form of speech is read as, and what of it its answer depends on.

use crate::protocol::translate::{Dropped, Untranslatable};

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

    /// Sound, of this format where it was asked for by name.
    pub fn sound(format: Option<String>) -> Self {
        let form = match format {
            Some(_) => Form::NamedSound,
            None => Form::Sound,
        };
        Self { form, format }
    }

    /// The format of sound that was asked for by name.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
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

/// As it goes to the ledger.
pub fn model_name(model: &str) -> String {
    model.chars().take(MODEL_CHARS_MAX).collect()
}
