//! Sentences of a text: where they end, and which of them hold most of its frequent words.
//!
//! Promise: every sentence given stands in the text.

use super::prompt;
use std::collections::HashMap;

/// The sentences of the text that hold most of its frequent words, in the text's order.
pub fn summarise(text: &str, sentences_max: usize) -> String {
    let sentences = sentences_of(text);
    let mut frequency: HashMap<String, u64> = HashMap::new();
    for word in prompt::words(text) {
        if word.chars().count() > 3 {
            *frequency.entry(word).or_default() += 1;
        }
    }
    let mut scored: Vec<(usize, u64)> = sentences
        .iter()
        .enumerate()
        .map(|(at, sentence)| {
            let words = prompt::words(sentence);
            let sum: u64 = words.iter().filter_map(|word| frequency.get(word)).sum();
            // In thousandths: the mean weight of a word, so that long sentences do not win by length.
            (
                at,
                (sum * 1000).checked_div(words.len() as u64).unwrap_or(0),
            )
        })
        .collect();
    scored.sort_by_key(|(at, score)| (std::cmp::Reverse(*score), *at));
    scored.truncate(sentences_max.max(1));
    scored.sort_by_key(|(at, _)| *at);
    let chosen: Vec<&str> = scored
        .iter()
        .filter_map(|(at, _)| sentences.get(*at).copied())
        .collect();
    chosen.join(" ")
}

/// The text cut at sentence ends and line ends.
pub fn sentences_of(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        let mut chars = line.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            let next_is_space = chars.peek().is_none_or(|(_, next)| next.is_whitespace());
            if matches!(c, '.' | '!' | '?') && next_is_space {
                sentences.extend(line.get(start..at + c.len_utf8()));
                start = at + c.len_utf8();
            }
        }
        sentences.extend(line.get(start..));
    }
    sentences
        .iter()
        .map(|s| s.trim())
        .filter(|s| !s.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_made_of_sentences_of_the_text() {
        let text = "Rivers carve valleys. A cat slept. Rivers feed valleys and rivers feed farms. It rained.";

        let summary = summarise(text, 2);

        assert_eq!(sentences_of(&summary).len(), 2);
        assert!(sentences_of(&summary).iter().all(|one| text.contains(one)));
        assert!(summary.contains("Rivers"));
    }
}
