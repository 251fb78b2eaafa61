//! Talk: written sentences by topic and by shape, chosen by what the prompt names.
//!
//! Nothing is known here but a short list of facts (`talk/topics.txt`). A prompt outside of it is quoted, and told
//! what this is and where an answer could come from. Promise: every sentence was written by a person and holds of
//! what it stands for; which ones are taken, and in which order, is chance by the seed.

use super::{category::Category, prompt, rng::Rng};
use std::sync::LazyLock;

/// Words that name a topic, and what is known of it.
struct Topic {
    names: Vec<&'static str>,
    facts: Vec<&'static str>,
}

static TOPICS: LazyLock<Vec<Topic>> = LazyLock::new(|| read(include_str!("talk/topics.txt")));

const GREETINGS: &[&str] = &[
    "hello",
    "hi",
    "hey",
    "morning",
    "evening",
    "afternoon",
    "greetings",
];
const THANKS: &[&str] = &["thanks", "thank"];

const WELCOMES: &[&str] = &[
    "Hello, and welcome.",
    "Hello. It is good to hear from you.",
    "Good to see you here.",
    "Hello there.",
    "Welcome. Everything is running.",
];
const OFFERS: &[&str] = &[
    "Send me a text and I can summarize it, label it or take facts from it.",
    "Ask for a sum, a summary or the fields of a letter.",
    "A question about a text is answered best when the text stands in the message.",
    "Try a short sum, or paste a letter and name the fields you need.",
    "Give me a schema and a text, and I will fill the one from the other.",
];
const PLEASURES: &[&str] = &[
    "You are welcome.",
    "Glad to help.",
    "With pleasure.",
    "Any time.",
];

/// What the one who answers is.
const SELVES: &[&str] = &[
    "This is the sandbox's built-in model, an imitation that has learned nothing.",
    "The answer comes from a built-in method, and no model was trained for it.",
    "The sandbox imitates a model here; it reads your words and knows a few facts.",
    "No learned model stands behind this answer, only rules that read the prompt.",
    "What writes here is a small program of the sandbox and no language model.",
    "The built-in model works with your message and with a short list of facts.",
];
/// Why there is no better one.
const LIMITS: &[&str] = &[
    "What you ask is not on its list.",
    "It holds no fact about that.",
    "That is outside of the few topics it has sentences for.",
    "It found no sum, no text and no topic that it knows in your message.",
    "Nothing in the message tells it the answer.",
    "It would have to invent an answer, and it does not.",
];
/// What to do instead.
const WAYS: &[&str] = &[
    "Set a model server in its place to get a real answer.",
    "Put the text that holds the answer into the message, and it is looked up there.",
    "The shape, the price and the length of this answer are those of a real one.",
    "Your program can be tried against this answer as against any other.",
    "Ask for a sum, a summary, a label or an extraction to see it work.",
    "A configured model server would answer this very request in the same form.",
];

/// What can be said behind any answer in words.
const CLOSINGS: &[&str] = &[
    "Ask for more on any part of this.",
    "A shorter answer is possible, too.",
    "Say which part you would like to go into.",
    "Another wording comes with another try.",
    "Name a detail and the answer can begin there.",
    "Tell me if you need this in another form.",
    "A follow-up question is welcome.",
    "That is the short form of it.",
];
const OF_CODE: &[&str] = &[
    "Try it with an empty input first.",
    "Add a test before you rely on it.",
    "Rename it to fit the code around it.",
    "Check the types against the ones you use.",
    "Say so if you need it in another language.",
    "Run it on one known case before the others.",
];
const OF_EXTRACTION: &[&str] = &[
    "Each value stands in the text as shown.",
    "What is not listed was not found.",
    "A schema would give these as JSON.",
    "The values are copied and not reworded.",
    "Compare the list with the text before you use it.",
];
const OF_SUMMARIES: &[&str] = &[
    "The sentences are the text's own.",
    "They stand in the order of the text.",
    "Say how many sentences you want, and there will be as many.",
    "What is left out stands in the text still.",
    "Nothing was reworded.",
];
const OF_PICTURES: &[&str] = &[
    "This is read from the bytes of the picture.",
    "Shapes and faces are not recognized here.",
    "Printed words are read where they are plain.",
    "A model server that sees would tell more.",
    "Only size, kind and print are looked at.",
];

fn read(text: &'static str) -> Vec<Topic> {
    let mut topics: Vec<Topic> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(names) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            topics.push(Topic {
                names: names.split_whitespace().collect(),
                facts: Vec::new(),
            });
        } else if let Some(topic) = topics.last_mut()
            && !line.is_empty()
        {
            topic.facts.push(line);
        }
    }
    topics
}

