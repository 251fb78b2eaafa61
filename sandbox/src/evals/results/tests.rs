use super::*;

#[test]
fn a_mean_cost_is_rounded_up_and_of_nothing_is_zero() {
    let tally = |micro: u64, answered| Tally {
        cost: MicroUsd::new(micro).unwrap(),
        answered,
        ..Tally::default()
    };
    for (micro, answered, expected) in [(0, 0, 0), (0, 3, 0), (1, 3, 1), (7, 2, 4), (8, 2, 4)] {
        let result = tally(micro, answered)
            .result("auto", Candidate::Auto)
            .unwrap();
        assert_eq!(
            result.mean_cost_micro_usd.get(),
            expected,
            "{micro}/{answered}"
        );
    }
}
