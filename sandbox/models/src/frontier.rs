//! The frontier model: the same work, done at greater length.
//!
//! Promise: where an answer is made of words alone it never writes what the specialist writes; work that has
//! one answer it does with more passes.

use super::{category::Category, prompt::Prompt, reader::Reader, rng::Rng, specialist, talk};

/// `fixed`: the request asks for the same answer each time.
pub fn write(
    category: Category,
    prompt: &Prompt,
    reader: &Reader<'_>,
    fixed: bool,
    rng: &mut Rng,
) -> String {
    if let Some(label) = reader.named_label() {
        return label;
    }
    let body = match specialist::definite(category, prompt, reader) {
        Some(body) if fixed => return body,
        Some(body) => body,
        None => {
            let said = talk::sentences(&prompt.user, 5, rng);
            let lines = said.iter().zip(1..).map(|(one, at)| format!("{at}. {one}"));
            lines.collect::<Vec<_>>().join("\n")
        }
    };
    format!("{body}\n\n{}", talk::closings(category, rng))
}
