//! 95 % intervals.

use super::*;

const FULL: f64 = 1.0;
/// 1.959963984540054², the 0.95 quantile of chi-squared with one degree of freedom.
const CHI: f64 = 3.841_458_820_694_124;
/// 0.5 / √(1 + 4 / `CHI`).
const HALF_OF_4: f64 = 0.3499610108478505;

// Interface, Eval result: quality_mean, mean score in [0,1]; quality_ci_low, quality_ci_high, 95% CI bounds.
#[test]
fn an_interval_is_what_can_be_worked_out_by_hand() {
    let cases = [
        // Nothing is known.
        (vec![], (0.0, 0.0, FULL)),
        // Nothing is known of the spread.
        (vec![0.4], (0.4, 0.0, FULL)),
        // No spread is no proof of none. Wilson's interval; of all right its low is n / (n + 1.96²).
        (vec![1.0; 50], (1.0, 50.0 / (50.0 + CHI), FULL)),
        (vec![1.0; 2], (1.0, 2.0 / (2.0 + CHI), FULL)),
        (vec![0.0; 3], (0.0, 0.0, CHI / (3.0 + CHI))),
        // In the middle it is 0.5 ± 0.5 / √(1 + n / 1.96²).
        (vec![0.5; 4], (0.5, 0.5 - HALF_OF_4, 0.5 + HALF_OF_4)),
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
        (vec![f64::NAN; 2], (0.0, 0.0, CHI / (2.0 + CHI))),
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

/// What the promise of 95 % is worth where answers are mostly right: many samples have nothing but equal scores.
#[test]
fn the_interval_covers_the_true_mean_about_as_often_as_it_says() {
    const SAMPLES: u64 = 100;
    let mut rng = crate::models::SeededRng::from_parts(&[b"coverage"]);
    // Percent of right answers; answers of one sample; what one is worth that is half right, in percent.
    for (right, count, half) in [
        (50_u32, 30, 0_u32),
        (90, 10, 0),
        (95, 20, 0),
        (98, 30, 0),
        (5, 20, 0),
        (90, 10, 50),
        (95, 20, 80),
    ] {
        let wrong = f64::from(half) / 100.0;
        let share = f64::from(right) / 100.0;
        let mean = share + (1.0 - share) * wrong;
        let covered = (0..SAMPLES)
            .filter(|seed| {
                let scores: Vec<f64> = (0..count)
                    .map(|_| match rng.below(100) < u64::from(right) {
                        true => 1.0,
                        false => wrong,
                    })
                    .collect();
                let found = interval(&scores, *seed);
                (found.low..=found.high).contains(&mean)
            })
            .count();
        // Five standard errors of a true 0.95 are 11 samples.
        assert!(covered >= 90, "{right} % of {count}, {half}: {covered}");
    }
}
