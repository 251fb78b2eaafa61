//! Translation word by word, with a small dictionary of five languages.
//!
//! Phrases before words, forms met by their stems, names and figures kept. No grammar: what comes out is
//! understood more than it is well said. Promise: a word that is not known stands as it stood.

use super::{given::Given, prompt, skill::Skills};
use rust_stemmers::{Algorithm, Stemmer};
use std::{collections::HashMap, sync::LazyLock};

/// A line for each meaning: English, German, French, Spanish, Italian, separated by bars; the first of several
/// forms is the one that is written.
const WORDS: &str = include_str!("translation/words.txt");
/// Words of the longest phrase.
const PHRASE_MAX: usize = 3;

const LANGUAGES: [(&str, &[&str], Algorithm); 5] = [
    (
        "en",
        &["english", "englisch", "anglais"],
        Algorithm::English,
    ),
    ("de", &["german", "deutsch", "allemand"], Algorithm::German),
    (
        "fr",
        &["french", "französisch", "français"],
        Algorithm::French,
    ),
    (
        "es",
        &["spanish", "spanisch", "espagnol", "español"],
        Algorithm::Spanish,
    ),
    (
        "it",
        &["italian", "italienisch", "italien", "italiano"],
        Algorithm::Italian,
    ),
];

static DICTIONARY: LazyLock<Dictionary> = LazyLock::new(Dictionary::read);

struct Dictionary {
    meanings: Vec<[Vec<&'static str>; LANGUAGES.len()]>,
    /// Meanings by a phrase, as it stands and by its stems; one map for each language.
    by_phrase: [HashMap<String, usize>; LANGUAGES.len()],
}

/// The number of a language by its code or name.
fn language(name: &str) -> Option<usize> {
    let name = name.trim().to_lowercase();
    LANGUAGES
        .iter()
        .position(|(code, names, _)| *code == name || names.contains(&name.as_str()))
}

fn stemmed(phrase: &str, of: usize) -> String {
    let Some((_, _, algorithm)) = LANGUAGES.get(of) else {
        return phrase.to_owned();
    };
    let stemmer = Stemmer::create(*algorithm);
    let stems: Vec<String> = phrase
        .split(' ')
        .map(|word| stemmer.stem(word).into_owned())
        .collect();
    stems.join(" ")
}

// === impl Dictionary ===

impl Dictionary {
    fn read() -> Self {
        let mut dictionary = Self {
            meanings: Vec::new(),
            by_phrase: std::array::from_fn(|_| HashMap::new()),
        };
        for line in WORDS
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
        {
            let mut columns = line.split('|');
            let meaning: [Vec<&str>; LANGUAGES.len()] = std::array::from_fn(|_| {
                columns
                    .next()
                    .unwrap_or("")
                    .split(',')
                    .map(str::trim)
                    .filter(|form| !form.is_empty())
                    .collect()
            });
            let at = dictionary.meanings.len();
            for (of, (forms, by_phrase)) in
                meaning.iter().zip(&mut dictionary.by_phrase).enumerate()
            {
                for form in forms {
                    by_phrase.entry((*form).to_lowercase()).or_insert(at);
                    by_phrase
                        .entry(format!("~{}", stemmed(&form.to_lowercase(), of)))
                        .or_insert(at);
                }
            }
            dictionary.meanings.push(meaning);
        }
        dictionary
    }

    fn find(&self, phrase: &str, from: usize) -> Option<usize> {
        let by_phrase = self.by_phrase.get(from)?;
        let found = by_phrase
            .get(phrase)
            .or_else(|| by_phrase.get(&format!("~{}", stemmed(phrase, from))));
        found.copied()
    }

    /// `Some("")` is a word the other language does without.
    fn translated(&self, phrase: &str, from: usize, to: usize) -> Option<&'static str> {
        let forms = self.meanings.get(self.find(phrase, from)?)?.get(to)?;
        Some(forms.first().copied().unwrap_or(""))
    }

