use super::*;

#[test]
fn a_cost_is_rounded_up_once() {
    let price = Price {
        prompt_per_million: 200_000,
        completion_per_million: 600_000,
    };

    assert_eq!(price.cost(0, 0), Some(MicroUsd::ZERO));
    assert_eq!(price.cost(1, 0), MicroUsd::new(1)); // 0.2
    assert_eq!(price.cost(1, 1), MicroUsd::new(1)); // 0.8, not 1 + 1
    assert_eq!(price.cost(5, 5), MicroUsd::new(4)); // exactly 4
    assert_eq!(price.cost(u64::MAX, u64::MAX), None);
}

#[test]
fn an_amount_that_does_not_fit_is_refused() {
    assert_eq!(MicroUsd::new(u64::MAX), None);
    assert_eq!(MicroUsd(i64::MAX).checked_add(MicroUsd(1)), None);
}
