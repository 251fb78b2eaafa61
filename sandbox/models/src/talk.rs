//! Talk: written sentences by topic and by shape, chosen by what the prompt names.
//!
//! Nothing is known here but a short list of facts (`talk/topics.txt`). A prompt outside of it is quoted and answered
//! with what this model is and where an answer could come from (`talk/phrases.txt`).
//! Promise: every sentence was written by a person and is true of what it is about; the seed decides which ones are
//! taken, and in which order.

use super::{category::Category, rng::Rng, text};
use std::sync::LazyLock;

/// The words that name a topic, or the name of a shape, and its sentences.
type Topic = (&'static str, Vec<&'static str>);

static TOPICS: LazyLock<Vec<Topic>> =
    LazyLock::new(|| text::sections(include_str!("talk/topics.txt")));
static PHRASES: LazyLock<Vec<Topic>> =
    LazyLock::new(|| text::sections(include_str!("talk/phrases.txt")));

const GREETINGS: &str = "hello hi hey morning evening afternoon greetings";
const THANKS: &str = "thanks thank";
/// What is shown of a message in quotes.
const QUOTED_WORDS_MAX: usize = 14;
const QUOTED_CHARS_MAX: usize = 120;

/// The sentences of a shape; none of one that the file does not have.
fn phrases(shape: &str) -> &'static [&'static str] {
    let found = PHRASES.iter().find(|(name, _)| *name == shape);
    found.map_or(&[], |(_, sentences)| sentences.as_slice())
}

/// `most` sentences or fewer that answer the message.
pub fn sentences(user: &str, most: usize, rng: &mut Rng) -> Vec<String> {
    let words = text::words(user);
    let topics = TOPICS
        .iter()
        .filter(|(names, _)| text::has_any(&words, names));
    let mut topics: Vec<Vec<&str>> = topics
        .map(|(_, facts)| ordered(facts, &words, rng))
        .collect();
    if topics.is_empty() {
        return outside(user, &words, rng);
    }
    // In turns, so that each topic named has its sentence.
    let most = most.max(topics.len());
    let mut said = Vec::new();
    while said.len() < most && topics.iter().any(|facts| !facts.is_empty()) {
        let turn = topics.iter_mut().filter_map(Vec::pop);
        said.extend(turn.map(str::to_owned));
    }
    said.truncate(most);
    said
}

/// Shuffled; the last are those about the same things as the message.
fn ordered<'a>(facts: &[&'a str], words: &[String], rng: &mut Rng) -> Vec<&'a str> {
    let mut left = facts.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let at = usize::try_from(rng.below(left.len() as u64)).unwrap_or(0);
        order.push(left.remove(at));
    }
    order.sort_by_key(|fact| {
        let subject = text::subject_words(fact);
        subject.iter().filter(|word| words.contains(word)).count() > 1
    });
    order
}

/// An answer to a message that names no topic.
fn outside(user: &str, words: &[String], rng: &mut Rng) -> Vec<String> {
    let is_short = |list: &str| words.len() <= 4 && text::has_any(words, list);
    let (quote, shapes): (_, &[&str]) = if is_short(THANKS) {
        (None, &["pleasure", "offer"])
    } else if is_short(GREETINGS) {
        (None, &["welcome", "offer"])
    } else {
        (quoted(user), &["self", "limit", "way"])
    };
    let chosen = shapes
        .iter()
        .map(|shape| rng.word(phrases(shape)).to_owned());
    quote.into_iter().chain(chosen).collect()
}

/// A sentence behind work of this kind.
pub fn closing(category: Category, rng: &mut Rng) -> &'static str {
    rng.word(phrases(category.as_str()))
}

/// Two of them, never the same.
pub fn closings(category: Category, rng: &mut Rng) -> String {
    let one = closing(category, rng);
    let mut others = (0..8).map(|_| closing(category, rng));
    match others.find(|other| *other != one) {
        Some(other) => format!("{one} {other}"),
        None => one.to_owned(),
    }
}

/// The beginning of the message in quotes.
fn quoted(user: &str) -> Option<String> {
    let line = user.lines().find(|line| !line.trim().is_empty())?.trim();
    let line = line.strip_prefix("hard:").unwrap_or(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let shown: Vec<&str> = words.iter().take(QUOTED_WORDS_MAX).copied().collect();
    let shown: String = shown.join(" ").chars().take(QUOTED_CHARS_MAX).collect();
    let more = if shown == words.join(" ") { "" } else { " …" };
    (!shown.is_empty()).then(|| format!("You wrote: “{shown}{more}”"))
}

#[cfg(test)]
mod tests;
