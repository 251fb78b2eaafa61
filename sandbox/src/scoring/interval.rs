//! How sure a mean is: a 95 % confidence interval.
//!
//! Interface, Eval result: `quality_ci_low`, `quality_ci_high`: "95% CI lower bound", "upper bound".
//! Assumed (confidence-interval): the percentile bootstrap of the mean with [`RESAMPLES`] resamples and a seed;
//! the interface names no method. Of fewer than two scores nothing is known of the spread: 0 to 1. Equal scores have
//! nothing to resample, and are no proof that there is no other score: of them Wilson's interval, of a share as high.
//! Promise: low <= mean <= high, all of them in [0, 1] and none of them NaN; equal scores and an equal seed give an
//! equal interval.

use super::score::number;
use crate::models::SeededRng;

pub const RESAMPLES: usize = 9_999;
/// What lies outside on each side.
const TAIL: f64 = 0.025;
/// The normal distribution's quantile of 1 - [`TAIL`].
const Z: f64 = 1.959_963_984_540_054;

/// A mean of scores, and where it would lie in 95 of 100 repetitions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// Of scores in [0, 1]. What lies outside is taken for the nearer end, NaN for 0.
pub fn interval(scores: &[f64], seed: u64) -> Interval {
    let scores: Vec<f64> = scores.iter().map(|score| bounded(*score)).collect();
    let Some((first, rest)) = scores.split_first() else {
        return Interval {
            mean: 0.0,
            low: 0.0,
            high: 1.0,
        };
    };
    if rest.is_empty() {
        return Interval {
            mean: *first,
            low: 0.0,
            high: 1.0,
        };
    }
    // Not by way of a sum, which could miss their value.
    if rest.iter().all(|score| score.total_cmp(first).is_eq()) {
        return wilson(*first, scores.len());
    }
    let mean = bounded(scores.iter().sum::<f64>() / number(scores.len()));
    let mut means = resampled(&scores, seed);
    means.sort_by(f64::total_cmp);
    Interval {
        mean,
        low: quantile(&means, TAIL).clamp(0.0, mean),
        high: quantile(&means, 1.0 - TAIL).clamp(mean, 1.0),
    }
}

/// The score interval of a share of `count` (E. B. Wilson, 1927). Scores in [0, 1] vary no more than right and wrong
/// of the same mean do, so that it is wide enough for all of them.
fn wilson(share: f64, count: usize) -> Interval {
    let per = Z * Z / number(count);
    let middle = (share + per / 2.0) / (1.0 + per);
    let half = (per * (share * (1.0 - share) + per / 4.0)).sqrt() / (1.0 + per);
    Interval {
        mean: share,
        low: (middle - half).clamp(0.0, share),
        high: (middle + half).clamp(share, 1.0),
    }
}

fn bounded(score: f64) -> f64 {
    if score.is_nan() {
        return 0.0;
    }
    score.clamp(0.0, 1.0)
}

/// The means of resamples, each as long as the sample and drawn with replacement.
fn resampled(scores: &[f64], seed: u64) -> Vec<f64> {
    let mut rng = SeededRng::from_parts(&[b"confidence interval", &seed.to_le_bytes()]);
    let count = number(scores.len());
    (0..RESAMPLES)
        .map(|_| {
            let drawn = std::iter::repeat_with(|| rng.choose(scores).copied().unwrap_or(0.0));
            drawn.take(scores.len()).sum::<f64>() / count
        })
        .collect()
}

/// Linear between the two nearest, as numpy's `percentile`. `sorted` is not empty.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a list: not negative and below its length"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * number(sorted.len().saturating_sub(1));
    let below = sorted.get(place.floor() as usize).copied().unwrap_or(0.0);
    let above = sorted.get(place.ceil() as usize).copied().unwrap_or(below);
    below + (above - below) * place.fract()
}
