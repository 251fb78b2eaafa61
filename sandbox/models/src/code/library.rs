//! Python functions by what they do: a small library of textbook functions (`library.py`).
//!
//! The one whose description is nearest to what is asked, with as many parameters, is given under the asked
//! name. Promise: a whole function, or none where nothing comes near.

use crate::{embedding, facts::pattern, given::Given, prompt, skill::Skills};
use regex::Regex;
use std::sync::LazyLock;

const LIBRARY: &str = include_str!("library.py");
const DIMENSIONS: usize = 1_024;
/// Nearer than this a description is taken for what is asked.
const NEAR: f64 = 0.3;

static SIGNATURE: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"(?:def\s+)?([A-Za-z_]\w*)\s*\(([^()]*)\)"));
static FUNCTIONS: LazyLock<Vec<Function>> = LazyLock::new(functions);

struct Function {
    name: &'static str,
    parameters: Vec<&'static str>,
    about: &'static str,
    body: &'static str,
}

/// The functions of the file: signature, description, body.
fn functions() -> Vec<Function> {
    LIBRARY
        .split("\n\n\n")
        .filter_map(|block| {
            let (signature, rest) = block.trim_start().strip_prefix("def ")?.split_once(":\n")?;
            let (name, parameters) = signature.strip_suffix(')')?.split_once('(')?;
            let (about, body) = rest
                .trim_start()
                .strip_prefix("\"\"\"")?
                .split_once("\"\"\"\n")?;
            Some(Function {
                name,
                parameters: parameters
                    .split(", ")
                    .filter(|one| !one.is_empty())
                    .collect(),
                about,
                body: body.trim_end(),
            })
        })
        .collect()
}

/// The function that is asked for by signature and description.
pub fn write(given: &Given, skills: Skills) -> Option<String> {
    let signature = given.value(&["signature"]).or_else(|| {
        let at = given.text.find("def ")?;
        given.text.get(at..)?.lines().next()
    })?;
    let caps = SIGNATURE.captures(signature)?;
    let name = caps.get(1)?.as_str();
    let parameters: Vec<&str> = caps
        .get(2)?
        .as_str()
        .split(',')
        .map(|one| one.split([':', '=']).next().unwrap_or("").trim())
        .filter(|one| !one.is_empty())
        .collect();
    let about = given
        .value(&["docstring", "description"])
        .unwrap_or(&given.text);
    let asked = format!("{} {about}", name.replace('_', " "));
    let found = FUNCTIONS
        .iter()
        .filter(|one| one.parameters.len() == parameters.len())
        .map(|one| (nearness(&asked, one, skills), one))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(near, _)| *near > NEAR);
    let head = format!("def {name}({}):\n", caps.get(2)?.as_str().trim());
    let Some((_, function)) = found else {
        return Some(format!("{head}    raise NotImplementedError({name:?})\n"));
    };
    let mut body = function.body.to_owned();
    for (own, asked) in function.parameters.iter().zip(&parameters) {
        body = renamed(&body, own, asked);
    }
    body = renamed(&body, function.name, name);
    Some(format!("{head}{body}\n"))
}

fn nearness(asked: &str, function: &Function, skills: Skills) -> f64 {
    let about = format!("{} {}", function.name.replace('_', " "), function.about);
    if skills.meaning {
        return embedding::cosine(
            &embedding::of_text(asked, DIMENSIONS),
            &embedding::of_text(&about, DIMENSIONS),
        );
    }
    let (one, two) = (prompt::subject_words(asked), prompt::subject_words(&about));
    let shared = one.iter().filter(|word| two.contains(word)).count();
    shared as f64 / one.len().max(1) as f64
}

/// The code with a name as another one, where it stands whole.
fn renamed(code: &str, from: &str, to: &str) -> String {
    if from == to {
        return code.to_owned();
    }
    let mut out = String::with_capacity(code.len());
    let mut word = String::new();
    for c in code.chars().chain(['\0']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        out.push_str(if word == from { to } else { &word });
        word.clear();
        if c != '\0' {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests;
