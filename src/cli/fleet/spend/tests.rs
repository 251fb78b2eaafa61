use super::*;

#[test]
fn what_is_not_in_the_sum_and_what_is_in_it_twice_is_said_where_there_is_some() {
    let lost = "1 range is lost: what that cost is not in the sum.";
    let both = "12 lines are not there yet, 2 ranges are lost: what that cost is not in the sum.";
    let twice = "$0.000050 of it are of keys with an amount on two machines, which the service billed once.";
    // Lines behind, losses, counted twice; and what is said.
    type Case<'a> = ((u64, u64, u128), &'a [&'a str]);
    let cases: [Case<'_>; 4] = [
        ((0, 0, 0), &[]),
        ((0, 1, 0), &[lost]),
        ((12, 2, 50), &[both, twice]),
        ((0, 0, 50), &[twice]),
    ];
    for ((lines_behind, losses, counted_twice), wanted) in cases {
        let apart = Apart {
            lines_behind,
            losses,
            counted_twice: Some(MicroUsdSum::from_micro_usd(counted_twice)),
        };
        assert_eq!(apart.lines(), wanted);
    }
    let unknown = Apart {
        lines_behind: 0,
        losses: 0,
        counted_twice: None,
    };
    let said = unknown.lines().join("");
    assert!(said.contains("did not say within 5 s"), "{said}");
}
