//! Minutes of a conversation: its action items, each with person and date, and its decisions.
//!
//! Promise: an owner is somebody of the conversation, and a task is made of words that were said.

use super::{
    facts::FieldValues,
    skill::{Skill, Skills},
    text::{self, capitalised, group, listed, patterns, sentences_of},
};
use regex::Regex;
use serde_json::json;

/// Turns that are read.
const TURNS_MAX: usize = 2_000;

patterns! {
    TURN = r"^\s*\[?([\p{Lu}][\p{L}.'-]*(?: [\p{Lu}][\p{L}.'-]*)?)\]?\s*(?:\([^)]*\))?:\s+(.*)$";
    DUE = r"(?i)\s*,?\s*\b(?:(?:by|until|till|before|on|no later than)\s+)?((?:the\s+)?(?:end of\s+)?(?:the\s+)?(?:(?:next|this)\s+(?:week|month|quarter|sprint)|(?:next\s+|this\s+)?(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|tonight|noon|(?:january|february|march|april|may|june|july|august|september|october|november|december)(?:\s+\d{1,2})?|end of (?:day|week|month)|\d{1,2}(?:st|nd|rd|th))(?:\s+(?:meeting|morning|evening|noon))?)\b";
    /// "I'll …" of the speaker, "can you …" to the next one, and an order or a promise with a name in front.
    OWN = r"(?i)\bI(?:'ll|’ll| will| can| shall|'d| would)?(?: then)? (?:also )?([a-z]+\b.*)$";
    ASKED = r"(?i)\b(?:can|could|would|will) you (?:please )?([a-z]+\b.*?)\??$";
    NAMED = r"^(?:and |then |so )?(\p{Lu}[\p{L}'-]+)(?:, (?:please |can you |could you |you )?| (?:will|shall|is going to|takes care of|to) )([a-z]+\b.*)$";
    WE = r"(?i)^(?:ok(?:ay)?,?\s+|then,?\s+|so,?\s+|fine,?\s+|right,?\s+|agreed[,:]?\s+|decided[,:]?\s+)*(?:we(?:'ll| will)?|let's|let us)\s+(?:then\s+)?([a-z]+\b.*)$";
    PROPOSAL = r"(?i)^(?:proposal|decision|decided|agreed|resolved)\s*:\s*(.+)$";
}

/// What "I" or "we" do that is no task and no decision.
const STATES: &str = "agree am are believe can could did do doubt expect feel forgot got guess had have heard \
    hope knew know like lost love mean might must need prefer read remember said saw see should \
    spoke suppose talked think thought understand want was were wish wonder would wrote";

/// The turns of a transcript: the speaker and the words.
fn turns(transcript: &str) -> Vec<(&str, &str)> {
    let turn = |line| Some(TURN.captures(line)?.extract::<2>().1);
    let turns = transcript.lines().take(TURNS_MAX).filter_map(turn);
    turns.map(|[by, words]| (by, words)).collect()
}

/// Whether a text is a conversation: most of its lines have a speaker.
pub fn is_conversation(text: &str) -> bool {
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let turns = turns(text).len();
    turns > 1 && turns * 2 > lines
}

/// What is stated, without its speaker; questions and bare assents are left out.
pub fn statements(transcript: &str) -> String {
    let turns = turns(transcript);
    let sentences = turns.iter().flat_map(|(_, words)| sentences_of(words));
    let stated = sentences.filter(|one| !one.ends_with('?') && one.split(' ').count() > 3);
    stated.collect::<Vec<_>>().join(" ")
}

/// The tasks that speakers take, or are given. That a question gives one to the next speaker is inferred.
pub fn actions(transcript: &str, skills: Skills) -> Vec<FieldValues> {
    let turns = turns(transcript);
    let is_speaker = |name: &str| turns.iter().any(|(by, _)| by.eq_ignore_ascii_case(name));
    let infers = skills.has(Skill::Inference);
    let mut actions = Vec::new();
    for (at, (by, words)) in turns.iter().enumerate() {
        let next = turns
            .iter()
            .skip(at)
            .map(|(next, _)| *next)
            .find(|next| next != by);
        for sentence in sentences_of(words) {
            let bare = sentence.trim_end_matches(['.', '!']);
            let named = NAMED
                .captures(bare)
                .map(|caps| (group(&caps, 1), group(&caps, 2)));
            let states = bare.ends_with('?') || bare.to_lowercase().starts_with("if ");
            let asked = next.zip(text::captured(&ASKED, bare)).filter(|_| infers);
            let own = text::captured(&OWN, bare)
                .filter(|_| !states)
                .map(|task| (*by, task));
            let found = named.filter(|(name, _)| is_speaker(name)).or(asked).or(own);
            let done = found.filter(|(_, task)| is_done(task));
            actions.extend(done.map(|(owner, task)| action(owner, task)));
        }
    }
    actions
}

/// Whether it is no state of mind.
fn is_done(task: &str) -> bool {
    let first = text::words(task).into_iter().next().unwrap_or_default();
    !listed(&first, STATES)
}

fn action(owner: &str, task: &str) -> FieldValues {
    // `ANA` is Ana.
    let is_loud = !owner.contains(char::is_lowercase);
    let owner = if is_loud {
        capitalised(&owner.to_lowercase())
    } else {
        owner.to_owned()
    };
    let rest = DUE.replace(task, "");
    let rest = rest
        .trim_end_matches(['?', '.', ' '])
        .trim_end_matches("please");
    vec![
        ("owner assignee", json!(owner)),
        (
            "task action",
            json!(capitalised(rest.trim_end_matches([',', ' ']))),
        ),
        ("due deadline", json!(text::captured(&DUE, task))),
    ]
}

/// What "we" do, and what is called a decision.
pub fn decisions(transcript: &str) -> Vec<String> {
    let turns = turns(transcript);
    let sentences = turns.iter().flat_map(|(_, words)| sentences_of(words));
    let decision = |sentence: &str| {
        let sentence = sentence.trim_end_matches(['.', '!']);
        let part = |of: &Regex| text::captured(of, sentence);
        let ours = part(&WE)
            .filter(|rest| is_done(rest))
            .map(|rest| format!("We {rest}"));
        let is_open = sentence.ends_with('?') || text::has_word(sentence, "if");
        let found = part(&PROPOSAL)
            .map(capitalised)
            .or(ours)
            .filter(|_| !is_open)?;
        let found = found
            .trim_end_matches(" then")
            .trim_end_matches(" from now");
        Some(format!("{found}."))
    };
    sentences.filter_map(decision).collect()
}

#[cfg(test)]
mod tests;
