//! The labels that an instruction names: "as positive, negative or neutral", "one of: a, b, c", "Labels: a | b".
//!
//! Promise: two labels or more, each once, as they are written; an instruction that offers no choice gives none.

use crate::text::{has_word, patterns};

const LABELS_MAX: usize = 64;
const LABEL_WORDS_MAX: usize = 4;

patterns! {
    /// What a choice begins with, and the choice.
    CHOICE = r"(?ix)
        (?: \b(?:labels?|categories|classes|options|choices|intents?|topics?|tags?)\b (?:\s+(?:are|is))? \s*:
          | \b(?:one\s+of|choose\s+(?:from|between|among)|pick\s+(?:from|between)|select\s+from|either|whether(?:\s+\w+){0,6}?\s+is)\b
              (?:\s+(?:these|the\s+following|the))? (?:\s+(?:labels|categories|classes|options|choices|words|values|intents|topics))? \s*:?
          | \b(?:as|into|with|is|are|in)\b (?:\s+(?:either|one\s+of))? \s*:?
        )
        \s+ (?<list>[^.?!\n;]+)";
    BETWEEN = r"(?i)\s*(?:[,/|]\s*(?:or|and)\s|[,/|]|\s(?:or|and)\s)\s*";
}

/// Words that say that one of several names is wanted.
const CLASSIFIES: &str = "classify classification label categorize categorise category tag mark sort assign sentiment \
    intent tone choose pick which whether decide is are";

/// The labels; none where the instruction offers no choice.
pub fn labels(instruction: &str) -> Vec<String> {
    let mut rest = instruction;
    while let Some(caps) = CHOICE.captures(rest) {
        let (Some(whole), Some(list)) = (caps.get(0), caps.name("list")) else {
            break;
        };
        let lead = rest
            .get(whole.start()..list.start())
            .unwrap_or("")
            .to_lowercase();
        let labels = listed(list.as_str(), ["is", "are"].contains(&lead.trim()));
        // "as short and clear" is no choice: a weak beginning needs an "or" and a word that asks for one.
        let is_strong = lead.contains([':']) || lead.contains("one of") || lead.len() > 6;
        let asks = list.as_str().contains(" or ") && has_word(instruction, CLASSIFIES);
        if labels.len() > 1 && (is_strong || asks) {
            return labels;
        }
        rest = rest.get(list.start()..).unwrap_or("");
    }
    bulleted(instruction)
}

/// A line that ends in a colon and asks for one of them, and marks below it.
fn bulleted(instruction: &str) -> Vec<String> {
    let mut lines = instruction.lines().map(str::trim);
    let asks = |line: &str| line.ends_with(':') && has_word(line, CLASSIFIES);
    if !lines.by_ref().any(asks) {
        return Vec::new();
    }
    let marked = lines.map_while(|line| line.strip_prefix(['-', '*', '•']));
    let labels: Vec<String> = marked.filter_map(label).take(LABELS_MAX).collect();
    if labels.len() > 1 { labels } else { Vec::new() }
}

/// `weak`: what stands before the first label may be what they are labels of ("is this review good or bad").
fn listed(list: &str, weak: bool) -> Vec<String> {
    let mut parts: Vec<&str> = BETWEEN.split(list).take(LABELS_MAX).collect();
    let is_single = |part: &&str| !part.trim().contains(' ');
    if let [first, inner @ .., last] = parts.as_mut_slice()
        && inner.iter().all(&is_single)
        && (weak || is_single(first))
    {
        if weak {
            *first = first.split_whitespace().next_back().unwrap_or("");
        }
        // Behind the last label the sentence may go on.
        *last = last.split_whitespace().next().unwrap_or("");
    }
    let mut labels: Vec<String> = Vec::new();
    for part in parts {
        match label(part) {
            Some(label) if !labels.contains(&label) => labels.push(label),
            Some(_) => {}
            None => return Vec::new(),
        }
    }
    labels
}

fn label(part: &str) -> Option<String> {
    let quotes = ['"', '\'', '`', '*', '(', ')', '[', ']', '“', '”', ' ', ':'];
    let bare = part.trim_matches(|c| quotes.contains(&c));
    let mut articles = ["a ", "an ", "the "].iter();
    let bare = articles
        .find_map(|article| bare.strip_prefix(article))
        .unwrap_or(bare);
    let words = bare.split_whitespace().count();
    (1..=LABEL_WORDS_MAX)
        .contains(&words)
        .then(|| bare.to_owned())
}

#[cfg(test)]
mod tests;
