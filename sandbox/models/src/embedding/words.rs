//! A text as words: lower case, stemmed, the small ones marked.
//!
//! Embeddings and reranking read texts through the same glasses. Promise: no word is lost; a letter of any
//! script is a letter.

use rust_stemmers::{Algorithm, Stemmer};
use std::{collections::HashMap, sync::LazyLock};

/// Words that say little about what a text is about. Kept apart from the lexicon: they have no synonyms.
const STOP_WORDS: &str = "a about after am an and any are as at be because been before being but by can could d did do does \
    doing down during each for from had has have having he her here him his how i if in into is it its \
    just ll m may me might more most must my of off on or our out over own re s shall she should so \
    some such t than that the their them then there these they this those through to too under until up \
    us ve very was we were what when where which while who whom why will with would you your";

/// Words that stand in sentences about anything: they say a little of what a text is about.
const COMMON_WORDS: &str = "again all also always another away back became become begin big both bring brought came come comes \
    day days even ever every few first found gave get gets give given gives go goes going gone good got \
    great hard high hour hours keep keeps kept know last late leave left less let like little long look \
    lot made make makes man many month months morning much need needs never new next night no not now \
    old once one only other part people person please put ran run said same say says see seen sent set \
    since still take taken takes tell thing things time times today told tomorrow took try turn two use \
    used want wants way week weeks well went without woman year years yesterday";

static SMALL: LazyLock<HashMap<&str, Says>> = LazyLock::new(|| {
    let of = |list: &'static str, says| list.split(' ').map(move |word| (word, says));
    of(COMMON_WORDS, Says::Little)
        .chain(of(STOP_WORDS, Says::Nothing))
        .collect()
});

/// How much a word says of what its text is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Much,
    Little,
    Nothing,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// As it stands in the text, in lower case.
    pub text: String,
    pub stem: String,
    pub says: Says,
}

// === impl Says ===

impl Says {
    fn of(word: &str) -> Self {
        SMALL.get(word).copied().unwrap_or(Self::Much)
    }
}

pub fn words(text: &str) -> Vec<Word> {
    let stemmer = Stemmer::create(Algorithm::English);
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| {
            let text = word.to_lowercase();
            Word {
                stem: stemmer.stem(&text).into_owned(),
                says: Says::of(&text),
                text,
            }
        })
        .collect()
}

pub fn stem(word: &str) -> String {
    let stemmer = Stemmer::create(Algorithm::English);
    stemmer.stem(&word.to_lowercase()).into_owned()
}

/// Three letters in a row, with the ends of the word marked; where a letter may be a word (scripts without
/// spaces) one and two in a row.
pub fn runs_of_letters(word: &str) -> Vec<String> {
    let letters: Vec<char> = std::iter::once('^')
        .chain(word.chars())
        .chain(std::iter::once('$'))
        .collect();
    let lengths: &[usize] = if word.chars().any(is_ideograph) {
        &[1, 2]
    } else {
        &[3]
    };
    lengths
        .iter()
        .flat_map(|length| letters.windows(*length))
        .map(|run| run.iter().collect())
        .collect()
}

/// Han, kana and Hangul.
fn is_ideograph(c: char) -> bool {
    matches!(u32::from(c), 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7af | 0x2_0000..=0x3_ffff)
}

#[cfg(test)]
mod tests;
