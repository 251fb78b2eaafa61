//! English spelling to sounds, by rule.
//!
//! The rules stand in `english.rules`; the first that fits the letters and their neighbours wins.
//! Promise: every word of the letters A to Z has a pronunciation; the same word always the same.

use super::phones::{self, Phone};
use std::sync::LazyLock;

static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    include_str!("english.rules")
        .lines()
        .filter_map(Rule::parse)
        .collect()
});

/// What the letters are called, A to Z.
const NAMES: [&str; 26] = [
    "EY",
    "B IY",
    "S IY",
    "D IY",
    "IY",
    "EH F",
    "J IY",
    "EY CH",
    "AY",
    "J EY",
    "K EY",
    "EH L",
    "EH M",
    "EH N",
    "OW",
    "P IY",
    "K Y UW",
    "AA R",
    "EH S",
    "T IY",
    "Y UW",
    "V IY",
    "D AH B AX L Y UW",
    "EH K S",
    "W AY",
    "Z IY",
];

#[derive(Debug)]
struct Rule {
    left: &'static str,
    letters: &'static str,
    right: &'static str,
    sounds: Vec<&'static Phone>,
}

// === impl Rule ===

impl Rule {
    /// `left[letters]right=sounds`.
    fn parse(line: &'static str) -> Option<Self> {
        let (left, rest) = line.split_once('[')?;
        let (letters, rest) = rest.split_once(']')?;
        let (right, sounds) = rest.split_once('=')?;
        Some(Self {
            left,
            letters,
            right,
            sounds: named(sounds)?,
        })
    }

    fn fits(&self, before: &[u8], after: &[u8]) -> bool {
        after
            .strip_prefix(self.letters.as_bytes())
            .is_some_and(|after| ahead(self.right, after))
            && behind(self.left, before)
    }
}

/// Sounds by their names; `None` when one is unknown.
fn named(names: &str) -> Option<Vec<&'static Phone>> {
    names.split_whitespace().map(phones::by_name).collect()
}

/// The sounds of a word of A to Z and apostrophes, in any case. Other characters make no sound.
pub fn pronounce(word: &str) -> Vec<&'static Phone> {
    let word: Vec<u8> = word
        .bytes()
        .map(|byte| byte.to_ascii_uppercase())
        .filter(|byte| byte.is_ascii_uppercase() || *byte == b'\'')
        .collect();
    // What has no vowel is spelt: TV, HTTP.
    if !word
        .iter()
        .any(|letter| is_vowel(*letter) || *letter == b'Y')
    {
        return word.iter().flat_map(|letter| spelt(*letter)).collect();
    }
    let mut sounds = Vec::new();
    let mut at = 0;
    while let Some((before, after)) = word.split_at_checked(at).filter(|(_, a)| !a.is_empty()) {
        let rule = RULES.iter().find(|rule| rule.fits(before, after));
        if let Some(rule) = rule {
            sounds.extend_from_slice(&rule.sounds);
        }
        at += rule.map_or(1, |rule| rule.letters.len().max(1));
    }
    sounds
}

fn spelt(letter: u8) -> Vec<&'static Phone> {
    let name = letter
        .checked_sub(b'A')
        .and_then(|at| NAMES.get(usize::from(at)));
    name.and_then(|name| named(name)).unwrap_or_default()
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'A' | b'E' | b'I' | b'O' | b'U')
}

fn is_consonant(letter: u8) -> bool {
    letter.is_ascii_uppercase() && !is_vowel(letter)
}

