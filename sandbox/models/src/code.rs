//! Textbook functions: Python by what a function does (`library.py`), some in Rust by a word that asks for them (`rust.txt`).
//!
//! Promise: a whole function under the name that is asked for, or one that states that it is not written yet.

use super::{
    embedding,
    facts::patterns,
    given::Given,
    prompt,
    skill::{Pass, Skills},
};
use std::sync::LazyLock;

const PYTHON: &str = include_str!("code/library.py");
/// Blocks of words that ask for a function, and the function under the name `NAME`.
const RUST: &str = include_str!("code/rust.txt");
const DIMENSIONS: usize = 1_024;
/// Nearer than this a description is taken for what is asked.
const NEAR: f64 = 0.3;
/// Words of a request that name no function.
const NOT_A_NAME: &str = "python rust javascript typescript function code program script method class implement \
    implements returns return that which given takes string list array hard";

patterns! {
    SIGNATURE = r"(?s)(?:def\s+)?([A-Za-z_]\w*)\s*\(([^()]*)\)([^:\n]*)";
}
static FUNCTIONS: LazyLock<Vec<Function>> =
    LazyLock::new(|| PYTHON.split("\n\n\n").filter_map(function).collect());

/// A function of the library.
struct Function {
    name: &'static str,
    parameters: Vec<&'static str>,
    /// From `def` to the colon.
    head: &'static str,
    about: &'static str,
    body: &'static str,
}

fn function(block: &'static str) -> Option<Function> {
    let (head, rest) = block
        .trim()
        .split_once(":\n")
        .filter(|(head, _)| head.starts_with("def "))?;
    let (about, body) = rest
        .trim_start()
        .strip_prefix("\"\"\"")?
        .split_once("\"\"\"\n")?;
    let caps = SIGNATURE.captures(head)?;
    Some(Function {
        name: caps.get(1)?.as_str(),
        parameters: parameters(caps.get(2)?.as_str()),
        head,
        about,
        body,
    })
}

/// The names in a list of parameters, without types and defaults.
fn parameters(list: &str) -> Vec<&str> {
    let names = list
        .split(',')
        .filter_map(|one| one.split([':', '=']).next());
    names
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect()
}

/// The function nearest to what is asked, of those with as many parameters where that is known.
fn nearest(asked: &str, parameters: Option<usize>, skills: Skills) -> Option<&'static Function> {
    let fitting = FUNCTIONS
        .iter()
        .filter(|one| parameters.is_none_or(|count| count == one.parameters.len()));
    let scored = fitting.map(|one| {
        let about = format!("{} {}", one.name.replace('_', " "), one.about);
        let near = if skills.has(Pass::Meaning) {
            let of = |text: &str| embedding::of_text(text, DIMENSIONS);
            embedding::cosine(&of(asked), &of(&about))
        } else {
            let (wanted, words) = (prompt::subject_words(asked), prompt::words(&about));
            let shared = wanted.iter().filter(|word| words.contains(word)).count();
            shared as f64 / wanted.len().max(1) as f64
        };
        (near, one)
    });
    let best = scored
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(near, _)| *near > NEAR);
    best.map(|(_, one)| one)
}

/// The Python function that is asked for by signature and description; `None` without a signature.
pub fn with_signature(given: &Given, skills: Skills) -> Option<String> {
    let signature = given.value(&["signature"]).or_else(|| {
        let at = given.text.find("def ")?;
        given.text.get(at..)?.lines().next()
    })?;
    let caps = SIGNATURE.captures(signature)?;
    let (name, list) = (caps.get(1)?.as_str(), caps.get(2)?.as_str().trim());
    let about = given
        .value(&["docstring", "description"])
        .unwrap_or(&given.text);
    let asked = format!("{} {about}", name.replace('_', " "));
    let asked_parameters = parameters(list);
    let head = format!("def {name}({list}):\n");
    let Some(found) = nearest(&asked, Some(asked_parameters.len()), skills) else {
        return Some(format!("{head}    raise NotImplementedError({name:?})\n"));
    };
    let mut body = found.body.to_owned();
    for (own, asked) in found.parameters.iter().zip(&asked_parameters) {
        body = renamed(&body, own, asked);
    }
    Some(format!("{head}{}\n", renamed(&body, found.name, name)))
}

/// The code with a name as another one, where it stands whole.
fn renamed(code: &str, from: &str, to: &str) -> String {
    let chars: Vec<char> = code.chars().collect();
    let is_word = |c: &char| c.is_alphanumeric() || *c == '_';
    let pieces = chars.chunk_by(|a, b| is_word(a) == is_word(b));
    let pieces = pieces.map(|piece| piece.iter().collect::<String>());
    pieces
        .map(|piece| if piece == from { to.to_owned() } else { piece })
        .collect()
}

/// A fenced function for a request in words.
pub fn write(text: &str) -> String {
    let words = prompt::words(text);
    let mut named = prompt::subject_words(text);
    named.retain(|word| {
        let is_plain = word.is_ascii() && word.starts_with(|c: char| c.is_ascii_alphabetic());
        is_plain && !prompt::listed(word, NOT_A_NAME)
    });
    named.truncate(3);
    let name = if named.is_empty() {
        "solve".to_owned()
    } else {
        named.join("_")
    };
    let (language, code) = if prompt::has_any(&words, "rust cargo") {
        let blocks = RUST
            .split("\n\n")
            .filter_map(|block| block.split_once('\n'));
        let known = blocks
            .into_iter()
            .find(|(asked_by, _)| prompt::has_any(&words, asked_by));
        let unwritten = "fn NAME<T>(value: T) -> T {\n    todo!(\"NAME\")\n}";
        let code = known.map_or(unwritten, |(_, code)| code.trim_end());
        ("rust", code.replace("NAME", &name))
    } else if prompt::has_any(&words, "javascript typescript js node") {
        let unwritten =
            "function NAME(value) {\n  throw new Error(\"NAME is not written yet\");\n}";
        ("javascript", unwritten.replace("NAME", &name))
    } else {
        let code = nearest(&named.join(" "), None, Skills::frontier()).map_or_else(
            || format!("def {name}(value):\n    raise NotImplementedError({name:?})"),
            |found| {
                renamed(
                    &format!("{}:\n{}", found.head, found.body),
                    found.name,
                    &name,
                )
            },
        );
        ("python", code)
    };
    format!("```{language}\n{code}\n```")
}

#[cfg(test)]
mod tests;
