//! People and organizations in a text, by how their names look and by the words around them.
//!
//! Promise: a name that is given stands in the text; where nothing speaks for a name, none is given.

use crate::{
    facts::{emails, patterns},
    prompt,
};

patterns! {
    CAPITALS = r"(?:University|Bank|Institute|School|Museum|Ministry|Port) of \p{Lu}[\p{L}'’-]+(?: \p{Lu}[\p{L}'’-]+)*|\p{Lu}[\p{L}'’.-]*\p{L}(?:[ ](?:(?:&|and|van|von|de|der|den|della|la|al|bin)[ ])?\p{Lu}[\p{L}'’-]*\p{L})*";
}

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
    /// The word before it in its line, in lower case.
    before: String,
    /// Nothing else stands in its line.
    whole_line: bool,
    /// A comma, a bar or a dash stands before it.
    after_comma: bool,
}

// === impl Name ===

impl Name<'_> {
    fn words(&self) -> Vec<String> {
        let words = self.text.split([' ', '-']);
        words
            .map(|word| word.trim_matches('.').to_lowercase())
            .collect()
    }

    fn has(&self, list: &str) -> bool {
        prompt::has_any(&self.words(), list)
    }

    fn follows(&self, list: &str) -> bool {
        prompt::listed(&self.before, list)
    }

    /// Whether a word of the name stands in one of the parts of an address, or all of it run together.
    fn is_in(&self, parts: &[String]) -> bool {
        let mut words = self.words();
        words.retain(|word| word.len() > 2);
        let joined = words.concat();
        let meets = |part: &String| *part == joined || words.iter().any(|word| part.contains(word));
        parts.iter().any(meets)
    }
}

/// All runs of capitalised words, without what only begins a sentence.
fn names(text: &str) -> Vec<Name<'_>> {
    let found = text.lines().flat_map(|line| {
        let runs = CAPITALS.find_iter(line);
        runs.filter_map(move |run| name(line, run.start(), run.as_str()))
    });
    found.collect()
}

fn name<'a>(line: &'a str, mut start: usize, run: &'a str) -> Option<Name<'a>> {
    // An address or a handle is no name.
    let behind = line.get(start + run.len()..)?;
    if line.get(..start)?.ends_with(['@', '.', '/', '_']) || behind.starts_with(['@', '_']) {
        return None;
    }
    let mut rest = run;
    while let Some((first, more)) = rest.split_once(' ')
        && prompt::listed(&first.to_lowercase(), NO_NAME)
    {
        start += first.len() + 1;
        rest = more;
    }
    let text = rest
        .strip_suffix("'s")
        .or_else(|| rest.strip_suffix("’s"))
        .unwrap_or(rest);
    if prompt::listed(&text.to_lowercase(), NO_NAME) {
        return None;
    }
    let head = line.get(..start)?;
    let mut before = head.rsplit(|c: char| !c.is_alphanumeric() && c != '\'');
    Some(Name {
        text,
        before: before
            .find(|word| !word.is_empty())
            .unwrap_or("")
            .to_lowercase(),
        whole_line: line.trim().trim_end_matches(['.', ',']) == text,
        after_comma: head.trim_end().ends_with([',', '|', '·', '-', '–']),
    })
}

/// The parts of the text's addresses that name the person, or the firm.
fn address_parts(text: &str, of_host: bool) -> Vec<String> {
    let addresses = emails(text);
    let sides = addresses
        .iter()
        .filter_map(|address| address.split_once('@'));
    let sides = sides.map(|(user, host)| if of_host { host } else { user });
    let parts = sides.flat_map(|side| side.split(['.', '-', '_', '+']));
    parts
        .filter(|part| part.len() > 1)
        .map(str::to_lowercase)
        .collect()
}

/// The name with the most signs for it, the first of equals; none where that is fewer than `least`.
fn best(text: &str, least: i32, signs: impl Fn(usize, &Name<'_>) -> i32) -> Option<String> {
    let names = names(text);
    let scored = names
        .iter()
        .enumerate()
        .rev()
        .map(|(at, name)| (signs(at, name), name));
    let (score, name) = scored.max_by_key(|(score, _)| *score)?;
    (score >= least).then(|| name.text.to_owned())
}

/// The sum of the signs that hold.
fn sum(signs: &[(bool, i32)]) -> i32 {
    let holding = signs.iter().filter(|(holds, _)| *holds);
    holding.map(|(_, score)| score).sum()
}

/// The person a text is most about.
pub fn person(text: &str, in_prose: bool) -> Option<String> {
    let users = address_parts(text, false);
    let introduced = "is meet name am i'm by mr mrs ms dr vitae resume regards best cheers of a";
    best(text, 1, |at, name| {
        let words = name.text.split(' ').count();
        let no_person = name.has(ORGANIZATION)
            || name.has(SCHOOL)
            || name.has(PLACE)
            || name.text.contains('&');
        sum(&[
            (no_person, -20),
            (name.is_in(&users), 4),
            (words == 2 || words == 3, 1),
            (words == 1 || words > 3, -1),
            (name.whole_line || at == 0, 1),
            (in_prose && name.follows(introduced), 1),
            (name.follows("at on in"), -2),
            (name.follows("for with to"), -1),
            // A greeting names the reader, not the writer.
            (name.follows("hi hello dear hey"), -3),
        ])
    })
}

/// The firm a text is most about.
pub fn organization(text: &str, in_prose: bool) -> Option<String> {
    let hosts = address_parts(text, true);
    best(text, 2, |_, name| {
        sum(&[
            (name.has(ORGANIZATION), 2),
            (name.is_in(&hosts), 3),
            (in_prose && name.follows("at for of with from joined"), 1),
            (name.after_comma, 1),
            (name.text.contains('&'), 1),
            (name.has(PLACE), -3),
        ])
    })
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