/// `most` sentences or fewer that answer the message.
pub fn sentences(user: &str, most: usize, rng: &mut Rng) -> Vec<String> {
    let words = prompt::words(user);
    let has = |any_of: &[&str]| words.iter().any(|word| any_of.contains(&word.as_str()));
    let mut topics: Vec<Vec<&str>> = TOPICS
        .iter()
        .filter(|topic| has(&topic.names))
        .map(|topic| {
            let mut facts = shuffled(&topic.facts, rng);
            // What speaks of the same things as the message is said first.
            facts.sort_by_key(|fact| shared(fact, &words) > 1);
            facts
        })
        .collect();
    if topics.is_empty() {
        let parts: &[&[&str]] = if words.len() <= 4 && has(THANKS) {
            &[PLEASURES, OFFERS]
        } else if words.len() <= 4 && has(GREETINGS) {
            &[WELCOMES, OFFERS]
        } else {
            &[SELVES, LIMITS, WAYS]
        };
        let quote = quoted(user).filter(|_| parts.len() > 2);
        let chosen = parts.iter().map(|part| rng.word(part).to_owned());
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
    rng.word(match category {
        Category::GeneralChat => CLOSINGS,
        Category::Coding => OF_CODE,
        Category::Vision => OF_PICTURES,
        Category::Extraction => OF_EXTRACTION,
        Category::Summarization => OF_SUMMARIES,
    })
}

/// Two of them, never the same.
pub fn closings(category: Category, rng: &mut Rng) -> String {
    let one = closing(category, rng);
    let other = (0..8)
        .map(|_| closing(category, rng))
        .find(|other| *other != one);
    match other {
        Some(other) => format!("{one} {other}"),
        None => one.to_owned(),
    }
}

/// The beginning of the message in quotes.
fn quoted(user: &str) -> Option<String> {
    const WORDS_MAX: usize = 14;
    let line = user.lines().find(|line| !line.trim().is_empty())?.trim();
    let line = line.strip_prefix("hard:").unwrap_or(line).trim();
    let words: Vec<&str> = line.split_whitespace().collect();
    let shown: String = words.get(..WORDS_MAX.min(words.len()))?.join(" ");
    let shown: String = shown.chars().take(120).collect();
    let more = if shown.len() < words.join(" ").len() {
        " …"
    } else {
        ""
    };
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
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn said(user: &str, seed: u64) -> String {
        let mut rng = Rng::from_parts(&[&seed.to_le_bytes()]);
        sentences(user, 3, &mut rng).join(" ")
    }

    #[test]
    fn every_topic_that_is_named_has_its_sentence() {
        for seed in 0..20 {
            let text = said("Tell me about rivers, bridges and ledgers", seed);
            for name in ["river", "bridge", "ledger"] {
                let topic = TOPICS
                    .iter()
                    .find(|topic| topic.names.contains(&name))
                    .unwrap();
                assert!(topic.facts.iter().any(|fact| text.contains(fact)), "{text}");
            }
        }
    }

    #[test]
    fn seeds_differ_and_no_sentence_stands_twice_in_an_answer() {
        let all: BTreeSet<String> = (0..20)
            .map(|seed| said("Tell me about rivers", seed))
            .collect();
        assert!(all.len() > 15, "{}", all.len());
        for text in all {
            let facts: Vec<&str> = text.split_inclusive(". ").collect();
            assert_eq!(
                facts.iter().collect::<BTreeSet<_>>().len(),
                facts.len(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_message_outside_of_the_list_is_quoted_and_told_so() {
        let text = said("hard: who carved the third door?", 1);
        assert!(
            text.starts_with("You wrote: “who carved the third door?”"),
            "{text}"
        );
        assert!(said("Good morning", 1).len() > 10);
        assert!(!said("", 1).contains('“'));
    }

    #[test]
    fn every_sentence_is_whole() {
        let written = [
            WELCOMES,
            OFFERS,
            PLEASURES,
            SELVES,
            LIMITS,
            WAYS,
            CLOSINGS,
            OF_CODE,
            OF_EXTRACTION,
            OF_SUMMARIES,
            OF_PICTURES,
        ];
        let facts = TOPICS.iter().map(|topic| topic.facts.as_slice());
        for sentence in facts.chain(written).flatten() {
            assert!(
                sentence.ends_with('.') && sentence.starts_with(char::is_uppercase),
                "{sentence}"
            );
        }
        assert!(TOPICS.iter().all(|topic| topic.facts.len() >= 5));
    }
}
