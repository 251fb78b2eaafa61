//! A text as the built-in voice reads it: words, pauses and questions.
//!
//! Numbers are read out, signs named, accents dropped. Letters that English has no rule for get a syllable
//! each, told by their number, so that two texts of another script still sound different.
//! Promise: no text is refused and none takes more than a bounded sound for each of its characters.

use super::{
    letters::pronounce,
    phones::{self, Phone},
};

/// One thing to say or to keep silent for.
#[derive(Debug)]
pub enum Said {
    Word(Vec<&'static Phone>),
    Pause {
        ms: u16,
    },
    /// A sentence ended; the pitch of what came before tells which way.
    End {
        question: bool,
    },
}

const SYLLABLE_HEADS: [&str; 16] = [
    "B", "D", "G", "K", "L", "M", "N", "P", "R", "S", "SH", "T", "V", "W", "Y", "Z",
];
const SYLLABLE_VOWELS: [&str; 8] = ["AA", "EH", "IY", "OW", "UW", "AY", "ER", "AO"];

#[rustfmt::skip]
const PLAIN: [(&str, &str); 22] = [
    ("àáâãäåāăą", "a"), ("çćĉċč", "c"), ("ďđð", "d"), ("èéêëēĕėęě", "e"), ("ĝğġģ", "g"), ("ĥħ", "h"),
    ("ìíîïĩīĭįı", "i"), ("ĵ", "j"), ("ķ", "k"), ("ĺļľŀł", "l"), ("ñńņňŋ", "n"), ("òóôõöøōŏő", "o"),
    ("ŕŗř", "r"), ("śŝşšș", "s"), ("ţťŧț", "t"), ("ùúûüũūŭůűų", "u"), ("ŵ", "w"), ("ýÿŷ", "y"),
    ("źżž", "z"), ("ß", "ss"), ("æœ", "e"), ("þ", "th"),
];

const UNITS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// Reads a text from its first to its last character.
pub fn read(text: &str) -> Vec<Said> {
    let mut said = Vec::new();
    let mut word = String::new();
    let mut digits = String::new();
    // A space at the end closes the last word.
    for letter in text.chars().chain([' ']) {
        if letter.is_ascii_digit() {
            close_word(&mut word, &mut said);
            digits.push(letter);
            continue;
        }
        close_number(&mut digits, &mut said);
        let small = letter.to_lowercase().next().unwrap_or(letter);
        if small.is_ascii_alphabetic() || (small == '\'' || small == '\u{2019}') && !word.is_empty()
        {
            word.push(if small == '\u{2019}' { '\'' } else { small });
            continue;
        }
        if let Some((_, plain)) = PLAIN.iter().find(|(accented, _)| accented.contains(small)) {
            word.push_str(plain);
            continue;
        }
        close_word(&mut word, &mut said);
        match letter {
            ',' | ';' | ':' | '(' | ')' | '\u{2013}' | '\u{2014}' | '、' => {
                said.push(Said::Pause { ms: 160 });
            }
            '.' | '!' | '\n' | '。' => said.push(Said::End { question: false }),
            '?' | '？' => said.push(Said::End { question: true }),
            _ if letter.is_whitespace() => {}
            _ => match name(letter) {
                Some(words) => said.extend(words.split(' ').map(|one| Said::Word(pronounce(one)))),
                None if letter.is_alphanumeric() => said.push(Said::Word(syllable(letter))),
                None => said.push(Said::Pause { ms: 60 }),
            },
        }
    }
    said
}

fn close_word(word: &mut String, said: &mut Vec<Said>) {
    if !word.is_empty() {
        said.push(Said::Word(pronounce(word)));
        word.clear();
    }
}

fn close_number(digits: &mut String, said: &mut Vec<Said>) {
    if digits.is_empty() {
        return;
    }
    for word in number(digits) {
        said.push(Said::Word(pronounce(word)));
    }
    digits.clear();
}

/// A number in words; one of more than nine digits or with a zero in front digit by digit.
fn number(digits: &str) -> Vec<&'static str> {
    let whole = digits.len() <= 9 && (digits == "0" || !digits.starts_with('0'));
    match digits.parse::<usize>().ok().filter(|_| whole) {
        Some(0) => vec!["zero"],
        Some(n) => {
            let mut words = Vec::new();
            for (size, scale) in [
                (1_000_000, Some("million")),
                (1_000, Some("thousand")),
                (1, None),
            ] {
                let part = n / size % 1_000;
                if part > 0 {
                    under_thousand(part, &mut words);
                    words.extend(scale);
                }
            }
            words
        }
        None => digits
            .bytes()
            .filter_map(|digit| UNITS.get(usize::from(digit.saturating_sub(b'0'))).copied())
            .collect(),
    }
}

fn under_thousand(n: usize, words: &mut Vec<&'static str>) {
    let rest = n % 100;
    if n >= 100 {
        words.extend(UNITS.get(n / 100));
        words.push("hundred");
    }
    if rest >= 20 {
        words.extend(TENS.get(rest / 10));
        words.extend(UNITS.get(rest % 10).filter(|_| !rest.is_multiple_of(10)));
    } else if rest > 0 {
        words.extend(UNITS.get(rest));
    }
}

fn name(sign: char) -> Option<&'static str> {
    let name = match sign {
        '%' => "percent",
        '&' => "and",
        '+' => "plus",
        '=' => "equals",
        '@' => "at",
        '#' => "number",
        '/' => "slash",
        '$' => "dollars",
        '€' => "euros",
        '£' => "pounds",
        '°' => "degrees",
        '*' => "star",
        '<' => "less than",
        '>' => "greater than",
        _ => return None,
    };
    Some(name)
}

fn syllable(letter: char) -> Vec<&'static Phone> {
    let number = usize::try_from(u32::from(letter)).unwrap_or_default();
    let head = SYLLABLE_HEADS.get(number % SYLLABLE_HEADS.len());
    let vowel = SYLLABLE_VOWELS.get(number / SYLLABLE_HEADS.len() % SYLLABLE_VOWELS.len());
    [head, vowel]
        .into_iter()
        .flatten()
        .filter_map(|name| phones::by_name(name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_out() {
        for (digits, words) in [
            ("0", "zero"),
            ("7", "seven"),
            ("19", "nineteen"),
            ("40", "forty"),
            ("305", "three hundred five"),
            ("2026", "two thousand twenty six"),
            ("1000000", "one million"),
            ("007", "zero zero seven"),
            (
                "1234567890",
                "one two three four five six seven eight nine zero",
            ),
        ] {
            assert_eq!(number(digits).join(" "), words);
        }
    }

    #[test]
    fn punctuation_pauses_and_accents_fall_away() {
        let count = |text| read(text).len();

        assert!(matches!(
            read("really?")[..],
            [Said::Word(_), Said::End { question: true }]
        ));
        assert_eq!(count("one, two."), 4);
        assert_eq!(
            format!("{:?}", read("café naïve")),
            format!("{:?}", read("cafe naive"))
        );
    }

    #[test]
    fn texts_of_other_scripts_sound_different() {
        assert_ne!(format!("{:?}", read("世界")), format!("{:?}", read("世间")));
        assert_ne!(format!("{:?}", read("мир")), format!("{:?}", read("мыр")));
        assert!(
            SYLLABLE_HEADS
                .iter()
                .chain(&SYLLABLE_VOWELS)
                .all(|n| phones::by_name(n).is_some())
        );
    }
}
