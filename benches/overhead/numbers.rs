//! Percentiles, medians, and numbers as a table shows them.

use serde::Serialize;

/// Percentiles of many values, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    pub p50: f64,
    pub p99: f64,
}

impl Spread {
    /// Of values in nanoseconds.
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let at = |percent: usize| {
            let index = (values.len() * percent / 100).min(values.len().saturating_sub(1));
            values.get(index).map_or(0.0, |ns| *ns as f64 / 1000.0)
        };
        Self {
            p50: at(50),
            p99: at(99),
        }
    }
}

/// The middle value; `None` of nothing.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.retain(|value| value.is_finite());
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    values
        .get(middle - 1)
        .map(|lower| f64::midpoint(*lower, upper))
}

/// Three figures and thousands, as people read them.
pub fn show(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) if value.abs() < 100.0 => format!("{value:.1}"),
        Some(value) => thousands(value.round() as i64),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}
