//! One model's reading of one prompt: the methods below it, chosen by what is asked for.
//!
//! A field of a schema and a request in words come to the same work: a field `summary` and "summarize" are
//! summaries. Promise: what is given follows from the prompt alone; work is bounded by the prompt's length,
//! whatever schema is to be filled.

use super::{
    answering, code,
    form::{self, Form},
    given::Given,
    label, minutes,
    prompt::{self, Prompt},
    relevance,
    skill::Skills,
    sql, summary, translation,
};
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// Bytes that are looked at for one answer, each field looking at the whole text.
const LOOKED_AT_MAX: usize = 8 * 1024 * 1024;
/// Sentences of a list of points.
const POINTS: usize = 5;

#[derive(Debug)]
pub struct Reader<'a> {
    form: Form,
    /// All texts of the transcript.
    pub all: &'a str,
    pub skills: Skills,
    looked_at: Cell<usize>,
}

/// Work that a field or a request in words asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Summary,
    Answer,
    Sql,
    Code,
    Translation,
    /// What stands on the page, or is said in the recording, as it is.
    Words,
}

/// Names of fields, and the work that they ask for.
const NAMES: &[(&str, Work)] = &[
    (
        "summary abstract tldr synopsis gist headline",
        Work::Summary,
    ),
    ("answer", Work::Answer),
    ("sql", Work::Sql),
    ("code function program implementation", Work::Code),
    ("translation translated", Work::Translation),
];

/// Fields that a label goes into.
const LABEL_FIELDS: &str = "label category class classification sentiment intent topic tag kind type tone priority \
    urgency verdict choice answer output result";

/// Words of a request, and the work that they ask for.
const WORDS: &[(&str, Work)] = &[
    ("translate translation", Work::Translation),
    ("sql", Work::Sql),
    (
        "summarize summarise summary tldr shorten condense minutes",
        Work::Summary,
    ),
    (
        "function code python javascript implement rust typescript",
        Work::Code,
    ),
    ("answer question", Work::Answer),
    ("transcribe transcript recording ocr", Work::Words),
];

// === impl Reader ===

impl<'a> Reader<'a> {
    pub fn new(prompt: &'a Prompt, skills: Skills) -> Self {
        Self::of(Given::of(prompt), &prompt.all, skills)
    }

    /// Of a text that is material from end to end.
    pub fn plain(text: &'a str, skills: Skills) -> Self {
        Self::of(Given::plain(text), text, skills)
    }

    fn of(given: Given, all: &'a str, skills: Skills) -> Self {
        Self {
            form: Form::new(given, skills),
            all,
            skills,
            looked_at: Cell::new(0),
        }
    }

    fn given(&self) -> &Given {
        self.form.given()
    }

    /// Whether the text may be looked at once more.
    fn looks(&self) -> bool {
        let looked_at = self.looked_at.get().saturating_add(self.given().text.len());
        self.looked_at.set(looked_at);
        looked_at <= LOOKED_AT_MAX
    }

    /// What a request in words asks for.
    pub fn work_in_words(&self) -> Option<Work> {
        let given = self.given();
        let asked = if given.instruction.is_empty() {
            given.text.lines().next().unwrap_or("")
        } else {
            given.instruction.as_str()
        };
        let words = prompt::words(asked);
        let named = WORDS.iter().find(|(list, _)| prompt::has_any(&words, list));
        let has_page = !given.page.is_empty() && given.question().contains('?');
        named
            .map(|(_, work)| *work)
            .or_else(|| has_page.then_some(Work::Answer))
    }

    /// The work done; `None` where the prompt holds nothing to do it with.
    pub fn done(&self, work: Work, sentences: Option<usize>) -> Option<String> {
        if !self.looks() {
            return None;
        }
        let given = self.given();
        let text = match work {
            Work::Summary if minutes::is_conversation(&given.text) => {
                let sentences = sentences.or(Some(1));
                summary::of(&minutes::statements(&given.text), sentences, self.skills)
            }
            Work::Summary => summary::of(&given.text, sentences, self.skills),
            Work::Answer => answering::answer(given, self.skills)?,
            Work::Sql => sql::write(given, self.skills)?,
            Work::Code => code::with_signature(given, self.skills)?,
            Work::Translation => translation::write(given, self.skills)?,
            Work::Words => given.page.clone(),
        };
        (!text.is_empty()).then_some(text)
    }

