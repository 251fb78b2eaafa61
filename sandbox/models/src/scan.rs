//! Finding facts in a text: the extraction member's eyes.
//!
//! Promise: what is returned stands in the text, character for character.

use super::prompt;

/// What a string field of the given name probably asks for, found in the text.
pub fn for_field(field: &str, text: &str) -> Option<String> {
    let name = field.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    labelled(&name, text)
        .or_else(|| has(&["email", "mail"]).then(|| email(text)).flatten())
        .or_else(|| {
            has(&["url", "link", "website"])
                .then(|| address(text))
                .flatten()
        })
        .or_else(|| {
            has(&["date", "day", "when", "due"])
                .then(|| date(text))
                .flatten()
        })
        .or_else(|| {
            has(&[
                "city", "location", "place", "country", "name", "person", "company", "vendor",
                "title",
            ])
            .then(|| proper_name(text))
            .flatten()
        })
        .or_else(|| {
            has(&[
                "query",
                "text",
                "question",
                "message",
                "prompt",
                "content",
                "description",
                "task",
            ])
            .then(|| text.trim().chars().take(400).collect())
        })
}

/// `Invoice number: 12-A` for the field `invoice_number`.
fn labelled(field: &str, text: &str) -> Option<String> {
    let label: Vec<String> = prompt::words(field);
    text.lines().find_map(|line| {
        let (left, right) = line.split_once(':').or_else(|| line.split_once(" is "))?;
        let left = prompt::words(left);
        let value = right.trim().trim_end_matches(['.', ',', ';']);
        (left.ends_with(&label) && !label.is_empty() && !value.is_empty())
            .then(|| value.chars().take(400).collect())
    })
}

pub fn email(text: &str) -> Option<String> {
    bare_words(text)
        .find(|word| {
            word.split_once('@')
                .is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
        })
        .map(str::to_owned)
}

pub fn address(text: &str) -> Option<String> {
    bare_words(text)
        .find(|word| word.starts_with("http://") || word.starts_with("https://"))
        .map(str::to_owned)
}

/// An ISO date.
pub fn date(text: &str) -> Option<String> {
    bare_words(text)
        .find(|word| {
            let parts: Vec<&str> = word.split('-').collect();
            let digits =
                |part: &&str, n| part.len() == n && part.bytes().all(|b| b.is_ascii_digit());
            matches!(parts.as_slice(), [y, m, d] if digits(y, 4) && digits(m, 2) && digits(d, 2))
        })
        .map(str::to_owned)
}

/// The first capitalised words that do not begin a sentence; else the first that do, beyond the first word.
pub fn proper_name(text: &str) -> Option<String> {
    let mut name: Vec<&str> = Vec::new();
    let mut sentence_starts = true;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let capital = bare.starts_with(char::is_uppercase) && bare.chars().count() > 1;
        if capital && !sentence_starts {
            name.push(bare);
        } else if !name.is_empty() {
            break;
        }
        sentence_starts = word.ends_with(['.', '!', '?', ':']);
        if !name.is_empty() && word.ends_with([',', '.', '?', '!', ';', ':']) {
            break;
        }
    }
    (!name.is_empty()).then(|| name.join(" "))
}

fn bare_words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace()
        .map(|word| word.trim_matches(|c: char| ",;()<>[]\"'".contains(c)))
        .map(|word| word.trim_end_matches(['.', '?', '!', ':']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_found_where_they_stand() {
        let text = "Please bill Ada Lovelace (ada@example.org) in Paris by 2026-03-01.\nTotal: 1,250.50 USD";

        assert_eq!(for_field("email", text).as_deref(), Some("ada@example.org"));
        assert_eq!(for_field("due_date", text).as_deref(), Some("2026-03-01"));
        assert_eq!(
            for_field("customer_name", text).as_deref(),
            Some("Ada Lovelace")
        );
        assert_eq!(for_field("total", text).as_deref(), Some("1,250.50 USD"));
        assert_eq!(for_field("colour", text), None);
    }
}
