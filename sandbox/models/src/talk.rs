//! Talk: written sentences by topic and by shape, chosen by what the prompt names.
//!
//! Nothing is known here but a short list of facts (`talk/topics.txt`). A prompt outside of it is quoted and answered
//! with what this model is and where an answer could come from (`talk/phrases.txt`).
//! Promise: every sentence was written by a person and is true of what it is about; the seed decides which ones are
//! taken, and in which order.

use super::{category::Category, prompt, rng::Rng};
use std::sync::LazyLock;

/// Words that name a topic or a shape, and its sentences.
struct Topic {
    names: &'static str,
    sentences: Vec<&'static str>,
}

static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| read(include_str!("talk/topics.txt")));
static PHRASES: LazyLock<Vec<Topic>> = LazyLock::new(|| read(include_str!("talk/phrases.txt")));

const GREETINGS: &str = "hello hi hey morning evening afternoon greetings";
const THANKS: &str = "thanks thank";

fn read(text: &'static str) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let heading = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'));
        match (heading, topics.last_mut()) {
            (Some(names), _) => topics.push(Topic {
                names,
                sentences: Vec::new(),
            }),
            (None, Some(topic)) if !line.is_empty() => topic.sentences.push(line),
            _ => {}
        }
    }
    topics
}

/// The sentences of a shape; none of one that the file does not have.
fn phrases(shape: &str) -> &'static [&'static str] {
    let found = PHRASES.iter().find(|one| one.names == shape);
    found.map_or(&[], |one| one.sentences.as_slice())
}

/// `most` sentences or fewer that answer the message.
pub fn sentences(user: &str, most: usize, rng: &mut Rng) -> Vec<String> {
    let words = prompt::words(user);
    let mut topics: Vec<Vec<&str>> = TOPICS
        .iter()
        .filter(|topic| prompt::has_any(&words, topic.names))
        .map(|topic| {
            let mut facts = shuffled(&topic.sentences, rng);
            // A sentence about the same things as the message comes first.
            facts.sort_by_key(|fact| shared(fact, &words) > 1);
            facts
        })
        .collect();
    if topics.is_empty() {
        let shapes: &[&str] = if words.len() <= 4 && prompt::has_any(&words, THANKS) {
            &["pleasure", "offer"]
        } else if words.len() <= 4 && prompt::has_any(&words, GREETINGS) {
            &["welcome", "offer"]
        } else {
            &["self", "limit", "way"]
        };
        let quote = quoted(user).filter(|_| shapes.len() > 2);
        let chosen = shapes
            .iter()
            .map(|shape| rng.word(phrases(shape)).to_owned());
        return quote.into_iter().chain(chosen).collect();
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
    const WORDS_MAX: usize = 14;
    const CHARS_MAX: usize = 120;
    let line = user.lines().find(|line| !line.trim().is_empty())?.trim();
    let line = line.strip_prefix("hard:").unwrap_or(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let shown = words.get(..WORDS_MAX.min(words.len()))?.join(" ");
    let shown: String = shown.chars().take(CHARS_MAX).collect();
    let whole = shown.len() == words.join(" ").len();
    let more = if whole { "" } else { " …" };
    (!shown.is_empty()).then(|| format!("You wrote: “{shown}{more}”"))
}

/// How many telling words of a sentence the message has.
fn shared(sentence: &str, words: &[String]) -> usize {
    let telling = prompt::subject_words(sentence);
    telling.iter().filter(|word| words.contains(word)).count()
}

fn shuffled<'a>(items: &[&'a str], rng: &mut Rng) -> Vec<&'a str> {
    let mut left = items.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        let at = usize::try_from(rng.below(left.len() as u64)).unwrap_or(0);
        order.push(left.remove(at));
    }
    order
}

#[cfg(test)]
mod tests;
