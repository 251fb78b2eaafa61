//! Minutes of a conversation: who does what until when, and what was decided.
//!
//! Promise: an owner is somebody of the conversation, and a task is made of words that were said.

use super::{facts::pattern, prompt, skill::Skills, text::sentences_of};
use regex::Regex;
use std::sync::LazyLock;

/// Turns that are read.
const TURNS_MAX: usize = 2_000;

static TURN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^\s*\[?([\p{Lu}][\p{L}.'-]*(?: [\p{Lu}][\p{L}.'-]*)?)\]?\s*(?:\([^)]*\))?:\s+(.*)$")
});
static DUE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)\s*,?\s*\b(?:(?:by|until|till|before|on|no later than)\s+((?:the\s+)?(?:end of\s+)?(?:the\s+)?(?:next\s+|this\s+)?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday|tomorrow|tonight|noon|week|month|quarter|sprint|january|february|march|april|may|june|july|august|september|october|november|december|\d{1,2}(?:st|nd|rd|th)?|easter|christmas)(?:\s+(?:meeting|morning|evening|noon|\d{1,2}))*)|(today|tomorrow|tonight|(?:this|next)\s+(?:week|month|quarter|sprint|monday|tuesday|wednesday|thursday|friday)|end of (?:the )?(?:day|week|month)))\b",
    )
});
static OWN: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"(?i)\bI(?:'ll|’ll| will| can| shall|'d| would)?(?: then)? (?:also )?([a-z]+\b.*)$")
});
static ASKED: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)\b(?:can|could|would|will) you (?:please )?([a-z]+\b.*?)\??$"));
static CALLED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"^(?:and |then |so )?(\p{Lu}[\p{L}'-]+), (?:please |can you |could you |you )?([a-z]+\b.*)$",
    )
});
static OTHER: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"^(\p{Lu}[\p{L}'-]+) (?:will|shall|is going to|takes care of|to) ([a-z]+\b.*)$")
});
static WE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        r"(?i)^(?:ok(?:ay)?,?\s+|then,?\s+|so,?\s+|fine,?\s+|right,?\s+|agreed[,:]?\s+|decided[,:]?\s+)*(?:we(?:'ll| will)?|let's|let us)\s+(?:then\s+)?([a-z]+\b.*)$",
    )
});
static PROPOSAL: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?i)^(?:proposal|decision|decided|agreed|resolved)\s*:\s*(.+)$"));

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
        let is_question = sentence.ends_with('?');
        let part =
            |regex: &Regex, at: usize| Some(regex.captures(sentence)?.get(at)?.as_str().to_owned());
        let first = |task: &str| {
            task.split(|c: char| !c.is_alphabetic())
                .next()
                .unwrap_or("")
                .to_lowercase()
        };
        let found = if let (Some(owner), Some(task)) = (part(&CALLED, 1), part(&CALLED, 2))
            && is_speaker(&owner)
            && !prompt::listed(&first(&task), STATES)
        {
            Some((owner, task))
        } else if skills.inference
            && let (Some(task), Some(owner)) = (part(&ASKED, 1), said.next)
        {
            Some((owner.to_owned(), task))
        } else if let (Some(owner), Some(task)) = (part(&OTHER, 1), part(&OTHER, 2))
            && is_speaker(&owner)
        {
            Some((owner, task))
        } else if !is_question
            && let Some(task) = part(&OWN, 1)
            && !prompt::listed(&first(&task), STATES)
            && !sentence.to_lowercase().starts_with("if ")
        {
            Some((said.by.to_owned(), task))
        } else {
            None
        };
        if let Some((owner, task)) = found {
            actions.push(action(&owner, &task));
        }
    }
    actions
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
        let found = if let Some(caps) = PROPOSAL.captures(sentence) {
            caps.get(1).map(|one| one.as_str().to_owned())
        } else if let Some(caps) = WE.captures(sentence) {
            let rest = caps.get(1).map_or("", |one| one.as_str());
            let first = rest.split(' ').next().unwrap_or("").to_lowercase();
            let settled = !prompt::listed(&first, STATES) && first != "see";
            settled.then(|| format!("We {rest}"))
        } else {
            let first = lower.split(' ').next().unwrap_or("").to_owned();
            (prompt::listed(&first, ORDERS) && sentence.split(' ').count() > 2)
                .then(|| sentence.to_owned())
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
