//! Sentences of a text: where they end.
//!
//! Promise: every sentence given stands in the text.

/// The text cut at sentence ends and line ends.
pub fn sentences_of(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    for line in text.lines() {
        let mut start = 0;
        for (at, end) in line.match_indices(['.', '!', '?']) {
            let behind = line.get(at + end.len()..).unwrap_or("");
            if behind.is_empty() || behind.starts_with(char::is_whitespace) {
                sentences.extend(line.get(start..at + end.len()));
                start = at + end.len();
            }
        }
        sentences.extend(line.get(start..));
    }
    sentences.retain(|sentence| !sentence.trim().is_empty());
    sentences.into_iter().map(str::trim).collect()
}
