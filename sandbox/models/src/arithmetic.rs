//! Sums in a prompt, worked out in whole numbers.
//!
//! Promise: an expression is either computed exactly or left alone; a division that leaves a rest is told
//! with the rest.

use super::prompt;

/// The first expression of the text and its value, for example `("12 + 30", "42")`.
pub fn solve(text: &str) -> Option<(String, String)> {
    expression(text).or_else(|| listed_sum(text))
}

/// `sum of 3, 4 and 5`, `add 2 and 9`.
fn listed_sum(text: &str) -> Option<(String, String)> {
    if !prompt::has_word(text, "sum add total plus") {
        return None;
    }
    let numbers: Vec<i128> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|run| run.parse().ok())
        .collect();
    if numbers.len() < 2 {
        return None;
    }
    let sum = numbers
        .iter()
        .try_fold(0_i128, |sum, n| sum.checked_add(*n))?;
    let shown: Vec<String> = numbers.iter().map(i128::to_string).collect();
    Some((shown.join(" + "), sum.to_string()))
}

fn expression(text: &str) -> Option<(String, String)> {
    let mut runs = text.split(|c: char| !(c.is_ascii_digit() || " +-*/x×÷()".contains(c)));
    runs.find_map(|run| {
        let run = run.trim_matches(|c: char| !(c.is_ascii_digit() || "()".contains(c)));
        let digits_first = run.starts_with(|c: char| c.is_ascii_digit() || c == '(');
        let operator = run.contains(['+', '-', '*', '/', 'x', '×', '÷']);
        if !digits_first || !operator {
            return None;
        }
        let mut parser = Parser {
            rest: run,
            depth: 0,
        };
        let value = parser.sum()?;
        parser
            .rest
            .trim()
            .is_empty()
            .then(|| (run.to_owned(), value.show()))
    })
}

/// An exact fraction, so that `7 / 2 * 2` is 7.
#[derive(Clone, Copy)]
struct Fraction {
    top: i128,
    bottom: i128,
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

// === impl Fraction ===

impl Fraction {
    fn show(self) -> String {
        let whole = self.top.checked_div(self.bottom).unwrap_or(0);
        match self.top.checked_rem(self.bottom) {
            Some(0) | None => whole.to_string(),
            Some(rest) => format!("{whole} with a rest of {rest} over {}", self.bottom),
        }
    }
}

// === impl Parser ===

impl Parser<'_> {
    fn next_is(&mut self, any_of: &[char]) -> Option<char> {
        let rest = self.rest.trim_start();
        let c = rest.chars().next().filter(|c| any_of.contains(c))?;
        self.rest = rest.get(c.len_utf8()..)?;
        Some(c)
    }

    fn sum(&mut self) -> Option<Fraction> {
        let mut left = self.product()?;
        while let Some(sign) = self.next_is(&['+', '-']) {
            let right = self.product()?;
            let (a, b) = (
                left.top.checked_mul(right.bottom)?,
                right.top.checked_mul(left.bottom)?,
            );
            let top = if sign == '+' {
                a.checked_add(b)?
            } else {
                a.checked_sub(b)?
            };
            left = Fraction {
                top,
                bottom: left.bottom.checked_mul(right.bottom)?,
            };
        }
        Some(left)
    }

    fn product(&mut self) -> Option<Fraction> {
        let mut left = self.atom()?;
        while let Some(sign) = self.next_is(&['*', '/', 'x', '×', '÷']) {
            let right = self.atom()?;
            let (top, bottom) = match sign {
                '/' | '÷' => (right.bottom, right.top),
                _ => (right.top, right.bottom),
            };
            if bottom == 0 {
                return None;
            }
            left = Fraction {
                top: left.top.checked_mul(top)?,
                bottom: left.bottom.checked_mul(bottom)?,
            };
        }
        Some(left)
    }

    fn atom(&mut self) -> Option<Fraction> {
        if self.next_is(&['(']).is_some() {
            // A prompt of a million brackets must not use up the stack.
            self.depth += 1;
            if self.depth > 32 {
                return None;
            }
            let inner = self.sum()?;
            self.next_is(&[')'])?;
            self.depth -= 1;
            return Some(inner);
        }
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at_checked(end)?;
        let top = digits.parse().ok()?;
        self.rest = rest;
        Some(Fraction { top, bottom: 1 })
    }
}

#[cfg(test)]
mod tests;
