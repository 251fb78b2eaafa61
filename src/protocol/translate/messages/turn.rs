//! What the translation of an answer has to know of its request.

/// One request, as far as its answer depends on it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// The model's name as the request spells it, without quotes.
    model: String,
    stop_sequences: Vec<String>,
    /// Names of the tools that require nothing of their input.
    without_input: Vec<String>,
}

// === impl Turn ===

impl Turn {
    /// `model` as the request spells it between its quotes; `stop_sequences` as texts; `without_input`: the names of
    /// the tools whose schema requires no member.
    pub fn new(model: &str, stop_sequences: Vec<String>, without_input: Vec<String>) -> Self {
        Self {
            model: model.to_owned(),
            stop_sequences,
            without_input,
        }
    }

    /// The model's name between its quotes.
    pub fn model(&self) -> &str {
        &self.model
    }

    pub fn has_stop_sequence(&self, text: &str) -> bool {
        self.stop_sequences.iter().any(|known| known == text)
    }

    /// Whether an input without members is one that the tool `name` takes.
    pub fn needs_no_input(&self, name: &str) -> bool {
        self.without_input.iter().any(|known| known == name)
    }
}