/// Whether the letters behind the match fit, read left to right.
fn ahead(pattern: &str, mut letters: &[u8]) -> bool {
    for symbol in pattern.bytes() {
        if symbol == b'%' {
            let endings: [&[u8]; 6] = [b"ING", b"ELY", b"ER", b"ES", b"ED", b"E"];
            match endings.iter().find_map(|end| letters.strip_prefix(*end)) {
                Some(rest) => letters = rest,
                None => return false,
            }
            continue;
        }
        match taken(symbol, letters.iter().copied()) {
            Some(n) => letters = letters.get(n..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}

/// Whether the letters before the match fit, read right to left.
fn behind(pattern: &str, mut letters: &[u8]) -> bool {
    for symbol in pattern.bytes().rev() {
        match taken(symbol, letters.iter().rev().copied()) {
            Some(n) => {
                let left = letters.len().saturating_sub(n);
                letters = letters.get(..left).unwrap_or_default();
            }
            None => return false,
        }
    }
    true
}

/// How many letters a symbol takes; `None` when it does not fit.
fn taken(symbol: u8, mut letters: impl Iterator<Item = u8>) -> Option<usize> {
    let run = |letters: &mut dyn Iterator<Item = u8>, of: fn(u8) -> bool| {
        letters.take_while(|letter| of(*letter)).count()
    };
    match symbol {
        b'#' => Some(run(&mut letters, |l| is_vowel(l) || l == b'Y')).filter(|n| *n > 0),
        b':' => Some(run(&mut letters, |l| is_consonant(l) && l != b'Y')),
        b'_' => letters.next().is_none_or(|l| l == b'\'').then_some(0),
        _ => {
            let letter = letters.next()?;
            let fits = match symbol {
                b'^' => is_consonant(letter),
                b'.' => b"BDVGJLMNRWZ".contains(&letter),
                b'+' => b"EIY".contains(&letter),
                b'&' => b"SCGZXJH".contains(&letter),
                b'@' => b"TSRDLZNJH".contains(&letter),
                _ => letter == symbol,
            };
            fits.then_some(1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn sounds(word: &str) -> String {
        let names: Vec<&str> = pronounce(word).iter().map(|phone| phone.name).collect();
        names.join(" ")
    }

    #[test]
    fn every_line_of_the_rules_is_a_rule_and_every_letter_has_one() {
        let lines = include_str!("english.rules")
            .lines()
            .filter(|line| !line.starts_with("# "))
            .count();
        let first: BTreeSet<u8> = RULES
            .iter()
            .map(|rule| rule.letters.as_bytes()[0])
            .collect();

        assert_eq!(RULES.len(), lines);
        assert!((b'A'..=b'Z').all(|letter| first.contains(&letter)));
        assert!(NAMES.iter().all(|name| named(name).is_some()));
    }

    #[test]
    fn common_words_are_said_as_english_says_them() {
        for (word, expected) in [
            ("the", "DH AX"),
            ("hello", "HH EH L OW"),
            ("river", "R IH V ER"),
            ("light", "L AY T"),
            ("make", "M EY K"),
            ("nation", "N EY SH AX N"),
            ("phone", "F OW N"),
            ("queen", "K W IY N"),
            ("thing", "TH IH NX"),
            ("judge", "J AH J"),
            ("walked", "W AO K T"),
            ("HTTP", "EY CH T IY T IY P IY"),
            ("cat", "K AE T"),
            ("city", "S IH T IY"),
            ("my", "M AY"),
            ("knee", "N IY"),
        ] {
            assert_eq!(sounds(word), expected, "{word}");
        }
    }

    #[test]
    fn words_that_differ_in_sound_are_kept_apart() {
        let words = "bat pat cat sat mat hat fat bit pit bet pet bought boat boot beat bait bite
            light night right sight fight wide lake river mountain valley thunder judge church
            house mouse window table paper letter number seven eleven twenty speech voice";
        let mut seen: BTreeMap<String, &str> = BTreeMap::new();
        for word in words.split_whitespace() {
            let before = seen.insert(sounds(word), word);
            assert_eq!(before, None, "{word}");
        }
    }

    #[test]
    fn any_word_of_letters_makes_a_sound() {
        for word in [
            "a",
            "e",
            "y",
            "b",
            "zzz",
            "queueing",
            "rhythm",
            "xylophone",
            "strengths",
        ] {
            assert!(!pronounce(word).is_empty(), "{word}");
        }
        assert!(pronounce("").is_empty());
    }
}
