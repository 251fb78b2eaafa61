//! A string for a regular expression: the plain subset that schemas use.
//!
//! Knows literals, escapes, classes, groups with alternatives, and counts. Look-around and back references
//! are not known. Promise: it ends and never fails; whether the string matches is the schema check's
//! business, not this file's.

use super::rng::Rng;
use std::{iter::Peekable, str::Chars};

const DEPTH_MAX: u32 = 16;
const LENGTH_MAX: usize = 4_096;

/// A string that probably matches.
pub fn example(pattern: &str, rng: &mut Rng) -> String {
    let mut chars = pattern.chars().peekable();
    let mut maker = Maker { rng, depth: 0 };
    maker.alternatives(&mut chars)
}

struct Maker<'a> {
    rng: &'a mut Rng,
    depth: u32,
}

// === impl Maker ===

impl Maker<'_> {
    fn alternatives(&mut self, chars: &mut Peekable<Chars<'_>>) -> String {
        self.depth += 1;
        let mut branches = vec![self.sequence(chars)];
        while chars.next_if_eq(&'|').is_some() {
            branches.push(self.sequence(chars));
        }
        self.depth -= 1;
        self.rng.choose(&branches).cloned().unwrap_or_default()
    }

    fn sequence(&mut self, chars: &mut Peekable<Chars<'_>>) -> String {
        let mut made = String::new();
        while let Some(c) = chars.next_if(|c| !matches!(c, '|' | ')')) {
            let atom = match c {
                '^' | '$' => continue,
                '(' if self.depth >= DEPTH_MAX => String::new(),
                '(' => self.group(chars),
                '[' => self.class(chars),
                '.' => "a".to_owned(),
                '\\' => self.escape(chars),
                other => other.to_string(),
            };
            let (least, most) = counts(chars);
            let n = least + self.rng.below(most.saturating_sub(least) + 1);
            for _ in 0..n {
                if made.len() < LENGTH_MAX {
                    made.push_str(&atom);
                }
            }
        }
        made
    }

    fn group(&mut self, chars: &mut Peekable<Chars<'_>>) -> String {
        if chars.next_if_eq(&'?').is_some() {
            // `(?:`, `(?i)`, `(?<name>`: skip the mark.
            for c in chars.by_ref() {
                if matches!(c, ':' | '>' | '=' | '!') {
                    break;
                }
                if c == ')' {
                    return String::new();
                }
            }
        }
        let made = self.alternatives(chars);
        chars.next_if_eq(&')');
        made
    }

    fn class(&mut self, chars: &mut Peekable<Chars<'_>>) -> String {
        let negated = chars.next_if_eq(&'^').is_some();
        let mut members: Vec<char> = Vec::new();
        while let Some(c) = chars.next() {
            match c {
                ']' => break,
                '\\' => members.extend(self.escape(chars).chars()),
                '-' if !members.is_empty() && chars.peek().is_some_and(|next| *next != ']') => {
                    if let (Some(from), Some(to)) = (members.pop(), chars.next()) {
                        members.extend((from..=to).take(128));
                    }
                }
                other => members.push(other),
            }
        }
        let chosen = if negated {
            ('a'..='z').chain('0'..='9').find(|c| !members.contains(c))
        } else {
            self.rng.choose(&members).copied()
        };
        chosen.map(String::from).unwrap_or_default()
    }

    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) -> String {
        match chars.next() {
            Some('d') => self.rng.below(10).to_string(),
            Some('w' | 'D' | 'S') => "a".to_owned(),
            Some('s' | 'W') => " ".to_owned(),
            Some('n') => "\n".to_owned(),
            Some('t') => "\t".to_owned(),
            Some('b' | 'B') | None => String::new(),
            Some(other) => other.to_string(),
        }
    }
}

/// How often the atom before may stand: `*` and `+` are kept small.
fn counts(chars: &mut Peekable<Chars<'_>>) -> (u64, u64) {
    let counts = match chars.peek() {
        Some('?') => (0, 1),
        Some('*') => (0, 2),
        Some('+') => (1, 3),
        Some('{') => {
            chars.next();
            let inside: String = chars.by_ref().take_while(|c| *c != '}').collect();
            let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
            let least = least.trim().parse().unwrap_or(1_u64).min(LENGTH_MAX as u64);
            let most = most
                .trim()
                .parse()
                .unwrap_or(least + 2)
                .min(LENGTH_MAX as u64);
            chars.next_if_eq(&'?');
            return (least, most.max(least));
        }
        _ => return (1, 1),
    };
    chars.next();
    chars.next_if_eq(&'?');
    counts
}
