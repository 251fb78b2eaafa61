use super::*;

#[test]
fn what_is_not_in_the_sum_and_what_is_in_it_twice_is_said_where_there_is_some() {
    let lost = "1 range is lost: what that cost is not in the sum.";
    let all = "12 lines are not there yet, 1 request has no end there, 2 ranges are lost: what that cost is not in the sum.";
    let twice = "$0.000050 of it are of keys with an amount on two machines, which the service billed once.";
    // Lines behind, under way, losses, counted twice; and what is said.
    type Case<'a> = ((u64, u64, u64, u128), &'a [&'a str]);
    let cases: [Case<'_>; 4] = [
        ((0, 0, 0, 0), &[]),
        ((0, 0, 1, 0), &[lost]),
        ((12, 1, 2, 50), &[all, twice]),
        ((0, 0, 0, 50), &[twice]),
    ];
    for ((lines_behind, under_way, losses, counted_twice), wanted) in cases {
        let apart = Apart {
            lines_behind,
            under_way: Some(under_way),
            losses,
            counted_twice: Some(MicroUsdSum::from_micro_usd(counted_twice)),
        };
        assert_eq!(apart.lines(), wanted);
    }
    let unknown = Apart {
        lines_behind: 0,
        under_way: None,
        losses: 0,
        counted_twice: None,
    };
    let said = unknown.lines().join("");
    assert!(said.contains("did not say within 5 s"), "{said}");
}

#[test]
fn without_a_period_there_are_several_whole_rows_as_of_one_ledger() {
    // 2026-11-26.
    let now_ms = 1_795_651_200_000;
    let rows = [
        (&[FleetBy::Host][..], "today"),
        (&[FleetBy::Host, FleetBy::Hour], "today"),
        (&[FleetBy::Host, FleetBy::Day], "this month"),
        (&[FleetBy::Week], "2026-W01"),
        (&[FleetBy::Month, FleetBy::Host], "this year"),
    ];
    for (by, since) in rows {
        let found = since_of_fleet(by, now_ms, &TimeZone::UTC);
        assert_eq!(found, since, "{by:?}");
    }
}
