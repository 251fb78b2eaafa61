//! People and organizations in a text, by how their names look and by the words around them.
//!
//! Promise: a name that is given stands in the text; where nothing speaks for a name, none is given.

use crate::{
    facts::{emails, pattern},
    prompt,
};
use regex::Regex;
use std::sync::LazyLock;

static CAPITALS: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?:University|Bank|Institute|School|Museum|Ministry|Port) of \p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)*|\p{Lu}[\p{L}'’.-]*\p{L}(?:[ ](?:(?:&|and|van|von|de|der|den|della|la|al|bin)[ ])?\p{Lu}[\p{L}'’-]*\p{L})*",
    )
});

/// What firms and houses call themselves by.
const ORGANIZATION: &str = "ag agency airlines airways architects association bakery bank books brewery brothers \
    builders cafe capital care catering center centre chemicals clinic club co company \
    constructions construction consulting corp corporation council dairy design designs \
    dynamics electric electronics energy engineering enterprises farm farms films finance \
    fisheries foods forge foundation freight furniture garage gmbh group hardware health \
    holdings hospital hotel inc industries inn insurance kiosk labs laboratories library \
    limited llc llp logistics ltd machines manufacturing market marine media metals mill mills \
    ministry motors museum networks optics parking partners pharma pharmacy plc plumbing post \
    press print printing productions properties rail railway restaurant roasters sarl services \
    shipping shop software solutions station steel storage store stores studio studios supplies \
    supply systems technologies technology telecom textiles theatre timber tools trading \
    transport travel trust union ventures winery works workshop";

const SCHOOL: &str = "academy college conservatory hochschule institute polytechnic school universidad \
    universitat universität universite université university";

/// Capitals at the beginning of a sentence or on a heading; no part of a name.
const NO_NAME: &str = "a an and april ask at august based because best bill book call can ceo cheers contact could \
    cto curriculum date dear december director do education email experience february for \
    forward friday from fwd good got greetings had has have he head hello her hey hi his how i \
    if in invoice is it january july june kind languages let manager march may meet met mobile \
    monday mr mrs ms my name new no not november october of on or our phone please profile re \
    regards reply resume saturday send sent september she sincerely skills so spoke subject \
    sunday tel thank thanks that the their then there they this thursday to today total tuesday \
    until we wednesday what when where who why with write yes you your yours";

const PLACE: &str = "street road avenue lane square drive pass valley island river lake station";

struct Name<'a> {
    text: &'a str,
    /// Up to three words that stand before it in its line, in lower case.
    before: Vec<String>,
    at: usize,
    whole_line: bool,
    /// A comma stands before it, or after it.
    after_comma: bool,
}

// === impl Name ===

impl Name<'_> {
    fn words(&self) -> Vec<String> {
        self.text
            .split([' ', '-'])
            .map(|word| word.trim_matches('.').to_lowercase())
            .collect()
    }

    fn has(&self, list: &str) -> bool {
        prompt::has_any(&self.words(), list)
    }

    fn follows(&self, list: &str) -> bool {
        let before = self.before.last();
        before.is_some_and(|word| prompt::listed(word, list))
    }
}

/// All runs of capitalised words, without what only begins a sentence.
fn names(text: &str) -> Vec<Name<'_>> {
    let mut names = Vec::new();
    let mut line_at = 0;
    for line in text.split('\n') {
        for found in CAPITALS.find_iter(line) {
            let mut start = found.start();
            let mut rest = found.as_str();
            // An address or a handle is no name.
            let glued = line
                .get(..start)
                .is_some_and(|before| before.ends_with(['@', '.', '/', '_']))
                || line
                    .get(found.end()..)
                    .is_some_and(|after| after.starts_with(['@', '_']));
            if glued {
                continue;
            }
            while let Some((first, more)) = rest.split_once(' ') {
                if !prompt::listed(&first.to_lowercase(), NO_NAME) {
                    break;
                }
                start += first.len() + 1;
                rest = more;
            }
            let rest = rest
                .strip_suffix("'s")
                .or_else(|| rest.strip_suffix("’s"))
                .unwrap_or(rest);
            if prompt::listed(&rest.to_lowercase(), NO_NAME) {
                continue;
            }
            let head = line.get(..start).unwrap_or("");
            let before = head
                .split(|c: char| !c.is_alphanumeric() && c != '\'')
                .filter(|word| !word.is_empty())
                .map(str::to_lowercase)
                .collect::<Vec<_>>();
            names.push(Name {
                text: rest,
                before: before.into_iter().rev().take(3).rev().collect(),
                at: line_at + start,
                whole_line: line.trim().trim_end_matches(['.', ',']) == rest,
                after_comma: head.trim_end().ends_with([',', '|', '·', '-', '–']),
            });
        }
        line_at += line.len() + 1;
    }
    names
}

