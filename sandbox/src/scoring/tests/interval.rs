//! 95 % intervals.

use super::*;

const FULL: f64 = 1.0;

// Interface, Eval result: quality_mean, mean score in [0,1]; quality_ci_low, quality_ci_high, 95% CI bounds.
#[test]
fn an_interval_is_what_can_be_worked_out_by_hand() {
    let cases = [
        // Nothing is known.
        (vec![], (0.0, 0.0, FULL)),
        // Nothing is known of the spread.
        (vec![0.4], (0.4, 0.0, FULL)),
        // No spread: every resample has this mean, exactly.
        (vec![0.1; 10], (0.1, 0.1, 0.1)),
        (vec![0.0; 3], (0.0, 0.0, 0.0)),
        (vec![1.0; 50], (1.0, 1.0, 1.0)),
        // Means 0, 0.5 and 1 with 1/4, 1/2 and 1/4: both tails are above 2.5 %.
        (vec![0.0, 1.0], (0.5, 0.0, 1.0)),
        // All three equal in 1 of 27 resamples, above 2.5 %.
        (vec![0.0, 0.0, 1.0], (1.0 / 3.0, 0.0, 1.0)),
        (vec![0.2, 0.5, 0.8], (0.5, 0.2, 0.8)),
        // Four: all 1 in 1 of 256 (below 2.5 %), three in 12 of 256 more (above): high is 0.75.
        (vec![0.0, 0.0, 0.0, 1.0], (0.25, 0.0, 0.75)),
        // What is no score is taken for the nearest.
        (vec![f64::NAN, f64::INFINITY], (0.5, 0.0, 1.0)),
        (vec![-3.0, 7.0], (0.5, 0.0, 1.0)),
        (vec![f64::NAN; 2], (0.0, 0.0, 0.0)),
    ];
    for (scores, (mean, low, high)) in cases {
        let found = interval(&scores, 7);
        let near = |one: f64, two: f64| (one - two).abs() < 1e-12;
        assert!(
            near(found.mean, mean) && near(found.low, low) && near(found.high, high),
            "{scores:?}: {found:?}"
        );
    }
}

#[test]
fn an_equal_seed_gives_an_equal_interval_and_more_rows_a_narrower_one() {
    let few: Vec<f64> = (0..10).map(|at| f64::from(at % 4) / 3.0).collect();
    let many: Vec<f64> = (0..400).map(|at| f64::from(at % 4) / 3.0).collect();

    assert_eq!(interval(&few, 1), interval(&few, 1));
    assert_ne!(interval(&many, 1), interval(&many, 2));
    let width = |scores: &[f64]| {
        let found = interval(scores, 1);
        found.high - found.low
    };
    assert!(width(&many) < width(&few) / 4.0);
}

#[test]
fn the_interval_covers_the_true_mean_about_as_often_as_it_says() {
    // Of 60 samples of 30 fair coins, 95 % of the intervals should hold 0.5: 57, with a spread of 1.7.
    let mut rng = crate::models::SeededRng::from_parts(&[b"coverage"]);
    let covered = (0..60)
        .filter(|seed| {
            let coins: Vec<f64> = (0..30)
                .map(|_| if rng.below(2) == 1 { 1.0 } else { 0.0 })
                .collect();
            let found = interval(&coins, *seed);
            (found.low..=found.high).contains(&0.5)
        })
        .count();
    assert!((51..=59).contains(&covered), "{covered}");
}
