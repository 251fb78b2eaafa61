//! People and organizations in a text, by how their names look and by the words around them.
//!
//! Promise: a name that is given stands in the text; where nothing speaks for a name, none is given.

use crate::{
    facts::emails,
    text::{has_any, has_word, listed, patterns},
};
use std::cmp::Reverse;

patterns! {
    CAPITALS = r"(?:University|Bank|Institute|School|Museum|Ministry|Port) of \p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)*|\p{Lu}[\p{L}'’.-]*\p{L}(?:[ ](?:(?:&|and|van|von|de|der|den|della|la|al|bin)[ ])?\p{Lu}[\p{L}'’-]*\p{L})*";
}

/// What firms and houses call themselves by.
const ORGANIZATION: &str = include_str!("names/organizations.txt");
/// Capitals at the beginning of a sentence or on a heading; no part of a name.
const NO_NAME: &str = include_str!("names/no_names.txt");
const SCHOOL: &str = "academy college conservatory hochschule institute polytechnic school universidad \
    universitat universität universite université university";

const PLACE: &str = "street road avenue lane square drive pass valley island river lake station";

struct Name<'a> {
    text: &'a str,
    words: Vec<String>,
    /// It begins a sentence, as any word may.
    begins: bool,
}

// === impl Name ===

impl<'a> Name<'a> {
    /// Of a run of capitalised words, without what only begins a sentence.
    fn of(line: &'a str, mut start: usize, run: &'a str) -> Option<Self> {
        // An address or a handle is no name.
        let behind = line.get(start + run.len()..)?;
        if line.get(..start)?.ends_with(['@', '.', '/', '_']) || behind.starts_with(['@', '_']) {
            return None;
        }
        let mut rest = run;
        while let Some((first, more)) = rest.split_once(' ')
            && listed(&first.to_lowercase(), NO_NAME)
        {
            start += first.len() + 1;
            rest = more;
        }
        let text = rest.trim_end_matches("'s").trim_end_matches("’s");
        let words = text.split([' ', '-']).map(str::to_lowercase).collect();
        let head = line.get(..start)?.trim_end();
        (!listed(&text.to_lowercase(), NO_NAME)).then_some(Self {
            text,
            words,
            begins: head.is_empty() || head.ends_with(['.', '!', '?', ':']),
        })
    }

    fn has(&self, list: &str) -> bool {
        has_any(&self.words, list)
    }

    fn is_person(&self) -> bool {
        let others = [ORGANIZATION, SCHOOL, PLACE];
        self.text.contains(' ')
            && !self.text.contains('&')
            && !others.iter().any(|list| self.has(list))
    }

    /// Whether a word of the name stands in one of the addresses' users or hosts.
    fn is_in(&self, parts: &[String]) -> bool {
        let mut words = self.words.iter().filter(|word| word.len() > 2);
        words.any(|word| parts.iter().any(|part| part.contains(word)))
    }
}

fn names(text: &str) -> impl Iterator<Item = Name<'_>> {
    text.lines().flat_map(|line| {
        let runs = CAPITALS.find_iter(line);
        runs.filter_map(move |run| Name::of(line, run.start(), run.as_str()))
    })
}

/// The users and the hosts of a text's addresses.
fn addresses(text: &str) -> (Vec<String>, Vec<String>) {
    let lower = |(user, host): (&str, &str)| (user.to_lowercase(), host.to_lowercase());
    emails(text)
        .iter()
        .filter_map(|address| address.split_once('@'))
        .map(lower)
        .unzip()
}

/// The person of an address, else the first one.
pub fn person(text: &str) -> Option<String> {
    let (users, _) = addresses(text);
    let mut people = names(text).filter(Name::is_person);
    let of_address = names(text).find(|name| name.is_in(&users) && !name.has(ORGANIZATION));
    of_address
        .or_else(|| people.next())
        .map(|name| name.text.to_owned())
}

/// The firm with most signs for it, by its words and by the hosts of addresses; the first of equals.
pub fn organization(text: &str) -> Option<String> {
    let (_, hosts) = addresses(text);
    let signs = |name: &Name<'_>| {
        let is_firm = name.has(ORGANIZATION) || name.text.contains('&');
        u8::from(is_firm && !name.has(PLACE)) + u8::from(name.is_in(&hosts))
    };
    let firms = names(text).filter(|name| signs(name) > 0);
    let best = firms.min_by_key(|name| Reverse(signs(name)))?;
    Some(best.text.to_owned())
}

/// All people of a text, each once.
pub fn people(text: &str) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for name in names(text).filter(Name::is_person) {
        if !people.iter().any(|one| one == name.text) {
            people.push(name.text.to_owned());
        }
    }
    people
}

pub fn is_organization(text: &str) -> bool {
    has_word(text, ORGANIZATION) || is_school(text)
}

pub fn is_school(text: &str) -> bool {
    has_word(text, SCHOOL)
}

/// The first name, of anything; one word that begins a sentence is none.
pub fn capitalised(text: &str) -> Option<String> {
    let mut names = names(text);
    let found = names.find(|name| !name.begins || name.text.contains(' '))?;
    Some(found.text.to_owned())
}

#[cfg(test)]
mod tests;
