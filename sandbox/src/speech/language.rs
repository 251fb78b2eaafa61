//! Language tags: whether one is well formed, and which a text is in.
//!
//! Promise: a tag follows from script or from small common words, or is `und`; nothing is guessed from a name.

/// Longer tags are not in use.
const TAG_BYTES_MAX: usize = 35;

/// RFC 5646, roughly: a language of two to eight letters, then parts of one to eight letters or digits.
pub fn is_tag(tag: &str) -> bool {
    let mut parts = tag.split('-');
    let language = parts.next().unwrap_or_default();
    let private = language.eq_ignore_ascii_case("x");
    let mut more = 0;
    let rest = parts.all(|part| {
        more += 1;
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let first = private && more > 0
        || (2..=8).contains(&language.len())
            && language.bytes().all(|byte| byte.is_ascii_alphabetic());
    tag.len() <= TAG_BYTES_MAX && first && rest
}

/// The two letters of ISO 639-1 at the front of a tag, when it has them.
pub fn two_letters(tag: &str) -> Option<&str> {
    tag.split('-').next().filter(|language| language.len() == 2)
}

#[rustfmt::skip]
const COMMON: [(&str, &[&str]); 7] = [
    ("en", &["the", "and", "of", "is", "to", "that", "it", "you", "was", "for", "with", "this", "are", "a", "hello"]),
    ("de", &["der", "die", "das", "und", "ist", "nicht", "ein", "eine", "ich", "zu", "mit", "den", "auf", "wir"]),
    ("fr", &["le", "les", "et", "est", "une", "des", "je", "vous", "pas", "dans", "pour", "que", "du", "au"]),
    ("es", &["el", "los", "las", "y", "una", "por", "para", "con", "del", "es", "como", "pero", "muy"]),
    ("it", &["il", "gli", "che", "di", "un", "sono", "per", "non", "della", "è", "questo", "anche"]),
    ("pt", &["o", "os", "um", "uma", "não", "para", "com", "do", "da", "em", "você", "mas"]),
    ("nl", &["het", "een", "en", "van", "niet", "ik", "dat", "met", "voor", "zijn", "maar"]),
];

/// Assumed (transcription-language): by script, else by the common words found; `und` when neither decides.
pub fn of_text(text: &str) -> &'static str {
    let mut kana = false;
    let mut found = None;
    for letter in text.chars() {
        kana |= matches!(letter, '\u{3040}'..='\u{30ff}');
        found = found.or(by_script(letter));
    }
    if kana {
        return "ja";
    }
    if let Some(language) = found {
        return language;
    }
    let text = text.to_lowercase();
    let words = || text.split(|letter: char| !letter.is_alphanumeric());
    let counts = COMMON.map(|(language, common)| {
        let n = words().filter(|word| common.contains(word)).count();
        (n, language)
    });
    let best = counts.iter().map(|(n, _)| *n).max().unwrap_or(0);
    let mut leaders = counts.iter().filter(|(n, _)| *n == best);
    match (leaders.next(), leaders.next()) {
        (Some((_, language)), None) if best > 0 => language,
        _ => "und",
    }
}

fn by_script(letter: char) -> Option<&'static str> {
    let language = match letter {
        'і' | 'ї' | 'є' | 'ґ' => "uk",
        '\u{0400}'..='\u{04ff}' => "ru",
        '\u{0370}'..='\u{03ff}' => "el",
        '\u{0590}'..='\u{05ff}' => "he",
        '\u{0600}'..='\u{06ff}' => "ar",
        '\u{0900}'..='\u{097f}' => "hi",
        '\u{0e00}'..='\u{0e7f}' => "th",
        '\u{ac00}'..='\u{d7af}' => "ko",
        '\u{4e00}'..='\u{9fff}' => "zh",
        _ => return None,
    };
    Some(language)
}

#[cfg(test)]
mod tests;
