//! Texts as words, for the scorers that count them.
//!
//! Promise: two rules, and each scorer names its own: [`words`] takes punctuation out (`don't` is `dont`) and
//! splits at white space, [`runs`] splits at everything that is no letter or digit (`f(x)` is `f x`); both lower
//! the case.

use super::score::{Unscored, WORDS_MAX};
use regex::Regex;
use std::{collections::HashMap, sync::LazyLock};

/// Unicode's general category P. Speech references disagree about dashes and quotes, so no scorer counts them.
#[expect(clippy::expect_used, reason = "a constant, compiled by a test")]
static PUNCTUATION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\p{P}+").expect("a class that the crate knows"));

/// The words of a text, or an error when there are more than [`WORDS_MAX`].
pub fn words(text: &str) -> Result<Vec<String>, Unscored> {
    let bare = PUNCTUATION.replace_all(text, "");
    bounded(bare.split_whitespace().map(str::to_lowercase).collect())
}

fn bounded(words: Vec<String>) -> Result<Vec<String>, Unscored> {
    if words.len() > WORDS_MAX {
        return Err(Unscored::because(format!(
            "a text of {} words; {WORDS_MAX} are compared at most",
            words.len()
        )));
    }
    Ok(words)
}

/// The runs of letters and digits of a text; for text that may be code.
pub fn runs(text: &str) -> Result<Vec<String>, Unscored> {
    bounded(
        text.split(|letter: char| !letter.is_alphanumeric())
            .filter(|run| !run.is_empty())
            .map(str::to_lowercase)
            .collect(),
    )
}

/// As [`words`], without the articles, as SQuAD counts them.
pub fn words_without_articles(text: &str) -> Result<Vec<String>, Unscored> {
    let mut words = words(text)?;
    words.retain(|word| !matches!(word.as_str(), "a" | "an" | "the"));
    Ok(words)
}

/// How many words two texts have in common, each as often as it occurs in both.
pub fn common(one: &[String], two: &[String]) -> usize {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in one {
        *left.entry(word).or_default() += 1;
    }
    let mut shared = 0;
    for word in two {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            shared += 1;
        }
    }
    shared
}
