//! Token counts: as the service has them, and as the dialect has them.
//!
//! Promise: no count is invented. What the service does not say is 0, which the dialect has no other word for; all four
//! counts are always there, because clients stop without them.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json;

/// The dialect's counts. The dialect's `input_tokens` are those beside the cached ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Tokens {
    input_tokens: u64,
    output_tokens: u64,
    cache_creation_input_tokens: u64,
    cache_read_input_tokens: u64,
}

/// The service's `usage`.
#[derive(Default, Deserialize)]
#[serde(default)]
struct ChatUsage<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_tokens_details: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptDetails<'a> {
    #[serde(borrow)]
    cached_tokens: Option<&'a RawValue>,
}

// === impl Tokens ===

impl Tokens {
    /// Of a chat completion's `usage`. A count that cannot be read counts as not said.
    pub fn of_chat(usage: Option<&RawValue>) -> Self {
        let usage: ChatUsage<'_> = read(usage);
        let details: PromptDetails<'_> = read(usage.prompt_tokens_details);
        let prompt = count(usage.prompt_tokens);
        let cached = Some(count(details.cached_tokens)).filter(|cached| *cached <= prompt);
        let cached = cached.unwrap_or_default();
        Self {
            input_tokens: prompt - cached,
            output_tokens: count(usage.completion_tokens),
            cache_creation_input_tokens: 0,
            cache_read_input_tokens: cached,
        }
    }

    /// The same before the first token came out.
    pub fn at_the_start(self) -> Self {
        Self {
            output_tokens: 0,
            ..self
        }
    }

    /// Writes the dialect's `usage`, with `cost` as a decimal of USD where it is known.
    pub fn push(self, out: &mut Vec<u8>, cost: Option<&str>) {
        let counts = [
            ("{\"input_tokens\":", self.input_tokens),
            (",\"output_tokens\":", self.output_tokens),
            (
                ",\"cache_creation_input_tokens\":",
                self.cache_creation_input_tokens,
            ),
            (
                ",\"cache_read_input_tokens\":",
                self.cache_read_input_tokens,
            ),
        ];
        for (name, count) in counts {
            json::push(out, &[name, &count.to_string()]);
        }
        if let Some(cost) = cost {
            json::push(out, &[",\"cost\":", cost]);
        }
        out.push(b'}');
    }
}

/// What is missing or has another form is empty.
fn read<'a, T: Default + Deserialize<'a>>(object: Option<&'a RawValue>) -> T {
    let read = object.and_then(|object| serde_json::from_str(object.get()).ok());
    read.unwrap_or_default()
}

fn count(value: Option<&RawValue>) -> u64 {
    let count = value.and_then(|value| value.get().parse().ok());
    count.unwrap_or_default()
}
