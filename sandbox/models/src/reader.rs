//! One model's reading of one prompt: the methods below it, chosen by what is asked for.
//!
//! A field of a schema and a request in words come to the same work: a field `summary` and "summarize" are
//! summaries. Promise: what is given follows from the prompt alone; work is bounded by the prompt's length,
//! whatever schema is to be filled.

use super::{
    answering, code,
    form::{self, Extractor},
    given::PromptParts,
    label, minutes,
    prompt::Prompt,
    relevance,
    skill::Skills,
    sql, summary,
    text::{self, has_any},
    translation,
};
use serde_json::{Map, Value};
use std::cell::Cell;

/// Bytes that are looked at for one answer, each field looking at the whole text.
const LOOKED_AT_MAX: usize = 8 * 1024 * 1024;
/// Sentences of a list of points.
const POINTS: usize = 5;

#[derive(Debug)]
pub struct PromptReader<'a> {
    form: Extractor,
    /// All texts of the transcript.
    pub all: &'a str,
    pub skills: Skills,
    looked_at: Cell<usize>,
}

/// Work that a field or a request in words asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    Summary,
    Answer,
    Sql,
    Code,
    Translation,
    /// What stands on the page, or is said in the recording, as it is.
    Words,
}

/// Work, the words of a request that ask for it, and the names of fields that do.
#[rustfmt::skip]
const WORK: &[(TaskKind, &str, &str)] = &[
    (TaskKind::Translation, "translate translation", "translation translated"),
    (TaskKind::Sql, "sql", "sql"),
    (TaskKind::Summary, "summarize summarise summary tldr shorten condense minutes", "summary abstract tldr synopsis gist headline"),
    (TaskKind::Code, "function code python javascript implement rust typescript", "code function program implementation"),
    (TaskKind::Answer, "answer question", "answer"),
    (TaskKind::Words, "transcribe transcript recording ocr", ""),
];

/// Fields that a label goes into.
const LABEL_FIELDS: &str = "label category class classification sentiment intent topic tag kind type tone priority \
    urgency verdict choice answer output result";

// === impl PromptReader ===

impl<'a> PromptReader<'a> {
    pub fn new(prompt: &'a Prompt, skills: Skills) -> Self {
        Self::of(PromptParts::of(prompt), &prompt.all, skills)
    }

    /// Of a text that is material from end to end.
    pub fn plain(text: &'a str, skills: Skills) -> Self {
        Self::of(PromptParts::plain(text), text, skills)
    }

    fn of(given: PromptParts, all: &'a str, skills: Skills) -> Self {
        Self {
            form: Extractor::new(given, skills),
            all,
            skills,
            looked_at: Cell::new(0),
        }
    }

    fn given(&self) -> &PromptParts {
        self.form.given()
    }

    /// The form, if its text may be looked at once more.
    fn look(&self) -> Option<&Extractor> {
        let looked_at = self.looked_at.get().saturating_add(self.given().text.len());
        self.looked_at.set(looked_at);
        Some(&self.form).filter(|_| looked_at <= LOOKED_AT_MAX)
    }

    /// What a request in words asks for.
    pub fn work_in_words(&self) -> Option<TaskKind> {
        let given = self.given();
        let asked = match given.instruction.as_str() {
            "" => given.text.lines().next().unwrap_or(""),
            instruction => instruction,
        };
        let words = text::words(asked);
        let named = WORK
            .iter()
            .find(|(_, requests, _)| has_any(&words, requests));
        let has_page = !given.page.is_empty() && given.question().contains('?');
        let named = named.map(|(work, _, _)| *work);
        named.or_else(|| has_page.then_some(TaskKind::Answer))
    }

    /// The work done; `None` where the prompt holds nothing to do it with.
    pub fn done(&self, work: TaskKind, sentences: Option<usize>) -> Option<String> {
        let given = self.look()?.given();
        let text = match work {
            TaskKind::Summary if minutes::is_conversation(&given.text) => {
                let stated = minutes::statements(&given.text);
                summary::of(&stated, sentences.or(Some(1)), self.skills)
            }
            TaskKind::Summary => summary::of(&given.text, sentences, self.skills),
            TaskKind::Answer => answering::answer(given)?,
            TaskKind::Sql => sql::write(given, self.skills)?,
            TaskKind::Code => code::with_signature(given)?,
            TaskKind::Translation => translation::write(given)?,
            TaskKind::Words => given.page.clone(),
        };
        (!text.is_empty()).then_some(text)
    }

    /// The label that fits best among those that the prompt names; `None` where it names none.
    pub fn named_label(&self) -> Option<String> {
        let named = label::labels(&self.given().instruction);
        let choices: Vec<Value> = named.into_iter().map(Value::String).collect();
        self.label(&choices)?.as_str().map(str::to_owned)
    }

    /// The choice that fits best; `None` when the choices are no names.
    pub fn label(&self, choices: &[Value]) -> Option<Value> {
        if choices.is_empty() {
            return None;
        }
        label::choose(self.look()?.given(), self.all, choices, self.skills)
    }

    /// A grade for each entry of the list that is given.
    pub fn grades(&self, schema: &Value) -> Option<Map<String, Value>> {
        let items = self.given().items();
        let grades = relevance::grades(self.given(), &items, schema, self.skills);
        (!items.is_empty()).then_some(grades)
    }

    /// The value of a text field.
    pub fn string(&self, field: &str, schema: &Value) -> Option<String> {
        let words = text::words_of_name(field);
        if has_any(&words, LABEL_FIELDS)
            && let Some(label) = self.named_label()
        {
            return Some(label);
        }
        let named = WORK.iter().find(|(_, _, fields)| has_any(&words, fields));
        let is_query = has_any(&words, "query") && self.work_in_words() == Some(TaskKind::Sql);
        let work = named
            .map(|(work, _, _)| *work)
            .or_else(|| is_query.then_some(TaskKind::Sql));
        let done = work.and_then(|work| self.done(work, None));
        done.or_else(|| self.look()?.string(field, schema))
    }

    /// The value of a number field.
    pub fn amount(&self, field: &str) -> Option<f64> {
        self.look()?.amount(field)
    }

    /// The entries of a list, by its name and by what its entries are; `None` when nothing here knows.
    pub fn list(&self, field: &str, items: &Value) -> Option<Vec<Value>> {
        let form = self.look()?;
        let given = form.given();
        let text = given.text.as_str();
        if items.get("properties").is_some() {
            return form.objects(items);
        }
        if form::type_of(items) != "string" {
            return None;
        }
        let words = text::words_of_name(field);
        let named = |list: &str| has_any(&words, list);
        let entries = given.items();
        let texts = if named("decisions decided") && minutes::is_conversation(text) {
            minutes::decisions(text)
        } else if named("ranking ranked order ids best") && !entries.is_empty() {
            relevance::order(given, &entries, self.skills)
        } else if named("points highlights bullets takeaways sentences") {
            let points = summary::of(text, Some(POINTS), self.skills);
            text::sentences_of(&points)
                .into_iter()
                .map(str::to_owned)
                .collect()
        } else {
            form.texts(field)?
        };
        Some(texts.into_iter().map(Value::String).collect())
    }
}
