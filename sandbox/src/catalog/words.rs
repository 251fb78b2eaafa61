//! A text as the matcher sees it: stems, and pairs of neighbouring stems.
//!
//! Promise: the same text gives the same features on every machine; case, punctuation and the endings of
//! English words do not count.

use rust_stemmers::{Algorithm, Stemmer};
use std::{collections::BTreeSet, sync::LazyLock};

/// Words that say nothing about the work, sorted.
#[rustfmt::skip]
const STOP: &[&str] = &[
    "a", "about", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "but", "by", "can",
    "come", "could", "did", "do", "does", "each", "every", "first", "for", "from", "get", "give", "given", "have",
    "has", "how", "i", "if", "in", "into", "is", "it", "its", "just", "know", "let", "like", "may", "me", "my",
    "need", "needs", "new", "no", "not", "of", "on", "one", "or", "other", "our", "out", "over", "own", "people",
    "please", "s", "several", "should", "so", "some", "something", "than", "that", "the", "their", "them", "then",
    "there", "these", "they", "things", "this", "those", "to", "up", "us", "use", "using", "want", "wants", "was", "we",
    "well", "were", "what", "when", "where", "which", "who", "whose", "will", "with", "would", "you", "your",
];

static STOPS: LazyLock<BTreeSet<&str>> = LazyLock::new(|| STOP.iter().copied().collect());

/// The stems of a text in their order, stop words and mere numbers left out.
pub fn stems(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    text.to_lowercase()
        .replace(['\'', '\u{2019}'], "")
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().any(char::is_alphabetic) && !STOPS.contains(word))
        .map(|word| stemmer.stem(&british(singular(word))).into_owned())
        .collect()
}

/// Neighbours, in their order: "text speech" is not "speech text".
pub fn pairs(stems: &[String]) -> impl Iterator<Item = String> {
    stems
        .windows(2)
        .filter_map(|two| two.first().zip(two.last()))
        .map(|(one, other)| format!("{one} {other}"))
}

/// The stemmer leaves the plural of an abbreviation as it is: CVs, PDFs.
fn singular(word: &str) -> &str {
    match word.strip_suffix('s') {
        Some(one) if one.len() > 1 && !one.contains(['a', 'e', 'i', 'o', 'u', 'y', 's']) => one,
        _ => word,
    }
}

/// British endings the stemmer does not know: summarise, localisation.
fn british(word: &str) -> String {
    for (ending, other) in [
        ("isation", "ization"),
        ("ising", "izing"),
        ("ised", "ized"),
        ("ise", "ize"),
        ("ises", "izes"),
    ] {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.len() > 4
        {
            return format!("{stem}{other}");
        }
    }
    word.to_owned()
}

#[cfg(test)]
mod tests;
