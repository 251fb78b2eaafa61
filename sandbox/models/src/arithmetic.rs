//! Sums in a prompt, worked out in whole numbers.
//!
//! Promise: an expression is either computed exactly or left alone, as one is whose division leaves a rest.

use super::text;

/// Brackets in brackets: a prompt of a million must not use up the stack.
const DEPTH_MAX: u32 = 32;

/// The first expression of the text and its value, for example `("12 + 30", 42)`.
pub fn solve(text: &str) -> Option<(String, i128)> {
    let mut runs = text.split(|c: char| !(c.is_ascii_digit() || " +-*/x×÷()".contains(c)));
    runs.find_map(expression).or_else(|| listed_sum(text))
}

/// `sum of 3, 4 and 5`, `add 2 and 9`.
fn listed_sum(text: &str) -> Option<(String, i128)> {
    let digits = text.split(|c: char| !c.is_ascii_digit());
    let numbers: Vec<i128> = digits.filter_map(|run| run.parse().ok()).collect();
    if numbers.len() < 2 || !text::has_word(text, "sum add total plus") {
        return None;
    }
    let sum = numbers
        .iter()
        .try_fold(0_i128, |sum, n| sum.checked_add(*n))?;
    let shown: Vec<String> = numbers.iter().map(i128::to_string).collect();
    Some((shown.join(" + "), sum))
}

fn expression(run: &str) -> Option<(String, i128)> {
    let run = run.trim_matches(|c: char| !(c.is_ascii_digit() || "()".contains(c)));
    if !run.contains(['+', '-', '*', '/', 'x', '×', '÷']) {
        return None;
    }
    let (value, rest) = sum(run, 0)?;
    rest.trim().is_empty().then(|| (run.to_owned(), value))
}

/// The first sign of a text if it is one of these, and what stands behind it.
fn sign<'a>(text: &'a str, any_of: &[char]) -> Option<(char, &'a str)> {
    let text = text.trim_start();
    let sign = text.chars().next().filter(|c| any_of.contains(c))?;
    Some((sign, text.get(sign.len_utf8()..)?))
}

/// The value of a sum at the beginning of a text, and what stands behind it.
fn sum(text: &str, depth: u32) -> Option<(i128, &str)> {
    let (mut left, mut rest) = product(text, depth)?;
    while let Some((sign, behind)) = sign(rest, &['+', '-']) {
        let (right, behind) = product(behind, depth)?;
        let sum = if sign == '+' {
            left.checked_add(right)
        } else {
            left.checked_sub(right)
        };
        (left, rest) = (sum?, behind);
    }
    Some((left, rest))
}

fn product(text: &str, depth: u32) -> Option<(i128, &str)> {
    let (mut left, mut rest) = number(text, depth)?;
    while let Some((sign, behind)) = sign(rest, &['*', '/', 'x', '×', '÷']) {
        let (right, behind) = number(behind, depth)?;
        let product = match sign {
            '/' | '÷' if left.checked_rem(right)? == 0 => left.checked_div(right),
            '/' | '÷' => None,
            _ => left.checked_mul(right),
        };
        (left, rest) = (product?, behind);
    }
    Some((left, rest))
}

fn number(text: &str, depth: u32) -> Option<(i128, &str)> {
    if let Some((_, inner)) = sign(text, &['(']) {
        if depth == DEPTH_MAX {
            return None;
        }
        let (value, rest) = sum(inner, depth + 1)?;
        return Some((value, sign(rest, &[')'])?.1));
    }
    let text = text.trim_start();
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

#[cfg(test)]
mod tests;
