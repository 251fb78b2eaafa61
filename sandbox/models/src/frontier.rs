//! The frontier model: the same work, done at greater length and with its steps shown.
//!
//! Promise: where an answer is made of words alone it never writes what the specialist writes; work that has
//! one answer it does with more passes.

use super::{
    arithmetic, category::Category, prompt, prompt::Prompt, reader::Reader, rng::Rng, specialist,
    text,
};

/// `fixed`: the request asks for the same answer each time.
pub fn write(
    category: Category,
    prompt: &Prompt,
    reader: &Reader<'_>,
    fixed: bool,
    rng: &mut Rng,
) -> String {
    let subject = prompt::subject_words(&prompt.user);
    let definite = specialist::definite(category, prompt, reader);
    if let Some(body) = &definite
        && fixed
    {
        return body.clone();
    }
    let body = match (category, definite) {
        (Category::Coding, Some(code)) => format!("{}\n\n{code}", plan_of(&subject)),
        (Category::Vision, Some(seen)) => format!("{seen} {}", text::sentence(&subject, rng)),
        (_, Some(body)) => body,
        (_, None) => match arithmetic::solve(&prompt.user) {
            Some((sum, value)) => format!("{sum} = {value}."),
            None => steps(&subject, rng),
        },
    };
    let closing = text::paragraph(&subject, 2, rng);
    format!("{body}\n\nOn reflection: {closing}")
}

fn plan_of(subject: &[String]) -> String {
    let words: Vec<&str> = subject.iter().take(5).map(String::as_str).collect();
    format!(
        "The task names {}. First its shape, then its edge cases.",
        words.join(", ")
    )
}

fn steps(subject: &[String], rng: &mut Rng) -> String {
    let lines: Vec<String> = (1..=3 + rng.below(2))
        .map(|step| format!("{step}. {}", text::sentence(subject, rng)))
        .collect();
    lines.join("\n")
}