    /// The language that knows most of the words.
    fn language_of(&self, text: &str) -> usize {
        let words = prompt::words(text);
        (0..LANGUAGES.len())
            .rev()
            .max_by_key(|of| {
                let known = |word: &&String| {
                    self.by_phrase
                        .get(*of)
                        .is_some_and(|all| all.contains_key(word.as_str()))
                };
                words.iter().filter(known).count()
            })
            .unwrap_or(0)
    }
}

/// The text in the other language; `None` where no other language is asked for.
pub fn write(given: &Given, skills: Skills) -> Option<String> {
    let text = given
        .value(&["text", "source", "sentence"])
        .unwrap_or(&given.text);
    let asked = prompt::words(&given.instruction);
    let to = match given.value(&["target_language", "target", "to"]) {
        Some(name) => language(name)?,
        None => asked
            .iter()
            .rev()
            .find_map(|word| language(word))
            .unwrap_or(0),
    };
    let from = given
        .value(&["source_language", "from"])
        .and_then(language)
        .unwrap_or_else(|| DICTIONARY.language_of(text));
    if from == to {
        return Some(text.to_owned());
    }
    let lines: Vec<String> = text
        .lines()
        .map(|line| translate(line, from, to, skills))
        .collect();
    Some(lines.join("\n"))
}

/// A piece of a line: a word, or what stands between words.
fn pieces(line: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let is_word = first.is_alphanumeric();
        let end = rest
            .char_indices()
            .find(|(_, c)| c.is_alphanumeric() != is_word)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, more) = rest.split_at(end);
        pieces.push(piece);
        rest = more;
    }
    pieces
}

fn translate(line: &str, from: usize, to: usize, skills: Skills) -> String {
    let pieces = pieces(line);
    let mut out = String::new();
    let mut at = 0;
    // Without the sense for several words at a time each stands alone.
    let longest = if skills.relations { PHRASE_MAX } else { 1 };
    while let Some(piece) = pieces.get(at) {
        if !piece.starts_with(char::is_alphanumeric) {
            // A word that was left out leaves no second space.
            let piece = if out.is_empty() || out.ends_with(' ') {
                piece.trim_start()
            } else {
                piece
            };
            out.push_str(piece);
            at += 1;
            continue;
        }
        let found = (1..=longest).rev().find_map(|words| {
            let run = pieces.get(at..at + 2 * words - 1)?;
            let phrase = run.concat().to_lowercase();
            let word = DICTIONARY.translated(&phrase, from, to)?;
            Some((word, run.len()))
        });
        match found {
            Some((word, taken)) => {
                out.push_str(word);
                at += taken;
            }
            None => {
                out.push_str(piece);
                at += 1;
            }
        }
    }
    capitalised(&out)
}

/// Sentences begin with a capital.
fn capitalised(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut begins = true;
    for c in text.chars() {
        if begins && c.is_alphabetic() {
            out.extend(c.to_uppercase());
            begins = false;
        } else {
            out.push(c);
            begins = matches!(c, '.' | '!' | '?') || begins && !c.is_alphanumeric();
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str, from: &str, to: &str) -> String {
        let given = Given {
            named: vec![
                ("text".to_owned(), text.to_owned()),
                ("source_language".to_owned(), from.to_owned()),
                ("target_language".to_owned(), to.to_owned()),
            ],
            ..Given::default()
        };
        write(&given, Skills::frontier()).unwrap()
    }

    #[test]
    fn known_words_are_translated_and_names_and_figures_stay() {
        assert_eq!(
            translated("Das Haus ist alt.", "de", "en"),
            "The house is old."
        );
        assert_eq!(
            translated("Eastport 9:40, Gleis 3", "de", "en"),
            "Eastport 9:40, platform 3"
        );
        assert_eq!(
            translated("The water is cold.", "en", "es"),
            "El agua es frío."
        );
        assert_eq!(
            translated("Nothing changes.", "en", "en"),
            "Nothing changes."
        );
    }

    #[test]
    fn every_line_of_the_dictionary_has_five_languages() {
        for meaning in &DICTIONARY.meanings {
            assert!(
                meaning.iter().filter(|forms| !forms.is_empty()).count() >= 3,
                "{meaning:?}"
            );
        }
        assert_eq!(DICTIONARY.language_of("Wo ist der Schlüssel?"), 1);
    }
}
