//! `logprobs` of what a built-in model wrote.
//!
//! Assumed (built-in-logprobs): a method that reads the prompt has no probabilities, so these are made up: a client
//! that asks for them gets OpenAI's shape and can be tried out.
//! Promise: the tokens joined are the text; an equal seed and an equal text give equal numbers; a token's own
//! probability is from 0.6 to 0.98, so that no rule takes them for doubt, its alternatives are less likely in their
//! order, differ from it and each other, and all together come to less than 1.

use super::{rng::Rng, tokens};
use serde_json::{Value, json};

/// Most alternatives that can be asked for, the token itself among them.
pub const TOP_MAX: u64 = 20;

/// One more than can be asked for, so that there are enough beside the token.
const OTHERS: [&str; 21] = [
    " the", " a", " and", " of", " to", " in", " is", " that", " for", " it", " as", " with",
    " on", " by", " at", " from", " or", " an", ",", ".", "\n",
];

/// The `logprobs` of a choice, each token with its `top` most likely.
pub fn of(text: &str, top: u64, seed: u64) -> Value {
    let mut rng = Rng::from_parts(&[b"logprobs", &seed.to_le_bytes(), text.as_bytes()]);
    let tokens: Vec<Value> = tokens::pieces(text)
        .into_iter()
        .map(|token| with_alternatives(token, top, &mut rng))
        .collect();
    json!({"content": tokens, "refusal": null})
}

fn with_alternatives(token: &str, top: u64, rng: &mut Rng) -> Value {
    let percent = 60 + u32::try_from(rng.below(39)).unwrap_or(0);
    let likely = f64::from(percent) / 100.0;
    let from = usize::try_from(rng.below(OTHERS.len() as u64)).unwrap_or(0);
    let others = OTHERS.iter().cycle().skip(from).take(OTHERS.len());
    // Each takes half of what is left.
    let halves = std::iter::successors(Some((1.0 - likely) / 2.0), |left| Some(left / 2.0));
    let alternatives = others.copied().filter(|other| *other != token).zip(halves);
    let most = usize::try_from(top).unwrap_or(usize::MAX);
    let all: Vec<Value> = std::iter::once((token, likely))
        .chain(alternatives)
        .take(most)
        .map(|(token, probability)| one(token, probability))
        .collect();
    let mut own = one(token, likely);
    if let Some(fields) = own.as_object_mut() {
        fields.insert("top_logprobs".to_owned(), Value::Array(all));
    }
    own
}

/// Rounded, because machines differ in the last digits of a logarithm.
fn one(token: &str, probability: f64) -> Value {
    let logprob = (probability.ln() * 1e6).round() / 1e6;
    json!({"token": token, "logprob": logprob, "bytes": token.as_bytes()})
}

#[cfg(test)]
mod tests;
