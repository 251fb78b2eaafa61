//! Textbook functions: Python by what a function does (`library.py`), some in Rust by a word that asks for them (`rust.txt`).
//!
//! Promise: a whole function under the name that is asked for, or one that states that it is not written yet.

use super::{
    embedding,
    given::PromptParts,
    text::{self, group, has_any, patterns},
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
    FUNCTION = r#"(?s)^\s*(def [^\n]*):\n\s*"""(.*?)"""\n(.*)$"#;
    IDENTIFIER = r"\w+";
}
static FUNCTIONS: LazyLock<Vec<Function>> =
    LazyLock::new(|| PYTHON.split("\n\n\n").filter_map(Function::of).collect());

/// A function of the library.
struct Function {
    name: &'static str,
    parameters: Vec<&'static str>,
    /// From `def` to the colon.
    head: &'static str,
    about: &'static str,
    body: &'static str,
}

// === impl Function ===

impl Function {
    fn of(block: &'static str) -> Option<Self> {
        let (_, [head, about, body]) = FUNCTION.captures(block)?.extract();
        let caps = SIGNATURE.captures(head)?;
        Some(Self {
            name: group(&caps, 1),
            parameters: parameters(group(&caps, 2)),
            head,
            about,
            body: body.trim_end(),
        })
    }
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
fn nearest(asked: &str, parameters: Option<usize>) -> Option<&'static Function> {
    let vector = |text: &str| embedding::of_text(text, DIMENSIONS);
    let asked = vector(asked);
    let near = |one: &Function| {
        let about = format!("{} {}", one.name.replace('_', " "), one.about);
        embedding::cosine(&asked, &vector(&about))
    };
    let fits = |one: &&Function| parameters.is_none_or(|count| count == one.parameters.len());
    let scored = FUNCTIONS.iter().filter(fits).map(|one| (near(one), one));
    let (near, best) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (near > NEAR).then_some(best)
}

/// The Python function that is asked for by signature and description; `None` without a signature.
pub fn with_signature(given: &PromptParts) -> Option<String> {
    let in_text = || given.text.lines().find(|line| line.contains("def "));
    let signature = given.value(&["signature"]).or_else(in_text)?;
    let caps = SIGNATURE.captures(signature.get(signature.find("def ").unwrap_or(0)..)?)?;
    let (name, list) = (group(&caps, 1), group(&caps, 2).trim());
    let about = given
        .value(&["docstring", "description"])
        .unwrap_or(&given.text);
    let asked = format!("{} {about}", name.replace('_', " "));
    let names = parameters(list);
    let head = format!("def {name}({list}):\n");
    let Some(found) = nearest(&asked, Some(names.len())) else {
        return Some(format!("{head}    raise NotImplementedError({name:?})\n"));
    };
    let own = found.parameters.iter().chain([&found.name]);
    let renames: Vec<(&str, &str)> = own.copied().zip(names.into_iter().chain([name])).collect();
    Some(format!("{head}{}\n", renamed(found.body, &renames)))
}

/// The code with names as other ones, where they stand whole.
fn renamed(code: &str, renames: &[(&str, &str)]) -> String {
    let name = |caps: &regex::Captures<'_>| {
        let name = group(caps, 0);
        let found = renames.iter().find(|(own, _)| *own == name);
        found.map_or(name, |(_, asked)| *asked).to_owned()
    };
    IDENTIFIER.replace_all(code, name).into_owned()
}

/// A fenced function for a request in words.
pub fn write(request: &str) -> String {
    let words = text::words(request);
    let mut named = text::subject_words(request);
    named.retain(|word| {
        let is_plain = word.is_ascii() && word.starts_with(|c: char| c.is_ascii_alphabetic());
        is_plain && !text::listed(word, NOT_A_NAME)
    });
    named.truncate(3);
    let name = if named.is_empty() {
        "solve".to_owned()
    } else {
        named.join("_")
    };
    let (language, code) = if has_any(&words, "rust cargo") {
        let mut blocks = RUST
            .split("\n\n")
            .filter_map(|block| block.split_once('\n'));
        let known = blocks.find(|(asked_by, _)| has_any(&words, asked_by));
        let unwritten = "fn NAME<T>(value: T) -> T {\n    todo!(\"NAME\")\n}";
        let code = known.map_or(unwritten, |(_, code)| code.trim_end());
        ("rust", code.replace("NAME", &name))
    } else if has_any(&words, "javascript typescript js node") {
        let code = format!(
            "function {name}(value) {{\n  throw new Error(\"{name} is not written yet\");\n}}"
        );
        ("javascript", code)
    } else if let Some(found) = nearest(&named.join(" "), None) {
        let code = format!("{}:\n{}", found.head, found.body);
        ("python", renamed(&code, &[(found.name, &name)]))
    } else {
        let code = format!("def {name}(value):\n    raise NotImplementedError({name:?})");
        ("python", code)
    };
    format!("```{language}\n{code}\n```")
}

#[cfg(test)]
mod tests;