    /// The label that fits best among those that the prompt names; `None` where it names none.
    pub fn named_label(&self) -> Option<String> {
        let named = label::labels(&self.given().instruction);
        if named.is_empty() || !self.looks() {
            return None;
        }
        let choices: Vec<Value> = named.into_iter().map(Value::String).collect();
        let chosen = label::choose(self.given(), self.all, &choices, self.skills)?;
        chosen.as_str().map(str::to_owned)
    }

    /// The choice that fits best; `None` when the choices are no names.
    pub fn label(&self, choices: &[Value]) -> Option<Value> {
        if !self.looks() {
            return None;
        }
        label::choose(self.given(), self.all, choices, self.skills)
    }

    /// A grade for each entry of the list that is given.
    pub fn grades(&self, schema: &Value) -> Option<Map<String, Value>> {
        let items = self.given().items();
        if items.is_empty() {
            return None;
        }
        let edge = |name: &str, otherwise| {
            schema
                .get(name)
                .and_then(Value::as_f64)
                .unwrap_or(otherwise)
        };
        let (low, high) = (edge("minimum", 0.0), edge("maximum", 1.0));
        let whole = schema.get("type").and_then(Value::as_str) == Some("integer");
        Some(relevance::grades(
            self.given(),
            &items,
            low,
            high,
            whole,
            self.skills,
        ))
    }

    /// The value of a text field.
    pub fn string(&self, field: &str, schema: &Value) -> Option<String> {
        let words = form::words_of(field);
        let named = |list: &str| prompt::has_any(&words, list);
        let work = NAMES
            .iter()
            .find(|(list, _)| named(list))
            .map(|(_, work)| *work);
        if named(LABEL_FIELDS)
            && let Some(label) = self.named_label()
        {
            return Some(label);
        }
        let sql_query = named("query") && self.work_in_words() == Some(Work::Sql);
        let work = work.or(sql_query.then_some(Work::Sql));
        if let Some(done) = work.and_then(|work| self.done(work, None)) {
            return Some(done);
        }
        if !self.looks() {
            return None;
        }
        self.form.string(field, schema)
    }

    /// The value of a number field.
    pub fn amount(&self, field: &str) -> Option<f64> {
        if !self.looks() {
            return None;
        }
        self.form.amount(field)
    }

    /// The entries of a list, by its name and by what its entries are; `None` when nothing here can tell.
    pub fn list(&self, field: &str, items: &Value) -> Option<Vec<Value>> {
        if !self.looks() {
            return None;
        }
        let words = form::words_of(field);
        let named = |list: &str| prompt::has_any(&words, list);
        let text = self.given().text.as_str();
        let texts = |texts: Vec<String>| Some(texts.into_iter().map(Value::String).collect());
        let owns = |name: &str| items.pointer(&format!("/properties/{name}")).is_some();
        if (owns("owner") || owns("assignee")) && minutes::is_conversation(text) {
            let actions = minutes::actions(text, self.skills);
            return Some(actions.iter().map(|action| entry(action, items)).collect());
        }
        if items.get("properties").is_some() {
            return self.form.objects(items);
        }
        if form::type_of(items) != "string" {
            return None;
        }
        if named("decisions decided") && minutes::is_conversation(text) {
            return texts(minutes::decisions(text));
        }
        let entries = self.given().items();
        if named("ranking ranked order ids best") && !entries.is_empty() {
            return texts(relevance::order(self.given(), &entries, self.skills));
        }
        if named("points highlights bullets takeaways sentences") {
            let points = summary::of(text, Some(POINTS), self.skills);
            let points = super::text::sentences_of(&points);
            return texts(points.into_iter().map(str::to_owned).collect());
        }
        texts(self.form.texts(field)?)
    }
}

/// An action with the fields that the schema has.
fn entry(action: &minutes::Action, items: &Value) -> Value {
    let known = items.get("properties").and_then(Value::as_object);
    let fields = known.into_iter().flat_map(Map::keys).filter_map(|name| {
        let value = match name.as_str() {
            "owner" | "assignee" => json!(action.owner),
            "task" | "action" => json!(action.task),
            "due" | "deadline" => json!(action.due),
            _ => return None,
        };
        Some((name.clone(), value))
    });
    Value::Object(fields.collect())
}
