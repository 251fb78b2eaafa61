//! Minutes of a conversation: who does what until when, and what was decided.
//!
//! Promise: an owner is somebody of the conversation, and a task is made of words that were said.

use super::{
    facts::patterns,
    prompt,
    skill::{Pass, Skills},
    text::sentences_of,
};
use regex::Regex;

/// Turns that are read.
const TURNS_MAX: usize = 2_000;

patterns! {
    TURN = r"^\s*\[?([\p{Lu}][\p{L}.'-]*(?: [\p{Lu}][\p{L}.'-]*)?)\]?\s*(?:\([^)]*\))?:\s+(.*)$";
    DUE = r"(?i)\s*,?\s*\b(?:(?:by|until|till|before|on|no later than)\s+((?:the\s+)?(?:end of\s+)?(?:the\s+)?(?:next\s+|this\s+)?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|noon|week|month|quarter|sprint|january|february|march|april|may|june|july|august|september|october|november|december|\d{1,2}(?:st|nd|rd|th)?|easter|christmas)(?:\s+(?:meeting|morning|evening|noon|\d{1,2}))*)|(today|tomorrow|tonight|(?:this|next)\s+(?:week|month|quarter|sprint|monday|tuesday|wednesday|thursday|friday)|end of (?:the )?(?:day|week|month)))\b";
    OWN = r"(?i)\bI(?:'ll|’ll| will| can| shall|'d| would)?(?: then)? (?:also )?([a-z]+\b.*)$";
    ASKED = r"(?i)\b(?:can|could|would|will) you (?:please )?([a-z]+\b.*?)\??$";
    CALLED = r"^(?:and |then |so )?(\p{Lu}[\p{L}'-]+), (?:please |can you |could you |you )?([a-z]+\b.*)$";
    OTHER = r"^(\p{Lu}[\p{L}'-]+) (?:will|shall|is going to|takes care of|to) ([a-z]+\b.*)$";
    WE = r"(?i)^(?:ok(?:ay)?,?\s+|then,?\s+|so,?\s+|fine,?\s+|right,?\s+|agreed[,:]?\s+|decided[,:]?\s+)*(?:we(?:'ll| will)?|let's|let us)\s+(?:then\s+)?([a-z]+\b.*)$";
    PROPOSAL = r"(?i)^(?:proposal|decision|decided|agreed|resolved)\s*:\s*(.+)$";
}

/// What "I" or "we" do that is no task and no decision.
const STATES: &str = "agree am are believe can could did do doubt expect feel forgot got guess had have heard \
    hope knew know like lost love mean might must need prefer read remember said saw see should \
    spoke suppose talked think thought understand want was were wish wonder would wrote";
/// Beginnings of a sentence that tells somebody to do something; nobody is named.
const ORDERS: &str = "do use keep start take make leave drop put go";

struct Said<'a> {
    by: &'a str,
    sentence: &'a str,
    /// Who speaks next.
    next: Option<&'a str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    pub owner: String,
    pub task: String,
    pub due: Option<String>,
}

/// The sentences with their speakers.
fn said(transcript: &str) -> Vec<Said<'_>> {
    let turns: Vec<(&str, &str)> = transcript
        .lines()
        .take(TURNS_MAX)
        .filter_map(|line| {
            let caps = TURN.captures(line)?;
            Some((caps.get(1)?.as_str(), caps.get(2)?.as_str()))
        })
        .collect();
    let mut all = Vec::new();
    for (at, (by, text)) in turns.iter().enumerate() {
        let next = turns
            .iter()
            .skip(at + 1)
            .map(|(next, _)| *next)
            .find(|next| next != by);
        for sentence in sentences_of(text) {
            all.push(Said { by, sentence, next });
        }
    }
    all
}

/// Whether a text is a conversation: most of its lines have a speaker.
pub fn is_conversation(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let turns = text.lines().filter(|line| TURN.is_match(line)).count();
    turns > 1 && turns * 2 > lines
}

