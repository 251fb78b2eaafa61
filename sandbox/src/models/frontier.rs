//! The frontier model: the same work, done at greater length and with its steps shown.
//!
//! Promise: for one prompt it never writes what the specialist writes.

use super::{arithmetic, code, plan::Category, prompt, prompt::Prompt, rng::Rng, specialist, text};

pub fn write(category: Category, prompt: &Prompt, rng: &mut Rng) -> String {
    let subject = prompt::subject_words(&prompt.user);
    let body = match category {
        Category::Coding => format!("{}\n\n{}", plan_of(&subject), code::write(&prompt.user)),
        Category::Vision => format!(
            "{} {}",
            specialist::see(prompt),
            text::sentence(&subject, rng)
        ),
        Category::Extraction => specialist::extract(&prompt.user),
        Category::Summarization => text::summarise(specialist::source(&prompt.user), 3),
        Category::GeneralChat => match arithmetic::solve(&prompt.user) {
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
