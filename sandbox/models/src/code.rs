//! Code by template: the function's name, its parameters and its body come from the prompt.
//!
//! Promise: the languages and bodies offered here are whole functions that compile and do what they are
//! called; a prompt that asks for something else gets a function that says so.

pub mod library;

use super::prompt;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Language {
    Python,
    Rust,
    JavaScript,
}

/// Known bodies: the words that ask for one, its parameter, then Python, Rust, JavaScript.
struct Known {
    asked_by: &'static str,
    python: &'static str,
    rust: &'static str,
    javascript: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        asked_by: "reverse reverses reversed",
        python: "def NAME(text: str) -> str:\n    return text[::-1]",
        rust: "fn NAME(text: &str) -> String {\n    text.chars().rev().collect()\n}",
        javascript: "function NAME(text) {\n  return [...text].reverse().join(\"\");\n}",
    },
    Known {
        asked_by: "fibonacci",
        python: "def NAME(n: int) -> int:\n    a, b = 0, 1\n    for _ in range(n):\n        a, b = b, a + b\n    return a",
        rust: "fn NAME(n: u32) -> u64 {\n    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0\n}",
        javascript: "function NAME(n) {\n  let [a, b] = [0n, 1n];\n  for (let i = 0; i < n; i++) [a, b] = [b, a + b];\n  return a;\n}",
    },
    Known {
        asked_by: "factorial",
        python: "def NAME(n: int) -> int:\n    result = 1\n    for i in range(2, n + 1):\n        result *= i\n    return result",
        rust: "fn NAME(n: u64) -> u64 {\n    (1..=n).product()\n}",
        javascript: "function NAME(n) {\n  let result = 1n;\n  for (let i = 2n; i <= BigInt(n); i++) result *= i;\n  return result;\n}",
    },
    Known {
        asked_by: "palindrome palindromes",
        python: "def NAME(text: str) -> bool:\n    letters = [c.lower() for c in text if c.isalnum()]\n    return letters == letters[::-1]",
        rust: "fn NAME(text: &str) -> bool {\n    let letters: Vec<char> = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();\n    letters.iter().eq(letters.iter().rev())\n}",
        javascript: "function NAME(text) {\n  const letters = text.toLowerCase().replace(/[^\\p{L}\\p{N}]/gu, \"\");\n  return letters === [...letters].reverse().join(\"\");\n}",
    },
    Known {
        asked_by: "sort sorts sorted sorting",
        python: "def NAME(items: list) -> list:\n    return sorted(items)",
        rust: "fn NAME<T: Ord + Clone>(items: &[T]) -> Vec<T> {\n    let mut items = items.to_vec();\n    items.sort();\n    items\n}",
        javascript: "function NAME(items) {\n  return [...items].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));\n}",
    },
    Known {
        asked_by: "sum sums add adds total",
        python: "def NAME(numbers: list[int]) -> int:\n    return sum(numbers)",
        rust: "fn NAME(numbers: &[i64]) -> i64 {\n    numbers.iter().sum()\n}",
        javascript: "function NAME(numbers) {\n  return numbers.reduce((sum, n) => sum + n, 0);\n}",
    },
    Known {
        asked_by: "count counts",
        python: "def NAME(text: str) -> dict[str, int]:\n    counts: dict[str, int] = {}\n    for word in text.split():\n        counts[word] = counts.get(word, 0) + 1\n    return counts",
        rust: "fn NAME(text: &str) -> std::collections::BTreeMap<&str, usize> {\n    let mut counts = std::collections::BTreeMap::new();\n    for word in text.split_whitespace() {\n        *counts.entry(word).or_default() += 1;\n    }\n    counts\n}",
        javascript: "function NAME(text) {\n  const counts = {};\n  for (const word of text.split(/\\s+/).filter(Boolean)) counts[word] = (counts[word] ?? 0) + 1;\n  return counts;\n}",
    },
    Known {
        asked_by: "max maximum largest biggest",
        python: "def NAME(numbers: list[int]) -> int | None:\n    return max(numbers, default=None)",
        rust: "fn NAME(numbers: &[i64]) -> Option<i64> {\n    numbers.iter().copied().max()\n}",
        javascript: "function NAME(numbers) {\n  return numbers.length ? Math.max(...numbers) : null;\n}",
    },
];

const NOT_A_NAME: &str = "python rust javascript typescript function code program script method class implement \
    implements returns return that which given takes string list array hard";

/// A fenced function for the prompt.
pub fn write(text: &str) -> String {
    let words = prompt::words(text);
    let language = language(&words);
    let known = KNOWN
        .iter()
        .find(|known| prompt::has_any(&words, known.asked_by));
    let name = name(text, language);
    let body = match (known, language) {
        (Some(known), Language::Python) => known.python,
        (Some(known), Language::Rust) => known.rust,
        (Some(known), Language::JavaScript) => known.javascript,
        (None, Language::Python) => "def NAME(value):\n    raise NotImplementedError(\"NAME\")",
        (None, Language::Rust) => "fn NAME<T>(value: T) -> T {\n    todo!(\"NAME\")\n}",
        (None, Language::JavaScript) => {
            "function NAME(value) {\n  throw new Error(\"NAME is not written yet\");\n}"
        }
    };
    let fence = match language {
        Language::Python => "python",
        Language::Rust => "rust",
        Language::JavaScript => "javascript",
    };
    format!("```{fence}\n{}\n```", body.replace("NAME", &name))
}

fn language(words: &[String]) -> Language {
    let has = |list: &str| prompt::has_any(words, list);
    if has("rust cargo") {
        Language::Rust
    } else if has("javascript typescript js node") {
        Language::JavaScript
    } else {
        Language::Python
    }
}

fn name(text: &str, language: Language) -> String {
    let mut words: Vec<String> = prompt::subject_words(text)
        .into_iter()
        .filter(|word| !prompt::listed(word, NOT_A_NAME) && word.is_ascii())
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic()))
        .take(3)
        .collect();
    if words.is_empty() {
        words.push("solve".to_owned());
    }
    match language {
        Language::Python | Language::Rust => words.join("_"),
        Language::JavaScript => words
            .iter()
            .enumerate()
            .map(|(at, word)| {
                if at == 0 {
                    word.clone()
                } else {
                    capitalised(word)
                }
            })
            .collect(),
    }
}

fn capitalised(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests;
