//! Percentiles, medians with their quartiles, and numbers as a table shows them.

use serde::{Deserialize, Serialize};

/// Percentiles of many values, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub p50: f64,
    pub p99: f64,
}

/// The middle of some values, and between which two the middle half of them lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quartiles {
    pub low: f64,
    pub middle: f64,
    pub high: f64,
    pub count: usize,
}

// === impl Spread ===

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

// === impl Quartiles ===

impl Quartiles {
    /// `None` of nothing.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * values.len().checked_sub(1)? as f64;
            let below = values.get(place.floor() as usize)?;
            let above = values.get(place.ceil() as usize)?;
            Some(below + (above - below) * place.fract())
        };
        Some(Self {
            low: at(0.25)?,
            middle: at(0.5)?,
            high: at(0.75)?,
            count: values.len(),
        })
    }

    /// Neither middle lies within the other's middle half.
    pub fn differs_from(&self, other: &Self) -> bool {
        let within = |of: &Self, value: f64| (of.low..=of.high).contains(&value);
        !within(self, other.middle) && !within(other, self.middle)
    }
}

/// The middle value; `None` of nothing.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    Quartiles::of(values).map(|quartiles| quartiles.middle)
}

/// Three figures and thousands, as people read them.
pub fn show(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(0.0) => "0".to_owned(),
        Some(value) if value.abs() < 10.0 => format!("{value:.2}"),
        Some(value) if value.abs() < 100.0 => format!("{value:.1}"),
        Some(value) => thousands(value.round() as i64),
    }
}

/// The same with the quartiles behind it.
pub fn show_spread(value: Option<Quartiles>) -> String {
    match value {
        None => "-".to_owned(),
        Some(of) => format!(
            "{} ({} to {})",
            show(Some(of.middle)),
            show(Some(of.low)),
            show(Some(of.high))
        ),
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