/// The parts of the text's addresses that name the person, or the firm.
fn address_parts(text: &str, of_host: bool) -> Vec<String> {
    emails(text)
        .iter()
        .filter_map(|address| address.split_once('@'))
        .map(|(user, host)| if of_host { host } else { user })
        .flat_map(|part| part.split(['.', '-', '_', '+']))
        .filter(|part| part.len() > 1)
        .map(str::to_lowercase)
        .collect()
}

/// Whether a word of the name stands in one of the parts, or all of it run together.
fn in_parts(name: &Name<'_>, parts: &[String]) -> bool {
    let words = name.words();
    let joined: String = words
        .concat()
        .chars()
        .filter(|c| c.is_alphanumeric())
        .collect();
    parts.iter().any(|part| {
        *part == joined
            || words
                .iter()
                .any(|word| word.len() > 2 && (part == word || part.contains(word.as_str())))
    })
}

/// The person a text is most about.
pub fn person(text: &str, in_prose: bool) -> Option<String> {
    let users = address_parts(text, false);
    let first = names(text).first().map(|name| name.at);
    best(names(text), |name| {
        let words = name.text.split(' ').count();
        let mut score = 0;
        if name.has(ORGANIZATION)
            || name.has(SCHOOL)
            || name.has(PLACE)
            || name.text.contains(['&'])
        {
            return -5;
        }
        if in_parts(name, &users) {
            score += 4;
        }
        if words == 2 || words == 3 {
            score += 1;
        } else {
            score -= 1;
        }
        if name.whole_line || Some(name.at) == first {
            score += 1;
        }
        let introduced = "is meet name am i'm by mr mrs ms dr vitae resume regards best cheers of";
        if in_prose
            && (name.follows(introduced) || name.before.ends_with(&["from".into(), "a".into()]))
        {
            score += 1;
        }
        if name.follows("at on in") {
            score -= 2;
        } else if name.follows("for with to") {
            score -= 1;
        }
        // A greeting names the reader, not the writer.
        if name.follows("hi hello dear hey") {
            score -= 3;
        }
        score
    })
    .filter(|(score, _)| *score > 0)
    .map(|(_, name)| name)
}

/// The firm a text is most about.
pub fn organization(text: &str, in_prose: bool) -> Option<String> {
    let hosts = address_parts(text, true);
    best(names(text), |name| {
        let mut score = 0;
        if name.has(ORGANIZATION) {
            score += 2;
        }
        if in_parts(name, &hosts) {
            score += 3;
        }
        if in_prose && name.follows("at for of with from joined") {
            score += 1;
        }
        if name.after_comma {
            score += 1;
        }
        if name.text.contains('&') {
            score += 1;
        }
        if name.has(PLACE) {
            score -= 3;
        }
        score
    })
    .filter(|(score, _)| *score > 1)
    .map(|(_, name)| name)
}

/// The name with the highest score, the first of equals.
fn best<'a>(names: Vec<Name<'a>>, score: impl Fn(&Name<'a>) -> i32) -> Option<(i32, String)> {
    names
        .iter()
        .map(|name| (score(name), name))
        .max_by_key(|(score, name)| (*score, std::cmp::Reverse(name.at)))
        .map(|(score, name)| (score, name.text.to_owned()))
}

/// All people of a text, each once.
pub fn people(text: &str) -> Vec<String> {
    let mut people: Vec<String> = Vec::new();
    for name in names(text) {
        let is_person = name.text.contains(' ')
            && !name.has(ORGANIZATION)
            && !name.has(SCHOOL)
            && !name.has(PLACE);
        if is_person && !people.iter().any(|one| one == name.text) {
            people.push(name.text.to_owned());
        }
    }
    people
}

pub fn is_organization(text: &str) -> bool {
    prompt::has_word(text, ORGANIZATION) || is_school(text)
}

pub fn is_school(text: &str) -> bool {
    prompt::has_word(text, SCHOOL)
}

/// The first capitalised words that do not begin a sentence.
pub fn capitalised(text: &str) -> Option<String> {
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

#[cfg(test)]
mod tests;
