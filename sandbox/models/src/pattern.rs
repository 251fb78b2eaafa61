//! A string for a regular expression, made from the expression's parsed form.
//!
//! Promise: it ends and never fails; whether the string matches is the schema check's business, not this file's.
//! An expression that `regex-syntax` does not read (look-around, back references) gives the empty string.

use super::rng::Rng;
use regex_syntax::hir::{Class, Hir, HirKind};

const LENGTH_MAX: usize = 4_096;
/// How often a part stands at most beyond its least, where the expression sets no end.
const MORE: u32 = 2;

/// A string that probably matches.
pub fn example(pattern: &str, rng: &mut Rng) -> String {
    let mut made = String::new();
    if let Ok(hir) = regex_syntax::parse(pattern) {
        make(&hir, rng, &mut made);
    }
    made
}

fn make(hir: &Hir, rng: &mut Rng, made: &mut String) {
    if made.len() >= LENGTH_MAX {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(Class::Bytes(_)) => {}
        HirKind::Literal(literal) => made.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(Class::Unicode(class)) => {
            let has = |c: &char| {
                class
                    .ranges()
                    .iter()
                    .any(|range| (range.start()..=range.end()).contains(c))
            };
            let plain: Vec<char> = ('0'..='z')
                .filter(|c| c.is_ascii_alphanumeric() && has(c))
                .collect();
            let first = class.ranges().first().map(|range| range.start());
            made.extend(rng.choose(&plain).copied().or(first));
        }
        HirKind::Repetition(part) => {
            let most = part.max.unwrap_or(part.min.saturating_add(MORE));
            let more = rng.below(u64::from(most.saturating_sub(part.min)).min(8) + 1);
            for _ in 0..(u64::from(part.min) + more).min(LENGTH_MAX as u64) {
                make(&part.sub, rng, made);
            }
        }
        HirKind::Capture(group) => make(&group.sub, rng, made),
        HirKind::Concat(parts) => parts.iter().for_each(|part| make(part, rng, made)),
        HirKind::Alternation(branches) => {
            if let Some(branch) = rng.choose(branches) {
                make(branch, rng, made);
            }
        }
    }
}

#[cfg(test)]
mod tests;