/// What is stated, without who says it; questions and bare assents are left out.
pub fn statements(transcript: &str) -> String {
    let sentences: Vec<&str> = said(transcript)
        .iter()
        .map(|one| one.sentence)
        .filter(|one| !one.ends_with('?') && one.split(' ').count() > 3)
        .collect();
    sentences.join(" ")
}

pub fn actions(transcript: &str, skills: Skills) -> Vec<Action> {
    let all = said(transcript);
    let is_speaker = |name: &str| all.iter().any(|one| one.by.eq_ignore_ascii_case(name));
    let mut actions: Vec<Action> = Vec::new();
    for said in &all {
        let sentence = said.sentence.trim_end_matches(['.', '!']);
        let caps = |regex: &Regex| {
            let caps = regex.captures(sentence)?;
            let part = |at| Some(caps.get(at)?.as_str().to_owned());
            Some((part(1)?, part(2).unwrap_or_default()))
        };
        let named = |(owner, _): &(String, String)| is_speaker(owner);
        let is_done = |task: &str| !prompt::listed(&first_word(task), STATES);
        let asked = || {
            caps(&ASKED)
                .zip(said.next)
                .filter(|_| skills.has(Pass::Inference))
        };
        let own = || {
            let states = sentence.ends_with('?') || sentence.to_lowercase().starts_with("if ");
            caps(&OWN).filter(|(task, _)| !states && is_done(task))
        };
        let found = caps(&CALLED)
            .filter(|found| named(found) && is_done(&found.1))
            .or_else(|| asked().map(|((task, _), owner)| (owner.to_owned(), task)))
            .or_else(|| caps(&OTHER).filter(named))
            .or_else(|| own().map(|(task, _)| (said.by.to_owned(), task)));
        if let Some((owner, task)) = found {
            actions.push(action(&owner, &task));
        }
    }
    actions
}

fn first_word(text: &str) -> String {
    let mut words = text.split(|c: char| !c.is_alphabetic());
    words.next().unwrap_or("").to_lowercase()
}

fn action(owner: &str, task: &str) -> Action {
    let due = DUE
        .captures(task)
        .and_then(|caps| caps.get(1).or(caps.get(2)))
        .map(|due| due.as_str().trim().to_owned());
    let task = DUE.replace(task, "");
    let task = task
        .trim_end_matches(['?', '.', ' '])
        .trim_end_matches("please")
        .trim_end_matches([',', ' ']);
    Action {
        owner: cased(owner),
        task: sentence_case(task),
        due,
    }
}

/// `ANA` as `Ana`.
fn cased(name: &str) -> String {
    if name.chars().any(char::is_lowercase) {
        return name.to_owned();
    }
    sentence_case(&name.to_lowercase())
}

fn sentence_case(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

pub fn decisions(transcript: &str) -> Vec<String> {
    let all = said(transcript);
    let mut decisions = Vec::new();
    for said in &all {
        let sentence = said.sentence.trim_end_matches(['.', '!']);
        let lower = sentence.to_lowercase();
        if sentence.ends_with('?') || lower.starts_with("if ") || lower.contains(" if ") {
            continue;
        }
        let part = |regex: &Regex| Some(regex.captures(sentence)?.get(1)?.as_str().to_owned());
        let settled = |rest: &String| !prompt::listed(&first_word(rest), STATES);
        let orders =
            prompt::listed(&first_word(sentence), ORDERS) && sentence.split(' ').count() > 2;
        let found = match (part(&PROPOSAL), part(&WE)) {
            (Some(proposal), _) => Some(proposal),
            (None, Some(rest)) => Some(rest).filter(settled).map(|rest| format!("We {rest}")),
            (None, None) => orders.then(|| sentence.to_owned()),
        };
        if let Some(found) = found {
            let found = found
                .trim_end_matches(" then")
                .trim_end_matches(" from now");
            decisions.push(format!("{}.", sentence_case(found)));
        }
    }
    decisions
}

#[cfg(test)]
mod tests;
